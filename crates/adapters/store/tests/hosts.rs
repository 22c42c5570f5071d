//! Several hosts in the URL of a database.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

use std::{sync::Arc, time::Duration};

use store::{DatabaseUrl, SchemaPolicy, Store, Timeouts};
use system::encryption::XChaChaCipher;
use tokio::{net::TcpListener, time::timeout};

/// For this long a host is waited for.
const CONNECT: Duration = Duration::from_secs(4);

#[tokio::test]
async fn a_host_that_gives_no_answer_keeps_nobody_from_the_next_one_and_is_asked_once() {
    // Its connections are accepted by the kernel, as those of a suspended server are.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = url_after(&silent.local_addr().unwrap().to_string()).await;
    let timeouts = Timeouts { connect: CONNECT, ..Timeouts::default() };
    let cipher = Arc::new(XChaChaCipher::new(&[7; 32]));
    let store = Store::connect(&url, timeouts, SchemaPolicy::default(), cipher).await.unwrap();
    store.ping().await.unwrap();
    assert!(timeout(CONNECT, silent.accept()).await.is_ok(), "the first host is asked first");
    assert!(timeout(CONNECT, silent.accept()).await.is_err(), "it is asked again");
}

/// Returns the URL of a new database whose server comes after another host.
async fn url_after(host: &str) -> DatabaseUrl {
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
    let (user, rest) = url.as_str().split_once('@').unwrap();
    format!("{user}@{host},{rest}").parse().unwrap()
}
