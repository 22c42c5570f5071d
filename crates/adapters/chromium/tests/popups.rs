//! A window that a page opens, such as that of a single sign-on: it is the active page until it closes.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

mod common;

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use chromium::{ChromiumPool, PoolOptions};
use ports::browser::{Browser, BrowserPool as _, Input};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::Notify,
};

use self::common::{options, spec};

const HOST: &str = "page.localhost";
const TIMEOUT: Duration = Duration::from_secs(60);
const OPENER: &str =
    "<!doctype html><title>Opener</title><button onclick=\"window.open('/popup')\">Open</button>";
/// Closes itself when it has an answer, and replies to no command meanwhile.
const POPUP: &str = "<!doctype html><title>Popup</title><script>fetch('/wait').then(() => { close(); \
    const end = Date.now() + 2000; while (Date.now() < end); })</script>";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_to_a_window_that_closes_ends_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let local_hosts = HashMap::from([(HOST.to_owned(), listener.local_addr().unwrap())]);
    let closes = Arc::new(Notify::new());
    tokio::spawn(serve(listener, closes.clone()));
    let pool = ChromiumPool::new(PoolOptions { local_hosts, ..options(folder.path()) });
    let browser = pool.start(spec(HOST, "US")).await.unwrap();
    browser.navigate(&format!("http://{HOST}/")).await.unwrap();
    browser.input(Input::Activate(button(&*browser).await));
    until_at(&*browser, "/popup").await;

    let began = Instant::now();
    closes.notify_one();
    until_at(&*browser, "/").await;
    assert!(began.elapsed() < Duration::from_secs(10), "it took {:?}", began.elapsed());
}

/// Returns the button of the opener.
async fn button(browser: &dyn Browser) -> u32 {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Ok(outline) = browser.outline().await
            && let Some(entry) = outline.entries.iter().find(|entry| entry.name == "Open")
            && let Some(node) = entry.node
        {
            return node;
        }
        assert!(Instant::now() < deadline, "no button");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn until_at(browser: &dyn Browser, path: &str) {
    let deadline = Instant::now() + TIMEOUT;
    let expected = format!("http://{HOST}{path}");
    loop {
        let page = browser.observe().await;
        if page.as_ref().is_ok_and(|page| page.settled && page.url == expected) {
            return;
        }
        assert!(Instant::now() < deadline, "not at {path}: {page:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Answers the window when it is to close.
async fn serve(listener: TcpListener, closes: Arc<Notify>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let closes = closes.clone();
        tokio::spawn(async move {
            let mut request = [0; 4096];
            let length = stream.read(&mut request).await.unwrap_or_default();
            let head = String::from_utf8_lossy(request.get(..length).unwrap_or_default());
            let body = match head.split(' ').nth(1) {
                Some("/") => OPENER,
                Some("/popup") => POPUP,
                Some("/wait") => {
                    closes.notified().await;
                    "now"
                }
                _ => "",
            };
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\
                 connection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        });
    }
}
