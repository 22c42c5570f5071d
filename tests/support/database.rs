//! A database for each test, on SQLite or PostgreSQL.

use tempfile::TempDir;
use uuid::Uuid;

/// The kind of store that a test runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Sqlite,
    Postgres,
}

/// An empty database, removed with its folder, or with the server that `cargo xtask test` stops.
#[derive(Debug)]
pub struct Database {
    pub url: String,
}

impl Database {
    /// Creates an empty database.
    pub async fn new(kind: Kind, folder: &TempDir) -> Self {
        match kind {
            Kind::Sqlite => {
                Self { url: format!("sqlite://{}", folder.path().join("avouch.db").display()) }
            }
            Kind::Postgres => Self { url: postgres().await },
        }
    }

    /// Executes a statement that the service does not know of; on PostgreSQL.
    pub async fn execute(&self, statement: &str) {
        connect(&self.url).await.batch_execute(statement).await.expect("a statement");
    }

    /// Returns the text that a query has in its only row and column; on PostgreSQL.
    pub async fn value(&self, query: &str) -> String {
        connect(&self.url).await.query_one(query, &[]).await.expect("one row").get(0)
    }

    /// Returns everything that is stored as one text, for searches.
    pub async fn dump(&self) -> String {
        if self.url.starts_with("sqlite") {
            // SQLite's files are searched with all others of the data folder.
            return String::new();
        }
        let client = connect(&self.url).await;
        let tables = client
            .query("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'", &[])
            .await
            .expect("a list of tables");
        let mut dump = String::new();
        for table in tables {
            let table: String = table.get(0);
            let rows = client
                .query(&format!("SELECT t::text FROM \"{table}\" t"), &[])
                .await
                .expect("the rows of a table");
            for row in rows {
                dump.push_str(&row.get::<_, String>(0));
                dump.push('\n');
            }
        }
        dump
    }
}

async fn postgres() -> String {
    let server = std::env::var("TEST_DATABASE_URL").expect(
        "TEST_DATABASE_URL must name a PostgreSQL server: run the tests with `cargo xtask test`",
    );
    let name = format!("test_{}", Uuid::new_v4().simple());
    let client = connect(&server).await;
    client.batch_execute(&format!("CREATE DATABASE {name}")).await.expect("a new database");
    let mut url = url::Url::parse(&server).expect("TEST_DATABASE_URL is a URL");
    url.set_path(&name);
    url.to_string()
}

async fn connect(url: &str) -> tokio_postgres::Client {
    let (client, connection) =
        tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("a connection");
    tokio::spawn(connection);
    client
}
