//! What can happen to a session.

use super::{
    AttestationStep, Collected, DefinitionVersion, IssuedAttestation, Lease, PendingPrompt,
};
use crate::error_code::ErrorCode;

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident $({ $($field:ident: $type:ty),+ })?,)+) => {
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Event { $($(#[$doc])* $name $({ $($field: $type),+ })?,)+ }

        impl Event {
            /// The names of all events, in the order of a session's life.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name),)+];

            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$name { .. } => stringify!($name),)+ }
            }
        }
    };
}

events! {
    /// A browser is to be started under this name, ours, chosen beforehand.
    BrowserRequested { lease: Lease },
    BrowserStarted,
    /// The browser is gone, or its process stopped renewing its lease.
    BrowserLost,
    ApplicantConnected,
    WorkflowOpened,
    /// The definition was found and holds for the rest of the session.
    WorkflowLoaded { workflow: DefinitionVersion },
    InputNeeded { ask: PendingPrompt },
    InputGiven,
    CollectionStarted,
    /// The workflow is through, and the applicant agreed where that was asked.
    DataCollected { collected: Collected },
    /// The attestation has come further; each step is told once, and none after a later one.
    AttestationAdvanced { to: AttestationStep },
    AttestationIssued { attestation: IssuedAttestation },
    AttestationRefused,
    /// At this node of the workflow, if it had come to one.
    Failed { why: ErrorCode, node: Option<String> },
    ConsentDeclined,
    ApplicantCancelled,
    Expired,
    TerminatedByPartner,
}
