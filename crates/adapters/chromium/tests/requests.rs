//! A request in a page that the platform never answers.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

mod common;

use std::{collections::HashMap, sync::Arc, time::Duration};

use chromium::{ChromiumPool, PoolOptions};
use domain::workflow::PageFetch;
use ports::browser::{BrowserError, BrowserPool as _};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Notify,
};

use self::common::{options, spec};

const HOST: &str = "page.localhost";
const TIMEOUT: Duration = Duration::from_secs(10);
const PAGE: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 22\r\n\
    connection: close\r\n\r\n<!doctype html><p>Page";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_never_answered_is_aborted_in_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let local_hosts = HashMap::from([(HOST.to_owned(), listener.local_addr().unwrap())]);
    let aborted = Arc::new(Notify::new());
    tokio::spawn(serve(listener, aborted.clone()));
    let pool = ChromiumPool::new(PoolOptions { local_hosts, ..options(folder.path()) });
    let browser = pool.start(spec(HOST, "US")).await.unwrap();
    browser.navigate(&format!("http://{HOST}/")).await.unwrap();

    let fetched = browser.fetch(&PageFetch::get(&format!("http://{HOST}/silent"), 100)).await;
    let fetched = fetched.map(|fetched| fetched.status);
    assert!(matches!(fetched, Err(BrowserError::Refused(_))), "{fetched:?}");
    tokio::time::timeout(TIMEOUT, aborted.notified()).await.unwrap();
    pool.end_all().await;
}

/// Answers all requests but one, and tells when the page no longer waits for that one.
async fn serve(listener: TcpListener, aborted: Arc<Notify>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(answer(stream, aborted.clone()));
    }
}

async fn answer(mut stream: TcpStream, aborted: Arc<Notify>) {
    let mut request = [0; 4096];
    let length = stream.read(&mut request).await.unwrap_or_default();
    let is_silent = request.get(..length).unwrap_or_default().starts_with(b"GET /silent ");
    if is_silent {
        while stream.read(&mut request).await.is_ok_and(|length| length > 0) {}
        aborted.notify_one();
    } else {
        let _ = stream.write_all(PAGE.as_bytes()).await;
    }
}
