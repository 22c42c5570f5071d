//! The responses that a page has received, and what it gets by requests that the studio makes for their
//! addresses.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use domain::workflow::SeenResponse;
use ports::browser::Fetched;
use serde_json::Value;

const MAX_RESPONSES: usize = 60;
/// The responses that stay as the author has opened them.
const MAX_OPENED: usize = 5;
/// The numbers of responses that were looked at. A browser keeps far fewer responses.
const MAX_LOOKED_AT: usize = 1000;
/// The refused requests that are remembered, and their statuses: sites answer with one of these to wrong
/// credentials.
const MAX_REFUSALS: usize = 20;
const REFUSED: [u16; 5] = [400, 401, 403, 422, 429];
/// The requests whose answers are kept.
const MAX_TRIALS: usize = 10;

/// The responses that a page has received: of several from one address, the newest that can be used. Their
/// numbers go on from one browser to the next, so that each stands for one response only.
#[derive(Default)]
pub(super) struct Responses {
    kept: VecDeque<SeenResponse>,
    /// The numbers of responses that newer ones from the same address have replaced, the latest ones.
    replaced: VecDeque<(u64, String)>,
    opened: VecDeque<Opened>,
    /// The numbers of the responses of this browser that were looked at, the highest ones.
    looked_at: BTreeSet<u64>,
    /// The highest number of a response that was looked at.
    newest: u64,
    /// The highest number of the browsers before; each browser counts from 1.
    before: u64,
    /// All responses up to this number were looked at, or are of the browsers before.
    passed: u64,
    /// What the page's POST requests were refused with, the latest ones. A sign-in that succeeds takes the
    /// place of a refused one in `kept`.
    refusals: VecDeque<Refusal>,
    trials: VecDeque<Trial>,
    trial_count: u64,
}

/// A POST request of the page that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The number of the response.
    number: u64,
    pub(super) url: String,
    pub(super) status: u16,
}

/// A response in which the author chooses. It stays as it was shown.
struct Opened {
    /// The number by which it was opened.
    number: u64,
    response: SeenResponse,
    /// The URL of the page that was shown then; `None` if there was none.
    page_url: Option<String>,
}

/// A request of the studio for the address of a response.
struct Trial {
    number: u64,
    /// The number of the response.
    response: u64,
    url: String,
    /// `None` while the request is under way.
    answer: Option<Arc<Answer>>,
    /// Whether its response is among those that the page has received.
    is_seen: bool,
    /// Whether it was the first one for its response that ended.
    counts: bool,
}

/// What came of a request.
pub(super) struct Answer {
    /// `None` if the request failed.
    status: Option<u16>,
    body: Option<Value>,
    /// The length of the body.
    bytes: u32,
}

impl Answer {
    pub(super) fn of(fetched: Option<&Fetched>) -> Self {
        let body = fetched.and_then(|fetched| serde_json::from_str(&fetched.body).ok());
        let bytes = fetched.map_or(0, |fetched| fetched.body.len());
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        Self { status: fetched.map(|fetched| fetched.status), body, bytes }
    }

    /// Returns the length of the body in bytes.
    pub(super) const fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Returns the JSON with which a definition could go on.
    pub(super) fn usable_body(&self) -> Option<&Value> {
        self.body.as_ref().filter(|_| self.status == Some(200))
    }

    fn is(&self, response: &SeenResponse) -> bool {
        self.status.is_none_or(|status| status == response.status) && self.body == response.body
    }
}

impl Responses {
    /// Takes over the responses that a page has by now, and returns whether others are kept than before.
    pub(super) fn seen(&mut self, seen: Vec<SeenResponse>) -> bool {
        if self.is_of_new_browser(&seen) {
            self.forget();
        }
        let mut has_new = false;
        for response in seen {
            let number = response.number.saturating_add(self.before);
            if number <= self.passed || !self.looked_at.insert(number) {
                continue;
            }
            if self.looked_at.len() > MAX_LOOKED_AT {
                self.passed = self.looked_at.pop_first().unwrap_or(self.passed);
            }
            self.newest = self.newest.max(number);
            let response = SeenResponse { number, ..response };
            self.remember_refusal(&response);
            if !self.is_of_trial(&response) && !self.has_better(&response) {
                self.keep(response);
                has_new = true;
            }
        }
        has_new
    }

