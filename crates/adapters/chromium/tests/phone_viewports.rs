//! What the applicant touches is what the frame shows there, and what is redacted is where the frame
//! shows it: on phones, under every kind of viewport, and on zoomed and scrolled pages.
//!
//! The frames themselves say where things are: the page has a red button and a green field.
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests panic to fail")]

mod common;

use domain::workflow::ElementRead;
use std::{collections::HashMap, sync::Arc, time::Duration};

use chromium::{ChromiumPool, PoolOptions};
use ports::browser::{
    Browser, BrowserPool as _, Device, Frame, Input, Scale, TouchKind, TouchPoint, Viewport,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use zune_jpeg::{JpegDecoder, zune_core::bytestream::ZCursor};

use self::common::{options, spec};

const HOST: &str = "page.localhost";
const TIMEOUT: Duration = Duration::from_secs(60);
/// How long the page may take for something before that counts as a fault, of which there may be several.
const FAULT_TIMEOUT: Duration = Duration::from_secs(20);
/// Pixels between what a frame shows and what is reported: edges are blurred by the compression.
const TOLERANCE: f64 = 4.0;

/// The viewports that pages declare, each by the path of a page that has it.
const VIEWPORTS: &[(&str, &str)] = &[
    ("/none", ""),
    ("/device", "<meta name=viewport content='width=device-width,initial-scale=1'>"),
    ("/fixed", "<meta name=viewport content='width=1024'>"),
    ("/narrow", "<meta name=viewport content='width=240'>"),
    ("/enlarged", "<meta name=viewport content='width=device-width,initial-scale=1.5'>"),
    ("/reduced", "<meta name=viewport content='width=1200,initial-scale=0.5,minimum-scale=0.25'>"),
    ("/scaled", "<meta name=viewport content='initial-scale=1.25'>"),
];

/// Paints something a moment after each touch: after a movement by the compositor, Chromium sometimes
/// does not send the last frame.
const BODY: &str = "<style>*{margin:0;padding:0;border:0;outline:0}body{background:#fff;height:250vh;\
    width:180vw}button,input{position:absolute;border-radius:0}button{left:25vw;top:12vh;width:30vw;\
    height:14vh;background:#f00}input{left:20vw;top:40vh;width:36vw;height:10vh;background:#0c0;\
    color:transparent;caret-color:transparent}</style><button></button><input>\
    <p id=output hidden></p><script>const say=(text)=>{output.textContent+=text+' '};\
    addEventListener('click',(event)=>say(event.target.localName));\
    addEventListener('touchend',()=>{for(const ms of [300,600,900])setTimeout(()=>\
    {document.body.style.background=`rgb(255,255,${255-ms/300})`},ms)});</script>";

/// How the applicant moves the page before touching it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Gesture {
    None,
    Zoomed,
    ZoomedAndMoved,
    Scrolled,
}

