//! A real page as it is on the other kind of screen, and that it has its own size again afterwards.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

mod common;

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use chromium::{ChromiumPool, PoolOptions};
use ports::browser::{
    Browser, BrowserPool as _, Device, Input, InspectedPage, Scale, Screen, Viewport,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use self::common::{options, spec};

const HOST: &str = "page.localhost";
const TIMEOUT: Duration = Duration::from_secs(60);
/// A menu that phones do not show at first.
const PAGE: &str = "<!doctype html><meta name=viewport content='width=device-width,initial-scale=1'>\
    <style>@media (max-width:991px){#menu{display:none}}@media (min-width:992px){#toggle{display:none}}</style>\
    <p id=menu>Menu</p><p id=toggle>Toggle</p>";

/// A field with the focus that phones do not show. It tells what was typed, and at which width.
const FIELD_PAGE: &str = "<!doctype html><meta name=viewport content='width=device-width,initial-scale=1'>\
    <style>@media (max-width:991px){input{display:none}}</style>\
    <input autofocus onfocus='this.id=\"field\"' oninput='this.id=this.value+\"-\"+innerWidth'>";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_desktop_sees_what_a_phone_shows() {
    let page = Page::open(Device::default()).await;
    let own = (1024, 720);
    page.until_shown("menu", own).await;
    let before = page.browser.frame(0).await.unwrap().seq;
    let (screen, seen) = page.browser.inspect_on_other_screen().await.unwrap();
    assert_eq!((screen, shown(&seen), seen.size), (Screen::Phone, vec!["toggle"], (390, 844)));
    page.until_shown("menu", own).await;
    let frame = tokio::time::timeout(TIMEOUT, page.browser.frame(before)).await.unwrap();
    assert_eq!(frame.unwrap().viewport, Viewport::default(), "no frame shows the other size");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_phone_sees_what_a_desktop_shows() {
    let viewport = Viewport { width: 400, height: 700 };
    let device = Device { viewport, scale: Scale::Two, touch: true, ..Device::default() };
    let page = Page::open(device).await;
    page.until_shown("toggle", (400, 700)).await;
    let (screen, seen) = page.browser.inspect_on_other_screen().await.unwrap();
    assert_eq!((screen, shown(&seen), seen.size), (Screen::Desktop, vec!["menu"], (1280, 800)));
    page.until_shown("toggle", (400, 700)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_that_is_not_awaited_to_its_end_puts_the_size_back() {
    let page = Page::open(Device::default()).await;
    page.until_shown("menu", (1024, 720)).await;
    let look = page.browser.inspect_on_other_screen();
    assert!(tokio::time::timeout(Duration::from_millis(300), look).await.is_err());
    page.until_shown("menu", (1024, 720)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_size_that_comes_during_a_look_is_taken_after_it() {
    let page = Page::open(Device::default()).await;
    page.until_shown("menu", (1024, 720)).await;
    let resize = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        page.browser.input(Input::Resize(Viewport { width: 1100, height: 800 }));
    };
    let (seen, ()) = tokio::join!(page.browser.inspect_on_other_screen(), resize);
    assert_eq!(shown(&seen.unwrap().1), ["toggle"]);
    page.until_shown("menu", (1100, 800)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_typed_during_a_look_gets_to_its_field_at_its_own_size() {
    let page = Page::open_with(Device::default(), FIELD_PAGE).await;
    page.until_shown("field", (1024, 720)).await;
    let typing = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        page.browser.input(Input::Text("typed".into()));
    };
    // At the other size, the field is hidden.
    let (seen, ()) = tokio::join!(page.browser.inspect_on_other_screen(), typing);
    assert!(shown(&seen.unwrap().1).is_empty());
    page.until_shown("typed-1024", (1024, 720)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fields_of_the_other_size_are_not_published() {
    let page = Page::open_with(Device::default(), FIELD_PAGE).await;
    page.until_shown("field", (1024, 720)).await;
    let mut state = page.browser.page_state(0).await.unwrap();
    while state.focused.is_none() {
        let newer = tokio::time::timeout(TIMEOUT, page.browser.page_state(state.seq)).await;
        state = newer.unwrap().unwrap();
    }
    let watching = async {
        tokio::time::sleep(Duration::from_millis(350)).await;
        page.browser.page_state(0).await.unwrap()
    };
    let (seen, meanwhile) = tokio::join!(page.browser.inspect_on_other_screen(), watching);
    assert!(shown(&seen.unwrap().1).is_empty());
    assert_eq!((&meanwhile.fields, meanwhile.focused), (&state.fields, state.focused));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_is_read_during_a_look_has_its_own_size() {
    let page = Page::open(Device::default()).await;
    page.until_shown("menu", (1024, 720)).await;
    let reading = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        page.browser.inspect().await.unwrap()
    };
    let (seen, read) = tokio::join!(page.browser.inspect_on_other_screen(), reading);
    assert_eq!(shown(&seen.unwrap().1), ["toggle"]);
    assert_eq!((shown(&read), read.size), (vec!["menu"], (1024, 720)));
}

/// Returns the identifiers of the visible elements.
fn shown(page: &InspectedPage) -> Vec<&str> {
    let visible = page.tree.nodes.iter().filter(|node| node.visible);
    visible.filter_map(|node| node.attributes.get("id").map(String::as_str)).collect()
}

struct Page {
    browser: Arc<dyn Browser>,
    _pool: Arc<ChromiumPool>,
    _folder: tempfile::TempDir,
}

impl Page {
    async fn open(device: Device) -> Self {
        Self::open_with(device, PAGE).await
    }

    async fn open_with(device: Device, content: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let local_hosts = HashMap::from([(HOST.to_owned(), listener.local_addr().unwrap())]);
        tokio::spawn(serve(listener, content));
        let pool = ChromiumPool::new(PoolOptions { local_hosts, ..options(folder.path()) });
        let mut session = spec(HOST, "US");
        session.device = device;
        let browser = pool.start(session).await.unwrap();
        browser.navigate(&format!("http://{HOST}/")).await.unwrap();
        Self { browser, _pool: pool, _folder: folder }
    }

    /// Waits until the page has a size, and shows this element alone.
    async fn until_shown(&self, id: &str, size: (u32, u32)) {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let page = self.browser.inspect().await;
            if page.as_ref().is_ok_and(|page| page.size == size && shown(page) == [id]) {
                return;
            }
            assert!(Instant::now() < deadline, "no {id} at {size:?}: {page:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

async fn serve(listener: TcpListener, content: &'static str) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut request = [0; 4096];
        let _ = stream.read(&mut request).await;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n";
        let response = format!("{head}content-length: {}\r\n\r\n{content}", content.len());
        let _ = stream.write_all(response.as_bytes()).await;
    }
}
