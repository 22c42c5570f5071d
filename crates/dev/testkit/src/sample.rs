//! Sample values, constant where possible, so that failures are reproducible.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    api_key::{ApiKey, Environment},
    id::{ApiKeyId, BrowserId, DeliveryId, InstanceId, PlatformId, SessionId, TeamId, WebhookId},
    request::{AttestationRequest, Challenge, Location, MaxAttempts, SessionTerms},
    secret::Secret,
    session::{Change, Event, Lease, Progress, Session, State, Version},
    webhook::{Webhook, WebhookHeader},
    worker_region::WorkerRegion,
    workflow::Definition,
};
use ports::delivery::Delivery;
use uuid::Uuid;

pub const INSTANCE: InstanceId = InstanceId::from_u128(0xA0);
pub const OTHER_INSTANCE: InstanceId = InstanceId::from_u128(0xA1);

/// # Panics
/// Never, since the timestamp is valid.
#[must_use]
pub fn noon() -> DateTime<Utc> {
    DateTime::from_timestamp_micros(1_767_268_800_123_456).expect("a timestamp")
}

/// Returns a lease of a new browser on the sample instance.
#[must_use]
pub fn lease() -> Lease {
    Lease { browser: BrowserId::from_uuid(Uuid::new_v4()), node: INSTANCE, region: None }
}

#[must_use]
pub fn key(team: TeamId) -> ApiKey {
    ApiKey {
        id: ApiKeyId::from_uuid(Uuid::new_v4()),
        team,
        environment: Environment::Development,
        expires_at: None,
        revoked_at: None,
    }
}

#[must_use]
pub fn webhook(team: TeamId) -> Webhook {
    Webhook {
        id: WebhookId::from_uuid(Uuid::new_v4()),
        team,
        url: "https://partner.example/hook".into(),
        header: Some(WebhookHeader {
            name: "x-partner".into(),
            value: Secret::new("header value".into()),
        }),
        secret: Secret::new("whsec_c2FtcGxl".into()),
        retiring: None,
        timeout: Duration::from_secs(30),
        retries: 3,
        active: true,
    }
}

/// Returns a delivery to an endpoint at this URL, with this timeout.
#[must_use]
pub fn delivery(url: &str, timeout: Duration) -> Delivery {
    let webhook = webhook(TeamId::from_uuid(Uuid::nil()));
    Delivery {
        id: DeliveryId::from_uuid(Uuid::nil()),
        session: SessionId::from_uuid(Uuid::nil()),
        webhook: Webhook { url: url.to_owned(), timeout, ..webhook }.into(),
        endpoint_failing: false,
        body: "{}".to_owned(),
        attempts: 0,
        is_test: false,
        created_at: noon(),
        due: noon(),
        claim: 1,
    }
}

/// Returns a small, valid definition.
///
/// # Panics
/// Never, since the document is a definition.
#[must_use]
pub fn definition(platform: &str, version: &str) -> Definition {
    let document = serde_json::json!({
        "schema": "avouch-workflow/1",
        "platform": platform,
        "version": version,
        "environment": "development",
        "displayName": "Sample",
        "description": "A sample.",
        "icon": "https://sample.example/icon.svg",
        "loginUrl": "https://sample.example/login",
        "hosts": ["sample.example"],
        "budgets": { "totalSeconds": 600, "steps": 10 },
        "signals": {},
        "start": "end",
        "nodes": { "end": { "type": "done" } },
        "output": {},
        "texts": { "en": {} },
    });
    serde_json::from_value(document).expect("a definition")
}

/// Returns the change that creates a session of this owner.
#[must_use]
pub fn opening(owner: ApiKeyId, platform: PlatformId) -> Change {
    let session = Session {
        id: SessionId::from_uuid(Uuid::new_v4()),
        owner,
        terms: SessionTerms {
            platform,
            environment: Environment::Development,
            location: Location { country: "US".into(), region: None, city: None },
            worker_region: WorkerRegion::closest_to("US", None),
            attestation: AttestationRequest::NotWanted,
            attestation_challenge: Challenge::new("bm9uY2U"),
            purpose: None,
            return_url: None,
            max_attempts: MaxAttempts::default(),
            custom_url: None,
            studio: None,
            receiver: None,
            receiver_id: None,
            invitation: None,
            external_reference: Some("application-1".into()),
        },
        state: State::START,
        progress: Progress::default(),
        workflow: None,
        version: Version::FIRST,
        created_at: noon(),
        expires_at: noon() + TimeDelta::hours(72),
        closed_at: None,
        erased_at: None,
    };
    session.opening()
}

/// Returns the change by which an event changes the session.
///
/// # Panics
/// If the event does not change the session.
#[must_use]
pub fn transition(session: &Session, event: Event) -> Change {
    session.apply(event, noon()).expect("a transition").expect("a change")
}
