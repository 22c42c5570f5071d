//! The state of the pages of a browser, tracked by the events of Chromium.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use domain::workflow::{NoBody, SeenResponse, matches_url};
use ports::browser::{PageField, PageState};

use crate::{browser::OpenDialog, input::PageScale, page_frames::PageFrames};

/// Responses of a page that are kept for the workflow, and requests whose responses are awaited.
const MAX_RESPONSES: usize = 16;
/// POST requests of a page whose responses are awaited.
const MAX_POSTS: usize = 64;
/// The length of the body of a response that is kept.
const MAX_RESPONSE_KIB: usize = 256;
const MAX_RESPONSE_BYTES: usize = MAX_RESPONSE_KIB * 1024;
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
    /// What the main frame reported of its fields.
    own_fields: ReportedFields,
    /// The field of another frame that has the focus.
    focused_in_frame: Option<FocusedInFrame>,
    pub(crate) frames: PageFrames,
    loading: bool,
    changed_at: Instant,
    /// Watched responses whose body has not been received yet, with their DevTools sessions and requests,
    /// the oldest first.
    expected: VecDeque<(RequestKey, ResponseHead)>,
    /// The POST requests whose responses have not been received yet, the oldest first.
    posts: VecDeque<RequestKey>,
    responses: VecDeque<CapturedResponse>,
}

/// The editable fields of a page, the index of the focused one, and the rectangles to redact.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ReportedFields {
    pub(crate) fields: Vec<PageField>,
    pub(crate) focused: Option<u8>,
    pub(crate) covers: Vec<[f32; 4]>,
}

/// The field that has the focus in a frame within a page.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FocusedInFrame {
    pub(crate) place: ScriptPlace,
    pub(crate) field: PageField,
}

/// Where a script runs: a DevTools session, and the execution context in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScriptPlace {
    pub(crate) session: String,
    pub(crate) context: i64,
}

/// A request: the DevTools session that reports it, and its id there.
pub(crate) type RequestKey = (String, String);

