//! The services that applicants use through the embed page and the mail preference page.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    branding::{Brand, BrandName},
    error_code::ErrorCode,
    frame_ancestors::FrameAncestor,
    https_url::HttpsUrl,
    id::{InstanceId, SessionId},
    language::Language,
    session::Status,
    workflow::{FieldFormat, PromptKind},
};

use crate::{
    StoreError,
    browser::{Device, Frame, Input, PageOutline, PageState},
};

/// Opens applicant connections for clients with a valid token.
#[async_trait]
pub trait ApplicantService: Send + Sync {
    /// Joins a session. The first device that joins starts the session and owns it. From then on,
    /// the session's device that joined last is the active viewer, and the previous one is notified
    /// and disconnected. Any other client with the link is a guest: it sees the status of the
    /// session but nothing of the platform's page, and only its commands about joining are handled.
    async fn join(
        &self,
        id: SessionId,
        request: JoinRequest,
    ) -> Result<Arc<dyn ApplicantConnection>, ApplicantError>;

    /// Returns the appearance of the session's page, with texts in the first of these languages (BCP
    /// 47) that the page has, unless the session itself names one. The default one if the token is
    /// wrong.
    async fn appearance(
        &self,
        id: SessionId,
        token: &str,
        languages: &[String],
    ) -> Result<PageAppearance, StoreError>;
}

/// A request of a client to join a session. **Invariant:** no `Debug`, since it contains secrets.
#[derive(Clone)]
pub struct JoinRequest {
    /// The token of the link.
    pub token: String,
    /// The random secret that the device generated for the session:
    /// [`SECRET_CHARS`](domain::binding::SECRET_CHARS) characters.
    pub secret: String,
    /// A code with which one more device joins, long or short.
    pub code: Option<String>,
    pub device: Device,
    /// A BCP 47 tag.
    pub language: Option<String>,
}

/// Lets contacts choose whether to receive more mails of a team.
#[async_trait]
pub trait MailPreferenceService: Send + Sync {
    /// Returns the preference of a token. `None` if this service did not issue the token.
    async fn mails(&self, token: &str) -> Result<Option<MailPreference>, StoreError>;

    /// Sets the preference. `None` if this service did not issue the token.
    async fn choose_mails(
        &self,
        token: &str,
        wanted: bool,
    ) -> Result<Option<MailPreference>, StoreError>;
}

/// Whether a contact wants mails of a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailPreference {
    pub sender: Option<BrandName>,
    pub wanted: bool,
}

/// The appearance of an applicant's page before the session starts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PageAppearance {
    /// The origins whose pages may embed it; empty if any origin may.
    pub ancestors: Vec<FrameAncestor>,
    pub brand: Brand,
    /// The language of the notification to the applicant; `None` to use the browser's preference.
    pub language: Option<Language>,
    pub link: LinkState,
    /// What the page tells before the start; `None` if the token is wrong.
    pub introduction: Option<Introduction>,
    /// The instance that has the studio of the session's draft, and alone knows its introduction. `None` for
    /// other sessions.
    pub studio: Option<InstanceId>,
    /// Whether an author tries out a draft in the session.
    pub is_draft: bool,
}

/// What a session's link can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LinkState {
    /// Nothing: there is no such session, the token is wrong, or the key no longer starts sessions.
    #[default]
    Invalid,
    /// It starts the session.
    New,
    /// It continues the session.
    Begun,
    /// It shows the outcome.
    Over,
}

/// What an applicant reads before the session starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Introduction {
    /// The name of the team's brand, or else that of the team.
    pub partner: String,
    /// The name of the platform.
    pub platform: String,
    /// Why the partner asks, in the partner's words.
    pub purpose: Option<String>,
    /// The labels of the fields that are read.
    pub reads: Vec<String>,
    pub return_url: Option<HttpsUrl>,
    /// The team's privacy policy.
    pub privacy_url: Option<HttpsUrl>,
    /// A code by which the support finds the session. It does not reveal the session's identifier.
    pub reference: String,
}

/// An applicant connection. Dropping it disconnects the applicant.
#[async_trait]
pub trait ApplicantConnection: Send + Sync {
    /// Waits for the next event. `None` if no more events will come. Without `frames`, no frame is
    /// returned, so that a slow client receives all other events in time.
    async fn next(&self, frames: bool) -> Option<ServerEvent>;

    async fn handle(&self, command: ClientCommand);

    /// Returns the current time, from which the remaining time to a deadline is computed.
    fn now(&self) -> DateTime<Utc>;

    /// Returns a code with which one more device joins. `None` for a guest, and if the client asks
    /// too often.
    async fn handover(&self) -> Option<Handover>;
}

/// A code with which another device joins the session. **Invariant:** no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Handover {
    /// The session's link with a long code in its fragment, which browsers do not send to servers.
    pub link: String,
    /// The short code for typing: [`SHORT_CODE_DIGITS`](domain::binding::SHORT_CODE_DIGITS) digits.
    pub code: String,
}

/// An event for the client of an applicant connection.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerEvent {
    View(SessionSnapshot),
    Frame(Arc<Frame>),
    Scene(Arc<PageState>),
    /// The answer to [`ClientCommand::Outline`]; `None` if the page has no outline at the moment.
    Outline(Option<Arc<PageOutline>>),
    /// Another connection became the active viewer.
    Replaced,
    /// The session belongs to another device.
    Guest(Guest),
    /// The device now belongs to the session and may join.
    Admitted,
}

