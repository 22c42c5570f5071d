//! Publishing from the studio of a draft.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{
    account::Permission, audit::AuditEvent, id::InstanceId, platform::CanaryShare,
    reauthentication::SensitiveAction, workflow::Definition,
};
use ports::{
    audit_log::AuditLog,
    authoring::AuthoringError,
    catalogue::PublishError,
    clock::Clock,
    driving::{PlatformAdminService, SignedInUser},
};

use super::stored_draft::StoredDraft;
use crate::studio::{DefinitionPublisher, PublicationError};

/// Publishes in the name of the author of a draft.
pub(super) struct AuthorPublisher {
    pub(super) platforms: Arc<dyn PlatformAdminService>,
    pub(super) audit: Arc<dyn AuditLog>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) draft: Arc<StoredDraft>,
    /// This process, which has the studio; `None` for one that is alone.
    pub(super) instance: Option<InstanceId>,
}

#[async_trait]
impl DefinitionPublisher for AuthorPublisher {
    async fn publish(
        &self,
        author: &SignedInUser,
        definition: &Definition,
        canary: Option<CanaryShare>,
    ) -> Result<(), PublicationError> {
        let refused = |text: &str| AuthoringError(text.to_owned());
        if author.require(Permission::Author).is_err() {
            return Err(refused("your role doesn't have permission to publish").into());
        }
        let action = SensitiveAction::Publication;
        if author.require_reauthentication(action, self.clock.now()).is_err() {
            let mut page = format!("/portal/drafts/{}/studio", self.draft.id());
            // The studios of the author may be opened elsewhere by now.
            if let Some(instance) = self.instance {
                page = format!("{page}/{instance}");
            }
            return Err(PublicationError::Unconfirmed { page });
        }
        match self.platforms.publish(definition, canary).await {
            Ok(_) => (),
            Err(PublishError::Store(error)) => {
                tracing::error!(%error, "failed to publish a definition");
                let text = "the definition cannot be published at the moment: try again";
                return Err(refused(text).into());
            }
            Err(error) => return Err(AuthoringError(error.to_string()).into()),
        }
        let (platform, version) = (&definition.platform, &definition.version);
        tracing::info!(platform, version, "an author has published a definition");
        let share = canary.map(|share| format!(" for {} %", share.as_percent()));
        let subject = format!("{platform} {version}{}", share.unwrap_or_default());
        let event = AuditEvent::new(self.clock.now(), &author.email, "platform.publish", &subject);
        let event = event.from(author.from.address);
        self.audit.note(author.team, &event).await.map_err(|error| {
            tracing::error!(%error, "failed to record a publication in the audit log");
            refused(
                "the version is published, but this is not in the audit log: tell your operator",
            )
            .into()
        })
    }
}