    fn remember_refusal(&mut self, response: &SeenResponse) {
        if !response.is_post || !REFUSED.contains(&response.status) {
            return;
        }
        let SeenResponse { number, url, status, .. } = response;
        self.refusals.push_back(Refusal { number: *number, url: url.clone(), status: *status });
        if self.refusals.len() > MAX_REFUSALS {
            self.refusals.pop_front();
        }
    }

    /// Returns the POST requests of the page that were refused by a response with a number higher than
    /// `after`, the newest first.
    pub(super) fn refusals(&self, after: u64) -> impl Iterator<Item = &Refusal> {
        self.refusals.iter().rev().filter(move |refusal| refusal.number > after)
    }

    /// Returns the highest number of a response that was looked at.
    pub(super) const fn newest(&self) -> u64 {
        self.newest
    }

    /// Returns whether responses are those of a new browser, which counts anew. Those of a page
    /// that is shown again after a newer window was closed are known.
    fn is_of_new_browser(&self, seen: &[SeenResponse]) -> bool {
        let number = |response: &SeenResponse| response.number.saturating_add(self.before);
        let is_known = |response: &SeenResponse| {
            let (number, url) = (number(response), &response.url);
            self.kept.iter().any(|kept| kept.number == number && kept.url == *url)
                || self.replaced.iter().any(|(own, other)| *own == number && other == url)
        };
        seen.iter().map(number).max().is_some_and(|max| max < self.newest)
            && !seen.iter().any(is_known)
    }

    /// Returns whether a response is that of a request of the studio, which the author has not caused.
    fn is_of_trial(&mut self, response: &SeenResponse) -> bool {
        let is_its = |trial: &&mut Trial| {
            !trial.is_seen
                && trial.url == response.url
                && trial.answer.as_ref().is_none_or(|answer| answer.is(response))
        };
        let trial = self.trials.iter_mut().find(is_its);
        trial.is_some_and(|trial| {
            trial.is_seen = true;
            true
        })
    }

    /// Returns whether there is a response from the same address that has data, where this one has none.
    fn has_better(&self, response: &SeenResponse) -> bool {
        !has_data(response)
            && self.kept.iter().any(|other| other.url == response.url && has_data(other))
    }

    /// Keeps a response in place of those from the same address. The author may still choose in one of
    /// them.
    fn keep(&mut self, response: SeenResponse) {
        for other in self.kept.iter().filter(|other| other.url == response.url) {
            self.replaced.push_back((other.number, other.url.clone()));
        }
        self.kept.retain(|other| other.url != response.url);
        self.kept.push_back(response);
        while self.replaced.len() > MAX_RESPONSES {
            self.replaced.pop_front();
        }
        while self.kept.len() > MAX_RESPONSES {
            self.kept.pop_front();
        }
    }

    /// Forgets the responses of the browser, and what was tried for them, apart from those that the author
    /// has opened and may still choose in.
    pub(super) fn forget(&mut self) {
        self.kept.clear();
        self.replaced.clear();
        self.refusals.clear();
        self.looked_at.clear();
        (self.before, self.passed) = (self.newest, self.newest);
        let opened = &self.opened;
        self.trials.retain(|trial| opened.iter().any(|one| one.response.number == trial.response));
        for trial in &mut self.trials {
            // The next browser does not have its response.
            trial.is_seen = true;
        }
    }

    /// Returns the response with this number, as it was opened if it was, or else the newest one from its
    /// address.
    pub(super) fn find(&self, number: u64) -> Option<&SeenResponse> {
        let kept = self.kept.iter().find(|response| response.number == number);
        let opened = || {
            let opened = self.opened.iter().find(|opened| opened.number == number);
            opened.map(|opened| &opened.response)
        };
        kept.or_else(opened).or_else(|| {
            let (_, url) = self.replaced.iter().find(|(own, _)| *own == number)?;
            self.kept.iter().find(|response| response.url == *url)
        })
    }

    /// Returns the response with this number, which stays as it is from now on, as does the page that is
    /// shown now: the author chooses in it, whatever the page receives meanwhile. Of more than
    /// [`MAX_OPENED`], the one that was opened first does not stay any longer.
    pub(super) fn open(&mut self, number: u64, page_url: Option<String>) -> Option<&SeenResponse> {
        let response = self.find(number)?.clone();
        self.opened.retain(|opened| opened.number != number);
        self.opened.push_back(Opened { number, response, page_url });
        if self.opened.len() > MAX_OPENED {
            self.opened.pop_front();
        }
        self.opened.back().map(|opened| &opened.response)
    }

