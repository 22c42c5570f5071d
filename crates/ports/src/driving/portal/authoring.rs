//! The service with which authors write the definitions of platforms.

use async_trait::async_trait;
use domain::{
    api_key::Environment,
    id::{DraftId, PlatformId},
    platform::{ActiveVersions, Platform, PublishedVersion},
};

use super::{PortalError, SignedInUser};
use crate::authoring::Draft;

/// What a new definition begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDraft {
    /// The name of the platform that applicants see.
    pub name: String,
    pub login_url: String,
    pub environment: Environment,
}

/// The version that all new sessions of a platform are to run, also instead of that of a share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionChoice {
    pub version: String,
    /// What they ran when the author looked.
    pub seen: ActiveVersions,
}

/// Keeps the drafts of a team, opens studios, in which they are written and published, and chooses
/// among what was published. Platforms belong to no team. All of it requires [`domain::account::Permission::Author`].
#[async_trait]
pub trait AuthoringService: Send + Sync {
    /// Returns the team's drafts, the one that was changed last first.
    async fn drafts(&self, user: &SignedInUser) -> Result<Vec<Draft>, PortalError>;

    /// Creates a draft of a platform that is not published.
    async fn create_draft(
        &self,
        user: &SignedInUser,
        new: NewDraft,
    ) -> Result<DraftId, PortalError>;

    /// Creates a draft of the version of a platform that new sessions run, with the number of the next
    /// one.
    async fn draft_of_platform(
        &self,
        user: &SignedInUser,
        platform: PlatformId,
    ) -> Result<DraftId, PortalError>;

    /// Deletes a draft. What was published of it stays.
    async fn delete_draft(&self, user: &SignedInUser, id: DraftId) -> Result<(), PortalError>;

    /// Opens the studio of a draft in this process, with a browser in a country, given by its
    /// ISO 3166-1 code, and returns the key that is part of its address. A user has one studio at a
    /// time in a process: another one is stored and closed. Where there are other instances, the one that
    /// [`super::super::StudioRouter`] names for the user has to open it.
    ///
    /// # Errors
    /// [`PortalError::Restarting`] if the draft is not open yet and no runs begin in this process any more.
    async fn open_studio(
        &self,
        user: &SignedInUser,
        id: DraftId,
        country: &str,
    ) -> Result<String, PortalError>;

    /// Returns the key of the user's studio in which a draft is open; `None` if it is not open.
    async fn studio_of_draft(
        &self,
        user: &SignedInUser,
        id: DraftId,
    ) -> Result<Option<String>, PortalError>;

    /// Returns a platform with its published versions, the newest first.
    async fn versions(
        &self,
        user: &SignedInUser,
        platform: PlatformId,
    ) -> Result<(Platform, Vec<PublishedVersion>), PortalError>;

    /// Has all new sessions of a platform run a published version.
    ///
    /// # Errors
    /// [`PortalError::Unconfirmed`] if the user has to re-authenticate first, and
    /// [`PortalError::Invalid`] if sessions run other versions than the user has seen.
    async fn choose_version(
        &self,
        user: &SignedInUser,
        platform: PlatformId,
        choice: VersionChoice,
    ) -> Result<(), PortalError>;
}
