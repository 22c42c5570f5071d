//! What the data of a complete run lacks.

use domain::workflow::{Definition, FieldType};
use serde::Serialize;
use serde_json::Value;

/// Columns that are listed at most.
const MAX_COLUMNS: usize = 100;

/// What a run has not read of the fields of its definition. It is not an error: each of them is optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Missing {
    /// The names of the fields, and of the members of objects as `address.city`.
    fields: Vec<String>,
    /// The columns of lists that some rows lack.
    columns: Vec<MissingColumn>,
}

/// A column that rows of a list lack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissingColumn {
    list: String,
    column: String,
    /// The rows without it.
    missing: usize,
    /// All rows of the list.
    rows: usize,
}

/// Returns the columns of lists that some rows of the data of a run lack, with the numbers of these rows and of
/// all: at most 100, in the order in which applicants see them.
#[must_use]
pub fn missing_columns(definition: &Definition, data: &Value) -> Vec<MissingColumn> {
    Missing::of(definition, data).columns
}

impl Missing {
    /// Returns what the data of a run lacks, in the order in which applicants see it.
    pub(super) fn of(definition: &Definition, data: &Value) -> Self {
        let mut missing = Self::default();
        for (name, field) in definition.ordered_output() {
            let Some(value) = data.get(name) else {
                missing.fields.push(name.clone());
                continue;
            };
            for (member, _) in field.ordered_members() {
                match field.kind {
                    FieldType::List => missing.add_column(name, member, value),
                    FieldType::Object if value.get(member).is_none() => {
                        missing.fields.push(format!("{name}.{member}"));
                    }
                    FieldType::Object
                    | FieldType::String
                    | FieldType::Integer
                    | FieldType::Number
                    | FieldType::Boolean => (),
                }
            }
        }
        missing
    }

    fn add_column(&mut self, list: &str, column: &str, value: &Value) {
        let rows = value.as_array().map(Vec::as_slice).unwrap_or_default();
        let without = rows.iter().filter(|row| row.get(column).is_none()).count();
        if without > 0 && self.columns.len() < MAX_COLUMNS {
            let (list, column) = (list.to_owned(), column.to_owned());
            self.columns.push(MissingColumn { list, column, missing: without, rows: rows.len() });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tests::changes::with_orders;

    fn missing(data: &Value) -> Value {
        serde_json::to_value(Missing::of(&with_orders(), data)).unwrap()
    }

    #[test]
    fn fields_and_columns_without_a_value_are_counted() {
        let complete = json!({ "tier": "gold", "orders": [{ "number": "1", "total": "2" }] });
        assert_eq!(missing(&complete), json!({ "fields": [], "columns": [] }));
        let rows = json!([{ "number": "1" }, { "number": "2", "total": "3" }, { "number": "3" }]);
        let total = json!({ "list": "orders", "column": "total", "missing": 2, "rows": 3 });
        let expected = json!({ "fields": ["tier"], "columns": [total] });
        let data = json!({ "orders": rows });
        assert_eq!(missing(&data), expected);
        let columns = missing_columns(&with_orders(), &data);
        assert_eq!(serde_json::to_value(columns).unwrap(), expected["columns"]);
        let expected = json!({ "fields": ["orders"], "columns": [] });
        assert_eq!(missing(&json!({ "tier": "gold" })), expected);
        let expected = json!({ "fields": [], "columns": [] });
        assert_eq!(missing(&json!({ "tier": "gold", "orders": [] })), expected, "no row lacks it");
    }

    #[test]
    fn the_members_of_an_object_are_named_with_it() {
        let mut definition = with_orders();
        definition.output.get_mut("orders").unwrap().kind = FieldType::Object;
        let data = json!({ "tier": "gold", "orders": { "number": "1" } });
        let missing = serde_json::to_value(Missing::of(&definition, &data)).unwrap();
        assert_eq!(missing, json!({ "fields": ["orders.total"], "columns": [] }));
    }
}
