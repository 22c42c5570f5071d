//! Each step of the schema can be taken back: what `down.sql` leaves is what was there before.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

use std::{fs, path::PathBuf};

use diesel::{
    Connection as _, QueryableByName, RunQueryDsl as _, SqliteConnection,
    connection::SimpleConnection as _, sql_query, sql_types::Text,
};

/// Columns, keys, checks and indexes of all tables, one a line.
const POSTGRES_SHAPE: &str = "
    SELECT format('%s.%s %s %s %s', table_name, column_name, data_type, is_nullable,
                  column_default) AS line
    FROM information_schema.columns WHERE table_schema = 'public'
    UNION ALL SELECT format('%s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY line";

const SQLITE_SHAPE: &str = "
    SELECT m.name || '.' || c.name || ' ' || c.type || c.\"notnull\" || coalesce(c.dflt_value, '')
           || c.pk AS line
    FROM sqlite_master m JOIN pragma_table_info(m.name) c
    WHERE m.type = 'table' AND m.name <> 'sqlite_sequence'
    UNION ALL SELECT m.name || ' ' || f.\"from\" || ' to ' || f.\"table\"
    FROM sqlite_master m JOIN pragma_foreign_key_list(m.name) f
    UNION ALL SELECT m.name || ' on ' || m.tbl_name || ' ' || coalesce(m.sql, '')
    FROM sqlite_master m WHERE m.type = 'index' AND m.sql IS NOT NULL ORDER BY line";

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    line: String,
}

/// Applies a step: its statements one by one where they cannot be in a transaction.
async fn apply(client: &tokio_postgres::Client, step: &str) {
    let statements: Vec<&str> = match step.strip_prefix("-- avouch:concurrently\n") {
        Some(statements) => statements.split_terminator(";\n").collect(),
        None => vec![step],
    };
    for statement in statements {
        client.batch_execute(statement).await.unwrap();
    }
}

#[tokio::test]
async fn steps_of_postgres_can_be_taken_back() {
    let server = std::env::var("TEST_DATABASE_URL").unwrap_or_else(|_| {
        panic!("TEST_DATABASE_URL must name a PostgreSQL server: run `cargo xtask test`")
    });
    let name = format!("test_{}", uuid::Uuid::new_v4().simple());
    let open = async |url: &str| {
        let (client, connection) =
            tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    };
    open(&server).await.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    let mut url = url::Url::parse(&server).unwrap();
    url.set_path(&name);
    let client = open(url.as_str()).await;
    let shape = async || {
        let rows = client.query(POSTGRES_SHAPE, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect::<Vec<String>>()
    };
    for (step, up, down) in steps("postgres") {
        let before = shape().await;
        apply(&client, &up).await;
        let after = shape().await;
        assert_ne!(before, after, "{step} does something");
        client.batch_execute(&down).await.unwrap();
        assert_eq!(shape().await, before, "{step} back");
        apply(&client, &up).await;
        assert_eq!(shape().await, after, "{step} again");
    }
}

#[test]
fn steps_of_sqlite_can_be_taken_back() {
    let mut database = SqliteConnection::establish(":memory:").unwrap();
    for (step, up, down) in steps("sqlite") {
        let before = sqlite_shape(&mut database);
        database.batch_execute(&up).unwrap();
        let after = sqlite_shape(&mut database);
        // A step that only PostgreSQL needs has the same number here.
        assert_eq!(before == after, up.starts_with("-- Only PostgreSQL"), "{step}");
        database.batch_execute(&down).unwrap();
        assert_eq!(sqlite_shape(&mut database), before, "{step} back");
        database.batch_execute(&up).unwrap();
        assert_eq!(sqlite_shape(&mut database), after, "{step} again");
    }
}

fn sqlite_shape(database: &mut SqliteConnection) -> Vec<String> {
    let lines: Vec<Line> = sql_query(SQLITE_SHAPE).load(database).unwrap();
    lines.into_iter().map(|line| line.line).collect()
}

/// Name, way there and way back, in their order.
fn steps(database: &str) -> Vec<(String, String, String)> {
    let all = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../migrations").join(database);
    let mut steps: Vec<_> = fs::read_dir(all).unwrap().map(|step| step.unwrap().path()).collect();
    steps.sort();
    assert!(steps.len() >= 6, "{steps:?}");
    let read = |step: PathBuf| {
        let [up, down] =
            ["up.sql", "down.sql"].map(|file| fs::read_to_string(step.join(file)).unwrap());
        (step.file_name().unwrap().to_string_lossy().into_owned(), up, down)
    };
    steps.into_iter().map(read).collect()
}
