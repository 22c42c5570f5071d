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
    body.insert("attempts".into(), json!(session.state.attempts()));
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
        "attempts": 1,
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
        error_code::ErrorCode,
        id::{ApiKeyId, PlatformId, SessionId},
        request::{AttestationRequest, Contact, Location, MaxAttempts, SessionTerms},
        session::{
            CancelReason, Collected, DefinitionVersion, IssuedAttestation, Progress, ProofHash,
            State, Version,
        },
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
                purpose: None,
                return_url: None,
                max_attempts: MaxAttempts::default(),
                custom_url: None,
                studio: None,
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
            state: State::Closed { outcome, ran: None, region: None, attempts: 1 },
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
            "attempts": 1,
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

    /// The examples of the partners' documentation are what the service sends.
    #[test]
    fn the_documented_examples_are_what_is_sent() {
        let session = |outcome| {
            let mut session = ended(outcome);
            session.id = "01928f7e-5b1a-7c3e-9d2f-6a4b8c0d1e2f".parse().unwrap();
            session.terms.platform = PlatformId(1);
            session.terms.external_reference = Some("application-7".into());
            session.terms.receiver = None;
            let version = DefinitionVersion { version: "1.2.0".into(), sha256: String::new() };
            session.workflow = Some(version);
            session.closed_at = DateTime::from_timestamp_millis(1_767_268_990_250);
            session
        };
        let data = |account: &str| {
            let data = json!({
                "accountId": account, "displayName": "Ada Example",
                "memberSince": "2019-04-01T00:00:00Z", "tier": "gold",
            });
            data.as_object().unwrap().clone()
        };
        let example = |name| {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/site/src/examples");
            let text = std::fs::read_to_string(format!("{folder}/webhook-{name}.json")).unwrap();
            serde_json::from_str::<Value>(&text).unwrap()
        };
        let sent = |session: &Session| payload(session).unwrap();

        let mut whole = data("acme-ok-4711");
        whole.insert("followers".into(), json!(1289));
        let proof = "0f3a9c5e7b1d42868acf03e5d7b9214c6e8f0a2b4c6d8e0f1a3b5c7d9e1f2a4b";
        let attestation = IssuedAttestation {
            proof: ProofHash::new(proof).unwrap(),
            fields: ["accountId", "displayName", "memberSince"].map(str::to_owned).into(),
            mode: Some(AttestMode::ZktlsFull),
        };
        let attestation = Some(attestation);
        let mut completed = session(Outcome::Completed { data: whole, attestation });
        let metadata = [("customerTier".to_owned(), "retail".to_owned())].into();
        completed.terms.receiver = Some(Contact { metadata, ..Contact::default() });
        assert_eq!(sent(&completed), example("completed"));
        let collected =
            Collected { data: data("acme-partial-4711"), missing: vec!["followers".into()] };
        let why = ErrorCode::DataIncomplete;
        let partial = Outcome::PartialComplete { collected, why, attestation: None };
        assert_eq!(sent(&session(partial)), example("partial-complete"));
        let locked = Outcome::Error { why: ErrorCode::AccountLocked };
        assert_eq!(sent(&session(locked)), example("error"));
        let declined = Outcome::Cancelled { why: CancelReason::ConsentDeclined };
        assert_eq!(sent(&session(declined)), example("cancelled"));
        let mut terminated = session(Outcome::Terminated);
        terminated.workflow = None;
        terminated.state =
            State::Closed { outcome: Outcome::Terminated, ran: None, region: None, attempts: 0 };
        assert_eq!(sent(&terminated), example("terminated"));
        let test = example("test");
        let id = test["sessionId"].as_str().unwrap().parse().unwrap();
        assert_eq!(test_payload(id, terminated.closed_at.unwrap()), test);
    }

    #[test]
    fn absent_fields_are_omitted() {
        let mut session = ended(Outcome::Terminated);
        session.terms.external_reference = None;
        session.terms.receiver = None;
        session.workflow = None;
        let body = payload(&session).unwrap();
        let keys: Vec<_> = body.as_object().unwrap().keys().collect();
        assert_eq!(
            keys,
            ["attempts", "completedAt", "metadata", "platformId", "sessionId", "status"]
        );
        assert_eq!(body["metadata"], json!({ "environment": "development" }));
        session.state = State::START;
        assert_eq!(payload(&session), None, "an open session has no body");
    }
}
