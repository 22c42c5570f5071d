//! The pauses before a `collect` node reads again.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::{
    language_tests::{document, noon, page},
    *,
};
use crate::error_code::ErrorCode;

/// A run that reads one required field.
struct Reading {
    run: Run,
    now: DateTime<Utc>,
}

impl Reading {
    /// Has made the first attempt, in which the field is missing.
    fn lacking(via: &Value, retries: u8) -> Self {
        let mut document = document();
        document["start"] = json!("page");
        document["budgets"]["totalSeconds"] = json!(60);
        document["nodes"]["page"] = json!({
            "type": "collect", "via": via, "fields": { "balance": "/balance" }, "retries": retries,
            "onMissing": { "fail": "NO_DATA" }, "next": "review",
        });
        document["requests"]["me"] =
            json!({ "url": "https://shop.test/me", "expectStatus": 200, "maxBytes": 100 });
        let definition = serde_json::from_value(document).unwrap();
        let mut reading = Self { run: Run::new(Arc::new(definition), noon()), now: noon() };
        reading.run.record_trace();
        assert!(is_read(&reading.next(StepResult::Begin)));
        assert_eq!(reading.lacks(), Command::Watch);
        reading
    }

    fn next(&mut self, result: StepResult) -> Command {
        self.run.next(result, self.now).command
    }

    fn lacks(&mut self) -> Command {
        self.next(StepResult::Read(json!({})))
    }

    /// Observes the page so many milliseconds after the first attempt.
    fn seen(&mut self, at: i64, page: Observation) -> Command {
        self.now = noon() + TimeDelta::milliseconds(at);
        self.next(StepResult::Seen(page))
    }

    /// Observes a page that stays the same four times a second until the run ends; returns the
    /// milliseconds after which it was read again, and the end. The attempts have this result.
    fn attempts(&mut self, result: &StepResult) -> (Vec<i64>, Command) {
        let (mut at, mut attempts) = (0, vec![]);
        loop {
            at += 250;
            let mut command = self.seen(at, page("/home", &[]));
            if is_read(&command) {
                attempts.push(at);
                command = self.next(result.clone());
            }
            if let Command::End(_) = command {
                return (attempts, command);
            }
            assert_eq!(command, Command::Watch);
        }
    }
}

fn is_read(command: &Command) -> bool {
    matches!(command, Command::ReadDom { .. } | Command::Fetch(_) | Command::ReadResponse { .. })
}

fn sources() -> [Value; 3] {
    [json!({ "dom": {} }), json!({ "fetch": "me" }), json!({ "response": "/api/me" })]
}

#[test]
fn a_page_that_stays_the_same_is_read_again_after_pauses() {
    for via in sources() {
        for result in [StepResult::Read(json!({})), StepResult::Unreadable, StepResult::Waited] {
            let (attempts, end) = Reading::lacking(&via, 5).attempts(&result);
            assert_eq!(attempts, [500, 1500, 3500, 5500, 7500], "{via}");
            assert_eq!(end, Command::End(End::Failed(ErrorCode::NoData)), "{via}");
        }
    }
}

#[test]
fn a_page_that_cannot_be_observed_is_read_again_all_the_same() {
    let mut reading = Reading::lacking(&json!({ "dom": {} }), 1);
    assert_eq!(reading.next(StepResult::Waited), Command::Watch);
    reading.now += TimeDelta::seconds(20);
    assert!(is_read(&reading.next(StepResult::Waited)));
}

#[test]
fn a_page_that_changes_is_read_earlier_and_no_attempt_is_counted() {
    let changed = || page("/home", &["shop-app >>> form"]);
    let mut reading = Reading::lacking(&json!({ "dom": {} }), 1);
    assert_eq!(reading.seen(10, page("/home", &[])), Command::Watch);
    assert_eq!(reading.seen(200, changed()), Command::Watch, "at most four times a second");
    assert!(is_read(&reading.seen(260, changed())));
    assert_eq!(reading.lacks(), Command::Watch, "the pause goes on");
    assert_eq!(reading.seen(490, changed()), Command::Watch, "it is the same page");
    assert!(is_read(&reading.seen(500, changed())), "the second attempt");
    assert_eq!(reading.lacks(), Command::End(End::Failed(ErrorCode::NoData)));

    // While it loads, it is not read.
    let mut reading = Reading::lacking(&json!({ "dom": {} }), 1);
    let loading = || Observation { settled: false, document: 2, ..page("/home", &[]) };
    reading.seen(10, page("/home", &[]));
    assert_eq!(reading.seen(300, loading()), Command::Watch);
    assert!(is_read(&reading.seen(400, Observation { settled: true, ..loading() })));
    let complete = StepResult::Read(json!({ "balance": 5 }));
    assert!(matches!(reading.next(complete), Command::Consent { .. }));
}

