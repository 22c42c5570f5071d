//! The pool of local Chromium processes against the contract of browser pools.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

mod common;

use std::{
    collections::{BTreeSet, HashMap},
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    sync::Arc,
    time::Duration,
};

use chromium::{BrowserSource, ChromiumPool, PoolOptions};
use ports::browser::{Browser, StartError};
use tempfile::TempDir;
use testkit::contract::browser_pool::Pool;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use self::common::{options, spec};

testkit::browser_pool_contract!(pool());

const TIMEOUT: Duration = Duration::from_secs(60);
const HOST: &str = "page.localhost";

#[tokio::test]
async fn a_warm_browser_is_assigned_and_replaced() {
    let (pool, chromiums) = pool_with(|options| options.warm = 1).await;
    until(|| chromiums.warm_count() == 1).await;
    let waiting = browsers_in(&pool);
    let session = spec(HOST, "US");
    pool.pool.start(session.clone()).await.unwrap();
    until(|| (pool.running)() == 2).await;
    pool.pool.release(session.id).await;
    until(|| browsers_in(&pool).is_disjoint(&waiting)).await;
    until(|| (pool.running)() == 1).await;
}

#[tokio::test]
async fn warm_browsers_do_not_take_the_slots_of_sessions() {
    let (pool, chromiums) = pool_with(|options| options.warm = 2).await;
    until(|| chromiums.warm_count() == 2).await;
    pool.pool.start(spec(HOST, "US")).await.unwrap();
    pool.pool.start(spec(HOST, "US")).await.unwrap();
    let error = pool.pool.start(spec(HOST, "US")).await.map(drop).unwrap_err();
    assert!(matches!(error, StartError::NoRoom), "{error:?}");
}

#[tokio::test]
async fn a_warm_browser_that_died_is_not_assigned() {
    let (pool, chromiums) = pool_with(|options| options.warm = 1).await;
    until(|| chromiums.warm_count() == 1).await;
    for pid in browsers_in(&pool) {
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process_group(pid, rustix::process::Signal::KILL).unwrap();
    }
    until(|| (pool.running)() == 0 || chromiums.warm_count() == 0).await;
    let browser = pool.pool.start(spec(HOST, "US")).await.unwrap();
    browser.navigate(&pool.page).await.unwrap();
}

#[tokio::test]
async fn a_browser_above_its_memory_limit_is_ended() {
    let (pool, _) = pool_with(|options| {
        let BrowserSource::Local(local) = &mut options.source else { return };
        local.memory_limit = 1 << 20;
    })
    .await;
    let browser = pool.pool.start(spec(HOST, "US")).await.unwrap();
    tokio::time::timeout(TIMEOUT, browser.ended()).await.unwrap();
    until(|| (pool.running)() == 0).await;
}

/// Replies to the first command only if it is the first process, as a Chromium that hangs in its start.
const HANGS_ONCE: &str = r#"#!/bin/bash
if mkdir "$(dirname "$0")/hung"; then
    IFS= read -r -d '' -u 3
    printf '{"id":1,"result":{"userAgent":"none"}}\0' >&4
    exec sleep 600
fi
exec /usr/lib/chromium/chromium "$@"
"#;

#[tokio::test]
async fn a_browser_that_hangs_in_its_start_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let executable = folder.path().join("chromium");
    fs::write(&executable, HANGS_ONCE).unwrap();
    fs::set_permissions(&executable, fs::Permissions::from_mode(0o755)).unwrap();
    let (pool, _) = pool_with(|options| {
        let BrowserSource::Local(local) = &mut options.source else { return };
        local.executable = executable;
        local.sandbox = None;
    })
    .await;
    let browser = pool.pool.start(spec(HOST, "US")).await.unwrap();
    browser.navigate(&pool.page).await.unwrap();
    assert!(folder.path().join("hung").exists());
    let folders = fs::read_dir(pool.guard.downcast_ref::<TempDir>().unwrap()).unwrap();
    assert_eq!(folders.count(), 1, "the folder of the browser that hung was not removed");
}

