//! Measures what it costs a page to be observed: 200 selectors, a quarter of them in frames and a
//! quarter in shadow roots, against an observation without selectors of the same page, whose time is
//! that of the way to Chromium and back. The difference is spent on the page's main thread.
#![expect(clippy::unwrap_used, reason = "a benchmark panics to fail")]

#[path = "../tests/common/mod.rs"]
mod common;

use std::{
    collections::HashMap,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use chromium::{ChromiumPool, PoolOptions};
use ports::browser::{Browser, BrowserPool as _, ObservedSignals};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use self::common::{options, spec};

const HOST: &str = "page.localhost";
const SELECTORS: usize = 200;
const ROUNDS: usize = 200;
/// 2,000 elements in the document, 500 in a frame and 500 in a shadow root.
const PAGE: &str = "<!doctype html><body><div id=host></div><iframe id=inner srcdoc='<main></main>'></iframe>\
    <script>const fill=(root,count)=>{for(let n=0;n<count;n++){const e=document.createElement('p');\
    e.className='row r'+n;e.id='n'+n;e.textContent='text '+n;root.append(e)}};\
    fill(document.body,2000);fill(host.attachShadow({mode:'open'}),500);\
    onload=()=>fill(inner.contentDocument.querySelector('main'),500)</script>";

#[tokio::main]
async fn main() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let local_hosts = HashMap::from([(HOST.to_owned(), listener.local_addr().unwrap())]);
    tokio::spawn(serve(listener));
    let pool = ChromiumPool::new(PoolOptions { local_hosts, ..options(folder.path()) });
    let browser = pool.start(spec(HOST, "US")).await.unwrap();
    browser.navigate(&format!("http://{HOST}/")).await.unwrap();
    let selectors = (0..SELECTORS).map(|index| {
        // Every second one is there.
        let place = if index % 2 == 0 { index.to_string() } else { format!("{index}-none") };
        match index % 4 {
            0 => format!("iframe#inner >>> main > p.r{place}"),
            1 => format!("#host >>> p#n{place}"),
            2 => format!("body > p.row.r{place}"),
            _ => format!("p.row:not(.r1)[id=\"n{place}\"]"),
        }
    });
    let selectors: Vec<_> = selectors.collect();
    let none = measured(&*browser, vec![]).await;
    let all = measured(&*browser, selectors).await;
    println!("an observation with {SELECTORS} selectors: {all:?}; without: {none:?}");
    println!("on the page's main thread: {:?}", all.saturating_sub(none));
    let figures = json!({ "figures": [
        { "name": "an observation with 200 selectors", "micros": all.as_secs_f64() * 1e6 },
        { "name": "an observation without selectors", "micros": none.as_secs_f64() * 1e6 },
    ] });
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/bench");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("observe.json"), figures.to_string()).unwrap();
}

/// Returns the median time of an observation.
async fn measured(browser: &dyn Browser, selectors: Vec<String>) -> Duration {
    let expected = selectors.iter().filter(|selector| !selector.contains("-none")).count();
    browser.observe_signals(ObservedSignals { selectors, ..ObservedSignals::default() });
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let seen = browser.observe().await.unwrap();
        times.push(began.elapsed());
        // The page takes a moment to fill itself.
        if times.len() > ROUNDS / 4 {
            assert_eq!(seen.present.len(), expected);
        }
    }
    times.sort_unstable();
    times.get(ROUNDS / 2).copied().unwrap()
}

async fn serve(listener: TcpListener) {
    while let Ok((mut connection, _)) = listener.accept().await {
        tokio::spawn(async move {
            let mut request = [0; 4096];
            let _ = connection.read(&mut request).await;
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
                 connection: close\r\n\r\n",
                PAGE.len()
            );
            let _ = connection.write_all(format!("{head}{PAGE}").as_bytes()).await;
        });
    }
}
