//! Requests of partners, parsed and validated once: the code behind does not check them again.

mod challenge;
mod comparison;
mod contact;
mod max_attempts;
mod new_session;
mod page;
mod read;
mod skipped_time;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

pub use self::{
    challenge::Challenge,
    comparison::{GivenData, read_comparison},
    contact::Contact,
    max_attempts::MaxAttempts,
    new_session::{NewSession, RequestedLocation},
    page::{ListQuery, PageRequest},
    skipped_time::read_skipped_time,
};
use crate::{
    api_key::Environment,
    https_url::HttpsUrl,
    id::{ContactId, InstanceId, PlatformId},
    notification::Invitation,
    worker_region::WorkerRegion,
};

/// The findings of an invalid request. Its message joins them with `; `.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct InvalidRequest(pub Vec<String>);

impl InvalidRequest {
    #[must_use]
    pub fn one(finding: impl Into<String>) -> Self {
        Self(vec![finding.into()])
    }
}

/// Whether the session attests its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttestationRequest {
    Wanted,
    NotWanted,
}

/// The place that the applicant's connection comes from, as the places lookup spells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// ISO 3166-1 alpha-2, upper case.
    pub country: String,
    pub region: Option<String>,
    pub city: Option<String>,
}

/// The terms that a session was created with; they never change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionTerms {
    pub platform: PlatformId,
    pub environment: Environment,
    pub location: Location,
    pub worker_region: WorkerRegion,
    pub attestation: AttestationRequest,
    /// The challenge that the signed attestation repeats.
    #[serde(default)]
    pub attestation_challenge: Option<Challenge>,
    pub receiver: Option<Contact>,
    /// The team's registered contact that the session is for.
    #[serde(default)]
    pub receiver_id: Option<ContactId>,
    /// `None` if the partner brings the link to the applicant.
    #[serde(default)]
    pub invitation: Option<Invitation>,
    pub external_reference: Option<String>,
    /// Why the partner asks, in the partner's words: up to 140 characters in one line, without links.
    #[serde(default)]
    pub purpose: Option<String>,
    /// The page of the partner to which the applicant returns after the end.
    #[serde(default)]
    pub return_url: Option<HttpsUrl>,
    /// How many attempts the applicant has.
    #[serde(default)]
    pub max_attempts: MaxAttempts,
    /// The page of the account that the session opens, if the partner gave one.
    #[serde(default)]
    pub custom_url: Option<String>,
    /// The instance of the studio in which the session's draft is open, the only one that can run it. `None`
    /// for sessions of partners, and where there are no other instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub studio: Option<InstanceId>,
}

/// How long a session may stay open: 1 to 168 hours, 168 by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpiresIn(i64);

impl ExpiresIn {
    pub const MAX_HOURS: Self = Self(168);

    #[must_use]
    pub fn hours(hours: i64) -> Option<Self> {
        (1..=168).contains(&hours).then_some(Self(hours))
    }

    #[must_use]
    pub fn span(self) -> TimeDelta {
        TimeDelta::hours(self.0)
    }
}

#[cfg(test)]
mod tests;
