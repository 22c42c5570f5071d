//! Frames of other origins, which Chromium partly renders in processes of their own: they are set up
//! like the page around them, and those on the session's hosts are looked into.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

mod common;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use chromium::{ChromiumPool, PoolOptions};
use domain::workflow::{
    Action, ElementChoice, ElementContent, ElementRead, Observation, PageNode, PageTree,
    ReadContent, element_text,
};
use ports::browser::{
    Browser, BrowserError, BrowserPool as _, BrowserSpec, Device, Input, Locale, MouseButton,
    MouseKind, ObservedSignals, PageState, Viewport,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use self::common::{options, spec};

const HOST: &str = "page.localhost";
/// Of the same site as the page, but of another origin.
const SUBDOMAIN: &str = "login.page.localhost";
const FRAME_HOST: &str = "frame.localhost";
const INNER_HOST: &str = "inner.localhost";
/// No host of the session.
const FOREIGN_HOST: &str = "foreign.localhost";
/// A service worker that is unregistered, and a worker that ends itself.
const WORKERS: &str = "<!doctype html><output id=done></output><script>(async () => { \
    const registration = await navigator.serviceWorker.register('/worker.js'); await navigator.serviceWorker.ready; \
    await registration.unregister(); await new Promise((resolve) => { const worker = new Worker('/ending.js'); \
    worker.onmessage = resolve; }); location.hash = 'ended'; \
    await new Promise((resolve) => setTimeout(resolve, 500)); done.textContent = 'done'; })()</script>";
/// A foreign frame that becomes a document without a host, which receives a response and shows a heading.
const DISGUISED: &str = "<!doctype html><h1>Foreign</h1><script>\
    const html = '<h1>Forged</h1><scr' + 'ipt>fetch(\"http://foreign.localhost/api/forged\")' + \
    '.then((r) => r.text()).then(() => parent.postMessage(1, \"*\"))</scr' + 'ipt>'; \
    const url = { data: () => 'data:text/html;base64,' + btoa(html), \
    blob: () => URL.createObjectURL(new Blob([html], { type: 'text/html' })), \
    blank: () => 'about:blank' }[location.hash.slice(1)](); \
    if (url === 'about:blank') { fetch('/api/forged', { keepalive: true }).then(() => parent.postMessage(1, '*')); } \
    else location = url;</script>";
/// A page that asks a foreign host, also by a redirect of its own, and then hosts of the session.
const EMBEDDING: &str = "<!doctype html><output id=received>0</output><script>(async () => { \
    for (const url of ['http://foreign.localhost/api/me', '/api/away', '/api/me', 'http://login.page.localhost/api/me']) { \
    await (await fetch(url)).json(); received.textContent = +received.textContent + 1; } })()</script>";
/// A page of a foreign frame that never replies.
const HANGING: &str = "<!doctype html><h1>Hanging</h1><script>onload = () => setTimeout(() => { for (;;); })</script>";
/// Frames with the form: of the page's origin, of its site, of another site, in a frame of another site,
/// and in a frame of the page's origin.
const FRAMES: [&str; 5] =
    ["#near", "#same-site", "#other-site", "#nested >>> #innermost", "#mixed >>> #innermost"];
const TIMEOUT: Duration = Duration::from_secs(60);
/// How long all commands to a page with a frame that hangs may take.
const MAX_HANG: Duration = Duration::from_secs(30);

/// Tells what a document is told of the browser.
const ENVIRONMENT: &str = "<!doctype html><select id=list><option>One</select><script>\
    const inWorker = () => new Promise((resolve) => { const source = 'postMessage([navigator.userAgent, \
    navigator.languages.join(), Intl.DateTimeFormat().resolvedOptions().timeZone])'; \
    const worker = new Worker(URL.createObjectURL(new Blob([source]))); worker.onmessage = (e) => resolve(e.data); }); \
    const told = async () => JSON.stringify({ worker: await inWorker(), agent: navigator.userAgent, mobile: navigator.userAgentData?.mobile, \
    languages: navigator.languages, zone: Intl.DateTimeFormat().resolvedOptions().timeZone, \
    locale: Intl.DateTimeFormat().resolvedOptions().locale, points: navigator.maxTouchPoints, \
    touch: 'ontouchstart' in window, dark: matchMedia('(prefers-color-scheme: dark)').matches, \
    list: getComputedStyle(list).appearance, header: '{agent}', accept: '{languages}' });</script>";
const REPORT: &str = "<script>told().then((text) => top.postMessage(text, '*'))</script>";
const COMPARE: &str = "<output id=own></output><output id=framed></output><script>told().then((text) => { own.textContent = text }); \
    addEventListener('message', (e) => { framed.textContent = e.data })</script>";
/// Two fields, a button, a list, and a request whose response is watched.
const FORM: &str = "<!doctype html><style>body{margin:0}input{display:block;width:200px;height:30px}</style>\
    <input id=user value='ada'><input id=password type=password value='secret'>\
    <button onclick=\"document.querySelector('h1').textContent = 'Clicked'\">Continue</button>\
    <h1> Signed in </h1><p hidden id=hidden>Hidden</p>\
    <ul><li><b>One</b><i>1</i></li><li><b>Two</b><i>2</i></li></ul>\
    <script>fetch('/api/me').then((r) => r.json())</script>";
/// Fields of several kinds, each 30 pixels high: the first one is repeated in an attribute of the element
/// around it, and the last but one is written by the page itself. The page tells how long their texts are, and
/// the button puts another field in the place of the first one, and hides them all.
const WRITABLE: &str = "<!doctype html><style>body,output{margin:0;display:block}input,textarea,iframe,#letter{display:block;\
    box-sizing:border-box;width:200px;height:30px;border:0;margin:0;padding:4px;resize:none}</style>\
    <div id=form><input id=user oninput='form.dataset.now=this.value'><textarea id=note></textarea>\
    <div id=letter contenteditable></div><input id=own><iframe id=frame src=/field></iframe></div>\
    <input id=kept class=kept-text value=kept-text><button>Leave</button><output id=lengths></output><script>\
    own.onbeforeinput = (event) => { event.preventDefault(); own.value += event.data; };\
    const inFrame = () => frame.contentDocument?.querySelector('input')?.value ?? '';\
    setInterval(() => { lengths.textContent = [user.value, note.value, letter.textContent, own.value, inFrame()].map((t) => t.length); }, 20);\
    document.querySelector('button').onclick = () => { document.activeElement.blur(); const copy = user.cloneNode();\
    copy.value = user.value; user.replaceWith(copy); copy.setAttribute('value', copy.value); form.hidden = true; };</script>";

/// Elements with scripts, styles, templates and `noscript` within them, one of them in a frame. A field has
/// the name of a method.
const OPAQUE: &str = "<!doctype html><a id=lazy>Tea<noscript><img src='/t.jpg'></noscript></a>\
    <table><tr><td id=cell>12<script>var a = 34;</script><style>b{color:red}</style> kg</td></tr></table>\
    <p id=nested><b>One <i>two<script>3</script></i></b><template>four</template> five<!-- six --></p>\
    <p id=plain> Plain <b>text</b> </p>\
    <form id=form><input name=querySelector>Form<script>7</script></form>\
    <iframe id=frame src=/opaque-frame></iframe>";
/// The elements of [`OPAQUE`], and what is read of them.
const OPAQUE_TEXTS: [(&str, &str); 6] = [
    ("#lazy", "Tea"),
    ("#cell", "12 kg"),
    ("#nested", "One two five"),
    ("#plain", "Plain text"),
    ("#form", "Form"),
    ("#frame >>> #inside", "Inside"),
];

/// A number that changes as often as a script can change it, and an element that is shown at even ones.
const COUNTING: &str = "<!doctype html><output id=count>0</output><p id=even>Even</p><script>let n = 0; \
    setInterval(() => { n += 1; count.textContent = n; even.hidden = n % 2 === 1; }, 0)</script>";
/// The elements of [`COUNTING`] in the page, and in a frame of another site in it.
const COUNTS: [&str; 2] = ["#count", "#frame >>> #count"];
const EVENS: [&str; 2] = ["#even", "#frame >>> #even"];

/// A page that counts in its address and in a text, ten times a second.
const MOVING: &str = "<!doctype html><output id=count>0</output><script>let n = 0; \
    setInterval(() => { n += 1; history.replaceState(null, '', '#' + n); count.textContent = n; }, 100)</script>";

/// Two fields behind one shadow root, each 30 pixels high.
const SHADOW: &str = "<!doctype html><style>body{margin:0}</style><div id=host></div><script>\
    host.attachShadow({ mode: 'open' }).innerHTML = '<style>input{display:block;width:200px;height:30px;margin:0}</style>\
    <input><input type=password>';</script>";

struct Site {
    browser: Arc<dyn Browser>,
    _pool: Arc<ChromiumPool>,
    _folder: TempDir,
}

impl Site {
    /// Opens the page at this path of the first host.
    async fn open(path: &str, change: impl FnOnce(&mut BrowserSpec)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(listener));
        let hosts = [HOST, SUBDOMAIN, FRAME_HOST, INNER_HOST, FOREIGN_HOST];
        let local_hosts = HashMap::from(hosts.map(|host| (host.to_owned(), address)));
        let pool = ChromiumPool::new(PoolOptions { local_hosts, ..options(folder.path()) });
        let mut spec = spec(HOST, "US");
        spec.hosts.extend([SUBDOMAIN, FRAME_HOST, INNER_HOST].map(str::to_owned));
        change(&mut spec);
        let browser = pool.start(spec).await.unwrap();
        browser.navigate(&format!("http://{HOST}{path}")).await.unwrap();
        Self { browser, _pool: pool, _folder: folder }
    }

    async fn texts(&self, selectors: &[&str]) -> Vec<Value> {
        let reads: Vec<_> = selectors.iter().map(|selector| ElementRead::text(selector)).collect();
        self.browser.read(&reads).await.unwrap_or_default()
    }

    /// Returns the first observation that is as expected, or the last one after some time.
    async fn observation(&self, expected: impl Fn(&Observation) -> bool) -> Observation {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let seen = self.browser.observe().await.unwrap();
            if expected(&seen) || Instant::now() > deadline {
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Returns the first page state that is as expected, or the last one after some time.
    async fn state(&self, expected: impl Fn(&PageState) -> bool) -> Arc<PageState> {
        let deadline = Instant::now() + TIMEOUT;
        let mut last: Option<Arc<PageState>> = None;
        loop {
            let after = last.as_ref().map_or(0, |state| state.seq);
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(Some(state)) = tokio::time::timeout(left, self.browser.page_state(after)).await
            else {
                return last.unwrap();
            };
            if expected(&state) {
                return state;
            }
            last = Some(state);
        }
    }

    /// Returns whether the fields of [`WRITABLE`] have texts of these lengths within some time.
    async fn have_lengths(&self, lengths: &[usize], within: Duration) -> bool {
        let lengths: Vec<_> = lengths.iter().map(ToString::to_string).collect();
        let deadline = Instant::now() + within;
        while Instant::now() < deadline {
            if self.texts(&["#lengths"]).await == [json!(lengths.join(","))] {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        false
    }

    fn click(&self, x: f64, y: f64) {
        let mouse = |kind, button, buttons, clicks| Input::Mouse {
            kind,
            x,
            y,
            button,
            buttons,
            clicks,
            modifiers: 0,
        };
        self.browser.input(mouse(MouseKind::Moved, MouseButton::None, 0, 0));
        self.browser.input(mouse(MouseKind::Pressed, MouseButton::Left, 1, 1));
        self.browser.input(mouse(MouseKind::Released, MouseButton::Left, 0, 1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_and_workers_are_told_the_same_of_the_browser_as_the_page() {
    for touch in [false, true] {
        let site = Site::open("/environment", |spec| {
            let viewport = Viewport { width: 400, height: 700 };
            spec.device = Device { touch, dark: true, viewport, ..Device::default() };
            spec.locale =
                Locale { language: "ja-JP".to_owned(), time_zone: Some("Asia/Tokyo".to_owned()) };
        })
        .await;
        let deadline = Instant::now() + TIMEOUT;
        let (own, framed) = loop {
            let texts = site.texts(&["#own", "#framed"]).await;
            if let [Value::String(own), Value::String(framed)] = texts.as_slice()
                && !framed.is_empty()
                && !own.is_empty()
            {
                let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
                break (parse(own), parse(framed));
            }
            assert!(Instant::now() < deadline, "the frame reported nothing: {texts:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        assert_eq!(framed, own);
        let own_of_worker = json!([own["agent"], "ja-JP,ja,en", own["zone"]]);
        assert_eq!(own["worker"], own_of_worker);
        assert_eq!(own["zone"], "Asia/Tokyo");
        assert!(!own["agent"].as_str().unwrap().contains("Headless"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signals_are_seen_in_frames_of_the_sessions_hosts() {
    let selectors = FRAMES.map(|frame| format!("{frame} >>> h1"));
    let hidden = FRAMES.map(|frame| format!("{frame} >>> #hidden"));
    let site = Site::open("/frames", |spec| {
        let foreign = ["#foreign >>> h1", "iframe >>> h2", "#other-site h1"].map(str::to_owned);
        spec.watch = ObservedSignals {
            selectors: selectors.iter().chain(&hidden).cloned().chain(foreign).collect(),
            texts: selectors.to_vec(),
            responses: vec!["/api/me".to_owned()],
            ..ObservedSignals::default()
        };
    })
    .await;
    let expected: BTreeSet<_> = selectors.iter().cloned().collect();
    let is_whole =
        |seen: &Observation| seen.present == expected && seen.texts.len() == selectors.len();
    let seen = site.observation(is_whole).await;
    assert_eq!(seen.present, expected);
    for selector in &selectors {
        assert_eq!(
            seen.texts.get(selector).map(|text| text.trim()),
            Some("Signed in"),
            "{selector}"
        );
    }
    let seen = site.observation(|seen| seen.responses.len() >= 5).await;
    let mut responses: Vec<_> = seen.responses.iter().map(|one| one.url.as_str()).collect();
    responses.sort_unstable();
    responses.dedup();
    let hosts = [FRAME_HOST, INNER_HOST, SUBDOMAIN, HOST];
    assert_eq!(responses, hosts.map(|host| format!("http://{host}/api/me")));
    assert!(seen.responses.iter().all(|one| one.body == Some(json!({ "id": 1 }))), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_are_read_in_frames_of_the_sessions_hosts() {
    let site = Site::open("/frames", |_| ()).await;
    for frame in FRAMES {
        let inside = |selector: &str| format!("{frame} >>> {selector}");
        let value = |selector: &str| ElementRead {
            content: ReadContent::Value(ElementContent::Value),
            ..ElementRead::text(selector)
        };
        let with = |selector: &str, content| ElementRead { content, ..ElementRead::text(selector) };
        let member = |name: &str, read| BTreeMap::from([(name.to_owned(), read)]);
        let rows = |each: &str, max, members| {
            let each = each.to_owned();
            ReadContent::Rows { each, empty_when: None, members, max }
        };
        let reads = [
            ElementRead::text(&inside("h1")),
            ElementRead { choice: ElementChoice::Last, ..ElementRead::text(&inside("b")) },
            value(&inside("#password")),
            with(&inside("ul"), rows("li", 10, member("name", ElementRead::text("b")))),
            with("", ReadContent::Members(member("user", value(&inside("#user"))))),
            with("", rows(&inside("li"), 1, member("count", ElementRead::text("i")))),
            ElementRead::text(&inside("#none")),
        ];
        let expected = json!([
            "Signed in", "Two", null, [{ "name": "One" }, { "name": "Two" }], { "user": "ada" },
            [{ "count": "1" }], null,
        ]);
        let deadline = Instant::now() + TIMEOUT;
        let values = loop {
            // A frame may have a part of its elements at first.
            let values = Value::Array(site.browser.read(&reads).await.unwrap());
            if values == expected || Instant::now() > deadline {
                break values;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        assert_eq!(values, expected, "{frame}");
    }
    assert_eq!(site.texts(&["#foreign >>> h1"]).await, [Value::Null]);
}

/// The cases are those of `a_list_that_the_page_leaves_out_is_replayed` in the domain, and some of frames.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_the_page_leaves_out_is_told_by_what_it_shows_instead() {
    let site = Site::open("/frames", |_| ()).await;
    for frame in FRAMES {
        let inside = |selector: &str| format!("{frame} >>> {selector}");
        let list = |selector: &str, empty_when: &str| ElementRead {
            content: ReadContent::Rows {
                each: "li".to_owned(),
                empty_when: Some(empty_when.to_owned()),
                members: BTreeMap::from([("name".to_owned(), ElementRead::text("b"))]),
                max: 10,
            },
            ..ElementRead::text(selector)
        };
        let reads = [
            list(&inside("#none"), &inside("h1")),
            list("#none", &inside("h1")),
            list(&inside("#none"), "iframe"),
            // It has no box, or is not there.
            list(&inside("#none"), &inside("#hidden")),
            list(&inside("#none"), "#none"),
            // The list is there.
            list(&inside("ul"), &inside("h1")),
            list(&inside("ul"), "iframe"),
        ];
        let (none, rows) = (ReadContent::NO_LIST, json!([{ "name": "One" }, { "name": "Two" }]));
        let expected = json!([none, none, none, null, null, rows, rows]);
        let deadline = Instant::now() + TIMEOUT;
        let values = loop {
            // A frame may have a part of its elements at first.
            let values = Value::Array(site.browser.read(&reads).await.unwrap());
            if values == expected || Instant::now() > deadline {
                break values;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        assert_eq!(values, expected, "{frame}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_element_in_a_frame_of_another_site_is_clicked() {
    let site = Site::open("/frames", |spec| {
        spec.watch.texts = vec!["#other-site >>> h1".to_owned()];
    })
    .await;
    let button = "#other-site >>> button";
    let deadline = Instant::now() + TIMEOUT;
    while !site.browser.act(&click(button)).await.unwrap() {
        assert!(Instant::now() < deadline, "no button");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let has_text = |seen: &Observation| seen.texts.values().any(|text| text == "Clicked");
    assert!(has_text(&site.observation(has_text).await));
    assert!(!site.browser.act(&click("#foreign >>> button")).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tree_of_a_page_has_its_frames() {
    let site = Site::open("/frames", |_| ()).await;
    let deadline = Instant::now() + TIMEOUT;
    let (tree, boxes) = loop {
        let page = site.browser.inspect().await.unwrap();
        let headings = texts_of(&page.tree, "h1");
        if headings.len() == 5 || Instant::now() > deadline {
            break (page.tree, page.boxes);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(texts_of(&tree, "h1"), ["Signed in"; 5]);
    assert!(tree.is_valid());
    // The page stacks its frames, each 120 pixels high.
    let tops = tree.nodes.iter().zip(&boxes).filter(|(node, _)| node.tag.as_deref() == Some("ul"));
    let tops: BTreeSet<_> =
        tops.map(|(_, area)| (area.unwrap()[1] / 120.0).floor().to_string()).collect();
    assert_eq!(tops.len(), 5, "{tops:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_text_of_an_element_is_that_of_the_tree() {
    let selectors = OPAQUE_TEXTS.map(|(selector, _)| selector);
    let expected = OPAQUE_TEXTS.map(|(_, text)| text);
    let site = Site::open("/opaque", |spec| {
        spec.watch.texts = selectors.map(str::to_owned).to_vec();
    })
    .await;
    // A frame may have none of its elements at first.
    let seen = site.observation(|seen| seen.texts.len() == selectors.len()).await;
    let observed = selectors.map(|one| seen.texts.get(one).map_or("", |text| text.trim()));
    assert_eq!(observed, expected);
    assert_eq!(site.texts(&selectors).await, expected.map(Value::from));
    let tree = site.browser.capture(&[], false).await.unwrap().tree.unwrap();
    let captured = selectors.map(|selector| {
        let (_, id) = selector.rsplit_once('#').unwrap();
        let has_id = |node: &PageNode| node.attributes.get("id").is_some_and(|own| own == id);
        let at = tree.nodes.iter().position(has_id).unwrap();
        element_text(&tree, at, &ElementContent::Text).unwrap()
    });
    assert_eq!(captured, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_read_and_observed_is_that_of_the_captured_elements() {
    let site = Site::open("/counting", |spec| {
        spec.watch.selectors = EVENS.map(str::to_owned).to_vec();
        spec.watch.texts = COUNTS.map(str::to_owned).to_vec();
    })
    .await;
    // A frame may have none of its elements at first.
    site.observation(|seen| seen.texts.len() == COUNTS.len()).await;
    let reads = COUNTS.map(ElementRead::text);
    let (mut counts, mut frames) = (BTreeSet::new(), 0);
    for round in 0..50 {
        let page = site.browser.capture(&reads, false).await.unwrap();
        let tree = page.tree.unwrap();
        let with_id = |id: &str| -> Vec<usize> {
            let has_id =
                |at: &usize| tree.nodes[*at].attributes.get("id").is_some_and(|own| own == id);
            (0..tree.nodes.len()).filter(has_id).collect()
        };
        let text = |at| Value::from(element_text(&tree, at, &ElementContent::Text).unwrap());
        let mut captured: Vec<_> = with_id("count").into_iter().map(text).collect();
        frames += captured.len() - 1;
        counts.insert(captured[0].to_string());
        // A frame that does not reply in time is left out of all.
        captured.resize(COUNTS.len(), Value::Null);
        assert_eq!(page.values.unwrap(), captured, "{round}");
        let seen = &page.seen;
        let observed = COUNTS.map(|selector| json!(seen.texts.get(selector)));
        assert_eq!(observed.to_vec(), captured, "{round}");
        for (selector, at) in EVENS.into_iter().zip(with_id("even")) {
            let is_visible = tree.nodes[at].visible;
            assert_eq!(seen.present.contains(selector), is_visible, "{round}: {selector}");
        }
    }
    assert!(counts.len() > 1, "the page does not change");
    assert!(frames > 0, "the frame is never captured");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tree_has_nothing_that_somebody_wrote() {
    let site = Site::open("/writable", |_| ()).await;
    let mut lengths = [0; 5];
    for field in 0..lengths.len() {
        let text = format!("typed-{field}");
        write(&site, field, &text, &mut lengths).await;
    }
    // As a picker does, in a frame.
    site.browser.input(Input::Fill("picked-text".to_owned()));
    lengths[4] = "picked-text".len();
    assert!(site.have_lengths(&lengths, TIMEOUT).await, "{:?}", site.texts(&["#lengths"]).await);
    for is_left in [false, true] {
        if is_left {
            assert!(site.browser.act(&click("button")).await.unwrap());
        }
        let inspected = format!("{:?}", site.browser.inspect().await.unwrap().tree);
        assert!(inspected.contains("value: Some(\"kept-text\")"), "{inspected}");
        assert!(!inspected.contains("typed-") && !inspected.contains("picked-"), "{inspected}");
        for is_typing in [false, true] {
            let tree = site.browser.capture(&[], is_typing).await.unwrap().tree.unwrap();
            let values: Vec<_> =
                tree.nodes.iter().filter_map(|node| node.value.as_deref()).collect();
            // What nobody wrote stays while nobody is asked to type.
            assert_eq!(values.contains(&"kept-text"), !is_typing, "{tree:?}");
            let all = format!("{tree:?}");
            assert!(!all.contains("typed-") && !all.contains("picked-"), "{is_left}: {all}");
            assert!(all.contains("kept-text"), "selectors go by classes: {all}");
        }
    }
}

/// Writes into a field of [`WRITABLE`] until the page has it: a page drops input for a moment after it was
/// loaded.
async fn write(site: &Site, field: usize, text: &str, lengths: &mut [usize; 5]) {
    *lengths.get_mut(field).unwrap() = text.len();
    let deadline = Instant::now() + TIMEOUT;
    loop {
        site.click(100.0, 15.0 + 30.0 * f64::from(u8::try_from(field).unwrap()));
        tokio::time::sleep(Duration::from_millis(300)).await;
        site.browser.input(Input::Text(text.to_owned()));
        if site.have_lengths(lengths, Duration::from_secs(5)).await {
            return;
        }
        assert!(Instant::now() < deadline, "{field}: {:?}", site.texts(&["#lengths"]).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_focused_field_of_a_frame_is_published_and_all_fields_stay_covered() {
    for path in ["/near", "/same-site", "/other-site"] {
        let site = Site::open(path, |_| ()).await;
        let begin = site.state(|state| !state.redaction_rects.is_empty()).await;
        assert_eq!(begin.redaction_rects.len(), 2, "{path}: the field and the frame");
        let deadline = Instant::now() + TIMEOUT;
        let state = loop {
            // A frame accepts clicks only a moment after it is visible.
            site.click(20.0, 100.0 + 45.0);
            let next = Duration::from_millis(500);
            let focused = site.state(|state| state.focused.is_some());
            if let Ok(state) = tokio::time::timeout(next, focused).await {
                break state;
            }
            assert!(Instant::now() < deadline, "{path}: no field of the frame got the focus");
        };
        let focused = &state.fields[usize::from(state.focused.unwrap())];
        assert_eq!(focused.kind, "password", "{path}");
        assert_eq!(state.fields.len(), 2, "{path}: the page's own field is there, too");
        assert_eq!(state.redaction_rects, begin.redaction_rects, "{path}");

        site.click(20.0, 20.0);
        let state = site
            .state(|state| {
                state.focused.is_some_and(|at| state.fields[usize::from(at)].kind == "email")
            })
            .await;
        assert_eq!((state.focused, state.fields.len()), (Some(0), 1), "{path}");
        assert_eq!(state.redaction_rects, begin.redaction_rects, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_focus_is_followed_within_a_shadow_root() {
    let site = Site::open("/shadow", |_| ()).await;
    for (y, kind) in [(15.0, "text"), (45.0, "password"), (15.0, "text")] {
        let is_focused = |state: &PageState| {
            state.focused.is_some_and(|at| state.fields[usize::from(at)].kind == kind)
        };
        let deadline = Instant::now() + TIMEOUT;
        loop {
            // A page drops input for a moment after it was loaded.
            site.click(20.0, y);
            let focused = site.state(is_focused);
            let next = Duration::from_millis(500);
            if tokio::time::timeout(next, focused).await.is_ok() {
                break;
            }
            assert!(Instant::now() < deadline, "the {kind} field has not got the focus");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_foreign_frames_receive_does_not_count() {
    let site = Site::open("/hostile", |spec| {
        spec.watch.responses = vec!["/api/*".to_owned()];
        spec.watch.selectors = vec!["iframe >>> h1".to_owned()];
    })
    .await;
    // The page tells when its frames have received all.
    let deadline = Instant::now() + TIMEOUT;
    while site.texts(&["#received"]).await != [json!("3")] {
        assert!(Instant::now() < deadline, "the frames did not receive their responses");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let seen = site.observation(|seen| !seen.responses.is_empty()).await;
    let urls: Vec<_> = seen.responses.iter().map(|one| one.url.as_str()).collect();
    assert_eq!(urls, [format!("http://{HOST}/api/own")]);
    assert!(seen.present.is_empty(), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_foreign_hosts_answer_does_not_count() {
    let site = Site::open("/embedding", |spec| {
        spec.watch.responses = vec!["/api/*".to_owned()];
        spec.watch.all_json = true;
    })
    .await;
    let deadline = Instant::now() + TIMEOUT;
    while site.texts(&["#received"]).await != [json!("4")] {
        assert!(Instant::now() < deadline, "the page did not receive its responses");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // The page asks its own hosts last.
    let own = [HOST, SUBDOMAIN].map(|host| format!("http://{host}/api/me"));
    let seen = site.observation(|seen| seen.responses.iter().any(|one| one.url == own[1])).await;
    let urls: Vec<_> = seen.responses.iter().map(|one| one.url.as_str()).collect();
    assert_eq!(urls, own);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frame_that_hangs_holds_up_nothing() {
    let site = Site::open("/hanging", |spec| {
        spec.watch.selectors = vec!["p".to_owned(), "iframe >>> h1".to_owned()];
    })
    .await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let asked = Instant::now();
    let seen = site.observation(|seen| seen.present.contains("p")).await;
    assert_eq!(seen.present, BTreeSet::from(["p".to_owned()]));
    let reads = vec![ElementRead::text("iframe >>> h1"); 20];
    assert_eq!(site.browser.read(&reads).await.unwrap(), vec![Value::Null; 20]);
    assert!(matches!(
        site.browser.act(&click("iframe >>> button")).await,
        Ok(false) | Err(BrowserError::TimedOut)
    ));
    assert!(asked.elapsed() < MAX_HANG, "{:?}", asked.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_observed_is_not_later_because_of_a_frame_that_nothing_leads_into() {
    let site = Site::open("/moving", |_| ()).await;
    let reads = [ElementRead::text("#count")];
    let deadline = Instant::now() + TIMEOUT;
    let page = loop {
        let asked = Instant::now();
        let page = site.browser.capture(&reads, false).await.unwrap();
        // Once the frame hangs, it is waited for.
        if asked.elapsed() >= Duration::from_millis(1500) {
            break page;
        }
        assert!(Instant::now() < deadline, "no capture waits for the frame");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let values = page.values.unwrap();
    let read: u32 = values[0].as_str().unwrap().parse().unwrap();
    let (_, shown) = page.seen.url.split_once('#').unwrap();
    let shown: u32 = shown.parse().unwrap();
    // The frame is waited for while the page counts to twenty.
    assert!(shown < read + 10, "{shown} is in the address, and {read} was read");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_ends_does_not_end_the_browser() {
    let site = Site::open("/workers", |_| ()).await;
    let deadline = Instant::now() + TIMEOUT;
    while site.texts(&["#done"]).await != [json!("done")] {
        assert!(Instant::now() < deadline, "the workers did not end");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(site.browser.observe().await.is_ok());
}

fn click(selector: &str) -> Action {
    Action::Click(selector.to_owned())
}

/// Returns the texts of the elements with this tag.
fn texts_of(tree: &PageTree, tag: &str) -> Vec<String> {
    let tagged = tree.nodes.iter().enumerate().filter(|(_, node)| node.tag.as_deref() == Some(tag));
    let text = |at: usize| {
        let inside = tree.nodes.iter().filter(move |node| node.parent == Some(at));
        inside.filter_map(|node| node.text.as_deref()).collect::<String>()
    };
    tagged.map(|(at, _)| text(at).trim().to_owned()).collect()
}

async fn serve(listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        tokio::spawn(async move {
            let mut request = [0; 8192];
            let length = stream.read(&mut request).await.unwrap_or_default();
            let head = String::from_utf8_lossy(request.get(..length).unwrap_or_default());
            let (kind, body) = answer(&head);
            let status = if head.starts_with("GET /api/away ") {
                format!("302 Found\r\nlocation: http://{FOREIGN_HOST}/api/me")
            } else {
                "200 OK".to_owned()
            };
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\
                 access-control-allow-origin: *\r\n\
                 connection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        });
    }
}

fn answer(head: &str) -> (&'static str, String) {
    let header = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        let found = lines.find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.to_owned()).unwrap_or_default()
    };
    let environment = || {
        ENVIRONMENT
            .replace("{agent}", &header("user-agent"))
            .replace("{languages}", &header("accept-language"))
    };
    let style = "<!doctype html><style>body{margin:0}\
        iframe{display:block;border:0;width:300px;height:120px}input{height:90px;margin:5px}</style>";
    let with_field =
        |host: &str| format!("{style}<input type=email><iframe src=http://{host}/form></iframe>");
    let body = match head.split(' ').nth(1) {
        Some("/environment") => {
            let frame = format!("<iframe src=http://{FRAME_HOST}/framed></iframe>");
            format!("{}{COMPARE}{frame}", environment())
        }
        Some("/framed") => format!("{}{REPORT}", environment()),
        Some("/frames") => format!(
            "{style}<iframe id=near src=/form></iframe>\
             <iframe id=same-site src=http://{SUBDOMAIN}/form></iframe>\
             <iframe id=other-site src=http://{FRAME_HOST}/form></iframe>\
             <iframe id=nested src=http://{FRAME_HOST}/outer></iframe>\
             <iframe id=mixed src=/outer></iframe>\
             <iframe id=foreign src=http://{FOREIGN_HOST}/form></iframe>"
        ),
        Some("/outer") => {
            format!("{style}<iframe id=innermost src=http://{INNER_HOST}/form></iframe>")
        }
        Some("/near") => with_field(HOST),
        Some("/same-site") => with_field(SUBDOMAIN),
        Some("/other-site") => with_field(FRAME_HOST),
        Some("/form") => FORM.to_owned(),
        Some("/shadow") => SHADOW.to_owned(),
        Some("/opaque") => OPAQUE.to_owned(),
        Some("/opaque-frame") => {
            "<!doctype html><p id=inside>Inside<script>8</script></p>".to_owned()
        }
        Some("/counting") => {
            format!("{COUNTING}<iframe id=frame src=http://{FRAME_HOST}/counted></iframe>")
        }
        Some("/counted") => COUNTING.to_owned(),
        Some("/writable") => WRITABLE.to_owned(),
        Some("/field") => format!("{style}<input style='height:30px;margin:0'>"),
        Some("/hostile") => format!(
            "<!doctype html><output id=received>0</output>\
             <script>addEventListener('message', () => {{ received.textContent = +received.textContent + 1 }});\
             setTimeout(() => fetch('/api/own'), 1000)</script>\
             <iframe src=http://{FOREIGN_HOST}/disguised#data></iframe>\
             <iframe src=http://{FOREIGN_HOST}/disguised#blob></iframe>\
             <iframe src=http://{FOREIGN_HOST}/disguised#blank></iframe>"
        ),
        Some("/disguised") => DISGUISED.to_owned(),
        Some("/embedding") => EMBEDDING.to_owned(),
        Some("/hanging") => {
            format!("<!doctype html><p>Page</p><iframe src=http://{FRAME_HOST}/hang></iframe>")
        }
        Some("/moving") => format!("{MOVING}<iframe src=http://{FRAME_HOST}/hang></iframe>"),
        Some("/hang") => HANGING.to_owned(),
        Some("/workers") => WORKERS.to_owned(),
        Some("/worker.js") => return ("text/javascript", "onfetch = () => {}".to_owned()),
        Some("/ending.js") => return ("text/javascript", "postMessage(1); close()".to_owned()),
        Some("/api/me" | "/api/own" | "/api/forged") => {
            return ("application/json", json!({ "id": 1 }).to_string());
        }
        _ => String::new(),
    };
    ("text/html", body)
}
