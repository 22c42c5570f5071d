//! The pool of local Chromium processes against the contract of browser pools.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

use std::{collections::HashMap, fs, path::Path, sync::Arc};

use cdp::{ChromiumPool, PoolOptions};
use testkit::contract::browser_pool::Pool;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

testkit::browser_pool_contract!(pool());

const HOST: &str = "page.localhost";

async fn pool() -> Pool {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(listener));
    let options = PoolOptions {
        executable: "chromium".into(),
        folder: folder.path().to_owned(),
        capacity: 2,
        egress: domain::egress::Egress::default(),
        routes: HashMap::from([(HOST.to_owned(), address)]),
    };
    let path = folder.path().to_owned();
    Pool {
        pool: Arc::new(ChromiumPool::new(options)),
        page: format!("http://{HOST}/"),
        host: HOST.to_owned(),
        running: Box::new(move || browsers(&path)),
        guard: Box::new(folder),
    }
}

/// How many browsers have their folder in this one. Of each one's processes the first alone has
/// no type.
fn browsers(folder: &Path) -> usize {
    let folder = folder.display().to_string();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
    let pipe = "--remote-debugging-pipe";
    lines.filter(|l| l.contains(&folder) && l.contains(pipe) && !l.contains("--type=")).count()
}

async fn serve(listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut request = [0; 4096];
        let _ = stream.read(&mut request).await;
        let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 14\r\n\
                    connection: close\r\n\r\n<h1>hello</h1>";
        let _ = stream.write_all(page.as_bytes()).await;
    }
}
