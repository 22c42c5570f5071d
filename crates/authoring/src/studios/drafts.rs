//! The drafts of a team.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{
    account::Permission,
    audit::AuditEvent,
    id::{DraftId, PlatformId},
    platform::{Platform, PublishedVersion},
    workflow::Definition,
};
use ports::{
    StoreError,
    authoring::{Draft, DraftContent},
    driving::{AuthoringService, NewDraft, PortalError, SignedInUser, VersionChoice},
};

use super::{
    MAX_STUDIOS, OpenStudio, StudioAuthor, StudioDocument, Studios,
    publisher::AuthorPublisher,
    stored_draft::{DraftStorageParts, StoredDraft, describe},
};
use crate::{draft::new_definition, studio::text_of};

/// The path of the page that lists drafts.
const HOME: &str = "/portal/platforms";

/// Returns the version after this one: 1.4.1 after 1.4.0.
fn next_version(version: &str) -> Option<String> {
    let (front, last) = version.rsplit_once('.')?;
    Some(format!("{front}.{}", last.parse::<u32>().ok()?.checked_add(1)?))
}

impl Studios {
    pub(super) async fn record(
        &self,
        user: &SignedInUser,
        action: &str,
        subject: &str,
    ) -> Result<(), StoreError> {
        let event = AuditEvent::new(self.parts.clock.now(), &user.email, action, subject);
        self.parts.audit.note(user.team, &event.from(user.from.address)).await
    }

    async fn add_draft(
        &self,
        user: &SignedInUser,
        definition: &Definition,
    ) -> Result<DraftId, PortalError> {
        let document = text_of(definition);
        let mut draft = Draft {
            id: DraftId::from_u128(self.parts.random.new_id()),
            team: user.team,
            name: String::new(),
            version: String::new(),
            revision: 1,
            updated_by: user.email.clone(),
            updated_at: self.parts.clock.now(),
        };
        describe(&mut draft, &document);
        self.record(user, "draft.create", &draft.name).await?;
        let content = DraftContent { document, fixture: None };
        if self.parts.drafts.add_draft(&draft, &content).await? {
            Ok(draft.id)
        } else {
            Err(PortalError::Invalid("your team has too many drafts: delete one first".to_owned()))
        }
    }

    async fn find_draft(
        &self,
        user: &SignedInUser,
        id: DraftId,
    ) -> Result<(Draft, DraftContent), PortalError> {
        let found = self.parts.drafts.draft(user.team, id).await?;
        found.ok_or(PortalError::NotFound("draft"))
    }

    /// Closes the other studios of a user.
    async fn close_others(&self, user: &SignedInUser, id: DraftId) -> Result<(), PortalError> {
        let is_other = |opened: &OpenStudio| {
            let author = opened.author.as_ref();
            author.is_some_and(|author| author.user == user.user && author.draft.id() != id)
        };
        let others: Vec<_> = {
            let studios = self.studios();
            let others = studios.iter().filter(|(_, opened)| is_other(opened));
            others.map(|(key, _)| key.clone()).collect()
        };
        for key in others {
            self.close(&key).await.map_err(|_| {
                let why = "the changes in your other studio can't be stored: open it, and copy them \
                    first";
                PortalError::Invalid(why.to_owned())
            })?;
        }
        Ok(())
    }

    /// Adds the studio of a draft.
    fn add_studio(
        &self,
        user: &SignedInUser,
        (draft, content): (Draft, DraftContent),
        country: &str,
    ) -> (String, Arc<OpenStudio>) {
        let parts = &self.parts;
        let storage = DraftStorageParts {
            store: parts.drafts.clone(),
            audit: parts.audit.clone(),
            clock: parts.clock.clone(),
            random: parts.random.clone(),
        };
        let draft = Arc::new(StoredDraft::new(storage, &user.email, draft));
        let publisher = AuthorPublisher {
            platforms: parts.platforms.clone(),
            audit: parts.audit.clone(),
            clock: parts.clock.clone(),
            draft: draft.clone(),
            instance: parts.instance,
        };
        let document = StudioDocument {
            document: content.document,
            fixture: content.fixture.and_then(|text| serde_json::from_str(&text).ok()),
            is_saved: true,
            storage: draft.clone(),
            publisher: Some(Arc::new(publisher)),
            // A probe would connect from the service itself, past the proxy of browsers.
            probe: None,
            country: country.to_owned(),
            home: Some(HOME.to_owned()),
        };
        self.add(document, Some(StudioAuthor { user: user.user, draft }))
    }
}

