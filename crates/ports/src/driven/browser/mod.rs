//! Remote browsers: one for each session, started and released by the name we give it.

mod input;
mod page_state;
mod redaction;

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use domain::{id::BrowserId, request::Location, secret::Secret, workflow::Observation};

pub use self::{
    input::{Input, MouseButton, MouseKind, TouchKind, TouchPoint},
    page_state::{Dialog, DialogKind, PageField, PageState, RefusedAction},
    redaction::{Cover, FrameRedactor},
};

/// Starts and releases browsers.
///
/// **Release beats start**, whatever the order of arrival: once a name was released, nothing runs
/// under it any more, and a start under it answers [`StartError::Released`].
#[async_trait]
pub trait BrowserPool: Send + Sync {
    /// Starts a browser with an empty profile of its own. Starting under a name that already
    /// runs answers the running one.
    async fn start(&self, spec: BrowserSpec) -> Result<Arc<dyn Browser>, StartError>;

    /// Ends whatever runs under this name, with all its processes and files. Releasing what is
    /// gone, or never was, is fine.
    async fn release(&self, id: BrowserId);
}

/// What a browser is started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowserSpec {
    pub id: BrowserId,
    /// The hosts that the main frame may visit.
    pub hosts: BTreeSet<String>,
    pub watch: ObservedSignals,
    pub device: Device,
    pub locale: Locale,
    /// Where the browser is to leave from.
    pub place: Location,
}

/// What the applicant has in hand, as far as pages care.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Device {
    pub viewport: Viewport,
    pub scale: Scale,
    /// Fingers rather than a mouse.
    pub touch: bool,
    /// Prefers dark colours.
    pub dark: bool,
    /// Prefers less movement.
    pub reduced_motion: bool,
}

/// Pixels of a picture for each CSS pixel of the page, either way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scale {
    #[default]
    One,
    Two,
}

impl Scale {
    #[must_use]
    pub const fn times(self) -> u16 {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }
}

/// Where the page is to believe it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Locale {
    /// A BCP 47 tag like `de-DE`; the browser's own where empty.
    pub language: String,
    /// A zone of the IANA data base; the machine's own where `None`.
    pub time_zone: Option<String>,
}

/// What the browser is to keep an eye on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObservedSignals {
    pub selectors: Vec<String>,
    /// Patterns over the path of responses whose status and body are to be kept.
    pub responses: Vec<String>,
}

/// The size of the page in CSS pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Viewport {
    pub width: u16,
    pub height: u16,
}

impl Viewport {
    /// CSS pixels of a page that may be drawn with two pixels for each: twice as fine is four times
    /// as dear, and phones are small.
    const FINE_AREA: u32 = 500_000;

    /// Brought within 320…1600 by 320…1200.
    #[must_use]
    pub fn within(width: u16, height: u16) -> Self {
        Self { width: width.clamp(320, 1600), height: height.clamp(320, 1200) }
    }

    #[must_use]
    pub fn may_be_fine(self) -> bool {
        u32::from(self.width) * u32::from(self.height) <= Self::FINE_AREA
    }
}

impl Default for Viewport {
    fn default() -> Self {
        Self { width: 1024, height: 720 }
    }
}

/// One running browser.
#[async_trait]
pub trait Browser: Send + Sync {
    /// Opens a URL in the main frame; answers when its document has been loaded.
    async fn navigate(&self, url: &str) -> Result<(), BrowserError>;

    /// What is to be seen now.
    async fn observe(&self) -> Result<Observation, BrowserError>;

    /// Comes back when the page may have changed, or has waited long enough to look again.
    async fn changed(&self);

    /// Makes a GET in the page, with its cookies, and reads the answer.
    async fn fetch(&self, url: &str, max_bytes: u32) -> Result<Fetched, BrowserError>;

    /// What the browser would send with a request to a URL, to be asked for when the applicant has
    /// agreed to share.
    async fn credentials(&self, url: &str) -> Result<BrowserCredentials, BrowserError>;

    /// The body of the newest watched response whose path fits.
    async fn response(&self, pattern: &str) -> Result<Option<String>, BrowserError>;

    /// The text of the first element of each selector, where there is one.
    async fn texts(&self, selectors: &[String]) -> Result<Vec<Option<String>>, BrowserError>;

    /// The newest picture that is newer than `after`; waits for one. `None` when the browser ended.
    async fn frame(&self, after: u64) -> Option<Arc<Frame>>;

    /// All of the page but its picture, once it is newer than `after`; waits for it. `None` when the
    /// browser ended.
    async fn scene(&self, after: u64) -> Option<Arc<PageState>>;

    /// Passes the applicant's input on, in order; never waits, never logs, never keeps it.
    fn input(&self, input: Input);

    /// Comes back when the browser has ended, for whatever reason.
    async fn ended(&self);
}

/// What a request would be sent with.
pub struct BrowserCredentials {
    /// The value of the `Cookie` header; empty where there is none.
    pub cookies: Secret,
    pub user_agent: String,
}

/// What a request in the page was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    pub status: u16,
    pub body: String,
}

/// One picture of the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Counts up, also over pages.
    pub seq: u64,
    pub jpeg: Vec<u8>,
    /// Scheme, host and port that the page was loaded from.
    pub origin: String,
    pub viewport: Viewport,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the browser was released before it was up")]
    Released,
    #[error("as many browsers run as may")]
    NoRoom,
    #[error("no browser could be started: {0}")]
    Unavailable(String),
    #[error("no egress proxy for the place works")]
    NoExit,
    #[error("the egress proxies for the place are in another country")]
    Elsewhere,
}

#[derive(Debug, thiserror::Error)]
pub enum BrowserError {
    #[error("the browser is gone")]
    Gone,
    #[error("the browser refused: {0}")]
    Refused(String),
    #[error("the browser did not answer in time")]
    TimedOut,
}
