//! A browser whose pages a test sets, and a pool of such browsers.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use domain::{
    id::BrowserId,
    secret::Secret,
    workflow::{Action, ElementRead, Observation, PageFetch, PageNode, PageTree},
};
use ports::browser::{
    Browser, BrowserCredentials, BrowserError, BrowserPool, BrowserSpec, CapturedPage, Fetched,
    Frame, Input, InspectedPage, ObservedSignals, PageOutline, PageState, Screen, StartError,
    Viewport,
};
use serde_json::Value;
use tokio::sync::watch;

use super::Script;

/// What a test sets of a browser.
#[derive(Default)]
struct Page {
    present: BTreeSet<String>,
    frame: Option<Arc<Frame>>,
    scene: Option<Arc<PageState>>,
    has_ended: bool,
}

/// A browser whose page a test sets.
pub(crate) struct FakeBrowser {
    page: watch::Sender<Page>,
    inputs: Mutex<Vec<Input>>,
    visited: Mutex<Vec<String>>,
    /// Results of navigations; each succeeds where there is none.
    pub(crate) navigations: Script<Result<(), BrowserError>>,
    /// Results of fetches and of reads of a response.
    pub(crate) bodies: Script<Result<Fetched, BrowserError>>,
    /// Results of outlines, each after a second; a further one does not come.
    pub(crate) outlines: Script<Result<PageOutline, BrowserError>>,
    /// Whether navigations panic.
    pub(crate) panics: AtomicBool,
    /// Whether the page is another one each time that it is looked at: the text of its elements is the
    /// number of the look, and what a test shows is there at every second one only.
    pub(crate) changes: AtomicBool,
    looks: AtomicU64,
}

/// The page as it is when it is looked at once.
struct PageLook {
    present: BTreeSet<String>,
    /// The text of all elements.
    text: Option<String>,
}

impl PageLook {
    fn observation(&self) -> Observation {
        let present = self.present.clone();
        Observation { settled: true, present, ..Observation::default() }
    }

    fn text(&self, selector: &str) -> String {
        self.text.clone().unwrap_or_else(|| format!("text of {selector}"))
    }

    fn values(&self, elements: &[ElementRead]) -> Vec<Value> {
        elements.iter().map(|element| self.text(&element.selector).into()).collect()
    }

    /// Returns the elements that are there, and those that are read, each with its selector as its id.
    fn tree(&self, elements: &[ElementRead]) -> PageTree {
        let read = elements.iter().map(|element| element.selector.clone());
        let mut nodes = vec![PageNode::default()];
        for selector in self.present.iter().cloned().chain(read).collect::<BTreeSet<_>>() {
            let parent = Some(nodes.len());
            let text = Some(self.text(&selector));
            nodes.push(PageNode {
                parent: Some(0),
                tag: Some("p".to_owned()),
                attributes: [("id".to_owned(), selector)].into(),
                visible: true,
                ..PageNode::default()
            });
            nodes.push(PageNode { parent, text, ..PageNode::default() });
        }
        PageTree { nodes }
    }
}

impl Default for FakeBrowser {
    fn default() -> Self {
        Self {
            page: watch::Sender::new(Page::default()),
            inputs: Mutex::default(),
            visited: Mutex::default(),
            navigations: Script::default(),
            bodies: Script::default(),
            outlines: Script::default(),
            panics: AtomicBool::new(false),
            changes: AtomicBool::new(false),
            looks: AtomicU64::new(0),
        }
    }
}

impl FakeBrowser {
    /// Makes a selector match.
    pub(crate) fn show(&self, selector: &str) {
        self.page.send_modify(|page| {
            page.present.insert(selector.to_owned());
        });
    }

    /// Sends a frame whose image says its number.
    pub(crate) fn send_frame(&self, seq: u64) {
        self.send_image(seq, format!("image {seq}").into_bytes());
    }

    pub(crate) fn send_image(&self, seq: u64, jpeg: Vec<u8>) {
        let (origin, viewport) = ("https://sample.example".to_owned(), Viewport::default());
        let frame = Arc::new(Frame { seq, jpeg, origin, viewport });
        self.page.send_modify(|page| page.frame = Some(frame));
    }

    pub(crate) fn send_state(&self, state: PageState) {
        self.page.send_modify(|page| page.scene = Some(Arc::new(state)));
    }

    pub(crate) fn end(&self) {
        self.page.send_modify(|page| page.has_ended = true);
    }