    /// Returns the URL of the page that was shown when a response was opened; `None` if it was not opened.
    pub(super) fn page_of(&self, response: &SeenResponse) -> Option<&str> {
        let mut newest_first = self.opened.iter().rev();
        let opened = newest_first.find(|opened| opened.response.number == response.number)?;
        opened.page_url.as_deref()
    }

    /// Returns all responses, the newest first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = &SeenResponse> {
        self.kept.iter().rev()
    }

    /// Records that the studio asks for the address of a response, and returns the number of the request.
    pub(super) fn begin_trial(&mut self, response: u64, url: &str) -> u64 {
        self.trial_count = self.trial_count.saturating_add(1);
        let (number, url) = (self.trial_count, url.to_owned());
        self.trials.push_back(Trial {
            number,
            response,
            url,
            answer: None,
            is_seen: false,
            counts: false,
        });
        if self.trials.len() > MAX_TRIALS {
            self.trials.pop_front();
        }
        number
    }

    /// Records what came of a request, unless its response was forgotten meanwhile. Returns what came of the
    /// first one that ended: an author who chooses two members at once has two made, and what is shown for
    /// the response must not change.
    pub(super) fn end_trial(&mut self, number: u64, answer: Arc<Answer>) -> Arc<Answer> {
        let trial = self.trials.iter().find(|trial| trial.number == number);
        let first = trial.and_then(|trial| self.answer(trial.response));
        if let Some(trial) = self.trials.iter_mut().find(|trial| trial.number == number) {
            trial.answer = Some(answer.clone());
            trial.counts = first.is_none();
        }
        first.unwrap_or(answer)
    }

    /// Returns what came of the first request for the address of a response; `None` if none has ended.
    pub(super) fn answer(&self, response: u64) -> Option<Arc<Answer>> {
        let mut trials = self.trials.iter().filter(|trial| trial.response == response);
        trials.find(|trial| trial.counts).and_then(|trial| trial.answer.clone())
    }
}

