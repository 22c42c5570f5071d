//! The outline of a real page: its texts and controls, nothing that was entered, and controls that can
//! be activated, on a desktop and on a phone.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

mod common;

use domain::workflow::ElementRead;
use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use chromium::{ChromiumPool, PoolOptions};
use ports::browser::{
    Browser, BrowserError, BrowserPool as _, Checked, Device, Input, OutlineEntry, OutlineRole,
    PageOutline, Scale, Viewport,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use self::common::{options, spec};

const HOST: &str = "page.localhost";
const OTHER_HOST: &str = "other.localhost";
/// How long a page is waited for; on a busy machine an outline of many controls may be refused at first.
const TIMEOUT: Duration = Duration::from_secs(60);
/// An outline that takes longer than two seconds is refused; a page that is [`BUSY`] answers far later.
const MAX_OUTLINE: Duration = Duration::from_secs(6);
/// What is entered into the fields of [`FORM`], and what the page makes of it.
const SECRETS: [&str; 6] =
    ["ada@example.test", "hunter22", "four words in one", "2001", "98765", "edited"];

/// Fields with content, a page that repeats it in names, texts and values, and frames.
const FORM: &str = "<!doctype html><title>A form</title><h1>Sign in</h1>\
    <p role=alert>We do not know ada@example.test.</p>\
    <form><label>Mail <input id=mail type=email required aria-invalid=true value=ada@example.test></label>\
    <label>Password <input type=password value=hunter22></label><p>Your password is hunter22, is it?</p>\
    <textarea aria-label='four words in one'>four words  in\none</textarea>\
    <label>Born <input type=date value=2001-02-03></label>\
    <div contenteditable aria-label=Letter>edited</div><button aria-label='Delete edited'>x</button>\
    <input aria-label=Code inputmode=numeric value=98765><p>98765</p>\
    <div id=shadow></div><p>Behind a shadow: open-secret</p>\
    <select aria-label=Country><option>Chile<option selected>Peru</select>\
    <label><input type=checkbox checked> Remember me</label>\
    <a href=/next>Forgot password?</a></form>\
    <iframe srcdoc=\"<p>Of the same site</p><input aria-label=Inside value=98765><button>Inner</button>\"></iframe>\
    <iframe src=http://other.localhost/other></iframe>\
    <script>shadow.attachShadow({mode:'open'}).innerHTML='<input aria-label=Deep value=open-secret>';</script>";

/// Controls at the end of a long page, each of which writes its name when it is used. A phone shows the
/// page smaller than it is.
const FAR: &str = "<!doctype html><meta name=viewport content='width=1024'><style>body{margin:0;height:5000px}\
    button,input,a,select{position:absolute;left:700px;width:200px;height:40px}</style>\
    <button style=top:60px>Near</button><button style=top:4000px>Far</button>\
    <input aria-label=Field style=top:4100px><input type=checkbox aria-label=Box style=top:4200px>\
    <a href=/form style=top:4300px>Link</a><button id=gone style=top:4400px>Gone</button>\
    <select aria-label=List style=top:2000px><option>one<option>two</select>\
    <iframe style='position:absolute;top:3000px;left:500px' srcdoc=\"<button onclick=parent.say('Inner')>Inner</button>\"></iframe>\
    <iframe style='position:absolute;top:3500px;left:600px;border:9px solid' src=http://other.localhost/other></iframe>\
    <p id=output></p><script>addEventListener('message',(event)=>say(event.data));window.say=(text)=>{output.textContent+=text+' '};\
    addEventListener('click',(event)=>say(event.target.ariaLabel??event.target.textContent));\
    addEventListener('change',(event)=>say(event.target.value));\
    addEventListener('input',(event)=>{if(event.target.ariaLabel==='Field')say(event.target.value)});</script>";

/// A frame of another site.
const OTHER: &str = "<!doctype html><style>body{height:2000px}button{position:absolute;top:1500px}</style>\
    <p>Of another site</p><input aria-label=Elsewhere value=hunter22><p>hunter22</p>\
    <button onclick=\"top.postMessage('Other','*')\">Other</button>";

/// A page that is busy for longer than an outline may take.
const BUSY: &str = "<!doctype html><h1>Busy</h1><script>setTimeout(()=>{const end=Date.now()+15000;\
    while(Date.now()<end);},300)</script>";
const LARGE: &str = "<!doctype html><h1>Large</h1><script>for(let n=0;n<21000;n++)document.body.append(document.createElement('p'))</script>";
const LONG: &str = "<!doctype html><h1>Long</h1><button></button><script>document.querySelector('button').ariaLabel='x'.repeat(2e6)</script>";
const MANY: &str = "<!doctype html><body><script>for(let n=0;n<2000;n++){const b=document.createElement('button');\
    b.textContent='\\u202e'+n+' '.repeat(9)+'name '.repeat(90);document.body.append(b)}</script>";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outline_has_the_page_and_nothing_that_was_entered() {
    let page = Page::open(Device::default()).await;
    page.navigate("/form").await;
    let outline = page.outline_with("Other").await;
    let lines: Vec<_> = outline.entries.iter().map(line).collect();
    assert_eq!(
        lines,
        [
            "Heading(1) Sign in",
            "Field Mail required invalid",
            "Field Password",
            // Its name is its content.
            "Field ",
            "Field Born",
            "Field Letter",
            "Button ",
            "Field Code",
            "Field Deep",
            "Combobox Country=Peru",
            "Checkbox Remember me",
            "Link Forgot password?",
            "Text Of the same site",
            "Field Inside",
            "Button Inner",
            "Text Of another site",
            "Field Elsewhere",
            "Button Other",
        ]
    );
    let all = format!("{outline:?}");
    for secret in SECRETS.into_iter().chain(["open-secret"]) {
        assert!(!all.contains(secret), "{secret}: {all}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn controls_are_activated_on_a_desktop() {
    activate_all(Device::default()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn controls_are_activated_on_a_phone() {
    let viewport = Viewport { width: 390, height: 844 };
    activate_all(Device { viewport, scale: Scale::Two, touch: true, ..Device::default() }).await;
}

async fn activate_all(device: Device) {
    let page = Page::open(device).await;
    page.navigate("/far").await;
    let outline = page.outline_with("Other").await;
    let mut expected = page.first_output(&outline, "Far").await;
    for (name, effect) in [
        ("Near", "Near "),
        ("Box", "Box on "),
        ("Inner", "Inner "),
        ("Other", "Other "),
        ("Field", "Field "),
    ] {
        page.browser.input(Input::Activate(node(&outline, name)));
        expected.push_str(effect);
        page.until_output(&expected).await;
    }
    // What is typed at once goes to the field that was activated just before.
    page.browser.input(Input::Activate(node(&outline, "Box")));
    page.browser.input(Input::Activate(node(&outline, "Field")));
    page.browser.input(Input::Text("typed".into()));
    expected.push_str("Box on Field typed ");
    page.until_output(&expected).await;

    page.browser.input(Input::Activate(node(&outline, "List")));
    let opened = page.outline_with("two").await;
    page.browser.input(Input::Activate(node(&opened, "two")));
    // The field that is left reports its change.
    expected.push_str("typed List two two ");
    page.until_output(&expected).await;

    // Controls that are unknown, or that are gone, and those of another document.
    let stale = node(&outline, "Far");
    for unknown in [0, 1, u32::MAX] {
        page.browser.input(Input::Activate(unknown));
    }
    page.browser.input(Input::Activate(node(&opened, "Link")));
    page.until_unchecked(stale).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_pages_have_a_bounded_outline_or_none() {
    let page = Page::open(Device::default()).await;
    page.navigate("/many").await;
    let outline = page.outline_with("0 name").await;
    assert!(outline.is_cut && outline.entries.len() <= PageOutline::MAX_ENTRIES, "{outline:?}");
    let chars = outline.entries.iter().map(|entry| entry.name.chars().count());
    assert_eq!(chars.max(), Some(PageOutline::MAX_TEXT_CHARS));
    for path in ["/large", "/long"] {
        page.navigate(path).await;
        let refused = page.outline_in_time().await;
        assert!(matches!(refused, Err(BrowserError::Refused(_))), "{path}: {refused:?}");
    }
    page.navigate("/busy").await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let (asked, late) = (Instant::now(), page.outline());
    let (late, second) = tokio::join!(late, page.outline());
    assert!(matches!(late, Err(BrowserError::TimedOut)), "{late:?}");
    assert!(matches!(second, Err(BrowserError::Refused(_))), "one at a time: {second:?}");
    assert!(asked.elapsed() < MAX_OUTLINE, "{:?}", asked.elapsed());
    page.outline_with("Busy").await;
}

struct Page {
    browser: Arc<dyn Browser>,
    _pool: Arc<ChromiumPool>,
    _folder: tempfile::TempDir,
}

impl Page {
    async fn open(device: Device) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(listener));
        let local_hosts = HashMap::from([HOST, OTHER_HOST].map(|host| (host.to_owned(), address)));
        let pool = ChromiumPool::new(PoolOptions { local_hosts, ..options(folder.path()) });
        let mut session = spec(HOST, "US");
        session.device = device;
        let browser = pool.start(session).await.unwrap();
        Self { browser, _pool: pool, _folder: folder }
    }

    async fn navigate(&self, path: &str) {
        self.browser.navigate(&format!("http://{HOST}{path}")).await.unwrap();
    }

    async fn outline(&self) -> Result<PageOutline, BrowserError> {
        self.browser.outline().await
    }

    /// Returns the first outline, or the refusal of one, that does not take too long.
    async fn outline_in_time(&self) -> Result<PageOutline, BrowserError> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let outline = self.outline().await;
            if !matches!(outline, Err(BrowserError::TimedOut)) || Instant::now() > deadline {
                return outline;
            }
        }
    }

    /// Waits for an outline with an entry whose name begins like this.
    async fn outline_with(&self, name: &str) -> PageOutline {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let outline = self.outline().await;
            let is_there =
                |outline: &PageOutline| outline.entries.iter().any(|e| e.name.starts_with(name));
            match outline {
                Ok(outline) if is_there(&outline) => return outline,
                other => assert!(Instant::now() < deadline, "no {name:?} in {other:?}"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Activates the box of [`FORM`] until it is not checked: a page drops input for a moment after it
    /// was loaded. A control of the document before does nothing.
    async fn until_unchecked(&self, stale: u32) {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let form = self.outline_with("Remember me").await;
            let checked = form.entries.iter().find(|entry| entry.name == "Remember me");
            if checked.and_then(|entry| entry.state.checked) == Some(Checked::No) {
                return;
            }
            assert!(Instant::now() < deadline, "the box is still checked");
            self.browser.input(Input::Activate(stale));
            self.browser.input(Input::Activate(node(&form, "Remember me")));
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    /// Activates a button until the page reports it, and returns what it reported: a page drops input for
    /// a moment after it was loaded.
    async fn first_output(&self, outline: &PageOutline, button: &str) -> String {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            self.browser.input(Input::Activate(node(outline, button)));
            tokio::time::sleep(Duration::from_millis(500)).await;
            let text = self.output().await;
            if !text.trim().is_empty() {
                assert!(text.split_whitespace().all(|word| word == button), "{text:?}");
                return text.trim().to_owned() + " ";
            }
            assert!(Instant::now() < deadline, "{button} reports nothing");
        }
    }

    async fn output(&self) -> String {
        let texts = self.browser.read(&[ElementRead::text("#output")]).await.unwrap_or_default();
        texts.first().and_then(|text| text.as_str()).unwrap_or_default().to_owned()
    }

    async fn until_output(&self, expected: &str) {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let text = self.output().await;
            if text.trim() == expected.trim() {
                return;
            }
            assert!(Instant::now() < deadline, "{text:?} and not {expected:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn node(outline: &PageOutline, name: &str) -> u32 {
    let entry = outline.entries.iter().find(|entry| entry.name == name);
    entry.and_then(|entry| entry.node).unwrap_or_else(|| panic!("no {name} in {outline:?}"))
}

fn line(entry: &OutlineEntry) -> String {
    let OutlineEntry { role, name, value, node, state } = entry;
    let value = value.as_ref().map(|value| format!("={value}")).unwrap_or_default();
    let is_control = !matches!(role, OutlineRole::Heading(_) | OutlineRole::Text);
    assert_eq!(node.is_some(), is_control, "{entry:?}");
    let required = if state.required { " required" } else { "" };
    let invalid = if state.invalid { " invalid" } else { "" };
    format!("{role:?} {name}{value}{required}{invalid}")
}

async fn serve(listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        tokio::spawn(async move {
            let mut request = [0; 4096];
            let length = stream.read(&mut request).await.unwrap_or_default();
            let head = String::from_utf8_lossy(request.get(..length).unwrap_or_default());
            let body = match head.split(' ').nth(1) {
                Some("/form") => FORM,
                Some("/far") => FAR,
                Some("/busy") => BUSY,
                Some("/large") => LARGE,
                Some("/long") => LONG,
                Some("/many") => MANY,
                Some("/other") => OTHER,
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
