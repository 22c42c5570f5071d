//! The body of a delivery: a closed session in its public form.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use crate::{
    api_key::Environment,
    id::SessionId,
    session::{Outcome, Session, Status},
};

/// Returns the body for a closed session; `None` while it is open.
///
/// Absent fields are omitted. The body never contains contact data of the applicant.
#[must_use]
pub fn payload(session: &Session) -> Option<Value> {
    let outcome = session.state.outcome()?;
    let mut body = Map::new();
    body.insert("sessionId".into(), json!(session.id));
    body.insert("status".into(), json!(session.status()));
    body.insert("platformId".into(), json!(session.terms.platform));
    if let Some(reference) = &session.terms.external_reference {
        body.insert("externalReferenceId".into(), json!(reference));
    }
    if let Some(data) = session.data() {
        body.insert("extractedData".into(), json!(data));
    }
    if let Some(attestation) = outcome.attestation() {
        body.insert("proofHash".into(), json!(attestation.proof));
        body.insert("attestedFields".into(), json!(attestation.fields));
        if let Some(mode) = attestation.mode {
            body.insert("attestationType".into(), json!(mode.as_str()));
        }
    }
    if let Some(closed_at) = session.closed_at {
        body.insert("completedAt".into(), json!(wire_time(closed_at)));
    }
    body.insert("metadata".into(), metadata(session, outcome));
    Some(Value::Object(body))
}

/// Returns the body of a test delivery. It has the form of a real one; its session does not
/// exist.
#[must_use]
pub fn test_payload(session: SessionId, now: DateTime<Utc>) -> Value {
    json!({
        "sessionId": session,
        "status": Status::Completed,
        "platformId": 1,
        "externalReferenceId": "test",
        "extractedData": { "accountId": "test" },
        "completedAt": wire_time(now),
        "metadata": { "environment": Environment::Development, "test": true },
    })
}

fn metadata(session: &Session, outcome: &Outcome) -> Value {
    let mut metadata = Map::new();
    if let Some(receiver) = &session.terms.receiver {
        let given = receiver.metadata.iter();
        metadata.extend(given.map(|(name, value)| (name.clone(), json!(value))));
    }
    if let Some(code) = outcome.error_code() {
        metadata.insert("errorCode".into(), json!(code));
        metadata.insert("errorMessage".into(), json!(code.partner_text()));
    }
    if !outcome.missing().is_empty() {
        metadata.insert("missing".into(), json!(outcome.missing()));
    }
    metadata.insert("environment".into(), json!(session.terms.environment));
    if let Some(workflow) = &session.workflow {
        metadata.insert("workflowVersion".into(), json!(workflow.version));
    }
    Value::Object(metadata)
}

/// Formats a time as RFC 3339 in UTC with milliseconds.
#[must_use]
pub fn wire_time(moment: DateTime<Utc>) -> String {
    moment.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        api_key::Environment,
        id::{ApiKeyId, PlatformId, SessionId},
        request::{AttestationRequest, Contact, Location, SessionTerms},
        session::{DefinitionVersion, IssuedAttestation, Progress, ProofHash, State, Version},
        worker_region::WorkerRegion,
        workflow::AttestMode,
    };
    use chrono::DateTime;

    fn ended(outcome: Outcome) -> Session {
        let moment = DateTime::from_timestamp_millis(1_767_268_800_123).unwrap();
        Session {
            id: SessionId::from_u128(1),
            owner: ApiKeyId::from_u128(2),
            terms: SessionTerms {
                platform: PlatformId(7),
                environment: Environment::Development,
                location: Location { country: "US".into(), region: None, city: None },
                worker_region: WorkerRegion::closest_to("US", None),
                attestation: AttestationRequest::Wanted,
                attestation_challenge: None,
                receiver: Some(Contact {
                    name: Some("Ada Contact".into()),
                    email: Some("ada@contact.example".into()),
                    phone: Some("+14155550100".into()),
                    locale: Some("en-US".into()),
                    metadata: [("loan".to_owned(), "4711".to_owned())].into(),
                }),
                receiver_id: None,
                invitation: None,
                external_reference: Some("application-1".into()),
            },
            state: State::Closed { outcome, ran: None },
            progress: Progress::default(),
            workflow: Some(DefinitionVersion { version: "1.0.0".into(), sha256: String::new() }),
            version: Version::FIRST,
            created_at: moment,
            expires_at: moment,
            closed_at: Some(moment),
            erased_at: None,
        }
    }

    #[test]
    fn the_body_has_all_known_fields_but_no_contact_data() {
        let data = json!({ "accountId": "acme-1" }).as_object().unwrap().clone();
        let attestation = Some(IssuedAttestation {
            proof: ProofHash::new(&"0a".repeat(32)).unwrap(),
            fields: vec!["accountId".to_owned()],
            mode: Some(AttestMode::ZktlsRequest),
        });
        let body = payload(&ended(Outcome::Completed { data, attestation })).unwrap();
        let expected = json!({
            "sessionId": "00000000-0000-0000-0000-000000000001",
            "status": "COMPLETED",
            "platformId": 7,
            "externalReferenceId": "application-1",
            "extractedData": { "accountId": "acme-1" },
            "proofHash": "0a".repeat(32),
            "attestedFields": ["accountId"],
            "attestationType": "zktls-request",
            "completedAt": "2026-01-01T12:00:00.123Z",
            "metadata": { "loan": "4711", "environment": "development", "workflowVersion": "1.0.0" },
        });
        assert_eq!(body, expected);
        let text = body.to_string();
        for contact in ["Ada Contact", "ada@contact.example", "+14155550100", "en-US"] {
            assert!(!text.contains(contact), "{contact}");
        }
    }

    #[test]
    fn absent_fields_are_omitted() {
        let mut session = ended(Outcome::Terminated);
        session.terms.external_reference = None;
        session.terms.receiver = None;
        session.workflow = None;
        let body = payload(&session).unwrap();
        let keys: Vec<_> = body.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["completedAt", "metadata", "platformId", "sessionId", "status"]);
        assert_eq!(body["metadata"], json!({ "environment": "development" }));
        session.state = State::START;
        assert_eq!(payload(&session), None, "an open session has no body");
    }
}
