//! Each consent prompt takes one answer.

use chrono::{DateTime, Utc};
use domain::workflow::PromptKind;
use ports::driving::{Prompt, ShareContent, ShareItem, ShownValue, ValueKind, ValueStyle};

use super::{LiveState, SessionHub};

fn prompt(kind: PromptKind, value: &str) -> Prompt {
    Prompt {
        number: 0,
        kind,
        text: "Share?".into(),
        translated: true,
        deadline: DateTime::<Utc>::MIN_UTC,
        share: vec![ShareItem {
            label: "Name".into(),
            content: ShareContent::Value {
                value: ShownValue { kind: ValueKind::Text, text: value.into() },
                style: ValueStyle::default(),
            },
            attested: false,
        }],
        witnessed: false,
        unconfirmed: false,
    }
}

#[test]
fn a_consent_prompt_takes_one_answer_which_takes_effect_once_it_is_recorded() {
    let mut state = LiveState::default();
    state.ask(prompt(PromptKind::Consent, "Ada"));
    assert!(state.answer_consent(1, false));
    assert_eq!(state.consent(), None);
    // The second answer neither replaces the first one nor is recorded in its place.
    assert!(!state.answer_consent(1, true));
    state.consent_recorded(1, true);
    assert_eq!(state.consent(), Some(false));
    assert!(!state.answer_consent(1, true));
    assert_eq!(state.consent(), Some(false));
}

#[test]
fn an_answer_that_was_not_recorded_can_be_given_again() {
    let mut state = LiveState::default();
    state.ask(prompt(PromptKind::Consent, "Ada"));
    assert!(state.answer_consent(1, true));
    state.consent_recorded(1, false);
    assert_eq!(state.consent(), None);
    assert!(state.answer_consent(1, false));
    state.consent_recorded(1, true);
    assert_eq!(state.consent(), Some(false));
}

#[test]
fn an_answer_does_not_outlive_its_prompt() {
    let mut state = LiveState::default();
    state.ask(prompt(PromptKind::Consent, "Ada"));
    assert!(state.answer_consent(1, true));
    state.ask(prompt(PromptKind::Consent, "Eve"));
    // The previous answer is recorded late.
    state.consent_recorded(1, true);
    assert_eq!(state.consent(), None);
    assert!(!state.answer_consent(1, true));
    assert!(state.answer_consent(2, false));
}

#[test]
fn only_a_consent_prompt_is_answered() {
    let mut state = LiveState::default();
    assert!(!state.answer_consent(0, true));
    state.ask(prompt(PromptKind::Otp, "Ada"));
    assert!(!state.answer_consent(1, true));
}

#[test]
fn the_same_prompt_is_shown_once() {
    let mut state = LiveState::default();
    assert!(state.ask(prompt(PromptKind::Otp, "Ada")));
    assert!(!state.ask(prompt(PromptKind::Otp, "Ada")));
    assert!(state.ask(prompt(PromptKind::Otp, "Eve")));
    assert_eq!(state.prompts, 2);
}

#[test]
fn a_live_session_is_removed_once_nobody_uses_it() {
    let hub = SessionHub::default();
    let id = testkit::sample::opening(
        domain::id::ApiKeyId::from_uuid(uuid::Uuid::nil()),
        domain::id::PlatformId(1),
    )
    .session
    .id;
    let live = hub.find_or_create(id);
    live.state.send_modify(|state| state.observers = 1);
    hub.remove_if_unused(id);
    assert!(hub.find(id).is_some());
    live.state.send_modify(|state| state.observers = 0);
    hub.remove_if_unused(id);
    assert!(hub.find(id).is_none());
}
