//! The applicant's driving port: who may join a session, and as what.

use std::sync::Arc;

use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use domain::{
    binding::{
        DeviceNumber, JoinCode, JoinedBy, SENT_CODE_TTL, SHOWN_CODE_TTL, SecretHash, is_secret,
        short_code, short_code_of,
    },
    id::{BrowserId, SessionId},
    language::Language,
    session::{Event, Lease, Session, State},
};
use ports::{
    StoreError,
    brand_store::BrandStore,
    device_store::{Binding, RedeemOutcome},
    driving::{ApplicantConnection, ApplicantError, ApplicantService, JoinRequest, PageAppearance},
    notifier::NotificationQueue,
};
use uuid::Uuid;

use super::{guest::GuestConnection, viewer::ActiveViewer};
use crate::advance::{AdvanceError, Core};

/// Lets applicants in.
pub struct Applicants {
    pub core: Arc<Core>,
    pub brands: Arc<dyn BrandStore>,
    pub notifications: Arc<dyn NotificationQueue>,
}

#[async_trait]
impl ApplicantService for Applicants {
    async fn join(
        &self,
        id: SessionId,
        joining: JoinRequest,
    ) -> Result<Arc<dyn ApplicantConnection>, ApplicantError> {
        let core = &self.core;
        if !core.tokens.verify_embed_token(id, &joining.token) || !is_secret(&joining.secret) {
            return Err(ApplicantError::NotFound);
        }
        let session = core.sessions.find_unscoped(id).await?.ok_or(ApplicantError::NotFound)?;
        let region = session.terms.worker_region;
        if !session.state.is_closed() && core.addresses.elsewhere(region).is_some() {
            // Its browser would run in another region than the one that was asked for.
            return Err(ApplicantError::Elsewhere(core.embed_url(&session)));
        }
        let definition = core.catalogue.definition(session.terms.platform).await?;
        let definition = definition.map(|(_, definition)| Arc::new(definition));
        let secret = core.tokens.hash_secret(id, &joining.secret);
        if !session.state.is_closed()
            && let Some(device) = self.device(&session, &joining, &secret).await?
        {
            let view = ActiveViewer::enter(core.clone(), &session, device, joining, definition);
            begin(core, &session).await;
            return Ok(Arc::new(view));
        }
        let (core, notifications) = (core.clone(), self.notifications.clone());
        let language = joining.language;
        Ok(Arc::new(GuestConnection::new(
            core,
            notifications,
            &session,
            secret,
            definition,
            language,
        )))
    }

    async fn appearance(&self, id: SessionId, token: &str) -> Result<PageAppearance, StoreError> {
        if !self.core.tokens.verify_embed_token(id, token) {
            return Ok(PageAppearance::default());
        }
        let session = self.core.sessions.find_unscoped(id).await?;
        let locale = session.and_then(|session| session.terms.receiver?.locale);
        Ok(PageAppearance {
            ancestors: self.core.sessions.frame_ancestors_of(id).await?,
            brand: self.brands.brand_of(id).await?,
            language: locale.map(|locale| Language::of(Some(&locale))),
        })
    }
}

impl Applicants {
    /// Which of the session's devices it is; the first one, where the session has none yet.
    async fn device(
        &self,
        session: &Session,
        joining: &JoinRequest,
        secret: &SecretHash,
    ) -> Result<Option<DeviceNumber>, ApplicantError> {
        let (core, id) = (&self.core, session.id);
        let mut binding = core.devices.device(id, secret).await?;
        if binding == Binding::Unbound {
            let key = core.attestations.keys.key(session.owner).await?;
            if !key.is_some_and(|key| key.opens(core.clock.now())) {
                // The link of a key that was revoked or has expired starts nothing.
                return Err(ApplicantError::NotFound);
            }
            core.devices.bind(id, secret, core.clock.now()).await?;
            // Another device may have been first.
            binding = core.devices.device(id, secret).await?;
        }
        if binding == Binding::Foreign
            && let Some(code) = &joining.code
            && let RedeemOutcome::Joined(device, _) = core.redeem(id, code, secret).await?
        {
            binding = Binding::Bound(device);
        }
        Ok(if let Binding::Bound(device) = binding { Some(device) } else { None })
    }
}

/// A code as the applicant gets it.
pub(crate) struct PlaintextCode {
    pub(crate) long: String,
    pub(crate) short: String,
}

impl Core {
    /// A code by which one more device may join a session, once.
    pub(crate) async fn offer_code(
        &self,
        session: SessionId,
        by: JoinedBy,
    ) -> Result<PlaintextCode, StoreError> {
        let ttl = if by == JoinedBy::SentCode { SENT_CODE_TTL } else { SHOWN_CODE_TTL };
        let long = URL_SAFE_NO_PAD.encode(self.random.random_bytes());
        let short = short_code_of(self.random.random_bytes());
        let hash = |code: &str| self.tokens.hash_secret(session, code);
        let code = JoinCode {
            session,
            by,
            long: hash(&long),
            // What was sent is a link: nobody types it.
            short: (by == JoinedBy::ShownCode).then(|| hash(&short)),
            expires_at: self.clock.now() + ttl,
        };
        self.devices.offer_code(&code).await?;
        Ok(PlaintextCode { long, short })
    }

    /// Adds the device with this secret, where the code is right.
    pub(crate) async fn redeem(
        &self,
        session: SessionId,
        code: &str,
        secret: &SecretHash,
    ) -> Result<RedeemOutcome, StoreError> {
        let code = if is_secret(code) { Some(code.to_owned()) } else { short_code(code) };
        let Some(code) = code else { return Ok(RedeemOutcome::Refused) };
        let code = self.tokens.hash_secret(session, &code);
        let redeemed = self.devices.redeem_code(session, &code, secret, self.clock.now()).await?;
        if let RedeemOutcome::Joined(device, by) = redeemed {
            let by = by.as_str();
            tracing::info!(session.id = %session, by, "{device} joined session {session}");
        }
        Ok(redeemed)
    }
}

/// A session's link with a long code in its fragment, which browsers send to nobody.
pub(crate) fn with_code(link: &str, long: &str) -> String {
    format!("{link}#code={long}")
}

/// Starts a session that waits for its applicant.
pub(super) async fn begin(core: &Core, session: &Session) {
    if !matches!(session.state, State::Created { .. }) {
        return;
    }
    let browser = BrowserId::from_uuid(Uuid::from_u128(core.random.new_id()));
    let lease = Lease { browser, node: core.node };
    match core.advance(session.id, None, Event::BrowserRequested { lease }).await {
        // Somebody else began it at the same moment.
        Ok(_) | Err(AdvanceError::Rejected(_)) => (),
        Err(error) => {
            let error: &dyn std::error::Error = &error;
            tracing::error!(session.id = %session.id, error, "a session could not be started");
        }
    }
}
