//! Remote browsers: one for each session, started and released by an identifier that the service
//! chooses.

mod input;
mod outline;
mod page_state;
mod redaction;

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use domain::{
    id::BrowserId,
    request::Location,
    secret::Secret,
    workflow::{Action, Definition, ElementRead, Observation, PageFetch, PageTree},
};
use serde_json::Value;

pub use self::{
    input::{Input, MouseButton, MouseKind, TouchKind, TouchPoint},
    outline::{Checked, ControlState, OutlineEntry, OutlineRole, PageOutline},
    page_state::{Dialog, DialogKind, PageField, PageState, RefusedAction},
    redaction::{Cover, FrameRedactor},
};

/// Starts and releases browsers.
///
/// **Releasing takes precedence over starting**, in whichever order the calls arrive: once an
/// identifier is released, no browser runs with it any more, and starting it fails with
/// [`StartError::Released`].
#[async_trait]
pub trait BrowserPool: Send + Sync {
    /// Starts a browser with a new, empty profile. If a browser with the identifier already runs,
    /// returns that one.
    async fn start(&self, spec: BrowserSpec) -> Result<Arc<dyn Browser>, StartError>;

    /// Ends the browser with this identifier, with all its processes and files. Does nothing if
    /// there is none.
    async fn release(&self, id: BrowserId);
}

/// The specification of a browser to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowserSpec {
    pub id: BrowserId,
    /// The hosts that the main frame may visit.
    pub hosts: BTreeSet<String>,
    pub watch: ObservedSignals,
    pub device: Device,
    pub locale: Locale,
    /// The place of the browser's egress.
    pub place: Location,
}

/// The properties of the applicant's device that pages can detect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Device {
    pub viewport: Viewport,
    pub scale: Scale,
    /// Whether the device has a touch screen rather than a mouse.
    pub touch: bool,
    /// Whether the applicant prefers dark colours.
    pub dark: bool,
    /// Whether the applicant prefers reduced motion.
    pub reduced_motion: bool,
}

/// The device pixel ratio: pixels of a frame per CSS pixel of the page, in each direction.
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

/// The locale that the browser emulates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Locale {
    /// A BCP 47 tag such as `de-DE`; empty for the browser's own.
    pub language: String,
    /// A zone of the IANA time zone database; `None` for the machine's own.
    pub time_zone: Option<String>,
}

/// The signals that the browser observes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObservedSignals {
    pub selectors: Vec<String>,
    /// The selectors of the elements whose texts are observed.
    pub texts: Vec<String>,
    /// The path patterns of responses whose status and body are kept.
    pub responses: Vec<String>,
    /// Whether all responses with JSON are kept, for authors, and those with a status from 400 to 499 to
    /// POST requests of scripts, by which a sign-in may be refused.
    pub all_json: bool,
}

impl ObservedSignals {
    /// Returns what runs of a definition need to know of pages.
    #[must_use]
    pub fn of(definition: &Definition) -> Self {
        let owned = |texts: BTreeSet<&str>| texts.into_iter().map(str::to_owned).collect();
        Self {
            texts: owned(definition.text_selectors()),
            selectors: owned(definition.selectors()),
            responses: owned(definition.responses()),
            all_json: false,
        }
    }
}

/// The size of the page in CSS pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Viewport {
    pub width: u16,
    pub height: u16,
}

impl Viewport {
    /// The maximum area, in CSS pixels, of a page that is rendered at [`Scale::Two`], which takes
    /// four times the pixels. Viewports of phones are within it.
    const MAX_FINE_AREA: u32 = 500_000;

    /// Clamps a size to 320…1600 by 320…1200.
    #[must_use]
    pub fn within(width: u16, height: u16) -> Self {
        Self { width: width.clamp(320, 1600), height: height.clamp(320, 1200) }
    }

