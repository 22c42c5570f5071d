//! The driving port of the embed page: which devices may join a session, and in what role.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{
    binding::{DeviceNumber, SecretHash, is_secret},
    id::SessionId,
    language::Language,
    session::Session,
};
use ports::{
    StoreError,
    brand_store::BrandStore,
    catalogue::Catalogue,
    device_store::{Binding, RedeemOutcome},
    driving::{ApplicantConnection, ApplicantError, ApplicantService, JoinRequest, PageAppearance},
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
use crate::{advance::SessionEngine, urls::Urls};

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
        if !session.state.is_closed() && self.urls.addresses.elsewhere(region).is_some() {
            // Here the browser would run in another region than the partner asked for.
            return Err(ApplicantError::Elsewhere(self.urls.embed_url(&session)));
        }
        let definition = self.catalogue.definition(session.terms.platform).await?;
        let definition = definition.map(|(_, definition)| Arc::new(definition));
        let secret = self.devices.hash_secret(id, &joining.secret);
        if !session.state.is_closed()
            && let Some(device) = self.device(&session, &joining, &secret).await?
        {
            let link = self.urls.embed_url(&session);
            let services = self.viewer_services();
            let viewer =
                ActiveViewer::connect(services, &session, link, device, joining, definition);
            self.starter.start(&session).await;
            return Ok(Arc::new(viewer));
        }
        let services = self.guest_services();
        let language = joining.language;
        Ok(Arc::new(GuestConnection::new(services, &session, secret, definition, language)))
    }

    async fn appearance(&self, id: SessionId, token: &str) -> Result<PageAppearance, StoreError> {
        if !self.urls.tokens.verify_embed_token(id, token) {
            return Ok(PageAppearance::default());
        }
        let session = self.engine.sessions.find_unscoped(id).await?;
        let locale = session.and_then(|session| session.terms.receiver?.locale);
        Ok(PageAppearance {
            ancestors: self.engine.sessions.frame_ancestors_of(id).await?,
            brand: self.brands.brand_of(id).await?,
            language: locale.map(|locale| Language::of(Some(&locale))),
        })
    }
}

impl Applicants {
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
            devices: self.devices.clone(),
            runtime: self.runtime.clone(),
        }
    }

    fn guest_services(&self) -> GuestServices {
        GuestServices {
            engine: self.engine.clone(),
            devices: self.devices.clone(),
            notifications: self.notifications.clone(),
            refusals: self.refusals.clone(),
            runtime: self.runtime.clone(),
        }
    }
}
