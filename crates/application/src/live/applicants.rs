//! The driving port of the embed page: which devices may join a session, and in what role.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{
    binding::{DeviceNumber, SecretHash, is_secret},
    branding::Brand,
    id::SessionId,
    language::Language,
    session::{Session, State},
};
use ports::{
    StoreError,
    brand_store::BrandStore,
    catalogue::Catalogue,
    device_store::{Binding, RedeemOutcome},
    driving::{
        ApplicantConnection, ApplicantError, ApplicantService, Introduction, JoinRequest,
        LinkState, PageAppearance,
    },
    instances::SessionRegions,
    key_store::KeyStore,
    notifier::NotificationQueue,
    refusals::RefusalLog,
};
use tokio::runtime::Handle;

use super::{
    devices::SessionDevices,
    guest::{GuestConnection, GuestServices},
    start::SessionStarter,
    viewer::{ActiveViewer, ViewerServices},
};
use crate::{
    advance::SessionEngine, instances::InstanceDirectory, support::support_reference, urls::Urls,
};

/// Admits applicants to their sessions.
pub struct Applicants {
    pub engine: Arc<SessionEngine>,
    pub starter: Arc<SessionStarter>,
    pub devices: Arc<SessionDevices>,
    pub urls: Arc<Urls>,
    pub catalogue: Arc<dyn Catalogue>,
    pub keys: Arc<dyn KeyStore>,
    pub brands: Arc<dyn BrandStore>,
    pub notifications: Arc<dyn NotificationQueue>,
    pub refusals: Arc<dyn RefusalLog>,
    /// The other instances; `None` for a process that is alone.
    pub instances: Option<Arc<InstanceDirectory>>,
    /// For connections that other instances relay: tells which sessions of other regions may begin here.
    /// `None` for those of pages, which are redirected.
    pub regions: Option<Arc<dyn SessionRegions>>,
    /// The runtime that connections run their statements on.
    pub runtime: Handle,
}

#[async_trait]
impl ApplicantService for Applicants {
    async fn join(
        &self,
        id: SessionId,
        joining: JoinRequest,
    ) -> Result<Arc<dyn ApplicantConnection>, ApplicantError> {
        let is_ours = self.urls.tokens.verify_embed_token(id, &joining.token);
        if !is_ours || !is_secret(&joining.secret) {
            return Err(ApplicantError::NotFound);
        }
        let session = self.engine.sessions.find_unscoped(id).await?;
        let session = session.ok_or(ApplicantError::NotFound)?;
        let region = session.terms.worker_region;
        let is_elsewhere = !session.terms.platform.is_of_drafts()
            && self.urls.addresses.elsewhere(region).is_some();
        if is_elsewhere && !self.may_run_here(&session).await? {
            // Here the browser would run in another region than the partner asked for.
            return Err(ApplicantError::Elsewhere(self.urls.embed_url(&session)));
        }
        let definition = self.catalogue.definition_of(&session).await?;
        let definition = definition.map(|(_, definition)| Arc::new(definition));
        let secret = self.devices.hash_secret(id, &joining.secret);
        if !session.state.is_closed()
            && let Some(device) = self.device(&session, &joining, &secret).await?
        {
            let link = self.urls.embed_url(&session);
            let services = ViewerServices { is_elsewhere, ..self.viewer_services() };
            let viewer =
                ActiveViewer::connect(services, &session, link, device, joining, definition);
            self.starter.start(&session).await;
            return Ok(Arc::new(viewer));
        }
        let services = self.guest_services();
        let language = joining.language;
        Ok(Arc::new(GuestConnection::new(services, &session, secret, definition, language)))
    }

    async fn appearance(
        &self,
        id: SessionId,
        token: &str,
        languages: &[String],
    ) -> Result<PageAppearance, StoreError> {
        if !self.urls.tokens.verify_embed_token(id, token) {
            return Ok(PageAppearance::default());
        }
        let Some(session) = self.engine.sessions.find_unscoped(id).await? else {
            return Ok(PageAppearance::default());
        };
        let link = self.link_state(&session).await?;
        let ancestors = self.engine.sessions.frame_ancestors_of(id).await?;
        let brand = self.brands.brand_of(id).await?;
        let receiver = session.terms.receiver.as_ref();
        let locale = receiver.and_then(|receiver| receiver.locale.clone());
        let language = locale.as_ref().map(|locale| Language::of(Some(locale)));
        // As the page chooses its language: the receiver's, or else the first that it has.
        let tag = locale.or_else(|| languages.iter().find(|tag| has_language(tag)).cloned());
        let studio = session.terms.studio;
        let is_draft = session.terms.platform.is_of_drafts();
        let introduction = Some(self.introduction(session, &brand, tag.as_deref()).await?);
        Ok(PageAppearance { ancestors, brand, language, link, introduction, studio, is_draft })
    }
}

