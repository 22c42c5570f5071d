//! Input reaches the page in order, even if a click and the keys after it arrive at once, as they do
//! after the applicant's network has stalled.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

mod common;

use domain::workflow::ElementRead;
use std::{collections::HashMap, net::SocketAddr, time::Duration};

use chromium::{ChromiumPool, PoolOptions};
use ports::browser::{Browser, BrowserPool as _, Input, MouseButton, MouseKind};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use self::common::{options, spec};

const HOST: &str = "page.localhost";
const FRAME_HOST: &str = "frame.localhost";
const ROUNDS: usize = 20;
const TIMEOUT: Duration = Duration::from_secs(60);

/// Two fields, which report the text of both to the test. The page is busy half of the time.
const FIELDS: &str = "<!doctype html><style>body{margin:0}input{position:absolute;left:0;width:300px;\
    height:40px}</style><input id=a style=top:0><input id=b style=top:60px>\
    <script>const report=()=>{const text=a.value+'|'+b.value;const to=parent===window?window:parent;\
    to.postMessage(text,'*')};addEventListener('input',report);addEventListener('mousemove',report);\
    setInterval(()=>{const end=performance.now()+25;while(performance.now()<end);},50);</script>";
/// Shows the reported text.
const OUTPUT: &str = "<output id=output style=position:absolute;top:200px></output>\
    <script>addEventListener('message',(e)=>{output.textContent=e.data})</script>";

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

/// Returns the text of the fields in the rounds in which keys did not go to the clicked field.
async fn lost_rounds(path: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(listener));
    let local_hosts: HashMap<String, SocketAddr> =
        [HOST, FRAME_HOST].map(|host| (host.to_owned(), address)).into();
    let pool = ChromiumPool::new(PoolOptions { local_hosts, ..options(folder.path()) });
    let mut session = spec(HOST, "US");
    session.hosts.insert(FRAME_HOST.to_owned());
    let id = session.id;
    let browser = pool.start(session).await.unwrap();
    let mut lost = vec![];
    for _ in 0..ROUNDS {
        browser.navigate(&format!("http://{HOST}{path}")).await.unwrap();
        tokio::time::timeout(TIMEOUT, browser.frame(0)).await.unwrap();
        wait_until_interactive(&*browser).await;
        click(&*browser, 20.0);
        keys(&*browser, "ada");
        click(&*browser, 80.0);
        keys(&*browser, "eve");
        let text = wait_for_report(&*browser, "ada|eve", TIMEOUT).await;
        lost.extend(Some(text).filter(|text| text != "ada|eve"));
    }
    pool.release(id).await;
    lost
}

/// Moves the pointer over the fields until they report it: a frame accepts clicks only a moment after
/// it is visible.
async fn wait_until_interactive(browser: &dyn Browser) {
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    let mut y = 10.0;
    while wait_for_report(browser, "|", Duration::from_millis(100)).await != "|" {
        assert!(tokio::time::Instant::now() < deadline, "the fields accept no input");
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

/// Returns the reported text once it is the expected one, or after some time.
async fn wait_for_report(browser: &dyn Browser, expected: &str, within: Duration) -> String {
    let deadline = tokio::time::Instant::now() + within;
    loop {
        let texts = browser.read(&[ElementRead::text("#output")]).await.unwrap_or_default();
        let text = texts.first().and_then(|text| text.as_str()).unwrap_or_default().to_owned();
        if text == expected || tokio::time::Instant::now() > deadline {
            return text;
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
                 </style><iframe src=http://{FRAME_HOST}/fields></iframe>{OUTPUT}"
            );
            let body = match head.split(' ').nth(1) {
                Some("/framed") => frame,
                Some("/fields") => FIELDS.to_owned(),
                _ => format!("{FIELDS}{OUTPUT}"),
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
