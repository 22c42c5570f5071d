//! What the outside may ask of the service.

mod applicant;
mod onlooker;
mod partner;
mod portal;
mod readiness;
mod webhooks;

#[cfg(feature = "mock")]
pub use self::partner::{MockGate, MockLookups, MockSessionService};
pub use self::{
    applicant::{
        Act, ApplicantError, ApplicantService, Guest, GuestAnswer, Guise, Handover, Joining,
        MailChoice, MailService, Outcome, Prompt, SharedItem, Show, View, Viewing,
    },
    onlooker::{Sight, WatchError, WatchService, Watching},
    partner::{
        Admission, Caller, Comparison, Coverage, CreateError, Creation, Gate, Held, Knock, Lookups,
        NotifyError, Once, PolledFace, PortableAttestation, Purpose, Recording, Refusal,
        SessionError, SessionFace, SessionService,
    },
    portal::{
        AccountService, Answered, Arrived, Asked, Attempt, AuditCheck, AuditService,
        BrandingService, ConfirmationService, Day, EmbeddingService, FailingNode, FirstFactor,
        HeldForm, IdentityService, KeyService, LinkService, MailedLink, Member, NewKey, NewMember,
        Offer, OtherFactor, Overview, PasskeyService, PortalError, Preview, Proof, ReceiverService,
        SignedIn, TeamQuotas, TeamService, TeamSession, TeamSessionService, TeamWebhookService,
        TemplateService, Visitor, WholeSession,
    },
    readiness::Readiness,
    webhooks::{NewWebhook, Rotated, WebhookError, WebhookService},
};