impl Applicants {
    /// Returns whether a session of another region is served here: its end, its browser, or its beginning
    /// if its team allows other regions.
    async fn may_run_here(&self, session: &Session) -> Result<bool, StoreError> {
        if session.state.is_closed() {
            return Ok(true);
        }
        let Some(regions) = &self.regions else { return Ok(false) };
        let is_begun = !matches!(session.state, State::Created { .. });
        Ok(is_begun || !regions.sessions_that_may_leave(&[session.id]).await?.is_empty())
    }

    async fn link_state(&self, session: &Session) -> Result<LinkState, StoreError> {
        let now = self.engine.clock.now();
        if session.state.is_closed() || now >= session.expires_at {
            return Ok(LinkState::Over);
        }
        if session.state.attempts() > 0 {
            return Ok(LinkState::Begun);
        }
        let key = self.keys.key(session.owner).await?;
        let opens = key.is_some_and(|key| key.opens(now));
        Ok(if opens { LinkState::New } else { LinkState::Invalid })
    }

    async fn introduction(
        &self,
        session: Session,
        brand: &Brand,
        language: Option<&str>,
    ) -> Result<Introduction, StoreError> {
        let partner = match &brand.name {
            Some(name) => name.as_str().to_owned(),
            None => self.brands.team_name_of(session.id).await?.unwrap_or_default(),
        };
        let definition = self.catalogue.definition_of(&session).await?;
        let definition = definition.map(|(_, definition)| definition);
        let fields = definition.iter().flat_map(|d| {
            d.ordered_output().map(move |(_, field)| d.text(language, &field.label_key).to_owned())
        });
        Ok(Introduction {
            partner,
            reads: fields.collect(),
            platform: definition.map(|d| d.display_name).unwrap_or_default(),
            purpose: session.terms.purpose,
            return_url: session.terms.return_url,
            privacy_url: brand.privacy_url.clone(),
            reference: support_reference(session.id),
        })
    }

    /// Returns which of the session's devices this is, or `None` for a guest. The first device that
    /// joins a session becomes its first device; others need a join code.
    async fn device(
        &self,
        session: &Session,
        joining: &JoinRequest,
        secret: &SecretHash,
    ) -> Result<Option<DeviceNumber>, ApplicantError> {
        let id = session.id;
        let mut binding = self.devices.binding(id, secret).await?;
        if binding == Binding::Unbound {
            let key = self.keys.key(session.owner).await?;
            if !key.is_some_and(|key| key.opens(self.engine.clock.now())) {
                // The link of a key that was revoked or has expired starts no session.
                return Err(ApplicantError::NotFound);
            }
            binding = self.devices.bind_first(id, secret).await?;
        }
        if binding == Binding::Foreign
            && let Some(code) = &joining.code
            && let RedeemOutcome::Joined(device, _) = self.devices.redeem(id, code, secret).await?
        {
            binding = Binding::Bound(device);
        }
        Ok(if let Binding::Bound(device) = binding { Some(device) } else { None })
    }

    fn viewer_services(&self) -> ViewerServices {
        ViewerServices {
            engine: self.engine.clone(),
            starter: self.starter.clone(),
            is_elsewhere: false,
            devices: self.devices.clone(),
            instances: self.instances.clone(),
            runtime: self.runtime.clone(),
        }
    }

    fn guest_services(&self) -> GuestServices {
        GuestServices {
            engine: self.engine.clone(),
            devices: self.devices.clone(),
            notifications: self.notifications.clone(),
            refusals: self.refusals.clone(),
            instances: self.instances.clone(),
            runtime: self.runtime.clone(),
        }
    }
}

/// Returns whether the page has the language of a tag such as `pt-BR`.
fn has_language(tag: &str) -> bool {
    tag.split('-').next().is_some_and(|primary| primary.parse::<Language>().is_ok())
}