async fn until(condition: impl Fn() -> bool) {
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    while !condition() {
        assert!(tokio::time::Instant::now() < deadline, "the condition did not become true");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn pool() -> Pool {
    pool_with(|_| ()).await.0
}

/// Each element is 20 pixels high; the last one becomes editable later.
const EDITABLE: &str = r#"<!doctype html><style>body *{position:absolute;left:10px;width:200px;
    height:20px;margin:0;padding:0;border:0}</style>
    <input style="top:0"><textarea style="top:40px"></textarea>
    <div contenteditable style="top:80px"></div>
    <div contenteditable="TRUE" style="top:120px"></div>
    <div contenteditable="plaintext-only" style="top:160px"></div>
    <div contenteditable="Plaintext-Only" style="top:200px"></div>
    <div id="host" style="top:240px"></div>
    <div contenteditable="false" style="top:280px"></div>
    <div id="later" style="top:320px"></div>
    <script>
        host.attachShadow({ mode: 'open' }).innerHTML = '<input style="width:200px;height:20px">';
        setTimeout(() => { later.contentEditable = 'true'; }, 500);
    </script>"#;
const EDITABLE_DOCUMENT: &str =
    "<!doctype html><p>text</p><script>document.designMode = 'on'</script>";

#[tokio::test]
async fn every_editable_element_is_redacted() {
    let (pool, _chromiums) = pool_with(|_| ()).await;
    let browser = pool.pool.start(spec(HOST, "US")).await.unwrap();
    browser.navigate(&format!("http://{HOST}/editable")).await.unwrap();
    let expected = [0.0, 40.0, 80.0, 120.0, 160.0, 200.0, 240.0, 320.0];
    let mut rows = redacted_rows(&*browser, 0).await;
    let started = std::time::Instant::now();
    while rows.1 != expected && started.elapsed() < TIMEOUT {
        rows = redacted_rows(&*browser, rows.0).await;
    }
    assert_eq!(rows.1, expected);

    browser.navigate(&format!("http://{HOST}/document")).await.unwrap();
    let started = std::time::Instant::now();
    let everything = loop {
        let state = next_state(&*browser, rows.0).await;
        rows.0 = state.0;
        if state.1 == [[0.0, 0.0, 8192.0, 8192.0]] || started.elapsed() > TIMEOUT {
            break state.1;
        }
    };
    assert_eq!(everything, [[0.0, 0.0, 8192.0, 8192.0]]);
}

/// Returns the tops of the redacted areas, in pixels, and the number of the page state.
async fn redacted_rows(browser: &dyn Browser, after: u64) -> (u64, Vec<f32>) {
    let (number, rects) = next_state(browser, after).await;
    let mut rows: Vec<_> = rects.into_iter().map(|[_, top, ..]| top).collect();
    rows.sort_unstable_by(f32::total_cmp);
    (number, rows)
}

async fn next_state(browser: &dyn Browser, after: u64) -> (u64, Vec<[f32; 4]>) {
    let state = tokio::time::timeout(TIMEOUT, browser.page_state(after)).await;
    let state = state.unwrap().unwrap();
    (state.seq, state.redaction_rects.clone())
}

async fn pool_with(change: impl FnOnce(&mut PoolOptions)) -> (Pool, Arc<ChromiumPool>) {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(listener));
    let local_hosts = HashMap::from([(HOST.to_owned(), address)]);
    let mut options = PoolOptions { local_hosts, ..options(folder.path()) };
    change(&mut options);
    let path = folder.path().to_owned();
    let chromiums = ChromiumPool::new(options);
    let pool = Pool {
        pool: chromiums.clone(),
        page: format!("http://{HOST}/"),
        host: HOST.to_owned(),
        running: Box::new(move || browsers(&path).len()),
        guard: Box::new(folder),
    };
    (pool, chromiums)
}

/// Returns the browsers whose folder is in the pool's.
fn browsers_in(pool: &Pool) -> BTreeSet<i32> {
    browsers(pool.guard.downcast_ref::<TempDir>().unwrap().path())
}

/// Returns the browsers whose folder is in this one, each by the leader of its process group.
fn browsers(folder: &Path) -> BTreeSet<i32> {
    let folder = folder.display().to_string();
    let pipe = "--remote-debugging-pipe";
    let is_leader = |pid| {
        let pid = rustix::process::Pid::from_raw(pid);
        rustix::process::getpgid(pid).is_ok_and(|group| Some(group) == pid)
    };
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let found = entries.filter_map(|entry| {
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line);
        let pid = entry.file_name().to_str()?.parse().ok()?;
        (line.contains(&folder) && line.contains(pipe) && is_leader(pid)).then_some(pid)
    });
    found.collect()
}

async fn serve(listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut request = [0; 4096];
        let read = stream.read(&mut request).await.unwrap_or(0);
        let request = String::from_utf8_lossy(request.get(..read).unwrap_or_default());
        let page = match request.split(' ').nth(1) {
            Some("/editable") => EDITABLE,
            Some("/document") => EDITABLE_DOCUMENT,
            _ => "<h1>hello</h1>",
        };
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n";
        let response = format!("{head}content-length: {}\r\n\r\n{page}", page.len());
        let _ = stream.write_all(response.as_bytes()).await;
    }
}