/// The information for a guest, a client with the link on none of the session's devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    pub status: Status,
    pub progress: u8,
    pub platform: String,
    /// Whether a new link can be sent over the session's own channel.
    pub has_channel: bool,
    /// The guest's number, while the active viewer is asked for approval.
    pub asking: Option<u8>,
    /// The result of the guest's last command.
    pub answer: Option<GuestAnswer>,
}

/// The result of a guest's attempt to join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestAnswer {
    WrongCode,
    /// The session has the maximum number of devices.
    TooManyDevices,
    LinkSent,
    /// A link was sent recently, or the maximum number of links was sent.
    LinkNotSent,
    /// The active viewer did not approve, or is not connected.
    NotApproved,
    /// The service failed to look the code up; the guest may try again.
    Unavailable,
}

/// The state of the session, as the embed page shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionSnapshot {
    pub status: Status,
    pub progress: u8,
    pub platform: String,
    /// The place in the queue for a browser, from 1; `None` if the session does not wait.
    pub place: Option<u32>,
    /// For how many minutes the session is expected to wait, rounded up; `None` if it does not wait, or if
    /// too few sessions have ended on the instance.
    pub wait_minutes: Option<u32>,
    /// The number of a guest who asks to join.
    pub guest: Option<u8>,
    pub prompt: Option<Prompt>,
    /// Why the last attempt failed, while another one is offered.
    pub failure: Option<ShownFailure>,
    pub outcome: Option<ShownOutcome>,
}

/// A failed attempt that is not the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownFailure {
    /// The text in English.
    pub text: &'static str,
    pub code: ErrorCode,
    /// How many more attempts the applicant has.
    pub attempts_left: u8,
}

/// The action that the applicant is asked for now.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// The number of the prompt, different for each prompt of a run.
    pub number: u32,
    pub kind: PromptKind,
    pub text: String,
    /// Whether the text is in the applicant's language. If not, it is in English.
    pub translated: bool,
    pub deadline: DateTime<Utc>,
    /// The fields to be shared, in the definition's order; only for [`PromptKind::Consent`].
    pub share: Vec<ShareItem>,
    /// Whether the attestor would see the whole exchange with the platform, including the
    /// credentials; only for [`PromptKind::Consent`].
    pub witnessed: bool,
    /// Whether the applicant has agreed before in this run, and the page did not confirm it, so that
    /// nothing was shared; only for [`PromptKind::Consent`].
    pub unconfirmed: bool,
}

/// A field that the applicant is asked to share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareItem {
    /// The label in the applicant's language, if the definition has it.
    pub label: String,
    pub content: ShareContent,
    /// Whether the attestor will be asked to attest the value.
    pub attested: bool,
}

/// What a field that the applicant is asked to share contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShareContent {
    Value {
        value: ShownValue,
        style: ValueStyle,
    },
    /// An object is a table of one row.
    Object(ShareTable),
    List(ShareTable),
}

/// Rows that the applicant is asked to share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareTable {
    /// The labels of the members, in the definition's order, and how their values are shown.
    pub columns: Vec<(String, ValueStyle)>,
    /// For each row a value for each column; `None` where a row has none.
    pub rows: Vec<Vec<Option<ShownValue>>>,
}

/// A value as the applicant's page receives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownValue {
    pub kind: ValueKind,
    /// The value as JSON writes it, a text without quotation marks. Where the definition has a text for
    /// the value, that text.
    pub text: String,
}

/// How values are shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ValueStyle {
    pub format: Option<FieldFormat>,
    /// The ISO 4217 code of the currency of an amount.
    pub currency: Option<String>,
}

/// What a value to be shared is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    Text,
    Number,
    Boolean,
}

/// The outcome of the session, for the applicant.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownOutcome {
    /// The text in English.
    pub text: String,
    pub code: Option<ErrorCode>,
    /// The time of the end.
    pub at: Option<DateTime<Utc>>,
    /// The fields that were shared, in the definition's order.
    pub shared: Vec<SharedItem>,
    /// The labels of the fields that could not be read, in the definition's order.
    pub missing: Vec<String>,
}

/// A field that was shared with the partner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedItem {
    /// The label in the applicant's language, if the definition has it.
    pub label: String,
    /// Whether the session's attestation proves the value; `None` without an attestation.
    pub attested: Option<bool>,
}

/// A command of the applicant's client. **Invariant:** no `Debug`, since input may be a password.
pub enum ClientCommand {
    Input(Input),
    /// From the active viewer: a request for the outline of the remote page, answered by
    /// [`ServerEvent::Outline`]. Ignored within a second of the connection's last one, and while no
    /// remote page is shown.
    Outline,
    /// The answer to the question for consent with this number.
    Share {
        prompt: u32,
        agreed: bool,
    },
    /// The answer to the question for an address with this number: at most 2,048 bytes. What is no
    /// address of the platform is asked for again.
    CustomUrl {
        prompt: u32,
        url: String,
    },
    Cancel,
    /// Start another attempt, if one is offered.
    Retry,
    /// Start no other attempt: the session ends.
    DeclineRetry,
    /// The applicant acts at the page while another attempt is offered.
    Present,
    /// From the active viewer: whether the guest with this number may join.
    Admit {
        number: u8,
        allowed: bool,
    },
    /// From a guest: redeem a code.
    Redeem(String),
    /// From a guest: send a new link over the session's own channel.
    SendLink,
    /// From a guest: ask the active viewer for approval.
    Ask,
}

#[derive(Debug, thiserror::Error)]
pub enum ApplicantError {
    #[error("there is no such session, or the link is not complete")]
    NotFound,
    /// Another instance has the session; the URL of the session there.
    #[error("the session is opened elsewhere")]
    Elsewhere(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}
