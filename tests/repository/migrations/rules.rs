//! What a migration may do while processes of the release before run beside those of the new one.

use std::{collections::BTreeSet, iter};

use sqlparser::{
    ast::{
        AlterColumnOperation, AlterTable, AlterTableOperation, ColumnDef, ColumnOption,
        CreateIndex, CreateTable, Expr, ForeignKeyConstraint, ObjectName, ObjectType,
        ReferentialAction, Statement, TableConstraint, TableFactor, TableObject,
    },
    dialect::{Dialect, PostgreSqlDialect, SQLiteDialect},
    parser::Parser,
};

/// The databases that migrations are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Database {
    Postgres,
    Sqlite,
}

/// What the comments at the beginning of a migration declare.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Directives {
    /// `-- avouch:concurrently`: the statements run one by one outside of a transaction.
    pub(super) concurrently: bool,
    /// `-- avouch:contract-of MIGRATION since RELEASE`: what is removed or restricted has not been used
    /// since that release.
    pub(super) contract: Option<(String, String)>,
    /// `-- avouch:few-rows TABLE: reason`: rows of these tables may be rewritten.
    pub(super) few_rows: BTreeSet<String>,
    /// `-- avouch:partition TABLE`: the table becomes the first partition of one with its name, by
    /// a function of the migration.
    pub(super) partitions: bool,
}

impl Directives {
    /// Reads the comments before the first statement; an error is a line that is not understood.
    pub(super) fn of(sql: &str) -> Result<Self, String> {
        let mut directives = Self::default();
        for (number, line) in sql.lines().take_while(|line| line.starts_with("--")).enumerate() {
            let Some(directive) = line.strip_prefix("-- avouch:") else { continue };
            let unknown = || format!("`{line}` is not understood");
            let (word, rest) = directive.split_once(' ').unwrap_or((directive, ""));
            match word {
                // The program looks at the first line only.
                "concurrently" if rest.is_empty() && number == 0 => directives.concurrently = true,
                "contract-of" => {
                    let (of, since) = rest.split_once(" since ").ok_or_else(unknown)?;
                    directives.contract = Some((of.to_owned(), since.to_owned()));
                }
                "partition" if !rest.is_empty() => directives.partitions = true,
                "few-rows" => {
                    let (table, reason) = rest.split_once(": ").ok_or_else(unknown)?;
                    if reason.trim().is_empty() {
                        return Err(unknown());
                    }
                    directives.few_rows.insert(table.to_owned());
                }
                _ => return Err(unknown()),
            }
        }
        Ok(directives)
    }
}

/// A migration, as far as the rules are concerned.
pub(super) struct Rules<'a> {
    pub(super) database: Database,
    pub(super) directives: &'a Directives,
    /// The tables from which the release before deletes rows.
    pub(super) deleted_from: &'a BTreeSet<String>,
}

