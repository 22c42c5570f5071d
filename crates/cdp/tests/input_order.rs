//! Input reaches the page in the order in which it was given, also where a click and the keys after
//! it arrive at once, as they do when the applicant's network has stalled.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

mod common;

use std::{collections::HashMap, net::SocketAddr, time::Duration};

use cdp::{ChromiumPool, PoolOptions};
use ports::browser::{Browser, BrowserPool as _, Input, MouseButton, MouseKind};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use self::common::{options, spec};

const HOST: &str = "page.localhost";
const FRAME_HOST: &str = "frame.localhost";
const ROUNDS: usize = 20;
const PATIENCE: Duration = Duration::from_secs(3);

/// Two fields, and the text of both where the test can read it. The page is busy half of the time.
const FIELDS: &str = "<!doctype html><style>body{margin:0}input{position:absolute;left:0;width:300px;\
    height:40px}</style><input id=a style=top:0><input id=b style=top:60px>\
    <script>const tell=()=>{const said=a.value+'|'+b.value;const to=parent===window?window:parent;\
    to.postMessage(said,'*')};addEventListener('input',tell);addEventListener('mousemove',tell);\
    setInterval(()=>{const until=performance.now()+25;while(performance.now()<until);},50);</script>";
const SAID: &str = "<output id=said style=position:absolute;top:200px></output>\
    <script>addEventListener('message',(e)=>{said.textContent=e.data})</script>";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_follow_the_click_before_them() {
    let lost = lost_rounds("/").await;
    assert!(lost.is_empty(), "of {ROUNDS} rounds: {lost:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_follow_the_click_into_a_frame_of_another_site() {
    let lost = lost_rounds("/framed").await;
    assert!(lost.is_empty(), "of {ROUNDS} rounds: {lost:?}");
}

/// What the fields had in rounds in which what was typed is not where the click before it was.
async fn lost_rounds(path: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(listener));
    let routes: HashMap<String, SocketAddr> =
        [HOST, FRAME_HOST].map(|host| (host.to_owned(), address)).into();
    let pool = ChromiumPool::new(PoolOptions { routes, ..options(folder.path()) });
    let mut session = spec(HOST, "US");
    session.hosts.insert(FRAME_HOST.to_owned());
    let id = session.id;
    let browser = pool.start(session).await.unwrap();
    let mut lost = vec![];
    for _ in 0..ROUNDS {
        browser.navigate(&format!("http://{HOST}{path}")).await.unwrap();
        tokio::time::timeout(PATIENCE, browser.frame(0)).await.unwrap();
        arrive(&*browser).await;
        click(&*browser, 20.0);
        keys(&*browser, "ada");
        click(&*browser, 80.0);
        keys(&*browser, "eve");
        let said = said(&*browser, "ada|eve", PATIENCE).await;
        lost.extend(Some(said).filter(|said| said != "ada|eve"));
    }
    pool.release(id).await;
    lost
}

/// Moves the pointer to the fields until they are told: a frame takes clicks a moment after it is
/// seen.
async fn arrive(browser: &dyn Browser) {
    let ends = tokio::time::Instant::now() + PATIENCE;
    let mut y = 10.0;
    while said(browser, "|", Duration::from_millis(100)).await != "|" {
        assert!(tokio::time::Instant::now() < ends, "the fields take no input");
        y = if y < 30.0 { y + 1.0 } else { 10.0 };
        let (kind, button) = (MouseKind::Moved, MouseButton::None);
        browser.input(Input::Mouse {
            kind,
            x: 40.0,
            y,
            button,
            buttons: 0,
            clicks: 0,
            modifiers: 0,
        });
    }
}

fn click(browser: &dyn Browser, y: f64) {
    for (kind, buttons) in [(MouseKind::Pressed, 1), (MouseKind::Released, 0)] {
        let button = MouseButton::Left;
        browser.input(Input::Mouse { kind, x: 40.0, y, button, buttons, clicks: 1, modifiers: 0 });
    }
}

fn keys(browser: &dyn Browser, text: &str) {
    for letter in text.chars() {
        for down in [true, false] {
            let upper = letter.to_ascii_uppercase();
            browser.input(Input::Key {
                down,
                key: letter.to_string(),
                code: format!("Key{upper}"),
                key_code: u16::try_from(u32::from(upper)).unwrap(),
                repeat: false,
                modifiers: 0,
            });
        }
    }
}

/// What the fields have once they have this, or after some time.
async fn said(browser: &dyn Browser, wanted: &str, within: Duration) -> String {
    let ends = tokio::time::Instant::now() + within;
    loop {
        let said = browser.texts(&["#said".to_owned()]).await.unwrap_or_default();
        let said = said.into_iter().next().flatten().unwrap_or_default();
        if said == wanted || tokio::time::Instant::now() > ends {
            return said;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn serve(listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        tokio::spawn(async move {
            let mut request = [0; 4096];
            let length = stream.read(&mut request).await.unwrap_or_default();
            let head = String::from_utf8_lossy(request.get(..length).unwrap_or_default());
            let frame = format!(
                "<!doctype html><style>body{{margin:0}}iframe{{border:0;width:400px;height:150px}}\
                 </style><iframe src=http://{FRAME_HOST}/fields></iframe>{SAID}"
            );
            let body = match head.split(' ').nth(1) {
                Some("/framed") => frame,
                Some("/fields") => FIELDS.to_owned(),
                _ => format!("{FIELDS}{SAID}"),
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
