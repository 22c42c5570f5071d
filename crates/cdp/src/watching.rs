//! What is known of a page from the events Chromium has sent.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use domain::workflow::{SeenResponse, matches_url};
use ports::browser::Field;

use crate::browser::Open;

/// Responses kept for the workflow: so many, and none longer than this.
const RESPONSES: usize = 16;
pub(crate) const LONGEST_RESPONSE: usize = 256 * 1024;
/// A page counts as settled when it has been loaded for this long.
const QUIET: Duration = Duration::from_millis(120);

/// The page the applicant sees, and those behind it.
#[derive(Default)]
pub(crate) struct Watching {
    pages: Vec<Page>,
    pub(crate) frame_seq: u64,
    /// The dialog that waits for an answer, and how many there were.
    pub(crate) open: Option<Open>,
    pub(crate) dialogs: u32,
    /// Documents that have been loaded in the main frame of some page.
    documents: u64,
}

pub(crate) struct Page {
    /// The DevTools session.
    pub(crate) session: String,
    /// The target, which is also the name of its main frame.
    pub(crate) target: String,
    pub(crate) url: String,
    /// Which of all documents it shows.
    pub(crate) document: u64,
    pub(crate) http_status: Option<u16>,
    /// What can be written in, and which of it has the focus.
    pub(crate) fields: (Vec<Field>, Option<u8>, Vec<[f32; 4]>),
    loading: bool,
    changed: Instant,
    coming: HashMap<String, SeenResponse>,
    responses: VecDeque<Seen>,
}

/// A response and its body as text.
#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) response: SeenResponse,
    pub(crate) text: String,
}

impl Page {
    pub(crate) fn new(session: String, target: String) -> Self {
        Self {
            session,
            target,
            url: String::new(),
            document: 0,
            http_status: None,
            fields: (vec![], None, vec![]),
            loading: false,
            changed: Instant::now(),
            coming: HashMap::new(),
            responses: VecDeque::new(),
        }
    }

    pub(crate) fn settled(&self) -> bool {
        !self.loading && self.changed.elapsed() >= QUIET
    }

    pub(crate) fn load(&mut self, loading: bool) {
        self.loading = loading;
        self.changed = Instant::now();
    }

    pub(crate) fn announce(&mut self, request: String, url: &str, status: u16) {
        if self.coming.len() < RESPONSES {
            let response = SeenResponse { url: url.to_owned(), status, body: None };
            self.coming.insert(request, response);
        }
    }

    pub(crate) fn arrived(&mut self, request: &str) -> Option<SeenResponse> {
        self.coming.remove(request)
    }

    pub(crate) fn keep(&mut self, mut response: SeenResponse, text: String) {
        if text.len() > LONGEST_RESPONSE {
            return;
        }
        response.body = serde_json::from_str(&text).ok();
        if self.responses.len() == RESPONSES {
            self.responses.pop_front();
        }
        self.responses.push_back(Seen { response, text });
        self.changed = Instant::now();
    }

    pub(crate) fn responses(&self) -> Vec<SeenResponse> {
        self.responses.iter().map(|seen| seen.response.clone()).collect()
    }

    pub(crate) fn response(&self, pattern: &str) -> Option<&Seen> {
        self.responses.iter().rev().find(|seen| matches_url(pattern, &seen.response.url))
    }
}

impl Watching {
    /// The page on top.
    pub(crate) fn active(&self) -> Option<&Page> {
        self.pages.last()
    }

    pub(crate) fn page(&mut self, session: &str) -> Option<&mut Page> {
        self.pages.iter_mut().find(|page| page.session == session)
    }

    /// A page shows another document.
    pub(crate) fn loaded(&mut self, session: &str, frame: &str) {
        self.documents += 1;
        let documents = self.documents;
        if let Some(page) = self.page(session).filter(|page| page.target == frame) {
            page.document = documents;
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.pages.len()
    }

    pub(crate) fn push(&mut self, page: Page) {
        self.pages.push(page);
    }

    /// Takes a page away; answers whether it was the one on top.
    pub(crate) fn remove(&mut self, session: &str) -> bool {
        let top = self.active().is_some_and(|page| page.session == session);
        self.pages.retain(|page| page.session != session);
        top
    }
}