impl Rules<'_> {
    /// Returns what in a migration is forbidden, in words.
    pub(super) fn faults(&self, sql: &str) -> Vec<String> {
        let dialect: &dyn Dialect = match self.database {
            Database::Postgres => &PostgreSqlDialect {},
            Database::Sqlite => &SQLiteDialect {},
        };
        if self.directives.concurrently {
            return self.concurrent(sql);
        }
        let statements = match Parser::parse_sql(dialect, sql) {
            Ok(statements) => statements,
            Err(error) => return vec![format!("it cannot be parsed: {error}")],
        };
        let own = statements.iter().filter_map(|statement| match statement {
            Statement::CreateTable(table) => Some(name(&table.name)),
            Statement::CreateFunction(function) => Some(name(&function.name)),
            _ => None,
        });
        let own: BTreeSet<_> = own.collect();
        let faults = statements.iter().flat_map(|statement| {
            let faults = self.statement(statement, &own);
            faults.into_iter().map(move |fault| format!("{fault}: {}", shortened(statement)))
        });
        faults.collect()
    }

    /// Outside of a transaction an index is created or removed, and nothing else: it is removed first,
    /// so that an attempt can be repeated. The text is split as the program does it.
    fn concurrent(&self, sql: &str) -> Vec<String> {
        let lines = sql.lines().filter(|line| !line.trim_start().starts_with("--"));
        let text = lines.collect::<Vec<_>>().join("\n");
        let statements = text.split(';').map(str::trim).filter(|statement| !statement.is_empty());
        let statements: Vec<_> = statements.collect();
        // The parser does not know this statement.
        let dropped = |statement: &str| {
            let name = statement.strip_prefix("DROP INDEX CONCURRENTLY IF EXISTS ")?;
            name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_').then(|| name.to_owned())
        };
        let creates = |statement: &str, name: &str| {
            let parsed = Parser::parse_sql(&PostgreSqlDialect {}, statement).unwrap_or_default();
            let [Statement::CreateIndex(index)] = &*parsed else { return false };
            let same = index.name.as_ref().is_some_and(|created| created.to_string() == name);
            same && index.concurrently && !index.if_not_exists && self.may_be_unique(index)
        };
        let fine = match (statements.first().and_then(|first| dropped(first)), &*statements) {
            (Some(_), [_]) => self.directives.contract.is_some(),
            (Some(name), [_, second]) => creates(second, &name),
            _ => false,
        };
        if fine {
            return vec![];
        }
        let shape = "outside of a transaction there are two statements: DROP INDEX CONCURRENTLY IF \
                     EXISTS name, and CREATE INDEX CONCURRENTLY name; the first alone, or a unique \
                     index, only as a contract step";
        vec![shape.to_owned()]
    }

    fn statement(&self, statement: &Statement, own: &BTreeSet<String>) -> Vec<String> {
        match statement {
            Statement::CreateTable(table) => self.new_table(table, own),
            Statement::CreateIndex(index) => self.new_index(index, own),
            Statement::AlterTable(altered) => self.altered(altered, own),
            Statement::Insert(insert) => match &insert.table {
                TableObject::TableName(table) => self.rows(&name(table), own),
                _ => vec!["rows are written to something else than a table".to_owned()],
            },
            Statement::Update(update) => self.rows(&factor(&update.table.relation), own),
            Statement::Delete(delete) => {
                let tables = match &delete.from {
                    sqlparser::ast::FromTable::WithFromKeyword(tables)
                    | sqlparser::ast::FromTable::WithoutKeyword(tables) => tables,
                };
                tables.iter().flat_map(|table| self.rows(&factor(&table.relation), own)).collect()
            }
            Statement::CreateFunction(function) if !function.or_replace => vec![],
            Statement::CreateTrigger(trigger) if own.contains(&name(&trigger.table_name)) => vec![],
            Statement::Comment { .. } => vec![],
            Statement::CreateView(view) if !view.or_replace && !view.materialized => vec![],
            Statement::Query(query) if self.directives.partitions => {
                let text = query.to_string();
                let call = text.strip_prefix("SELECT ").and_then(|call| call.strip_suffix("()"));
                if call.is_some_and(|called| own.contains(called)) {
                    return vec![];
                }
                vec!["only a function of the migration itself is called".to_owned()]
            }
            Statement::DropFunction(drop)
                if drop.func_desc.iter().all(|function| own.contains(&name(&function.name))) =>
            {
                vec![]
            }
            Statement::Drop { object_type: ObjectType::Table | ObjectType::Index, .. } => {
                self.contract_only("what the release before may use is removed")
            }
            _ => vec!["this kind of statement is not known to be compatible".to_owned()],
        }
    }

    fn contract_only(&self, fault: &str) -> Vec<String> {
        if self.directives.contract.is_some() {
            return vec![];
        }
        vec![format!("{fault}; only a contract step may")]
    }

    fn rows(&self, table: &str, own: &BTreeSet<String>) -> Vec<String> {
        if own.contains(table) || self.directives.few_rows.contains(table) {
            return vec![];
        }
        vec![format!("rows of {table} stay locked until the end, and are many unless `few-rows`")]
    }

    fn new_table(&self, table: &CreateTable, own: &BTreeSet<String>) -> Vec<String> {
        let in_columns = table.columns.iter().flat_map(|column| &column.options);
        let in_columns = in_columns.filter_map(|option| match &option.option {
            ColumnOption::ForeignKey(key) => Some(key),
            _ => None,
        });
        let in_table = table.constraints.iter().filter_map(|constraint| match constraint {
            TableConstraint::ForeignKey(key) => Some(key),
            _ => None,
        });
        let from_query = table.query.as_ref().map(|_| "a table is filled by a query".to_owned());
        let keys = in_columns.chain(in_table).filter_map(|key| self.foreign_key(key, own));
        from_query.into_iter().chain(keys).collect()
    }

    /// A row of a new table must not keep the release before from deleting what it refers to.
    fn foreign_key(&self, key: &ForeignKeyConstraint, own: &BTreeSet<String>) -> Option<String> {
        let table = name(&key.foreign_table);
        let follows =
            matches!(key.on_delete, Some(ReferentialAction::Cascade | ReferentialAction::SetNull));
        if follows || own.contains(&table) || !self.deleted_from.contains(&table) {
            return None;
        }
        Some(format!(
            "the release before deletes from {table}: the reference needs ON DELETE CASCADE or SET \
             NULL"
        ))
    }

    fn may_be_unique(&self, index: &CreateIndex) -> bool {
        !index.unique || self.directives.contract.is_some()
    }

    fn new_index(&self, index: &CreateIndex, own: &BTreeSet<String>) -> Vec<String> {
        if own.contains(&name(&index.table_name)) {
            return vec![];
        }
        if !self.may_be_unique(index) {
            return vec![
                "the release before may write what a unique index refuses; only a contract step may"
                    .to_owned(),
            ];
        }
        match self.database {
            Database::Sqlite => vec![],
            Database::Postgres => vec![
                "writes wait until the index is made: create it CONCURRENTLY, in a migration of its \
                 own that begins with `-- avouch:concurrently`"
                    .to_owned(),
            ],
        }
    }

    fn altered(&self, altered: &AlterTable, own: &BTreeSet<String>) -> Vec<String> {
        let table = name(&altered.name);
        if own.contains(&table) {
            return vec![];
        }
        let few = self.directives.few_rows.contains(&table);
        altered
            .operations
            .iter()
            .flat_map(|operation| self.operation(operation, own, few))
            .collect()
    }

    fn operation(
        &self,
        operation: &AlterTableOperation,
        own: &BTreeSet<String>,
        few_rows: bool,
    ) -> Vec<String> {
        match operation {
            AlterTableOperation::AddColumn { column_def, .. } => {
                self.new_column(column_def, own).into_iter().collect()
            }
            AlterTableOperation::AlterColumn {
                op: AlterColumnOperation::SetDefault { value },
                ..
            } if is_constant(value) => vec![],
            AlterTableOperation::AlterColumn { op: AlterColumnOperation::SetNotNull, .. }
                if few_rows =>
            {
                self.contract_only("the release before may write NULL")
            }
            AlterTableOperation::AlterColumn {
                op: AlterColumnOperation::DropNotNull | AlterColumnOperation::DropDefault,
                ..
            } => self.contract_only("the release before expects a value"),
            AlterTableOperation::DropColumn { .. } | AlterTableOperation::DropConstraint { .. } => {
                self.contract_only("what the release before may use is removed")
            }
            AlterTableOperation::AddConstraint { not_valid: true, .. } => {
                self.contract_only("the release before may write what a constraint refuses")
            }
            AlterTableOperation::AddConstraint { not_valid: false, .. } => vec![
                "a constraint is checked on all rows under a lock: add it NOT VALID, and validate it \
                 in a later migration"
                    .to_owned(),
            ],
            // Reads and writes go on while rows are checked.
            AlterTableOperation::ValidateConstraint { .. } => vec![],
            _ => vec![
                "nothing is renamed or changed in its type: add a column or a table beside it"
                    .to_owned(),
            ],
        }
    }

    fn new_column(&self, column: &ColumnDef, own: &BTreeSet<String>) -> Option<String> {
        let options = || column.options.iter().map(|option| &option.option);
        let default = options().find_map(|option| match option {
            ColumnOption::Default(value) => Some(value),
            _ => None,
        });
        if options().any(|option| *option == ColumnOption::NotNull) && default.is_none() {
            return Some(
                "a new column is NULL or has a default: the release before writes none".into(),
            );
        }
        if default.is_some_and(|value| !is_constant(value)) {
            return Some("a default that differs from row to row rewrites the table".into());
        }
        options().find_map(|option| match option {
            ColumnOption::Null
            | ColumnOption::NotNull
            | ColumnOption::Default(_)
            | ColumnOption::Comment(_) => None,
            ColumnOption::ForeignKey(key) if default.is_none() => self.foreign_key(key, own),
            _ => Some(format!("a new column cannot have `{option}`: all rows would be read")),
        })
    }
}

/// Returns whether a default is the same for all rows, so that adding the column writes none of them.
fn is_constant(value: &Expr) -> bool {
    match value {
        Expr::Value(_) | Expr::TypedString(_) => true,
        Expr::UnaryOp { expr, .. } | Expr::Cast { expr, .. } => is_constant(expr),
        Expr::Function(function) => ["now", "current_timestamp"].contains(&&*name(&function.name)),
        _ => false,
    }
}

fn factor(table: &TableFactor) -> String {
    match table {
        TableFactor::Table { name: table, .. } => name(table),
        _ => table.to_string(),
    }
}

/// Returns a name without quotes and schema, in lower case.
fn name(name: &ObjectName) -> String {
    let text = name.to_string().replace('"', "").to_lowercase();
    text.rsplit('.').next().unwrap_or_default().to_owned()
}

fn shortened(statement: &Statement) -> String {
    let text = statement.to_string();
    let ends = text.chars().count() > 90;
    text.chars().take(90).chain(iter::repeat_n('…', usize::from(ends))).collect()
}
