//! The applicant's side of the service: one page, one live view.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    ancestors::Ancestor,
    branding::{Brand, BrandName},
    error_code::ErrorCode,
    id::SessionId,
    language::Language,
    session::Status,
    workflow::AskKind,
};

use crate::{
    StoreError,
    browser::{Device, Frame, Input, Scene},
};

/// Opens live views for applicants whose token fits.
#[async_trait]
pub trait ApplicantService: Send + Sync {
    /// Joins a session as its one active viewer; whoever viewed it before is told and let go.
    /// Joining starts the session where it has not begun.
    async fn join(
        &self,
        id: SessionId,
        token: &str,
        device: Device,
        language: Option<&str>,
    ) -> Result<Arc<dyn Viewing>, ApplicantError>;

    /// What its page is to be like; where the token does not fit, as for anybody.
    async fn guise(&self, id: SessionId, token: &str) -> Result<Guise, StoreError>;
}

/// Lets receivers of mails say whether they want more of a team's.
#[async_trait]
pub trait MailService: Send + Sync {
    /// What was chosen with this token. `None`: it is no token of ours.
    async fn mails(&self, token: &str) -> Result<Option<MailChoice>, StoreError>;

    /// Chooses, whatever was chosen before. `None`: it is no token of ours.
    async fn choose_mails(
        &self,
        token: &str,
        wanted: bool,
    ) -> Result<Option<MailChoice>, StoreError>;
}

/// Whether a team's mails are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailChoice {
    pub sender: Option<BrandName>,
    pub wanted: bool,
}

/// What an applicant's page is like before anything happens on it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Guise {
    /// Whose pages may show it in a frame; empty: anybody's.
    pub ancestors: Vec<Ancestor>,
    pub brand: Brand,
    /// In which the applicant was written to; none: the browser knows best.
    pub language: Option<Language>,
}

/// One applicant's live view. Dropping it means that the applicant has left.
#[async_trait]
pub trait Viewing: Send + Sync {
    /// The next thing to show; waits for it. `None` when nothing more will come. Without
    /// `pictures` none of them is given: a viewer that is slow to draw is told all else in time.
    async fn next(&self, pictures: bool) -> Option<Show>;

    async fn act(&self, act: Act);

    /// The time, for what is left until a deadline.
    fn now(&self) -> DateTime<Utc>;

    /// The address that opens this session in another place.
    fn link(&self) -> String;
}

/// Something to show.
#[derive(Debug, Clone, PartialEq)]
pub enum Show {
    View(View),
    Frame(Arc<Frame>),
    Scene(Arc<Scene>),
    /// Another place took over.
    Replaced,
}

/// All of the page but the picture.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    pub status: Status,
    pub progress: u8,
    pub platform: String,
    /// Whether a browser is waited for that is in use.
    pub queued: bool,
    pub prompt: Option<Prompt>,
    pub outcome: Option<Outcome>,
}

/// What is expected of the applicant now.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    pub kind: AskKind,
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
pub struct Outcome {
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
pub enum Act {
    Input(Input),
    Share(bool),
    Cancel,
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