/// How often a gesture is repeated that moved the page too far. On a busy machine, Chromium may take the
/// end of a drag for a fling, which goes on by itself.
const GESTURE_RETRIES: u8 = 2;
/// How a fault begins if the button or the field is not in the frame.
const NOT_SHOWN: &str = "the frame shows";
const GESTURES: [Gesture; 4] =
    [Gesture::None, Gesture::Zoomed, Gesture::ZoomedAndMoved, Gesture::Scrolled];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn taps_and_redaction_are_where_a_phones_frame_shows_things() {
    try_all(Viewport { width: 390, height: 844 }, Scale::Two).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn taps_and_redaction_are_where_a_small_phones_frame_shows_things() {
    try_all(Viewport { width: 320, height: 568 }, Scale::One).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn taps_and_redaction_are_where_the_frame_of_a_phone_held_sideways_shows_things() {
    try_all(Viewport { width: 844, height: 390 }, Scale::Two).await;
}

async fn try_all(viewport: Viewport, scale: Scale) {
    let page = Page::open(viewport, scale).await;
    let mut faults = vec![];
    for (path, _) in VIEWPORTS {
        for gesture in GESTURES {
            let mut found = page.try_out(path, gesture).await;
            for _ in 0..GESTURE_RETRIES {
                if !found.as_ref().is_err_and(|fault| fault.starts_with(NOT_SHOWN)) {
                    break;
                }
                found = page.try_out(path, gesture).await;
            }
            faults.extend(found.err().map(|fault| format!("{path} {gesture:?}: {fault}")));
        }
    }
    let count = VIEWPORTS.len() * GESTURES.len();
    assert!(faults.is_empty(), "{} of {count}:\n{}", faults.len(), faults.join("\n"));
}

struct Page {
    browser: Arc<dyn Browser>,
    scale: Scale,
    viewport: Viewport,
    _pool: Arc<ChromiumPool>,
    _folder: tempfile::TempDir,
}

impl Page {
    async fn open(viewport: Viewport, scale: Scale) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let local_hosts = HashMap::from([(HOST.to_owned(), listener.local_addr().unwrap())]);
        tokio::spawn(serve(listener));
        let pool = ChromiumPool::new(PoolOptions { local_hosts, ..options(folder.path()) });
        let mut session = spec(HOST, "US");
        session.device = Device { viewport, scale, touch: true, ..Device::default() };
        let browser = pool.start(session).await.unwrap();
        Self { browser, scale, viewport, _pool: pool, _folder: folder }
    }

    /// Touches the button and the field of a page where a frame shows them.
    async fn try_out(&self, path: &str, gesture: Gesture) -> Result<(), String> {
        self.browser.navigate(&format!("http://{HOST}{path}")).await.unwrap();
        self.perform(gesture).await;
        let (button, field) = self.compare_state().await?;
        // On a busy machine, Chromium may take a short drag over the button for a tap.
        let before = self.output().await;
        let with_button = format!("{before} button");
        self.tap(centre(button)).await;
        self.expect_output(with_button.trim_start()).await?;
        self.tap(centre(field)).await;
        self.expect_output(format!("{with_button} input").trim_start()).await
    }

    /// Compares the reported field and the redacted areas with what the frame shows, and returns where
    /// that is of the button and of the field.
    async fn compare_state(&self) -> Result<(Area, Area), String> {
        let started = tokio::time::Instant::now();
        loop {
            let picture = self.still_picture().await;
            let (button, field) = (picture.area(is_red), picture.area(is_green));
            let (Some(button), Some(field)) = (button, field) else {
                return Err(format!("{NOT_SHOWN} button {button:?}, field {field:?}"));
            };
            let state = self.browser.page_state(0).await.unwrap();
            let reported = state.fields.first().map(|field| field.place);
            // The frame ends at its edges; reports do not.
            let [x, y, width, height] = reported.unwrap_or_default().map(f64::from);
            let (right, bottom) = (f64::from(self.viewport.width), f64::from(self.viewport.height));
            let shown = Area {
                left: x.max(0.0),
                top: y.max(0.0),
                right: (x + width).min(right),
                bottom: (y + height).min(bottom),
            };
            let is_reported = field.is_close_to(shown);
            let is_covered = state.redaction_rects.iter().any(|[x, y, width, height]| {
                let [x, y, width, height] = [*x, *y, *width, *height].map(f64::from);
                x <= field.left + 1.0
                    && y <= field.top + 1.0
                    && x + width >= field.right - 1.0
                    && y + height >= field.bottom - 1.0
            });
            if is_reported && is_covered {
                return Ok((button, field));
            }
            if started.elapsed() > FAULT_TIMEOUT {
                return Err(format!(
                    "the field is shown at {field:?}, reported at {shown:?}, redacted: {:?}",
                    state.redaction_rects
                ));
            }
        }
    }

    async fn perform(&self, gesture: Gesture) {
        let (x, y) = (f64::from(self.viewport.width) * 0.35, f64::from(self.viewport.height) * 0.3);
        self.still_picture().await;
        match gesture {
            Gesture::None => (),
            Gesture::Zoomed => self.pinch(x, y).await,
            Gesture::ZoomedAndMoved => {
                self.pinch(x, y).await;
                self.drag((x, y), (-25.0, -20.0)).await;
            }
            Gesture::Scrolled => self.drag((x, y), (0.0, -40.0)).await,
        }
    }

    /// Moves two fingers apart around a point.
    async fn pinch(&self, x: f64, y: f64) {
        let at = |distance: f64| {
            vec![TouchPoint { id: 0, x: x - distance, y }, TouchPoint { id: 1, x: x + distance, y }]
        };
        self.touch(TouchKind::Started, at(40.0)).await;
        for step in 1..=12 {
            self.touch(TouchKind::Moved, at(40.0 + f64::from(step) * 3.0)).await;
        }
        self.touch(TouchKind::Ended, vec![]).await;
    }

    async fn drag(&self, (x, y): (f64, f64), (dx, dy): (f64, f64)) {
        let at = |part: f64| vec![TouchPoint { id: 0, x: x + dx * part, y: y + dy * part }];
        self.touch(TouchKind::Started, at(0.0)).await;
        for step in 1..=10 {
            self.touch(TouchKind::Moved, at(f64::from(step) / 10.0)).await;
        }
        // Held still, so that the page does not move on by itself.
        tokio::time::sleep(Duration::from_millis(150)).await;
        self.touch(TouchKind::Moved, at(1.0)).await;
        self.touch(TouchKind::Ended, vec![]).await;
    }

    async fn tap(&self, (x, y): (f64, f64)) {
        self.touch(TouchKind::Started, vec![TouchPoint { id: 0, x, y }]).await;
        self.touch(TouchKind::Ended, vec![]).await;
    }

    async fn touch(&self, kind: TouchKind, points: Vec<TouchPoint>) {
        self.browser.input(Input::Touch { kind, points, modifiers: 0 });
        tokio::time::sleep(Duration::from_millis(16)).await;
    }

    /// Returns the elements in which the page was clicked.
    async fn output(&self) -> String {
        let texts = self.browser.read(&[ElementRead::text("#output")]).await.unwrap_or_default();
        texts.first().and_then(|text| text.as_str()).unwrap_or_default().to_owned()
    }

    /// Waits until the page was clicked in these elements, in this order, and in no other.
    async fn expect_output(&self, expected: &str) -> Result<(), String> {
        let started = tokio::time::Instant::now();
        loop {
            let text = self.output().await;
            if text == expected {
                return Ok(());
            }
            if started.elapsed() > FAULT_TIMEOUT {
                return Err(format!("clicked `{text}`, expected `{expected}`"));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Returns the frame that is shown once no other one comes.
    async fn still_picture(&self) -> Picture {
        let mut frame: Option<Arc<Frame>> = None;
        let deadline = tokio::time::Instant::now() + TIMEOUT;
        loop {
            let after = frame.as_ref().map_or(0, |frame| frame.seq);
            let next = self.browser.frame(after);
            match tokio::time::timeout(Duration::from_millis(300), next).await {
                Ok(next) => frame = next,
                Err(_) if frame.is_some() => break,
                Err(_) => (),
            }
            assert!(tokio::time::Instant::now() < deadline, "the page does not come to rest");
        }
        Picture::decode(&frame.unwrap().jpeg, f64::from(self.scale.times()))
    }
}

/// A frame's picture.
struct Picture {
    pixels: Vec<u8>,
    width: usize,
    /// Pixels of the picture for each of the viewport's.
    scale: f64,
}

/// An area of a picture, in pixels of the viewport.
#[derive(Debug, Clone, Copy)]
struct Area {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Area {
    fn is_close_to(self, other: Self) -> bool {
        let distances = [
            self.left - other.left,
            self.top - other.top,
            self.right - other.right,
            self.bottom - other.bottom,
        ];
        distances.iter().all(|distance| distance.abs() <= TOLERANCE)
    }
}

fn centre(area: Area) -> (f64, f64) {
    (f64::midpoint(area.left, area.right), f64::midpoint(area.top, area.bottom))
}

fn is_red(pixel: &[u8]) -> bool {
    pixel[0] > 180 && pixel[1] < 90 && pixel[2] < 90
}

fn is_green(pixel: &[u8]) -> bool {
    pixel[0] < 90 && pixel[1] > 140 && pixel[2] < 90
}

impl Picture {
    fn decode(jpeg: &[u8], scale: f64) -> Self {
        let mut decoder = JpegDecoder::new(ZCursor::new(jpeg));
        let pixels = decoder.decode().unwrap();
        let width = decoder.dimensions().unwrap().0;
        Self { pixels, width, scale }
    }

    /// Returns the smallest area that holds all pixels of a colour.
    fn area(&self, is_wanted: impl Fn(&[u8]) -> bool) -> Option<Area> {
        let pixels = self.pixels.chunks_exact(3).enumerate();
        let wanted = pixels.filter(|(_, pixel)| is_wanted(pixel));
        let (mut left, mut top, mut right, mut bottom) = (usize::MAX, usize::MAX, 0, 0);
        for (index, _) in wanted {
            let (x, y) = (index % self.width, index / self.width);
            (left, top) = (left.min(x), top.min(y));
            (right, bottom) = (right.max(x + 1), bottom.max(y + 1));
        }
        let shown = |pixels: usize| f64::from(u32::try_from(pixels).unwrap()) / self.scale;
        (right > 0).then(|| Area {
            left: shown(left),
            top: shown(top),
            right: shown(right),
            bottom: shown(bottom),
        })
    }
}

async fn serve(listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut request = [0; 4096];
        let length = stream.read(&mut request).await.unwrap_or_default();
        let head = String::from_utf8_lossy(request.get(..length).unwrap_or_default()).into_owned();
        let path = head.split(' ').nth(1).unwrap_or_default();
        let viewport = VIEWPORTS.iter().find(|(own, _)| *own == path);
        let viewport = viewport.map_or("", |(_, viewport)| *viewport);
        let page = format!("<!doctype html>{viewport}{BODY}");
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n";
        let response = format!("{head}content-length: {}\r\n\r\n{page}", page.len());
        let _ = stream.write_all(response.as_bytes()).await;
    }
}
