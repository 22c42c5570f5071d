//! What the outside may ask of the service.

mod applicant;
mod partner;

#[cfg(feature = "mock")]
pub use self::partner::{MockKeyCheck, MockLookups, MockSessionService};
pub use self::{
    applicant::{Act, ApplicantError, ApplicantService, Outcome, Prompt, Show, View, Viewing},
    partner::{
        Caller, CreateError, KeyCheck, Lookups, PlatformFace, SessionError, SessionFace,
        SessionService,
    },
};
