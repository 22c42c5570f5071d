//! The state of the pages of a browser, tracked by the events of Chromium.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use domain::workflow::{SeenResponse, matches_url};
use ports::browser::PageField;

use crate::{browser::OpenDialog, input::PageScale};

/// Responses of a page that are kept for the workflow, and requests whose responses are awaited.
const MAX_RESPONSES: usize = 16;
/// Bytes of the body of a response that is kept.
const MAX_RESPONSE_BYTES: usize = 256 * 1024;
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
    /// Watched responses of all pages.
    response_count: u64,
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
    /// Watched responses whose body has not been received yet, with their requests, the oldest first.
    expected: VecDeque<(String, ResponseHead)>,
    responses: VecDeque<CapturedResponse>,
}

/// The head of a response.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ResponseHead {
    pub(crate) url: String,
    pub(crate) status: u16,
}

/// A response and its body as text; `None` if it has none, was interrupted, or exceeds
/// [`MAX_RESPONSE_BYTES`].
struct CapturedResponse {
    response: SeenResponse,
    text: Option<String>,
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
            expected: VecDeque::new(),
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

    /// Records a response whose body is still to come. Beyond [`MAX_RESPONSES`], the oldest one that
    /// is still awaited is given up: a page may interrupt any number of responses.
    pub(crate) fn expect_response(&mut self, request: String, head: ResponseHead) {
        if self.expected.len() == MAX_RESPONSES {
            self.expected.pop_front();
        }
        self.expected.push_back((request, head));
    }

    /// Removes an expected response that has ended.
    pub(crate) fn take_expected(&mut self, request: &str) -> Option<ResponseHead> {
        let at = self.expected.iter().position(|(expected, _)| expected == request)?;
        self.expected.remove(at).map(|(_, head)| head)
    }

    /// Returns all stored responses, the oldest first.
    pub(crate) fn responses(&self) -> Vec<SeenResponse> {
        self.responses.iter().map(|captured| captured.response.clone()).collect()
    }

    /// Returns the status and the text of the newest response with a text whose URL matches the
    /// pattern.
    pub(crate) fn response(&self, pattern: &str) -> Option<(u16, String)> {
        let mut newest_first = self.responses.iter().rev();
        newest_first.find_map(|CapturedResponse { response, text }| {
            let text = text.as_ref().filter(|_| matches_url(pattern, &response.url))?;
            Some((response.status, text.clone()))
        })
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

    /// Stores a response with its text, which is left out if it is too long. Beyond
    /// [`MAX_RESPONSES`] of a page, its oldest one is dropped.
    pub(crate) fn store_response(
        &mut self,
        session: &str,
        ResponseHead { url, status }: ResponseHead,
        text: Option<String>,
    ) {
        self.response_count += 1;
        let number = self.response_count;
        let Some(page) = self.page(session) else { return };
        let text = text.filter(|text| text.len() <= MAX_RESPONSE_BYTES);
        let body = text.as_ref().and_then(|text| serde_json::from_str(text).ok());
        if page.responses.len() == MAX_RESPONSES {
            page.responses.pop_front();
        }
        let response = SeenResponse { number, url, status, body };
        page.responses.push_back(CapturedResponse { response, text });
        page.changed_at = Instant::now();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn head(path: &str, status: u16) -> ResponseHead {
        ResponseHead { url: format!("https://a.test{path}"), status }
    }

    fn tracker() -> PageTracker {
        let mut tracker = PageTracker::default();
        tracker.push(TrackedPage::new("page".into(), "target".into()));
        tracker
    }

    #[test]
    fn a_response_is_awaited_after_many_that_never_ended() {
        let mut tracker = tracker();
        let page = tracker.page("page").unwrap();
        for number in 0..100 {
            page.expect_response(format!("request-{number}"), head("/poll", 200));
        }
        assert_eq!(page.expected.len(), MAX_RESPONSES);
        assert_eq!(page.take_expected("request-83"), None, "given up");
        page.expect_response("last".into(), head("/login", 401));
        assert_eq!(page.take_expected("last"), Some(head("/login", 401)));
        assert_eq!(page.take_expected("last"), None);
    }

    #[test]
    fn the_newest_responses_are_kept_and_numbered() {
        let mut tracker = tracker();
        for status in 400..420 {
            tracker.store_response("page", head("/login", status), None);
        }
        tracker.store_response("unknown", head("/login", 500), None);
        let seen: Vec<_> = tracker.page("page").unwrap().responses();
        let numbers: Vec<_> = seen.iter().map(|response| response.number).collect();
        assert_eq!(numbers, (5..=20).collect::<Vec<_>>());
        assert_eq!(seen.last().map(|response| response.status), Some(419));
    }

    #[test]
    fn a_text_is_read_from_the_newest_response_that_has_one() {
        let mut tracker = tracker();
        let long = format!("\"{}\"", "a".repeat(MAX_RESPONSE_BYTES));
        for text in [Some("{\"id\":1}".to_owned()), Some(long), None] {
            tracker.store_response("page", head("/me", 200), text);
        }
        let page = tracker.page("page").unwrap();
        assert_eq!(page.response("/me"), Some((200, "{\"id\":1}".to_owned())));
        assert_eq!(page.response("/other"), None);
        let bodies: Vec<_> = page.responses().iter().map(|seen| seen.body.is_some()).collect();
        assert_eq!(bodies, [true, false, false]);
    }
}
