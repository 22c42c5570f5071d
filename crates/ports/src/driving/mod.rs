//! The driving ports: the services that partners, applicants, observers and members use.

mod administration;
mod applicant;
mod diagnosis;
mod observer;
mod partner;
mod portal;
mod readiness;
mod sockets;
mod studio_pages;
mod webhooks;

pub use self::{
    administration::{
        AdministrationError, ApiKeyAdminService, AttestationExportService, ContactAdminService,
        DataKeys, DefinitionReport, DefinitionService, EncryptionAdminService, ExportedAttestation,
        ExportedFile, Finding, GeneratedPassword, InvalidDefinition, IssuedApiKey, NewApiKey,
        PlatformAdminService, ReencryptionCounts, ReencryptionError, TeamAdminService,
        TemplateAdminService, UserAdminService,
    },
    applicant::{
        ApplicantConnection, ApplicantError, ApplicantService, ClientCommand, Guest, GuestAnswer,
        Handover, Introduction, JoinRequest, LinkState, MailPreference, MailPreferenceService,
        PageAppearance, Prompt, ServerEvent, SessionSnapshot, ShareContent, ShareItem, ShareTable,
        SharedItem, ShownFailure, ShownOutcome, ShownValue, ValueKind, ValueStyle,
    },
    diagnosis::{DiagnosedSubject, DiagnosisService},
    observer::{ObserveError, ObserverConnection, ObserverEvent, ObserverService},
    partner::{
        AccessDenied, AuthOutcome, Authenticator, Caller, Comparison, Coverage, CreateError,
        CreatedSession, FieldMatch, HealthState, IdempotentRequest, LookupService,
        MAX_SKIPPED_SESSIONS, NotifyError, PlatformHealth, PlatformListing, PolledSession,
        PortableAttestation, RecordingView, RequestCredentials, RequestPurpose, SessionError,
        SessionService, SessionView,
    },
    portal::{
        AccountService, AuditCheck, AuditService, AuthoringService, BrandingService,
        ContactService, DailyCounts, EmbeddingService, FailingNode, FailureCount, FirstFactor,
        FunnelStep, IdentityService, KeyService, LinkService, MailedLink, Member, NewDraft, NewKey,
        NewMember, Overview, OverviewRange, PasskeyChallenge, PasskeyRegistered, PasskeyService,
        PendingForm, PlatformOutcomes, PortalError, Preview, ReauthenticationProof,
        ReauthenticationService, SecondFactorProof, SessionDetails, SessionSearch, SignInAttempt,
        SignInOutcome, SignedIn, SignedInUser, TeamQuotas, TeamService, TeamSession,
        TeamSessionList, TeamSessionService, TeamWebhookService, TemplateService, TotpSetup,
        VersionChoice,
    },
    readiness::Readiness,
    sockets::SocketRouter,
    studio_pages::{
        BodyBounds, ForwardError, ForwardPermit, ForwardSender, Forwarding, OtherInstance,
        StudioOwner, StudioRouter,
    },
    webhooks::{NewWebhook, Rotated, WebhookError, WebhookService},
};
#[cfg(feature = "mock")]
pub use self::{
    administration::{
        MockApiKeyAdminService, MockAttestationExportService, MockContactAdminService,
        MockDefinitionService, MockEncryptionAdminService, MockPlatformAdminService,
        MockTeamAdminService, MockTemplateAdminService, MockUserAdminService,
    },
    partner::{MockAuthenticator, MockLookupService, MockSessionService},
    studio_pages::MockStudioRouter,
    webhooks::MockWebhookService,
};