/// Returns whether a response has what a definition can read.
fn has_data(response: &SeenResponse) -> bool {
    (200..=299).contains(&response.status) && response.body.is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ME: &str = "https://shop.test/me";

    fn response(number: u64, status: u16, body: Option<Value>) -> SeenResponse {
        SeenResponse { number, url: ME.to_owned(), status, body, ..SeenResponse::default() }
    }

    fn kept(responses: &Responses) -> Vec<u64> {
        responses.newest_first().map(|response| response.number).collect()
    }

    fn answered(status: u16, body: &str) -> Arc<Answer> {
        Arc::new(Answer::of(Some(&Fetched { status, body: body.to_owned() })))
    }

    #[test]
    fn a_response_without_data_replaces_none_with_data() {
        let data = || Some(json!({ "id": 1 }));
        let mut responses = Responses::default();
        assert!(responses.seen(vec![response(1, 500, None)]));
        assert!(responses.seen(vec![response(2, 200, data())]));
        let others = [
            response(3, 401, Some(json!({ "error": "no token" }))),
            response(4, 405, data()),
            response(5, 204, None),
        ];
        assert!(!responses.seen(others.into()));
        assert_eq!(kept(&responses), [2]);
        assert!(!responses.seen(vec![response(5, 204, None)]), "it is not new");
        let found = responses.find(1).and_then(|found| found.body.clone());
        assert_eq!(found, data());
        assert!(responses.seen(vec![response(6, 201, data())]));
        assert_eq!(kept(&responses), [6]);
    }

    #[test]
    fn the_studios_own_requests_are_not_listed() {
        let data = |id: u64| Some(json!({ "id": id }));
        let mut responses = Responses::default();
        responses.seen(vec![response(1, 200, data(1))]);
        // The response is seen before the request has ended.
        let trial = responses.begin_trial(1, ME);
        assert!(!responses.seen(vec![response(2, 200, data(1))]));
        responses.end_trial(trial, answered(200, r#"{ "id": 1 }"#));
        assert!(responses.seen(vec![response(3, 200, data(1))]), "one that the page has asked for");
        // It is seen after the request has ended, and after another response.
        let trial = responses.begin_trial(3, ME);
        responses.end_trial(trial, answered(200, r#"{ "id": 2 }"#));
        let others = vec![response(4, 200, data(4)), response(5, 200, data(2))];
        assert!(responses.seen(others));
        assert_eq!(kept(&responses), [4]);
        let trial = responses.begin_trial(4, ME);
        responses.end_trial(trial, Arc::new(Answer::of(None)));
        assert!(!responses.seen(vec![response(6, 302, None)]));
        assert_eq!(kept(&responses), [4]);
    }

    #[test]
    fn what_came_of_a_request_is_kept_until_its_response_is_forgotten() {
        let mut responses = Responses::default();
        responses.seen(vec![response(1, 200, Some(json!(1)))]);
        assert!(responses.answer(1).is_none());
        let trial = responses.begin_trial(1, ME);
        assert!(responses.answer(1).is_none());
        responses.end_trial(trial, answered(200, "1"));
        let body = |responses: &Responses| {
            let answer = responses.answer(1)?;
            answer.usable_body().cloned()
        };
        assert_eq!(body(&responses), Some(json!(1)));
        responses.forget();
        responses.end_trial(trial, answered(200, "1"));
        assert_eq!(body(&responses), None);
        assert_eq!(answered(401, "1").usable_body(), None);
    }

    #[test]
    fn the_answer_to_the_first_request_that_ends_counts() {
        let mut responses = Responses::default();
        responses.seen(vec![response(1, 200, Some(json!(1)))]);
        let (early, late) = (responses.begin_trial(1, ME), responses.begin_trial(1, ME));
        let status = |answer: Option<Arc<Answer>>| answer.and_then(|answer| answer.status);
        assert_eq!(status(Some(responses.end_trial(late, answered(200, "1")))), Some(200));
        let refused = responses.end_trial(early, answered(429, "1"));
        assert_eq!(status(Some(refused)), Some(200));
        assert_eq!(status(responses.answer(1)), Some(200));
        // Both responses are the studio's own.
        let own = vec![response(2, 429, Some(json!(1))), response(3, 200, Some(json!(1)))];
        assert!(!responses.seen(own));
    }

    #[test]
    fn a_response_that_is_open_stays_as_it_was_shown() {
        let mut responses = Responses::default();
        responses.seen(vec![response(1, 200, Some(json!(1)))]);
        let opened = responses.open(1, Some("https://shop.test/home".to_owned())).cloned().unwrap();
        let trial = responses.begin_trial(1, ME);
        responses.end_trial(trial, answered(200, "1"));
        let stays = |responses: &Responses| {
            assert_eq!(responses.find(1), Some(&opened));
            assert_eq!(responses.page_of(&opened), Some("https://shop.test/home"));
            assert!(responses.answer(1).is_some());
        };
        stays(&responses);
        // The page asks for it again, and receives another body.
        responses.seen(vec![response(2, 200, Some(json!(2)))]);
        assert_eq!(kept(&responses), [2]);
        stays(&responses);
        let others = (3..100).map(|number| SeenResponse {
            url: format!("https://shop.test/{number}"),
            ..response(number, 200, Some(json!(0)))
        });
        responses.seen(others.collect());
        stays(&responses);
        // A run in a new browser, which counts anew.
        responses.forget();
        assert!(responses.seen(vec![response(1, 200, Some(json!(3)))]));
        assert_eq!(kept(&responses), [100], "no other response has its number");
        stays(&responses);
        for number in 101..=105 {
            responses.seen(vec![response(number - 99, 200, Some(json!(number)))]);
            responses.open(number, None).unwrap();
        }
        assert_eq!(responses.find(1), None, "so many are not kept");
    }

    #[test]
    fn responses_outlast_a_window_that_is_closed() {
        let mut responses = Responses::default();
        let at = |number: u64, path: &str| SeenResponse {
            url: format!("https://shop.test{path}"),
            ..response(number, 200, Some(json!(number)))
        };
        responses.seen(vec![at(1, "/a"), at(2, "/b")]);
        // A window is opened, and the page behind it receives another response.
        responses.seen(vec![at(4, "/window")]);
        assert!(responses.seen(vec![at(1, "/a"), at(2, "/b"), at(3, "/c")]));
        assert_eq!(kept(&responses), [3, 4, 2, 1]);
        assert!(!responses.seen(vec![at(1, "/a"), at(2, "/b"), at(3, "/c")]));
    }
}
