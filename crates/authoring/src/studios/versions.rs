//! The version that new sessions of a platform run, as an author chooses it.

use domain::{
    account::Permission,
    id::PlatformId,
    platform::{ActiveVersions, Platform, VersionChange},
    reauthentication::SensitiveAction,
};
use ports::{
    catalogue::ChooseVersionError,
    driving::{PortalError, SignedInUser, VersionChoice},
};

use super::Studios;

/// Describes what sessions ran and run, for the audit log.
fn subject(platform: &Platform, choice: &VersionChoice) -> String {
    let VersionChoice { version, seen } = choice;
    let share = seen
        .canary
        .as_ref()
        .map(|canary| format!(" and {} for {} %", canary.version, canary.share.as_percent()));
    let before = format!("{}{}", seen.version, share.unwrap_or_default());
    format!("{} {version}, before {before}", platform.name)
}

impl Studios {
    /// Chooses the version of all new sessions of a platform, and records it once it is chosen: the log
    /// of the team is to say what all teams run.
    pub(super) async fn choose(
        &self,
        user: &SignedInUser,
        platform: PlatformId,
        choice: VersionChoice,
    ) -> Result<(), PortalError> {
        user.require(Permission::Author)?;
        user.require_reauthentication(SensitiveAction::Publication, self.parts.clock.now())?;
        let (found, _) = self
            .parts
            .platforms
            .versions(platform)
            .await?
            .ok_or(PortalError::NotFound("platform"))?;
        let to = ActiveVersions { version: choice.version.clone(), canary: None };
        if to == choice.seen {
            let why = "all new sessions run this version already";
            return Err(PortalError::Invalid(why.to_owned()));
        }
        let change = VersionChange { from: Some(choice.seen.clone()), to };
        match self.parts.platforms.choose_version(platform, &change).await {
            Ok(()) => (),
            Err(ChooseVersionError::NoPlatform(_)) => {
                return Err(PortalError::NotFound("platform"));
            }
            Err(ChooseVersionError::NotPublished(_)) => {
                return Err(PortalError::NotFound("version"));
            }
            Err(ChooseVersionError::Changed) => {
                let why = "another author has changed the versions meanwhile: look at them, and \
                    choose again";
                return Err(PortalError::Invalid(why.to_owned()));
            }
            Err(ChooseVersionError::Store(error)) => return Err(error.into()),
        }
        tracing::info!(
            platform = found.name,
            version = choice.version,
            "an author has chosen a version"
        );
        let subject = subject(&found, &choice);
        Ok(self.record(user, "platform.choose-version", &subject).await?)
    }
}
