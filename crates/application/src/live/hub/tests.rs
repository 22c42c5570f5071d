//! One answer to each question for consent.

use chrono::{DateTime, Utc};
use domain::workflow::PromptKind;
use ports::driving::Prompt;

use super::LiveState;

fn asked(kind: PromptKind, value: &str) -> Prompt {
    Prompt {
        number: 0,
        kind,
        text: "Share?".into(),
        deadline: DateTime::<Utc>::MIN_UTC,
        share: vec![("Name".into(), value.into())],
        witnessed: false,
    }
}

#[test]
fn a_question_takes_one_answer_which_takes_effect_when_it_is_recorded() {
    let mut inside = LiveState::default();
    inside.ask(asked(PromptKind::Consent, "Ada"));
    assert!(inside.answer_consent(1, false));
    assert_eq!(inside.consent(), None);
    // What came second neither replaces the answer nor is recorded in its place.
    assert!(!inside.answer_consent(1, true));
    inside.consent_recorded(1, true);
    assert_eq!(inside.consent(), Some(false));
    assert!(!inside.answer_consent(1, true));
    assert_eq!(inside.consent(), Some(false));
}

#[test]
fn an_answer_that_was_not_recorded_can_be_given_again() {
    let mut inside = LiveState::default();
    inside.ask(asked(PromptKind::Consent, "Ada"));
    assert!(inside.answer_consent(1, true));
    inside.consent_recorded(1, false);
    assert_eq!(inside.consent(), None);
    assert!(inside.answer_consent(1, false));
    inside.consent_recorded(1, true);
    assert_eq!(inside.consent(), Some(false));
}

#[test]
fn an_answer_does_not_outlive_its_question() {
    let mut inside = LiveState::default();
    inside.ask(asked(PromptKind::Consent, "Ada"));
    assert!(inside.answer_consent(1, true));
    inside.ask(asked(PromptKind::Consent, "Eve"));
    // The record of the answer before is finished late.
    inside.consent_recorded(1, true);
    assert_eq!(inside.consent(), None);
    assert!(!inside.answer_consent(1, true));
    assert!(inside.answer_consent(2, false));
}

#[test]
fn only_a_question_for_consent_is_answered() {
    let mut inside = LiveState::default();
    assert!(!inside.answer_consent(0, true));
    inside.ask(asked(PromptKind::Otp, "Ada"));
    assert!(!inside.answer_consent(1, true));
}
