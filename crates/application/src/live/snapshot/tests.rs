//! What the outcome page shows.

use std::sync::Arc;

use domain::{
    error_code::ErrorCode,
    session::{Collected, ExtractedData, IssuedAttestation, Outcome, ProofHash, State},
};
use ports::driving::{SharedItem, ShownOutcome};
use serde_json::json;
use testkit::sample;
use uuid::Uuid;

use super::snapshot_of;
use crate::live::hub::LiveState;

#[test]
fn a_session_that_is_not_known_is_not_shown() {
    assert_eq!(snapshot_of(&LiveState::default()), None);
}

#[test]
fn shared_fields_are_labelled_in_the_applicants_language() {
    let data = ExtractedData::from_iter([
        ("name".to_owned(), json!("Ada")),
        ("other".to_owned(), json!("x")),
    ]);
    let shown = outcome(Outcome::Completed { data: data.clone(), attestation: None });
    assert_eq!(shown.text, "Your data was shared. You can close this page.");
    assert_eq!(shown.code, None);
    let item = |label: &str, attested| SharedItem { label: label.to_owned(), attested };
    assert_eq!(shown.shared, [item("Ihr Name", None), item("other", None)]);

    let proof = ProofHash::new(&"0a".repeat(32)).unwrap();
    let attestation = IssuedAttestation { proof, fields: vec!["name".into()], mode: None };
    let shown = outcome(Outcome::Completed { data, attestation: Some(attestation) });
    assert_eq!(shown.shared, [item("Ihr Name", Some(true)), item("other", Some(false))]);
}

#[test]
fn an_outcome_without_data_says_why() {
    let ended = outcome(Outcome::Terminated);
    assert_eq!(
        ended.text,
        "This verification was ended, and no data was shared. You can close this page."
    );
    assert!(ended.shared.is_empty() && ended.missing.is_empty());
    let collected =
        Collected { missing: vec!["other".into(), "name".into()], ..Collected::default() };
    let why = ErrorCode::AttestationFailed;
    let partial = outcome(Outcome::PartialComplete { collected, why, attestation: None });
    assert_eq!(partial.text, why.applicant_text());
    assert_eq!(partial.code, Some(why));
    assert_eq!(partial.missing, ["Ihr Name", "other"], "labels, those of the definition first");
}

fn outcome(outcome: Outcome) -> ShownOutcome {
    let mut document = json!(sample::definition("sample", "1.0.0"));
    document["output"] = json!({ "name": { "type": "string", "labelKey": "name" } });
    document["texts"] = json!({ "en": { "name": "Your name" }, "de": { "name": "Ihr Name" } });
    let key = domain::id::ApiKeyId::from_uuid(Uuid::nil());
    let mut session = sample::opening(key, domain::id::PlatformId(1)).session;
    session.state = State::Closed { outcome, ran: None, region: None, attempts: 1 };
    let state = LiveState {
        session: Some(session),
        definition: Some(Arc::new(serde_json::from_value(document).unwrap())),
        language: Some("de-AT".into()),
        ..LiveState::default()
    };
    snapshot_of(&state).unwrap().outcome.unwrap()
}