    /// Returns whether the page is small enough for [`Scale::Two`].
    #[must_use]
    pub fn may_be_fine(self) -> bool {
        u32::from(self.width) * u32::from(self.height) <= Self::MAX_FINE_AREA
    }
}

impl Default for Viewport {
    fn default() -> Self {
        Self { width: 1024, height: 720 }
    }
}

/// A usual kind of screen, on which an author looks at pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Screen {
    Phone,
    Desktop,
}

impl Screen {
    /// The width of the narrowest page of a desktop, in CSS pixels.
    const MIN_DESKTOP_WIDTH: u16 = 700;

    /// Returns the kind of screen that a page of this size is not on.
    #[must_use]
    pub const fn other_than(viewport: Viewport) -> Self {
        if viewport.width >= Self::MIN_DESKTOP_WIDTH { Self::Phone } else { Self::Desktop }
    }

    /// Returns the size that pages have on it: 390 by 844, or 1280 by 800.
    #[must_use]
    pub const fn viewport(self) -> Viewport {
        match self {
            Self::Phone => Viewport { width: 390, height: 844 },
            Self::Desktop => Viewport { width: 1280, height: 800 },
        }
    }
}

/// A running browser.
#[async_trait]
pub trait Browser: Send + Sync {
    /// Opens a URL in the main frame, and returns when its document is loaded. It is always loaded anew, also
    /// if the page already has the URL, or one that differs from it only after `#`.
    async fn navigate(&self, url: &str) -> Result<(), BrowserError>;

    /// Has observations report other signals from now on. Responses that were received before are not
    /// reported.
    fn observe_signals(&self, signals: ObservedSignals);

    /// Returns the current state of the page.
    async fn observe(&self) -> Result<Observation, BrowserError>;

    /// Waits until the page may have changed, or until it is time to observe it again.
    async fn changed(&self);

    /// Makes a request in the page, with its cookies, and reads the response. Refused if it is not complete
    /// in time; the page then no longer waits for it.
    async fn fetch(&self, request: &PageFetch) -> Result<Fetched, BrowserError>;

    /// Returns the credentials that the browser would send with a request to a URL. It must be
    /// called only after the applicant has agreed to share.
    async fn credentials(&self, url: &str) -> Result<BrowserCredentials, BrowserError>;

    /// Returns the body of the newest observed response whose path matches and whose number is higher than
    /// `after`.
    async fn response(&self, pattern: &str, after: u64) -> Result<Option<String>, BrowserError>;

    /// Returns what is read of each element, `null` if there is none. Texts longer than 4,096 characters
    /// are cut, at more than 4,096. The text of an element is without that of the scripts, styles,
    /// templates and `noscript` elements in it, here and in [`Self::observe`], as in [`Self::capture`].
    /// Refused if all texts together have more than a million characters.
    async fn read(&self, elements: &[ElementRead]) -> Result<Vec<Value>, BrowserError>;

    /// Returns the elements and texts of the page, for fixtures, with what [`Self::observe`] and
    /// [`Self::read`] return of it. Nothing changes in a document between these: the signals, the texts and
    /// the values that are returned are those of its returned elements. Frames of other origins are looked
    /// into one after another, and may have changed since the document around them was. The URL, the cookies
    /// and the responses are no part of a document. They are as of a moment after what is observed and read,
    /// and before the frames that no selector leads into, which may take seconds.
    ///
    /// Values of fields for secrets are left out of the elements, and so are those that somebody wrote in this
    /// document, and all of text fields if `is_typing`. Dots stand for secrets in other texts, also for what was
    /// written if `is_typing`, and always for it in attributes with which pages repeat it for themselves
    /// (`data-*`, `aria-*`, `title`).
    async fn capture(
        &self,
        elements: &[ElementRead],
        is_typing: bool,
    ) -> Result<CapturedPage, BrowserError>;

