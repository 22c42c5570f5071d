//! The devices of a session: how they are recognised, and the codes by which one more joins.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use domain::{
    binding::{
        DeviceNumber, JoinCode, JoinedBy, SENT_CODE_TTL, SHOWN_CODE_TTL, SecretHash, is_secret,
        short_code, short_code_of,
    },
    id::SessionId,
};
use ports::{
    StoreError,
    clock::Clock,
    device_store::{Binding, DeviceStore, RedeemOutcome},
    random::RandomSource,
    tokens::TokenIssuer,
};

/// Binds sessions to devices.
pub struct SessionDevices {
    pub store: Arc<dyn DeviceStore>,
    pub tokens: Arc<dyn TokenIssuer>,
    pub random: Arc<dyn RandomSource>,
    pub clock: Arc<dyn Clock>,
}

/// A join code in plain form.
pub(crate) struct PlaintextCode {
    pub(crate) long: String,
    pub(crate) short: String,
}

impl SessionDevices {
    /// Returns the hash of a device's secret, by which the store knows the device.
    pub(super) fn hash_secret(&self, session: SessionId, secret: &str) -> SecretHash {
        self.tokens.hash_secret(session, secret)
    }

    /// Returns whether the device with this secret is one of the session's.
    pub(super) async fn binding(
        &self,
        session: SessionId,
        secret: &SecretHash,
    ) -> Result<Binding, StoreError> {
        self.store.device(session, secret).await
    }

    /// Binds a session that has no device to this one, unless another device is first. Returns
    /// whether the device is one of the session's then.
    pub(super) async fn bind_first(
        &self,
        session: SessionId,
        secret: &SecretHash,
    ) -> Result<Binding, StoreError> {
        self.store.bind(session, secret, self.clock.now()).await?;
        self.store.device(session, secret).await
    }

    /// Adds the device that the active viewer let in. Returns `None` if the session has as many
    /// devices as it may have.
    pub(super) async fn approve(
        &self,
        session: SessionId,
        secret: &SecretHash,
    ) -> Result<Option<DeviceNumber>, StoreError> {
        self.store.approve(session, secret, self.clock.now()).await
    }

    /// Records the applicant's answer to a consent prompt, with the device that it came from.
    pub(super) async fn record_consent(
        &self,
        session: SessionId,
        device: DeviceNumber,
        agreed: bool,
    ) -> Result<(), StoreError> {
        self.store.record_consent(session, device, agreed, self.clock.now()).await
    }

    /// Returns a random number of two digits.
    pub(super) fn two_digits(&self) -> u8 {
        let number = u8::try_from(self.random.random_u16() % 90).unwrap_or_default();
        number.saturating_add(10)
    }

    /// Stores a code with which one more device may join the session, once.
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
            // A sent code is part of a link, so that no applicant types it.
            short: (by == JoinedBy::ShownCode).then(|| hash(&short)),
            expires_at: self.clock.now() + ttl,
        };
        self.store.offer_code(&code).await?;
        Ok(PlaintextCode { long, short })
    }

    /// Adds the device with this secret to the session, if the code is valid.
    pub(crate) async fn redeem(
        &self,
        session: SessionId,
        code: &str,
        secret: &SecretHash,
    ) -> Result<RedeemOutcome, StoreError> {
        let code = if is_secret(code) { Some(code.to_owned()) } else { short_code(code) };
        let Some(code) = code else { return Ok(RedeemOutcome::Refused) };
        let code = self.tokens.hash_secret(session, &code);
        let redeemed = self.store.redeem_code(session, &code, secret, self.clock.now()).await?;
        if let RedeemOutcome::Joined(device, by) = redeemed {
            let by = by.as_str();
            tracing::info!(session.id = %session, by, "{device} joined session {session}");
        }
        Ok(redeemed)
    }
}

/// Returns a session's link with a long code in its fragment, which browsers send to no server.
pub(crate) fn with_code(link: &str, long: &str) -> String {
    format!("{link}#code={long}")
}