/// The head of a response.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ResponseHead {
    pub(crate) url: String,
    pub(crate) status: u16,
    pub(crate) is_post: bool,
    /// The media type of the body, as [`NoBody::NotJson`] has it.
    pub(crate) content_type: String,
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
            frames: PageFrames::new(session.clone(), target.clone()),
            session,
            target,
            url: String::new(),
            unreachable: None,
            document: 0,
            navigation: 0,
            http_status: None,
            scale: PageScale::default(),
            own_fields: ReportedFields::default(),
            focused_in_frame: None,
            loading: false,
            changed_at: Instant::now(),
            expected: VecDeque::new(),
            posts: VecDeque::new(),
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

    /// Records what the main frame reported of its fields.
    pub(crate) fn report_own(&mut self, reported: ReportedFields) {
        if reported.focused.is_some() {
            self.focused_in_frame = None;
        }
        self.own_fields = reported;
    }

    /// Records which field has the focus in another frame.
    pub(crate) fn report_frame(&mut self, place: ScriptPlace, field: Option<PageField>) {
        if let Some(field) = field {
            self.own_fields.focused = None;
            self.focused_in_frame = Some(FocusedInFrame { place, field });
        } else {
            self.forget_focus(|focused| *focused == place);
        }
    }

    /// Forgets the field that has the focus in another frame, if it is in such a place.
    pub(crate) fn forget_focus(&mut self, is_there: impl Fn(&ScriptPlace) -> bool) {
        self.focused_in_frame.take_if(|focused| is_there(&focused.place));
    }

    pub(crate) fn focused_in_frame(&self) -> Option<&FocusedInFrame> {
        self.focused_in_frame.as_ref()
    }

    /// Returns the fields of the main frame and, if it has the focus, the one of another frame.
    pub(crate) fn fields(&self) -> ReportedFields {
        let mut reported = self.own_fields.clone();
        if let Some(FocusedInFrame { field, .. }) = &self.focused_in_frame {
            reported.fields.truncate(PageState::MAX_FIELDS - 1);
            reported.focused = u8::try_from(reported.fields.len()).ok();
            reported.fields.push(field.clone());
        }
        reported
    }

    /// Forgets a DevTools session of a frame, and returns whether there was one.
    fn detach_frame(&mut self, session: &str) -> bool {
        self.forget_focus(|place| place.session == session);
        self.frames.detach(session)
    }

    /// Records the method of a request, or of the one that a redirect makes of it. Beyond [`MAX_POSTS`], the
    /// oldest POST request without a response is forgotten.
    pub(crate) fn request_sent(&mut self, request: RequestKey, method: &str) {
        self.take_post(&request);
        if method == "POST" {
            if self.posts.len() == MAX_POSTS {
                self.posts.pop_front();
            }
            self.posts.push_back(request);
        }
    }

    /// Forgets a request that has a response, and returns whether it was a POST.
    pub(crate) fn take_post(&mut self, request: &RequestKey) -> bool {
        let at = self.posts.iter().position(|post| post == request);
        at.and_then(|at| self.posts.remove(at)).is_some()
    }

    /// Records a response whose body is still to come. Beyond [`MAX_RESPONSES`], the oldest one that
    /// is still awaited is given up: a page may interrupt any number of responses.
    pub(crate) fn expect_response(&mut self, request: RequestKey, head: ResponseHead) {
        if self.expected.len() == MAX_RESPONSES {
            self.expected.pop_front();
        }
        self.expected.push_back((request, head));
    }

    /// Removes an expected response that has ended.
    pub(crate) fn take_expected(&mut self, request: &RequestKey) -> Option<ResponseHead> {
        let at = self.expected.iter().position(|(expected, _)| expected == request)?;
        self.expected.remove(at).map(|(_, head)| head)
    }

    /// Returns all stored responses, the oldest first.
    pub(crate) fn responses(&self) -> Vec<SeenResponse> {
        self.responses.iter().map(|captured| captured.response.clone()).collect()
    }

    /// Returns the status and the text of the newest response with a text whose URL matches the
    /// pattern and whose number is higher than `after`.
    pub(crate) fn response(&self, pattern: &str, after: u64) -> Option<(u16, String)> {
        let later = |captured: &&CapturedResponse| captured.response.number > after;
        let mut newest_first = self.responses.iter().rev().filter(later);
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

    /// Returns the page that a DevTools session belongs to, which is its own or that of a frame in it.
    pub(crate) fn page_around(&mut self, session: &str) -> Option<&mut TrackedPage> {
        let is_around =
            |page: &TrackedPage| page.session == session || page.frames.has_session(session);
        self.pages.iter_mut().find(|page| is_around(page))
    }

    /// Stores a response with its text, which is left out if it is too long, or with the reason for which
    /// there is none. Beyond [`MAX_RESPONSES`] of a page, its oldest one is dropped.
    pub(crate) fn store_response(
        &mut self,
        session: &str,
        ResponseHead { url, status, is_post, content_type }: ResponseHead,
        text: Result<String, NoBody>,
    ) {
        self.response_count += 1;
        let number = self.response_count;
        let Some(page) = self.page_around(session) else { return };
        let too_long = NoBody::TooLong { max_kib: MAX_RESPONSE_KIB };
        let text = match text {
            Ok(text) if text.len() > MAX_RESPONSE_BYTES => Err(too_long),
            text => text,
        };
        let json = match &text {
            Ok(text) => serde_json::from_str(text).map_err(|_| match text.trim() {
                "" => NoBody::Empty,
                _ => NoBody::not_json(&content_type),
            }),
            Err(reason) => Err(reason.clone()),
        };
        let (body, no_body) = match json {
            Ok(body) => (Some(body), None),
            Err(reason) => (None, Some(reason)),
        };
        if page.responses.len() == MAX_RESPONSES {
            page.responses.pop_front();
        }
        let response = SeenResponse { number, url, status, is_post, body, no_body };
        page.responses.push_back(CapturedResponse { response, text: text.ok() });
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

    /// Forgets a DevTools session of a frame, and returns whether there was one.
    pub(crate) fn detach_frame(&mut self, session: &str) -> bool {
        self.page_around(session).is_some_and(|page| page.detach_frame(session))
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
        ResponseHead {
            url: format!("https://a.test{path}"),
            status,
            is_post: false,
            content_type: "text/html".into(),
        }
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
        let request = |id: &str| ("page".to_owned(), id.to_owned());
        for number in 0..100 {
            page.expect_response(request(&format!("request-{number}")), head("/poll", 200));
        }
        assert_eq!(page.expected.len(), MAX_RESPONSES);
        assert_eq!(page.take_expected(&request("request-83")), None, "given up");
        page.expect_response(request("last"), head("/login", 401));
        let of_a_frame = ("frame".to_owned(), "last".to_owned());
        assert_eq!(page.take_expected(&of_a_frame), None, "another process");
        assert_eq!(page.take_expected(&request("last")), Some(head("/login", 401)));
        assert_eq!(page.take_expected(&request("last")), None);
    }

    #[test]
    fn the_newest_responses_are_kept_and_numbered() {
        let mut tracker = tracker();
        for status in 400..420 {
            tracker.store_response("page", head("/login", status), Err(NoBody::Interrupted));
        }
        tracker.store_response("unknown", head("/login", 500), Err(NoBody::Interrupted));
        let seen: Vec<_> = tracker.page("page").unwrap().responses();
        let numbers: Vec<_> = seen.iter().map(|response| response.number).collect();
        assert_eq!(numbers, (5..=20).collect::<Vec<_>>());
        assert_eq!(seen.last().map(|response| response.status), Some(419));
    }

    #[test]
    fn a_text_is_read_from_the_newest_response_that_has_one() {
        let mut tracker = tracker();
        let long = format!("\"{}\"", "a".repeat(MAX_RESPONSE_BYTES));
        for text in [Ok("{\"id\":1}".to_owned()), Ok(long), Err(NoBody::Unavailable)] {
            tracker.store_response("page", head("/me", 200), text);
        }
        let page = tracker.page("page").unwrap();
        assert_eq!(page.response("/me", 0), Some((200, "{\"id\":1}".to_owned())));
        assert_eq!(page.response("/me", 1), None, "of an earlier account");
        assert_eq!(page.response("/other", 0), None);
        let bodies: Vec<_> = page.responses().iter().map(|seen| seen.body.is_some()).collect();
        assert_eq!(bodies, [true, false, false]);
    }

    #[test]
    fn a_request_is_a_post_until_a_redirect_makes_another_of_it() {
        let mut tracker = tracker();
        let page = tracker.page("page").unwrap();
        let request = |id: &str| ("page".to_owned(), id.to_owned());
        page.request_sent(request("login"), "POST");
        page.request_sent(request("me"), "GET");
        page.request_sent(request("form"), "POST");
        page.request_sent(request("form"), "GET");
        let posts = ["login", "login", "me", "form"].map(|id| page.take_post(&request(id)));
        assert_eq!(posts, [true, false, false, false]);
        for number in 0..100 {
            page.request_sent(request(&format!("request-{number}")), "POST");
        }
        assert_eq!(page.posts.len(), MAX_POSTS);
        assert!(page.take_post(&request("request-99")));
        assert!(!page.take_post(&request("request-35")));
    }

    #[test]
    fn a_response_without_a_body_says_why() {
        let mut tracker = tracker();
        let long = format!("\"{}\"", "a".repeat(MAX_RESPONSE_BYTES));
        let texts = ["null", "<p>No</p>", " ", long.as_str()].map(|text| Ok(text.to_owned()));
        for text in texts.into_iter().chain([Err(NoBody::Interrupted)]) {
            tracker.store_response("page", head("/me", 200), text);
        }
        let guarded = ResponseHead { content_type: "application/json".into(), ..head("/me", 200) };
        tracker.store_response("page", guarded, Ok(")]}'\n{}".to_owned()));
        let seen = tracker.page("page").unwrap().responses();
        let why: Vec<_> = seen.into_iter().map(|response| response.no_body).collect();
        let expected = [
            None,
            Some(NoBody::NotJson { content_type: "text/html".into() }),
            Some(NoBody::Empty),
            Some(NoBody::TooLong { max_kib: 256 }),
            Some(NoBody::Interrupted),
            // What is not JSON is not said to be JSON.
            Some(NoBody::NotJson { content_type: String::new() }),
        ];
        assert_eq!(why, expected);
    }

    #[test]
    fn the_last_focus_counts() {
        let mut tracker = tracker();
        let page = tracker.page("page").unwrap();
        let field = |kind: &str| PageField {
            place: [0.0; 4],
            kind: kind.to_owned(),
            input_mode: String::new(),
            autocomplete: String::new(),
            label: String::new(),
            error: String::new(),
        };
        let own = |focused| ReportedFields {
            fields: vec![field("text"); PageState::MAX_FIELDS],
            focused,
            covers: vec![[0.0; 4]],
        };
        let place = |context| ScriptPlace { session: "page".into(), context };
        let field = field("password");
        page.report_own(own(Some(1)));
        page.report_frame(place(7), Some(field.clone()));
        let reported = page.fields();
        assert_eq!(reported.fields.len(), PageState::MAX_FIELDS);
        assert_eq!(reported.focused, Some(23));
        assert_eq!(reported.fields.last(), Some(&field));
        assert_eq!(reported.covers.len(), 1);
        page.report_frame(place(8), None);
        assert!(page.focused_in_frame().is_some(), "another frame");
        page.report_own(own(None));
        assert!(page.focused_in_frame().is_some(), "the focus is in no field of the main frame");
        page.report_frame(place(7), None);
        assert_eq!(page.fields().focused, None);
        page.report_frame(place(7), Some(field.clone()));
        page.report_own(own(Some(2)));
        assert_eq!(page.fields().focused, Some(2));
        page.report_frame(place(7), Some(field));
        page.forget_focus(|place| place.context == 7);
        assert_eq!(page.fields().focused, None);
    }
}
