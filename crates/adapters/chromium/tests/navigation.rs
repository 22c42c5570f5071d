//! Navigations to addresses with a part after `#`, as single-page applications have.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

mod common;

use std::{collections::HashMap, sync::Arc};

use chromium::{ChromiumPool, PoolOptions};
use ports::browser::{Browser, BrowserPool as _};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use self::common::{options, spec};

const HOST: &str = "page.localhost";
const PAGE: &str = "<!doctype html><p>Page</p>";

struct Site {
    browser: Arc<dyn Browser>,
    _pool: Arc<ChromiumPool>,
    _folder: TempDir,
}

impl Site {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let local_hosts = HashMap::from([(HOST.to_owned(), listener.local_addr().unwrap())]);
        tokio::spawn(serve(listener));
        let pool = ChromiumPool::new(PoolOptions { local_hosts, ..options(folder.path()) });
        let browser = pool.start(spec(HOST, "US")).await.unwrap();
        Self { browser, _pool: pool, _folder: folder }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_address_of_a_page_has_the_fragment_that_it_was_opened_with() {
    let site = Site::start().await;
    let url = format!("http://{HOST}/?tab=1#/orders");
    site.browser.navigate(&url).await.unwrap();
    assert_eq!(site.browser.observe().await.unwrap().url, url);
}

async fn serve(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(answer(stream));
    }
}

/// Answers a request with the page.
async fn answer(mut stream: TcpStream) {
    let mut request = [0; 8192];
    if stream.read(&mut request).await.unwrap_or_default() == 0 {
        return;
    }
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{PAGE}",
        PAGE.len()
    );
    let _ = stream.write_all(answer.as_bytes()).await;
}
