//! Reviews that the page does not confirm.

use std::sync::Arc;

use chrono::TimeDelta;
use serde_json::{Value, json};

use super::{
    language_tests::{document, noon, seen, texts},
    *,
};
use crate::error_code::ErrorCode;

/// Returns a run that waits for the sign-in.
fn begun(document: Value) -> Run {
    let definition: Definition = serde_json::from_value(document).unwrap();
    let mut run = Run::new(Arc::new(definition), noon());
    run.record_trace();
    run.next(StepResult::Begin, noon());
    run.next(StepResult::Arrived, noon());
    run
}

/// Signs in, and reads all up to the first review. Returns whether the consent says that an earlier one was
/// not confirmed.
fn review(run: &mut Run) -> bool {
    run.next(seen("/home", &[]), noon());
    run.next(StepResult::Acted, noon());
    run.next(texts("/u/ada"), noon());
    run.next(StepResult::Read(json!({ "data": { "joined": "1.3.2019" } })), noon());
    let step = run.next(StepResult::Arrived, noon());
    let Command::Consent { unconfirmed, .. } = step.command else { panic!("{step:?}") };
    unconfirmed
}

/// Shares on a page.
fn share_on(run: &mut Run, fragment: &str) -> RunStep {
    let step = run.next(StepResult::Answered { share: true }, noon());
    assert_eq!(step.command, Command::Watch);
    run.next(seen(fragment, &[]), noon())
}

fn asks_to_sign_in(step: &RunStep) -> bool {
    matches!(&step.shown, PublicPhase::Awaiting(ask) if ask.kind == PromptKind::Login)
}

#[test]
fn a_review_that_is_never_confirmed_ends_the_run() {
    let mut run = begun(document());
    for _ in 0..2 {
        review(&mut run);
        let step = share_on(&mut run, "/settings");
        assert!(asks_to_sign_in(&step), "{step:?}");
    }
    review(&mut run);
    let step = share_on(&mut run, "/settings");
    assert_eq!(step.command, Command::End(End::Failed(ErrorCode::UnexpectedPage)));
    let trace = run.take_trace();
    let url = Some("https://shop.test/#/settings".to_owned());
    let unconfirmed = TraceEvent::Unconfirmed { signal: "in".to_owned(), url };
    assert_eq!(trace.iter().filter(|event| **event == unconfirmed).count(), 3);
    let failed = TraceEvent::Failed { code: ErrorCode::UnexpectedPage };
    assert_eq!(trace.get(trace.len() - 2..), Some([unconfirmed, failed].as_slice()));
}

#[test]
fn pages_that_do_not_settle_count_as_well() {
    let mut run = begun(document());
    let unsettled = |run: &mut Run| {
        run.next(StepResult::Answered { share: true }, noon());
        run.next(StepResult::Waited, noon() + TimeDelta::seconds(10))
    };
    for _ in 0..2 {
        review(&mut run);
        let step = unsettled(&mut run);
        assert!(asks_to_sign_in(&step), "{step:?}");
    }
    review(&mut run);
    let step = unsettled(&mut run);
    assert_eq!(step.command, Command::End(End::Failed(ErrorCode::UnexpectedPage)));
    let unconfirmed = TraceEvent::Unconfirmed { signal: "in".to_owned(), url: None };
    assert!(run.take_trace().contains(&unconfirmed));
}

#[test]
fn an_applicant_who_signs_in_again_can_share() {
    let mut run = begun(document());
    for is_again in [false, true] {
        assert_eq!(review(&mut run), is_again);
        let step = share_on(&mut run, "/login");
        assert!(asks_to_sign_in(&step), "{step:?}");
    }
    assert!(review(&mut run));
    let step = share_on(&mut run, "/home");
    assert!(matches!(step.command, Command::End(End::Done(_))), "{step:?}");
}

#[test]
fn each_review_is_counted_by_itself() {
    let mut document = document();
    document["nodes"]["again"] = document["nodes"]["review"].clone();
    document["nodes"]["review"]["next"] = json!("again");
    let mut run = begun(document);
    for _ in 0..2 {
        review(&mut run);
        let step = share_on(&mut run, "/home");
        assert!(matches!(step.command, Command::Consent { .. }), "{step:?}");
        let step = share_on(&mut run, "/settings");
        assert!(asks_to_sign_in(&step), "the second review: {step:?}");
        review(&mut run);
        let step = share_on(&mut run, "/settings");
        assert!(asks_to_sign_in(&step), "the first review: {step:?}");
    }
    review(&mut run);
    share_on(&mut run, "/home");
    let step = share_on(&mut run, "/home");
    assert!(matches!(step.command, Command::End(End::Done(_))), "{step:?}");
}
