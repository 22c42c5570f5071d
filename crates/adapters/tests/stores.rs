//! The stores against the one contract: SQLite in a file, PostgreSQL in a database of its own.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

use std::sync::Arc;

use adapters::{diesel::Store, seal::Seal};
use testkit::contract::Backend;

mod sqlite {
    testkit::stores_contract!(super::sqlite());
}

mod postgres {
    testkit::stores_contract!(super::postgres());
}

/// Single reads over a connection that is shared.
mod postgres_lane {
    testkit::stores_contract!(super::postgres_lane());
}

async fn sqlite() -> Backend {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("store.db").display());
    backend(open(&url).await, Box::new(folder))
}

async fn postgres() -> Backend {
    let url = database().await;
    backend(open(&url).await, Box::new(()))
}

async fn postgres_lane() -> Backend {
    let url = database().await;
    backend(open(&url).await.with_lane(&url), Box::new(()))
}

async fn database() -> String {
    let server = std::env::var("TEST_DATABASE_URL").unwrap_or_else(|_| {
        panic!("TEST_DATABASE_URL must name a PostgreSQL server: run `cargo xtask test`")
    });
    let name = format!("test_{}", uuid::Uuid::new_v4().simple());
    let (client, connection) =
        tokio_postgres::connect(&server, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    let mut url = url::Url::parse(&server).unwrap();
    url.set_path(&name);
    url.to_string()
}

async fn open(url: &str) -> Store {
    Store::open(url, Arc::new(Seal::new(&[7; 32]))).await.unwrap()
}

fn backend(store: Store, guard: Box<dyn std::any::Any + Send + Sync>) -> Backend {
    let store = Arc::new(store);
    Backend {
        sessions: store.clone(),
        outbox: store.clone(),
        attestations: store.clone(),
        recordings: store.clone(),
        deliveries: store.clone(),
        log: store.clone(),
        keys: store.clone(),
        webhooks: store.clone(),
        catalogue: store,
        guard,
    }
}