    pub(crate) fn inputs(&self) -> Vec<Input> {
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The addresses that it was to open.
    pub(crate) fn visited(&self) -> Vec<String> {
        self.visited.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn look(&self) -> PageLook {
        let present = self.page.borrow().present.clone();
        if !self.changes.load(Ordering::SeqCst) {
            return PageLook { present, text: None };
        }
        let number = self.looks.fetch_add(1, Ordering::SeqCst);
        let present = if number.is_multiple_of(2) { BTreeSet::new() } else { present };
        PageLook { present, text: Some(format!("look {number}")) }
    }

    /// Waits for a part of the page, or for the browser's end.
    async fn wait<T>(&self, part: impl Fn(&Page) -> Option<T>) -> Option<T> {
        let mut page = self.page.subscribe();
        let page = page.wait_for(|page| page.has_ended || part(page).is_some()).await;
        page.ok().and_then(|page| part(&page))
    }
}

#[async_trait]
impl Browser for FakeBrowser {
    async fn navigate(&self, url: &str) -> Result<(), BrowserError> {
        self.visited.lock().unwrap_or_else(PoisonError::into_inner).push(url.to_owned());
        assert!(!self.panics.load(Ordering::SeqCst), "as the test wants it");
        self.navigations.next().unwrap_or(Ok(()))
    }

    fn observe_signals(&self, _: ObservedSignals) {}

    async fn observe(&self) -> Result<Observation, BrowserError> {
        Ok(self.look().observation())
    }

    async fn changed(&self) {
        let change = async {
            let mut page = self.page.subscribe();
            let _ = page.changed().await;
        };
        let _ = tokio::time::timeout(Duration::from_secs(1), change).await;
    }

    async fn fetch(&self, _: &PageFetch) -> Result<Fetched, BrowserError> {
        if let Some(fetched) = self.bodies.next() {
            return fetched;
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
        Err(BrowserError::TimedOut)
    }

    async fn credentials(&self, _: &str) -> Result<BrowserCredentials, BrowserError> {
        Ok(BrowserCredentials { cookies: Secret::new("a=b".into()), user_agent: "test".into() })
    }

    async fn response(&self, _: &str, _: u64) -> Result<Option<String>, BrowserError> {
        self.bodies.next().map(|fetched| fetched.map(|fetched| fetched.body)).transpose()
    }

    async fn read(&self, elements: &[ElementRead]) -> Result<Vec<Value>, BrowserError> {
        Ok(self.look().values(elements))
    }

    async fn inspect(&self) -> Result<InspectedPage, BrowserError> {
        Err(BrowserError::Refused("a fake page has no elements".into()))
    }

    async fn inspect_on_other_screen(&self) -> Result<(Screen, InspectedPage), BrowserError> {
        Err(BrowserError::Refused("a fake page has no elements".into()))
    }

    async fn capture(
        &self,
        elements: &[ElementRead],
        _: bool,
    ) -> Result<CapturedPage, BrowserError> {
        let look = self.look();
        let (values, tree) = (Ok(look.values(elements)), Some(look.tree(elements)));
        Ok(CapturedPage { seen: look.observation(), values, tree })
    }

    async fn act(&self, _: &Action) -> Result<bool, BrowserError> {
        Ok(true)
    }

    async fn frame(&self, after: u64) -> Option<Arc<Frame>> {
        self.wait(|page| page.frame.clone().filter(|frame| frame.seq > after)).await
    }

    async fn page_state(&self, after: u64) -> Option<Arc<PageState>> {
        self.wait(|page| page.scene.clone().filter(|scene| scene.seq > after)).await
    }

    async fn outline(&self) -> Result<PageOutline, BrowserError> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        match self.outlines.next() {
            Some(outline) => outline,
            None => std::future::pending().await,
        }
    }

    fn input(&self, input: Input) {
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner).push(input);
    }

    async fn ended(&self) {
        self.wait(|page| page.has_ended.then_some(())).await;
    }
}

/// Starts the same browser, unless its script says otherwise.
#[derive(Default)]
pub(crate) struct FakePool {
    pub(crate) browser: Arc<FakeBrowser>,
    pub(crate) failures: Script<StartError>,
    pub(crate) started: Mutex<Vec<BrowserSpec>>,
    pub(crate) released: Mutex<Vec<BrowserId>>,
    /// How long each start takes.
    pub(crate) start_time: Mutex<Duration>,
}

#[async_trait]
impl BrowserPool for FakePool {
    async fn start(&self, spec: BrowserSpec) -> Result<Arc<dyn Browser>, StartError> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner).push(spec);
        let time = *self.start_time.lock().unwrap_or_else(PoisonError::into_inner);
        if !time.is_zero() {
            tokio::time::sleep(time).await;
        }
        match self.failures.next() {
            Some(error) => Err(error),
            None => Ok(self.browser.clone()),
        }
    }

    async fn release(&self, id: BrowserId) {
        self.released.lock().unwrap_or_else(PoisonError::into_inner).push(id);
    }
}
