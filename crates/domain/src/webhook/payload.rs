//! The public form of a closed session: the body of a delivery.

use serde_json::{Map, Value, json};

use crate::session::{Outcome, Session};

/// The body for a session that has ended; `None` while it is open.
///
/// Absent fields are left out. Contact data of the applicant never goes in.
#[must_use]
pub fn payload(session: &Session) -> Option<Value> {
    let outcome = session.state.outcome()?;
    let mut body = Map::new();
    body.insert("sessionId".into(), json!(session.id));
    body.insert("status".into(), json!(session.status()));
    body.insert("platformId".into(), json!(session.order.platform));
    if let Some(reference) = &session.order.external_reference {
        body.insert("externalReferenceId".into(), json!(reference));
    }
    if let Some(data) = session.data() {
        body.insert("extractedData".into(), json!(data));
    }
    if let Some(proof) = outcome.proof() {
        body.insert("proofHash".into(), json!(proof));
    }
    if let Some(closed_at) = session.closed_at {
        body.insert("completedAt".into(), json!(wire_time(closed_at)));
    }
    body.insert("metadata".into(), metadata(session, outcome));
    Some(Value::Object(body))
}

fn metadata(session: &Session, outcome: &Outcome) -> Value {
    let mut metadata = Map::new();
    if let Some(receiver) = &session.order.receiver {
        let own = receiver.metadata.iter();
        metadata.extend(own.map(|(name, value)| (name.clone(), json!(value))));
    }
    if let Some(code) = outcome.error_code() {
        metadata.insert("errorCode".into(), json!(code));
        metadata.insert("errorMessage".into(), json!(code.partner_text()));
    }
    if !outcome.missing().is_empty() {
        metadata.insert("missing".into(), json!(outcome.missing()));
    }
    metadata.insert("environment".into(), json!(session.order.environment));
    if let Some(workflow) = &session.workflow {
        metadata.insert("workflowVersion".into(), json!(workflow.version));
    }
    Value::Object(metadata)
}

/// RFC 3339 in UTC with milliseconds.
#[must_use]
pub fn wire_time(moment: chrono::DateTime<chrono::Utc>) -> String {
    moment.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}