/// The applicant may change to another account meanwhile.
#[test]
fn an_attempt_has_nothing_of_the_one_before() {
    let mut document = document();
    document["start"] = json!("page");
    document["nodes"]["page"] = json!({
        "type": "collect", "via": { "dom": {} }, "retries": 2,
        "fields": { "balance": "#balance", "active": "#active" }, "variables": { "user": "#user" },
        "onMissing": { "fail": "NO_DATA" }, "next": "review",
    });
    let mut run = Run::new(Arc::new(serde_json::from_value(document).unwrap()), noon());
    run.next(StepResult::Begin, noon());
    let ada = json!({ "balance": 5, "user": "ada" });
    assert_eq!(run.next(StepResult::Read(ada), noon()).command, Command::Watch);
    let after = noon() + TimeDelta::milliseconds(500);
    assert!(is_read(&run.next(StepResult::Seen(page("/bob", &[])), after).command));
    let bob = json!({ "active": true });
    assert_eq!(run.next(StepResult::Read(bob), after).command, Command::Watch);
    assert_eq!(run.value("balance"), None);
    let later = after + TimeDelta::seconds(1);
    assert!(is_read(&run.next(StepResult::Seen(page("/bob", &[])), later).command));
    let bob = json!({ "balance": 7, "active": true, "user": "bob" });
    run.next(StepResult::Read(bob), later);
    assert_eq!(run.value("balance"), Some(&json!(7)));
}

#[test]
fn a_request_is_not_made_earlier_because_the_page_has_changed() {
    let mut reading = Reading::lacking(&json!({ "fetch": "me" }), 1);
    assert_eq!(reading.seen(10, page("/home", &[])), Command::Watch);
    assert_eq!(reading.seen(490, page("/other", &["form"])), Command::Watch);
    assert!(is_read(&reading.seen(500, page("/other", &["form"]))));
}

#[test]
fn a_new_response_is_read_at_once() {
    let received = |responses: &[(u64, &str)]| {
        let response = |(number, path): &(u64, &str)| SeenResponse {
            number: *number,
            url: format!("https://shop.test{path}"),
            status: 200,
            ..SeenResponse::default()
        };
        Observation { responses: responses.iter().map(response).collect(), ..page("/home", &[]) }
    };
    let mut reading = Reading::lacking(&json!({ "response": "/api/me" }), 1);
    assert_eq!(reading.seen(10, received(&[(1, "/api/me")])), Command::Watch);
    let other = received(&[(1, "/api/me"), (2, "/api/news")]);
    assert_eq!(reading.seen(300, other), Command::Watch);
    let new = received(&[(1, "/api/me"), (2, "/api/news"), (3, "/api/me")]);
    assert!(is_read(&reading.seen(310, new)));
}

#[test]
fn a_trace_says_how_long_a_run_waits_for_what_is_missing() {
    let mut reading = Reading::lacking(&json!({ "dom": {} }), 2);
    reading.attempts(&StepResult::Read(json!({})));
    let trace = reading.run.take_trace();
    let lines: Vec<_> = trace.iter().map(ToString::to_string).collect();
    let missing = "  balance: missing: nothing is there";
    let lines: Vec<_> = lines.iter().filter(|line| !line.starts_with("  page ")).collect();
    assert_eq!(
        lines,
        [
            "node page",
            missing,
            "  something is missing: waiting 0.5 s before attempt 2 of 3",
            missing,
            "  something is missing: waiting 1 s before attempt 3 of 3",
            missing,
            "failed: NO_DATA",
        ]
    );
}

#[test]
fn a_pause_does_not_outlast_the_run() {
    let mut reading = Reading::lacking(&json!({ "dom": {} }), 5);
    let end = reading.seen(60_000, page("/home", &[]));
    assert_eq!(end, Command::End(End::Failed(ErrorCode::UserInputTimeout)));
}
