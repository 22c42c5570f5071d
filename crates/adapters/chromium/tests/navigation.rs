//! Navigations to addresses with a part after `#`, as single-page applications have.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

mod common;

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use chromium::{ChromiumPool, PoolOptions};
use domain::workflow::{Action, ElementRead};
use ports::browser::{Browser, BrowserPool as _};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use self::common::{options, spec};

const HOST: &str = "page.localhost";
const TIMEOUT: Duration = Duration::from_secs(60);
/// Shows the method of its request, and its fragment a moment after it has it.
const PAGE: &str = "<!doctype html><p id=method>{method}</p><p id=shown></p>\
    <form method=post action=/><button>Send</button></form><script>\
    const show = () => setTimeout(() => { shown.textContent = location.hash; }, 100);\
    onhashchange = show; show();</script>";

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

    /// Returns the text of an element; nothing if it has none or cannot be read.
    async fn text(&self, selector: &str) -> String {
        let values = self.browser.read(&[ElementRead::text(selector)]).await.unwrap_or_default();
        values.first().and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// Returns the text of an element once it is as expected, or the last one after some time.
    async fn text_once(&self, selector: &str, is_expected: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let text = self.text(selector).await;
            if is_expected(&text) || Instant::now() > deadline {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_address_of_a_page_has_the_fragment_that_it_was_opened_with() {
    let site = Site::start().await;
    let url = format!("http://{HOST}/?tab=1#/orders");
    site.browser.navigate(&url).await.unwrap();
    assert_eq!(site.browser.observe().await.unwrap().url, url);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_differs_only_in_its_fragment_is_opened_anew() {
    let site = Site::start().await;
    let mut documents = vec![];
    for fragment in ["#/a", "#/b", "#/b", "#/a"] {
        let url = format!("http://{HOST}/{fragment}");
        site.browser.navigate(&url).await.unwrap();
        assert_eq!(site.text_once("#shown", |text| !text.is_empty()).await, fragment);
        let seen = site.browser.observe().await.unwrap();
        assert_eq!(seen.url, url);
        assert!(!documents.contains(&seen.document), "{fragment}: {documents:?}");
        documents.push(seen.document);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_form_is_not_sent_again_where_its_answer_has_the_address() {
    let site = Site::start().await;
    site.browser.navigate(&format!("http://{HOST}/")).await.unwrap();
    assert!(site.browser.act(&Action::Click("button".to_owned())).await.unwrap());
    assert_eq!(site.text_once("#method", |text| text == "POST").await, "POST");
    site.browser.navigate(&format!("http://{HOST}/#/a")).await.unwrap();
    assert_eq!(site.text_once("#shown", |text| !text.is_empty()).await, "#/a");
    assert_eq!(site.text("#method").await, "GET");
}

async fn serve(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(answer(stream));
    }
}

/// Answers a request with the page.
async fn answer(mut stream: TcpStream) {
    let mut request = [0; 8192];
    let length = stream.read(&mut request).await.unwrap_or_default();
    let request = String::from_utf8_lossy(request.get(..length).unwrap_or_default());
    let body = PAGE.replace("{method}", request.split(' ').next().unwrap_or_default());
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.write_all(answer.as_bytes()).await;
}
