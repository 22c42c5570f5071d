//! The applicant's side of the service: one page, one live view.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    branding::{Brand, BrandName},
    error_code::ErrorCode,
    frame_ancestors::FrameAncestor,
    id::SessionId,
    language::Language,
    session::Status,
    workflow::PromptKind,
};

use crate::{
    StoreError,
    browser::{Device, Frame, Input, PageState},
};

/// Opens live views for applicants whose token fits.
#[async_trait]
pub trait ApplicantService: Send + Sync {
    /// Joins a session. The first device that does so starts it and owns it; from then on one of
    /// its devices becomes the one active viewer, the one before is told and let go, and anybody
    /// else with the link is a guest: told how the session stands and nothing of the platform's
    /// page, and listened to only where that is about joining.
    async fn join(
        &self,
        id: SessionId,
        joining: JoinRequest,
    ) -> Result<Arc<dyn ApplicantConnection>, ApplicantError>;

    /// What its page is to be like; where the token does not fit, as for anybody.
    async fn appearance(&self, id: SessionId, token: &str) -> Result<PageAppearance, StoreError>;
}

/// What somebody joins a session with. **Invariant:** no `Debug`, since it holds secrets.
#[derive(Clone)]
pub struct JoinRequest {
    /// That of the link.
    pub token: String,
    /// What this device made for the session at random:
    /// [`SECRET_CHARS`](domain::binding::SECRET_CHARS) characters.
    pub secret: String,
    /// A code that lets one more device join, long or short.
    pub code: Option<String>,
    pub device: Device,
    /// BCP 47.
    pub language: Option<String>,
}

/// Lets receivers of mails say whether they want more of a team's.
#[async_trait]
pub trait MailPreferenceService: Send + Sync {
    /// What was chosen with this token. `None`: it is no token of ours.
    async fn mails(&self, token: &str) -> Result<Option<MailPreference>, StoreError>;

    /// Chooses, whatever was chosen before. `None`: it is no token of ours.
    async fn choose_mails(
        &self,
        token: &str,
        wanted: bool,
    ) -> Result<Option<MailPreference>, StoreError>;
}

/// Whether a team's mails are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailPreference {
    pub sender: Option<BrandName>,
    pub wanted: bool,
}

/// What an applicant's page is like before anything happens on it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PageAppearance {
    /// Whose pages may show it in a frame; empty: anybody's.
    pub ancestors: Vec<FrameAncestor>,
    pub brand: Brand,
    /// In which the applicant was written to; none: the browser knows best.
    pub language: Option<Language>,
}

/// One applicant's live view. Dropping it means that the applicant has left.
#[async_trait]
pub trait ApplicantConnection: Send + Sync {
    /// The next thing to show; waits for it. `None` when nothing more will come. Without
    /// `pictures` none of them is given: a viewer that is slow to draw is told all else in time.
    async fn next(&self, pictures: bool) -> Option<ServerEvent>;

    async fn handle(&self, act: ClientCommand);

    /// The time, for what is left until a deadline.
    fn now(&self) -> DateTime<Utc>;

    /// A code that lets one more device join. `None`: to a guest, and to whoever asks too often.
    async fn handover(&self) -> Option<Handover>;
}

/// How another device joins the session. **Invariant:** no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Handover {
    /// The session's link with a long code in its fragment, which browsers send to nobody.
    pub link: String,
    /// The same code for typing: [`SHORT_CODE_DIGITS`](domain::binding::SHORT_CODE_DIGITS) digits.
    pub code: String,
}

/// Something to show.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerEvent {
    View(SessionSnapshot),
    Frame(Arc<Frame>),
    Scene(Arc<PageState>),
    /// Another place took over.
    Replaced,
    /// The session is on another device.
    Guest(Guest),
    /// The device may join now: it is one of the session's.
    Admitted,
}

/// What somebody who has the link and none of the session's devices is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    pub status: Status,
    pub progress: u8,
    pub platform: String,
    /// Whether a new link can be sent over the session's own channel.
    pub has_channel: bool,
    /// The number that the active viewer is asked about, while it is.
    pub asking: Option<u8>,
    /// What became of the last thing that was tried.
    pub answer: Option<GuestAnswer>,
}

/// What became of a guest's try to join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestAnswer {
    WrongCode,
    /// The session has as many devices as it may have.
    TooManyDevices,
    LinkSent,
    /// A link was sent a short time ago, or as often as may be.
    LinkNotSent,
    /// The active viewer did not agree, or is not there.
    NotApproved,
    /// The service could not look the code up; the guest may try again.
    Unavailable,
}

/// All of the page but the picture.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionSnapshot {
    pub status: Status,
    pub progress: u8,
    pub platform: String,
    /// The place among those that wait for a browser, from 1; none: it does not wait.
    pub place: Option<u32>,
    /// The number of a guest who asks to join.
    pub guest: Option<u8>,
    pub prompt: Option<Prompt>,
    pub outcome: Option<ShownOutcome>,
}

/// What is expected of the applicant now.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// Another one for each prompt of a run.
    pub number: u32,
    pub kind: PromptKind,
    pub text: String,
    pub deadline: DateTime<Utc>,
    /// Label and value of each thing that would be shared; only for [`AskKind::Consent`].
    pub share: Vec<(String, String)>,
    /// Whether sharing lets a witness see the whole exchange with the platform, credentials too;
    /// only for [`AskKind::Consent`].
    pub witnessed: bool,
}

/// How it ended, in words for the applicant.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownOutcome {
    /// In English.
    pub text: String,
    pub code: Option<ErrorCode>,
    /// What was shared.
    pub shared: Vec<SharedItem>,
}

/// Something that was shared with the partner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedItem {
    /// In the applicant's language, where the definition has it.
    pub label: String,
    /// Whether the session's attestation proves its value; none where there is no attestation.
    pub attested: Option<bool>,
}

/// What the applicant does. **Invariant:** no `Debug`, since input may be a password.
pub enum ClientCommand {
    Input(Input),
    /// The answer to the question for consent with this number.
    Share {
        prompt: u32,
        agreed: bool,
    },
    Cancel,
    /// Of the active viewer: whether the guest with this number may join.
    Admit {
        number: u8,
        allowed: bool,
    },
    /// Of a guest: a code.
    Redeem(String),
    /// Of a guest: a new link is to be sent over the session's own channel.
    SendLink,
    /// Of a guest: the active viewer is to be asked.
    Ask,
}

#[derive(Debug, thiserror::Error)]
pub enum ApplicantError {
    #[error("there is no such session, or the link is not complete")]
    NotFound,
    /// Another process has it; the session's address there.
    #[error("the session is opened elsewhere")]
    Elsewhere(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}