    /// Returns the elements and texts of the page with their places, for authors who choose elements
    /// of it. What somebody wrote is left out, as in [`Self::capture`] without `is_typing`. Refused if the page has
    /// more than [`PageTree::MAX_NODES`] nodes or too much text.
    async fn inspect(&self) -> Result<InspectedPage, BrowserError>;

    /// Returns the page as [`Self::inspect`] does, as it is on the other kind of [`Screen`] than the
    /// applicant's: once it has stayed the same for a moment, or at least a second after it has had that
    /// size. Meanwhile no new frames are taken, clicks, touches and the wheel are ignored, and all else waits:
    /// keys, which get to the field that had the focus, and what reads the page or acts in it. However
    /// it ends, also if it is not awaited to its end, the page has the size of the applicant's viewport again:
    /// the newest one, also if that has changed meanwhile. Fails with [`BrowserError::TimedOut`] after six
    /// seconds at most, and with [`BrowserError::Refused`] if another window is opened or closed meanwhile.
    async fn inspect_on_other_screen(&self) -> Result<(Screen, InspectedPage), BrowserError>;

    /// Does something in the page, and returns whether there was a visible element for it.
    async fn act(&self, action: &Action) -> Result<bool, BrowserError>;

    /// Waits for a frame newer than `after` and returns the newest one. `None` once the browser has
    /// ended.
    async fn frame(&self, after: u64) -> Option<Arc<Frame>>;

    /// Waits for a page state newer than `after` and returns it. `None` once the browser has ended.
    async fn page_state(&self, after: u64) -> Option<Arc<PageState>>;

    /// Returns the outline of the topmost page and of the frames in it that belong to the same site.
    /// Fails with [`BrowserError::TimedOut`] after two seconds, and with [`BrowserError::Refused`] if
    /// the page could not be loaded, is too large, or another call is not finished.
    async fn outline(&self) -> Result<PageOutline, BrowserError>;

    /// Forwards the applicant's input, in order. It never waits, and never logs or stores the input.
    fn input(&self, input: Input);

    /// Waits until the browser has ended, for any reason.
    async fn ended(&self);
}

/// A page as a fixture has it, with what a run learned of it at the same time.
#[derive(Debug)]
pub struct CapturedPage {
    pub seen: Observation,
    /// What was read of each element, as [`Browser::read`] returns it, also why it failed.
    pub values: Result<Vec<Value>, BrowserError>,
    /// `None` if the page has more than [`PageTree::MAX_NODES`] nodes or too much text, or if it is being
    /// replaced by another one.
    pub tree: Option<PageTree>,
}

/// The elements of a page with their places.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InspectedPage {
    pub tree: PageTree,
    /// For each node of the tree its rectangle, if it is a visible element: left, top, width and height
    /// in CSS pixels of the window.
    pub boxes: Vec<Option<[f32; 4]>>,
    /// The width and height of the window in CSS pixels.
    pub size: (u32, u32),
}

/// The credentials that a request of the browser is sent with.
pub struct BrowserCredentials {
    /// The value of the `Cookie` header; empty if there is none.
    pub cookies: Secret,
    pub user_agent: String,
}

/// The response to a request in the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    pub status: u16,
    pub body: String,
}

/// A frame: one image of the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The sequence number, which increases across pages.
    pub seq: u64,
    pub jpeg: Vec<u8>,
    /// The scheme, host and port that the page was loaded from.
    pub origin: String,
    pub viewport: Viewport,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the browser was released before it was started")]
    Released,
    #[error("the maximum number of browsers is running")]
    NoRoom,
    #[error("failed to start a browser: {0}")]
    Unavailable(String),
    #[error("no egress proxy for the place works")]
    NoEgress,
    #[error("the egress proxies for the place are in another country")]
    Elsewhere,
}

#[derive(Debug, thiserror::Error)]
pub enum BrowserError {
    #[error("the browser has ended")]
    Gone,
    #[error("the browser refused: {0}")]
    Refused(String),
    #[error("the browser did not answer in time")]
    TimedOut,
}
