//! Runs of a small workflow: how they go on, and what ends them.

use std::{sync::atomic::Ordering, time::Duration};

use chrono::TimeDelta;
use domain::{
    error_code::ErrorCode,
    session::{Event, History, Session, State, Status},
    workflow::PromptKind,
};
use ports::{
    browser::{BrowserError, PageState},
    driving::{Prompt, ShareContent, ShareItem, ValueKind},
    session_store::{BrowserLeases as _, SessionQueries as _},
};
use serde_json::{Value, json};

use super::{
    pass,
    small_workflow::{Run, body, definition},
};
use crate::testing::DatabaseCondition;

/// Returns the text of a field that is no number, boolean, object or list.
fn shared_text(item: &ShareItem) -> &str {
    let ShareContent::Value { value, .. } = &item.content else { panic!("{:?}", item.content) };
    assert_eq!(value.kind, ValueKind::Text);
    &value.text
}

#[tokio::test(start_paused = true)]
async fn a_run_leads_from_sign_in_over_consent_to_the_data() {
    let run = Run::new(definition(&json!({}))).await;
    assert_eq!(run.status().await, Status::Ready, "the applicant is not there yet");
    run.come();
    pass(2).await;
    assert_eq!(run.status().await, Status::AwaitingUser);
    let prompt = run.prompt();
    assert_eq!(
        (prompt.kind, prompt.text.as_str(), prompt.number),
        (PromptKind::Login, "Sign in", 1)
    );
    run.browser.bodies.push(Ok(body(200, r#"{"name":"Ada","age":36}"#)));
    run.browser.show("#in");
    pass(2).await;
    assert_eq!(run.status().await, Status::AwaitingUser);
    let prompt = run.prompt();
    assert_eq!((prompt.kind, prompt.number), (PromptKind::Consent, 2));
    let [item] = prompt.share.as_slice() else { panic!("{:?}", prompt.share) };
    assert_eq!((item.label.as_str(), shared_text(item)), ("Your name", "Ada"));
    assert!(!item.attested);
    assert!(!prompt.witnessed);
    run.answer(true);
    pass(2).await;
    let session = run.world.read(run.id).await;
    assert_eq!(session.status(), Status::Completed);
    assert_eq!(Value::Object(session.data().unwrap().clone()), json!({ "name": "Ada" }));
    run.is_over().await;
    assert_eq!(run.nodes(), ["open", "signIn", "read", "review", "end"]);
}

#[tokio::test(start_paused = true)]
async fn a_consent_that_is_asked_for_again_says_that_nothing_was_shared() {
    let mut document = serde_json::to_value(definition(&json!({}))).unwrap();
    document["signals"]["confirmed"] = json!({ "selector": "#confirmed" });
    document["nodes"]["review"]["confirm"] =
        json!({ "when": "confirmed", "otherwise": { "next": "signIn" } });
    let run = Run::new(serde_json::from_value(document).unwrap()).await;
    run.to_consent().await;
    let first = run.prompt();
    assert!(!first.unconfirmed);
    run.browser.bodies.push(Ok(body(200, r#"{"name":"Ada"}"#)));
    run.answer(true);
    pass(4).await;
    let again = run.prompt();
    assert_eq!((again.kind, again.share, again.unconfirmed), (first.kind, first.share, true));
    assert_ne!(again.number, first.number);
    assert_eq!(run.status().await, Status::AwaitingUser, "the first answer does not count");
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_applicant_declines_shares_nothing() {
    let run = Run::new(definition(&json!({}))).await;
    run.to_consent().await;
    run.answer(false);
    pass(2).await;
    let session = run.world.read(run.id).await;
    assert_eq!(session.state.error_code(), Some(ErrorCode::ConsentDeclined));
    assert_eq!(session.data(), None);
    run.is_over().await;
}

#[tokio::test(start_paused = true)]
async fn a_consent_that_is_not_given_in_time_ends_the_session() {
    let run = Run::new(definition(&json!({}))).await;
    run.to_consent().await;
    pass(125).await;
    assert_eq!(run.code().await, Some(ErrorCode::UserInputTimeout));
    run.is_over().await;
}

#[tokio::test(start_paused = true)]
async fn an_applicant_who_does_nothing_is_waited_for_as_long_as_the_node_says() {
    let run = Run::new(definition(&json!({}))).await;
    run.come();
    pass(58).await;
    assert_eq!(run.status().await, Status::AwaitingUser);
    pass(5).await;
    assert_eq!(run.code().await, Some(ErrorCode::UserInputTimeout));
    let timeline = run.world.store.timeline(run.world.key.id, run.id).await.unwrap().unwrap();
    assert_eq!(timeline.last().unwrap().node.as_deref(), Some("signIn"));
}

#[tokio::test(start_paused = true)]
async fn a_page_that_cannot_be_reached_ends_the_run_as_its_node_says() {
    for error in [BrowserError::Refused("404".into()), BrowserError::TimedOut] {
        let run = Run::new(definition(&json!({}))).await;
        run.browser.navigations.push(Err(error));
        run.come();
        pass(2).await;
        assert_eq!(run.code().await, Some(ErrorCode::PlatformUnavailable));
        run.is_over().await;
    }
}

#[tokio::test(start_paused = true)]
async fn data_that_cannot_be_read_is_read_again_before_the_run_fails() {
    let run = Run::new(definition(&json!({}))).await;
    run.browser.bodies.push(Ok(body(500, "{}")));
    run.to_consent().await;
    run.answer(true);
    pass(2).await;
    assert_eq!(run.status().await, Status::Completed, "the second attempt");

    let run = Run::new(definition(&json!({}))).await;
    run.browser.bodies.push(Ok(body(200, "no JSON")));
    run.browser.bodies.push(Err(BrowserError::Refused("blocked".into())));
    run.come();
    run.browser.show("#in");
    pass(5).await;
    assert_eq!(run.code().await, Some(ErrorCode::ExtractionFailed));
}

#[tokio::test(start_paused = true)]
async fn a_run_pauses_before_it_reads_again_although_nothing_happens_on_the_page() {
    let run = Run::new(definition(&json!({}))).await;
    run.browser.bodies.push(Ok(body(500, "{}")));
    run.browser.bodies.push(Ok(body(200, r#"{"name":"Ada"}"#)));
    run.browser.show("#in");
    run.come();
    tokio::time::sleep(Duration::from_millis(400)).await;
    let is_asked = |prompt: &Prompt| prompt.kind == PromptKind::Consent;
    let has_read = run.live.state.borrow().prompt.as_ref().is_some_and(is_asked);
    assert!(!has_read, "half a second has not passed");
    pass(2).await;
    assert_eq!(run.prompt().kind, PromptKind::Consent);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_never_answered_is_made_again_before_the_run_fails() {
    let run = Run::new(definition(&json!({}))).await;
    run.come();
    run.browser.show("#in");
    // Each of two attempts takes ten seconds, with a pause between them.
    pass(18).await;
    assert_eq!(run.code().await, None);
    pass(4).await;
    assert_eq!(run.code().await, Some(ErrorCode::ExtractionFailed));
    run.is_over().await;
}

#[tokio::test(start_paused = true)]
async fn data_is_read_from_a_response_or_from_the_page() {
    let run = Run::new(definition(&json!({ "via": { "response": "/me" } }))).await;
    run.to_consent().await;
    assert_eq!(shared_text(&run.prompt().share[0]), "Ada");
    let dom = json!({ "via": { "dom": {} }, "fields": { "name": "#name" } });
    let run = Run::new(definition(&dom)).await;
    run.to_consent().await;
    assert_eq!(shared_text(&run.prompt().share[0]), "text of #name");
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_browser_ends_gets_another_one() {
    let run = Run::new(definition(&json!({}))).await;
    run.come();
    pass(2).await;
    run.browser.end();
    pass(1).await;
    assert_eq!(
        run.world.read(run.id).await.state,
        State::Created { history: History { losses: 1, ..History::default() } }
    );
    run.is_over().await;
    let state = run.live.state.borrow();
    assert!(state.browser.is_none() && state.prompt.is_none());
}

#[tokio::test(start_paused = true)]
async fn data_that_a_lost_browser_does_not_answer_with_is_not_missing() {
    let run = Run::new(definition(&json!({}))).await;
    for _ in 0..2 {
        run.browser.bodies.push(Err(BrowserError::Gone));
    }
    run.come();
    run.browser.show("#in");
    tokio::time::sleep(Duration::from_millis(500)).await;
    run.browser.end();
    pass(1).await;
    assert_eq!(
        run.world.read(run.id).await.state,
        State::Created { history: History { losses: 1, ..History::default() } }
    );
    run.is_over().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_ends_when_its_session_has_lost_the_browser() {
    let run = Run::new(definition(&json!({}))).await;
    run.come();
    pass(2).await;
    run.world.apply(run.id, [Event::BrowserLost]).await;
    pass(6).await;
    assert_eq!(
        run.world.read(run.id).await.state,
        State::Created { history: History { losses: 1, ..History::default() } }
    );
    run.is_over().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_renews_the_lease_of_its_browser() {
    let run = Run::new(definition(&json!({}))).await;
    run.come();
    pass(50).await;
    let due = run.world.store.find_due(run.world.engine.clock.now(), 8).await.unwrap();
    assert!(due.is_empty(), "{due:?}");
}

#[tokio::test(start_paused = true)]
async fn a_run_ends_before_its_lease_if_that_cannot_be_renewed() {
    for condition in [DatabaseCondition::Fails, DatabaseCondition::IsSilent] {
        let run = Run::new(definition(&json!({}))).await;
        run.come();
        pass(12).await;
        run.world.database.set(condition);
        pass(8).await;
        assert!(run.live.state.borrow().browser.is_some(), "{condition:?}");
        // The lease was renewed 20 s before it would end, in the last five seconds.
        pass(8).await;
        let due = run.world.store.find_due(run.world.engine.clock.now(), 8).await.unwrap();
        assert!(due.is_empty(), "{condition:?}: {due:?}");
        run.is_over().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_consent_is_carried_out_although_the_store_fails_for_some_seconds() {
    let run = Run::new(definition(&json!({}))).await;
    run.to_consent().await;
    run.world.database.set(DatabaseCondition::Fails);
    run.answer(true);
    pass(5).await;
    run.world.database.set(DatabaseCondition::Works);
    pass(3).await;
    let session = run.world.read(run.id).await;
    assert_eq!(session.status(), Status::Completed);
    assert_eq!(Value::Object(session.data().unwrap().clone()), json!({ "name": "Ada" }));
    run.is_over().await;
}

#[tokio::test(start_paused = true)]
async fn data_that_was_agreed_to_is_saved_although_the_browser_ends_meanwhile() {
    let run = Run::new(definition(&json!({}))).await;
    run.to_consent().await;
    run.world.database.set(DatabaseCondition::Fails);
    run.answer(true);
    pass(2).await;
    run.browser.end();
    pass(3).await;
    run.world.database.set(DatabaseCondition::Works);
    pass(3).await;
    let session = run.world.read(run.id).await;
    assert_eq!(session.status(), Status::Completed);
    assert_eq!(Value::Object(session.data().unwrap().clone()), json!({ "name": "Ada" }));
    run.is_over().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_with_data_to_save_ends_before_its_lease_if_the_store_takes_nothing() {
    let run = Run::new(definition(&json!({}))).await;
    run.to_consent().await;
    run.world.database.set(DatabaseCondition::Fails);
    run.answer(true);
    pass(2).await;
    run.browser.end();
    pass(16).await;
    run.is_over().await;
}

#[tokio::test(start_paused = true)]
async fn a_transition_whose_result_is_lost_is_made_once() {
    let run = Run::new(definition(&json!({}))).await;
    run.to_consent().await;
    // The next renewal of the lease comes when the run has ended.
    pass(3).await;
    run.world.database.set(DatabaseCondition::LosesCommitResults);
    run.answer(true);
    pass(3).await;
    assert_eq!(run.status().await, Status::Completed);
    let shown = run.live.state.borrow().session.as_ref().map(Session::status);
    assert_eq!(shown, Some(Status::Completed));
    let timeline = run.world.store.timeline(run.world.key.id, run.id).await.unwrap().unwrap();
    let events: Vec<_> = timeline.iter().rev().take(3).map(|entry| entry.event.as_str()).collect();
    assert_eq!(events, ["DataCollected", "InputGiven", "InputNeeded"]);
    run.is_over().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_loses_its_browser_while_the_store_fails_gets_another_one() {
    let run = Run::new(definition(&json!({}))).await;
    run.come();
    pass(2).await;
    run.world.database.set(DatabaseCondition::Fails);
    run.browser.end();
    pass(4).await;
    run.world.database.set(DatabaseCondition::Works);
    pass(2).await;
    let history = History { losses: 1, ..History::default() };
    assert_eq!(run.world.read(run.id).await.state, State::Created { history });
    run.is_over().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_tries_again_ends_before_its_lease() {
    for condition in [DatabaseCondition::Fails, DatabaseCondition::IsSilent] {
        let run = Run::new(definition(&json!({}))).await;
        run.to_consent().await;
        run.world.database.set(condition);
        run.answer(true);
        pass(10).await;
        assert!(run.live.state.borrow().browser.is_some(), "{condition:?}");
        pass(8).await;
        assert!(run.live.state.borrow().browser.is_none(), "{condition:?}");
        run.is_over().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_browser_waits_for_an_applicant_who_left_before_it_was_up() {
    let run = Run::new(definition(&json!({}))).await;
    pass(28).await;
    assert_eq!(run.status().await, Status::Ready);
    run.to_consent().await;

    let run = Run::new(definition(&json!({}))).await;
    pass(31).await;
    let history = History { absences: 1, ..History::default() };
    assert_eq!(run.world.read(run.id).await.state, State::Created { history });
    run.is_over().await;
}

#[tokio::test(start_paused = true)]
async fn an_applicant_may_be_away_for_a_while() {
    let run = Run::new(definition(&json!({ "timeoutSeconds": 60 }))).await;
    run.come();
    pass(2).await;
    run.leave();
    pass(540).await;
    assert_eq!(run.status().await, Status::AwaitingUser);
    run.to_consent().await;
    run.answer(true);
    run.leave();
    pass(2).await;
    assert_eq!(run.status().await, Status::Completed, "the answer outlives the longer deadline");
}

#[tokio::test(start_paused = true)]
async fn an_absent_applicant_has_ten_minutes_or_the_time_of_the_step() {
    for (timeout, waits, ends) in [(60, 590, 610), (1200, 1190, 1210)] {
        let run = Run::new(definition(&json!({ "timeoutSeconds": timeout }))).await;
        run.come();
        pass(1).await;
        let before = run.deadline().await;
        run.leave();
        pass(2).await;
        let longer = TimeDelta::seconds(i64::max(600 - timeout, 0));
        assert_eq!(run.deadline().await, before + longer, "the partner is told");
        pass(waits).await;
        assert_eq!(run.status().await, Status::AwaitingUser, "{timeout}");
        pass(ends - waits).await;
        assert_eq!(run.code().await, Some(ErrorCode::UserInputTimeout), "{timeout}");
        run.is_over().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_applicant_who_stays_has_the_time_of_the_step() {
    let run = Run::new(definition(&json!({ "timeoutSeconds": 60 }))).await;
    run.come();
    pass(70).await;
    assert_eq!(run.code().await, Some(ErrorCode::UserInputTimeout));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_panics_fails_its_session() {
    let run = Run::new(definition(&json!({}))).await;
    run.browser.panics.store(true, Ordering::SeqCst);
    run.come();
    pass(2).await;
    assert_eq!(run.code().await, Some(ErrorCode::InternalError));
    run.is_over().await;
}

#[tokio::test(start_paused = true)]
async fn a_page_that_keeps_leading_elsewhere_fails_the_session() {
    let run = Run::new(definition(&json!({}))).await;
    run.come();
    pass(2).await;
    for (seq, count) in [(1, 29), (2, 30)] {
        assert_eq!(run.status().await, Status::AwaitingUser);
        let state = PageState { seq, refused_navigations: count, ..PageState::default() };
        run.browser.send_state(state);
        pass(1).await;
    }
    assert_eq!(run.code().await, Some(ErrorCode::NavigationBlockedLimit));
    run.is_over().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_terminated_ends_its_run() {
    let run = Run::new(definition(&json!({}))).await;
    run.come();
    pass(2).await;
    run.world.apply(run.id, [Event::TerminatedByPartner]).await;
    run.browser.show("#in");
    pass(6).await;
    run.is_over().await;
    assert_eq!(run.status().await, Status::Terminated);
}