#[async_trait]
impl AuthoringService for Studios {
    async fn drafts(&self, user: &SignedInUser) -> Result<Vec<Draft>, PortalError> {
        user.require(Permission::Author)?;
        Ok(self.parts.drafts.drafts(user.team).await?)
    }

    async fn create_draft(
        &self,
        user: &SignedInUser,
        new: NewDraft,
    ) -> Result<DraftId, PortalError> {
        user.require(Permission::Author)?;
        let definition = new_definition(&new.login_url, &new.name, new.environment);
        let definition = definition.map_err(|error| PortalError::Invalid(error.to_string()))?;
        self.add_draft(user, &definition).await
    }

    async fn draft_of_platform(
        &self,
        user: &SignedInUser,
        platform: PlatformId,
    ) -> Result<DraftId, PortalError> {
        user.require(Permission::Author)?;
        let found = self.parts.catalogue.definition(platform).await?;
        let (version, definition) = found.ok_or(PortalError::NotFound("platform"))?;
        // Without a number at its end, the author chooses the next version.
        let version = next_version(&version.version).unwrap_or(version.version);
        self.add_draft(user, &Definition { version, ..definition }).await
    }

    async fn delete_draft(&self, user: &SignedInUser, id: DraftId) -> Result<(), PortalError> {
        user.require(Permission::Author)?;
        let (draft, _) = self.find_draft(user, id).await?;
        self.record(user, "draft.delete", &draft.name).await?;
        // Its author does not want what is not stored either; another author's changes are kept.
        if let Some(key) = self.key_of(user.user, id) {
            self.discard(&key).await;
        }
        if self.parts.drafts.delete_draft(user.team, id).await? {
            Ok(())
        } else {
            Err(PortalError::NotFound("draft"))
        }
    }

    async fn open_studio(
        &self,
        user: &SignedInUser,
        id: DraftId,
        country: &str,
    ) -> Result<String, PortalError> {
        user.require(Permission::Author)?;
        let (draft, content) = self.find_draft(user, id).await?;
        let country = self.parts.places.country(country);
        let country = country.ok_or_else(|| PortalError::Invalid("choose a country".to_owned()))?;
        let _opening = self.opening.lock().await;
        let is_open = self.key_of(user.user, id).is_some();
        // Other instances learn only within a second or two that this one is about to stop.
        if !is_open && !self.parts.browsers.begins_runs() {
            return Err(PortalError::Restarting);
        }
        self.close_others(user, id).await?;
        if let Some(key) = self.key_of(user.user, id) {
            // It is not closed before its page is there.
            let _ = self.find(&key, Some(user.user));
            return Ok(key);
        }
        if self.studios().len() >= MAX_STUDIOS {
            return Err(PortalError::Invalid("too many studios are open: try again later".into()));
        }
        let subject = format!("{} {}", draft.name, draft.version);
        self.record(user, "draft.open", &subject).await?;
        let (key, opened) = self.add_studio(user, (draft, content), country.code);
        // A draft with errors is opened too; the studio says why there is no browser.
        if let Err(error) = opened.studio.open().await {
            tracing::info!(%error, "a studio was opened without a browser");
        }
        Ok(key)
    }

    async fn studio_of_draft(
        &self,
        user: &SignedInUser,
        id: DraftId,
    ) -> Result<Option<String>, PortalError> {
        user.require(Permission::Author)?;
        Ok(self.key_of(user.user, id))
    }

    async fn versions(
        &self,
        user: &SignedInUser,
        platform: PlatformId,
    ) -> Result<(Platform, Vec<PublishedVersion>), PortalError> {
        user.require(Permission::Author)?;
        let found = self.parts.platforms.versions(platform).await?;
        found.ok_or(PortalError::NotFound("platform"))
    }

    async fn choose_version(
        &self,
        user: &SignedInUser,
        platform: PlatformId,
        choice: VersionChoice,
    ) -> Result<(), PortalError> {
        self.choose(user, platform, choice).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_of_a_version_is_increased() {
        let next = |version| next_version(version);
        assert_eq!(next("1.4.0").as_deref(), Some("1.4.1"));
        assert_eq!(next("0.0.9").as_deref(), Some("0.0.10"));
        for version in ["", "1", "1.0.0-beta", "1.0.4294967295"] {
            assert_eq!(next(version), None, "{version}");
        }
    }
}
