//! Requests of a page's scripts that the platform refuses, as an author sees them.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

mod common;

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use chromium::{ChromiumPool, PoolOptions};
use domain::workflow::NoBody;
use ports::browser::BrowserPool as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use self::common::{options, spec};

const HOST: &str = "page.localhost";
const TIMEOUT: Duration = Duration::from_secs(10);
/// Sends requests one after another.
const PAGE: &str = "<!doctype html><script>(async () => { \
    const send = async (...request) => (await fetch(...request)).text(); \
    await send('/api/none'); await send('/api/seen', { method: 'POST' }); \
    await send('/api/login', { method: 'POST', body: '{}' }); await send('/api/me'); })()</script>";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_author_sees_refused_posts_without_json() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let local_hosts = HashMap::from([(HOST.to_owned(), listener.local_addr().unwrap())]);
    tokio::spawn(serve(listener));
    let pool = ChromiumPool::new(PoolOptions { local_hosts, ..options(folder.path()) });
    let mut spec = spec(HOST, "US");
    spec.watch.all_json = true;
    let browser = pool.start(spec).await.unwrap();
    browser.navigate(&format!("http://{HOST}/")).await.unwrap();

    let deadline = Instant::now() + TIMEOUT;
    let responses = loop {
        let responses = browser.observe().await.unwrap().responses;
        if responses.len() >= 2 {
            break responses;
        }
        assert!(Instant::now() < deadline, "{responses:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let seen: Vec<_> =
        responses.iter().map(|one| (one.url.as_str(), one.status, one.is_post)).collect();
    let (login, me) = (format!("http://{HOST}/api/login"), format!("http://{HOST}/api/me"));
    assert_eq!(seen, [(login.as_str(), 422, true), (me.as_str(), 200, false)]);
    let reasons: Vec<_> = responses.into_iter().map(|one| one.no_body).collect();
    let plain = NoBody::NotJson { content_type: "text/plain".to_owned() };
    assert_eq!(reasons, [Some(plain), None]);
    pool.end_all().await;
}

async fn serve(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(answer(stream));
    }
}

async fn answer(mut stream: TcpStream) {
    let mut request = [0; 4096];
    let length = stream.read(&mut request).await.unwrap_or_default();
    let head = String::from_utf8_lossy(request.get(..length).unwrap_or_default());
    let (status, kind, body) = match head.split(' ').nth(1) {
        Some("/") => ("200 OK", "text/html", PAGE),
        Some("/api/seen") => ("200 OK", "text/plain", "seen"),
        Some("/api/login") => ("422 Unprocessable Content", "text/plain", "wrong"),
        Some("/api/me") => ("200 OK", "application/json", "{}"),
        _ => ("404 Not Found", "text/plain", "none"),
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.write_all(answer.as_bytes()).await;
}
