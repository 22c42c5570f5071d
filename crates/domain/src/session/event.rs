//! The events of a session.

use chrono::{DateTime, Utc};

use super::{
    AttestationStep, Collected, DefinitionVersion, IssuedAttestation, Lease, PendingPrompt,
    SkippedTime,
};
use crate::error_code::ErrorCode;

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident $({ $($field:ident: $type:ty),+ })?,)+) => {
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Event { $($(#[$doc])* $name $({ $($field: $type),+ })?,)+ }

        impl Event {
            /// The names of all events, in the order of a session's life cycle.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name),)+];

            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$name { .. } => stringify!($name),)+ }
            }
        }
    };
}

events! {
    /// A browser is to be started, with an identifier that the service has already chosen.
    BrowserRequested { lease: Lease },
    BrowserStarted,
    /// The instance that was to start the browser stops. Another one is asked when the applicant connects
    /// to it.
    StartWithdrawn,
    /// The session has waited for a browser of one instance since a time, and waits for one of another
    /// instance from now on, which has more room. It keeps its place.
    WaitMoved { to: Lease, since: DateTime<Utc> },
    /// The applicant is not at the page, and has not seen the session's browser: it is given back, or the
    /// wait for it. The session begins again when they come.
    ApplicantAbsent,
    /// The browser ended, or its instance stopped renewing its lease.
    BrowserLost,
    ApplicantConnected,
    WorkflowOpened,
    /// The definition was found; it applies to the rest of the session.
    WorkflowLoaded { workflow: DefinitionVersion },
    InputNeeded { ask: PendingPrompt },
    /// The session waits until another time, or for a code that was sent elsewhere: the applicant left
    /// the page, or the next step asks for the same.
    DeadlineChanged { deadline: DateTime<Utc>, hint: Option<String> },
    InputGiven,
    CollectionStarted,
    /// The workflow is complete, and the applicant has consented if the workflow asked.
    DataCollected { collected: Collected },
    /// The attestation has reached a step. Each step is reported once, and none after a later one.
    AttestationAdvanced { to: AttestationStep },
    AttestationIssued { attestation: IssuedAttestation },
    AttestationRefused,
    /// The attempt failed, at this node of the workflow if it had entered one. An applicant who is at
    /// the page may start another attempt until the time given, if one may succeed and is left;
    /// otherwise the session ends.
    Failed { why: ErrorCode, node: Option<String>, retry_until: Option<DateTime<Utc>> },
    /// The applicant starts another attempt.
    RetryRequested,
    /// The applicant starts no other attempt.
    RetryDeclined,
    /// The applicant has left the page, or has not decided in time.
    RetryExpired,
    ConsentDeclined,
    ApplicantCancelled,
    Expired,
    /// The partner has moved the session's time limits nearer, to try what happens at their end.
    TimeSkipped { by: SkippedTime },
    TerminatedByPartner,
}
