//! The state of the pages of a browser, tracked by the events of Chromium.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use domain::workflow::{SeenResponse, matches_url};
use ports::browser::PageField;

use crate::{browser::OpenDialog, input::PageScale};

/// Responses of a page that are kept for the workflow.
const MAX_RESPONSES: usize = 16;
/// Bytes of the body of a response that is kept.
pub(crate) const MAX_RESPONSE_BYTES: usize = 256 * 1024;
/// The time after loading, without a change, after which a page counts as settled.
const SETTLE_DELAY: Duration = Duration::from_millis(120);

/// The pages of a browser, the active one last.
#[derive(Default)]
pub(crate) struct PageTracker {
    pages: Vec<TrackedPage>,
    /// The sequence number of the last frame.
    pub(crate) frame_seq: u64,
    /// The dialog that waits for an answer.
    pub(crate) open_dialog: Option<OpenDialog>,
    /// Dialogs opened so far; the number of the last one is its id.
    pub(crate) dialog_count: u32,
    /// Documents loaded in the frames of all pages.
    document_count: u64,
    /// Navigations of the frames of all pages, also within a document.
    navigation_count: u64,
}

/// One page.
pub(crate) struct TrackedPage {
    /// The id of its DevTools session.
    pub(crate) session: String,
    /// The id of its target, which is also that of its main frame.
    pub(crate) target: String,
    pub(crate) url: String,
    /// The URL that could not be loaded, if this is Chromium's page about that.
    pub(crate) unreachable: Option<String>,
    /// The number of the document that it shows.
    pub(crate) document: u64,
    /// The number of its last navigation.
    pub(crate) navigation: u64,
    pub(crate) http_status: Option<u16>,
    /// The scale of the page in its last frame.
    pub(crate) scale: PageScale,
    /// The editable fields, the index of the focused one, and the rectangles to redact.
    pub(crate) fields: (Vec<PageField>, Option<u8>, Vec<[f32; 4]>),
    loading: bool,
    changed_at: Instant,
    /// By request: watched responses whose body has not been received yet.
    expected: HashMap<String, SeenResponse>,
    responses: VecDeque<CapturedResponse>,
}

/// A response and its body as text.
#[derive(Clone)]
pub(crate) struct CapturedResponse {
    pub(crate) response: SeenResponse,
    pub(crate) text: String,
}

impl TrackedPage {
    pub(crate) fn new(session: String, target: String) -> Self {
        Self {
            session,
            target,
            url: String::new(),
            unreachable: None,
            document: 0,
            navigation: 0,
            http_status: None,
            scale: PageScale::default(),
            fields: (vec![], None, vec![]),
            loading: false,
            changed_at: Instant::now(),
            expected: HashMap::new(),
            responses: VecDeque::new(),
        }
    }

    /// Whether the page is loaded and has not changed for [`SETTLE_DELAY`].
    pub(crate) fn is_settled(&self) -> bool {
        !self.loading && self.changed_at.elapsed() >= SETTLE_DELAY
    }

    pub(crate) fn set_loading(&mut self, loading: bool) {
        self.loading = loading;
        self.changed_at = Instant::now();
    }

    /// Records a response whose body is still to come.
    pub(crate) fn expect_response(&mut self, request: String, url: &str, status: u16) {
        if self.expected.len() < MAX_RESPONSES {
            let response = SeenResponse { url: url.to_owned(), status, body: None };
            self.expected.insert(request, response);
        }
    }

    /// Removes an expected response whose body has been received.
    pub(crate) fn take_expected(&mut self, request: &str) -> Option<SeenResponse> {
        self.expected.remove(request)
    }

    /// Stores a response with its body, and drops the oldest one if there are too many.
    pub(crate) fn store_response(&mut self, mut response: SeenResponse, text: String) {
        if text.len() > MAX_RESPONSE_BYTES {
            return;
        }
        response.body = serde_json::from_str(&text).ok();
        if self.responses.len() == MAX_RESPONSES {
            self.responses.pop_front();
        }
        self.responses.push_back(CapturedResponse { response, text });
        self.changed_at = Instant::now();
    }

    /// Returns all stored responses, the oldest first.
    pub(crate) fn responses(&self) -> Vec<SeenResponse> {
        self.responses.iter().map(|captured| captured.response.clone()).collect()
    }

    /// Returns the newest response whose URL matches the pattern.
    pub(crate) fn response(&self, pattern: &str) -> Option<&CapturedResponse> {
        let mut newest_first = self.responses.iter().rev();
        newest_first.find(|captured| matches_url(pattern, &captured.response.url))
    }
}

impl PageTracker {
    /// Returns the active page, which the applicant sees.
    pub(crate) fn active(&self) -> Option<&TrackedPage> {
        self.pages.last()
    }

    pub(crate) fn page(&mut self, session: &str) -> Option<&mut TrackedPage> {
        self.pages.iter_mut().find(|page| page.session == session)
    }

    /// Records that a frame loaded another document.
    pub(crate) fn document_loaded(&mut self, session: &str, frame: &str) {
        self.document_count += 1;
        let documents = self.document_count;
        if let Some(page) = self.page(session).filter(|page| page.target == frame) {
            page.document = documents;
        }
    }

    /// Returns the number of a navigation.
    pub(crate) fn next_navigation(&mut self) -> u64 {
        self.navigation_count += 1;
        self.navigation_count
    }

    pub(crate) fn page_count(&self) -> usize {
        self.pages.len()
    }

    pub(crate) fn push(&mut self, page: TrackedPage) {
        self.pages.push(page);
    }

    /// Removes a page, and returns whether it was the active one.
    pub(crate) fn remove(&mut self, session: &str) -> bool {
        let was_active = self.active().is_some_and(|page| page.session == session);
        self.pages.retain(|page| page.session != session);
        was_active
    }
}
