//! Signed links to recordings, valid for a time for everyone who has them. They lead to the
//! service, which decrypts the recordings.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::TimeDelta;
use domain::id::SessionId;
use ports::clock::Clock;
use ring::{
    hmac,
    rand::{SecureRandom as _, SystemRandom},
};

use super::recording_name;

/// The random part of a signature, by which each link is a new one.
const NONCE_BYTES: usize = 12;

/// Signs links and verifies them. A signature is the nonce and then HMAC-SHA256, in base64url.
#[derive(Clone)]
pub struct LinkSigner {
    public_url: String,
    key: hmac::Key,
    clock: Arc<dyn Clock>,
}

impl LinkSigner {
    #[must_use]
    pub fn new(public_url: String, key: &[u8; 32], clock: Arc<dyn Clock>) -> Self {
        Self { public_url, key: hmac::Key::new(hmac::HMAC_SHA256, key), clock }
    }

    pub(super) fn link(&self, session: SessionId, lifetime: TimeDelta) -> String {
        let expires = (self.clock.now() + lifetime).timestamp();
        let mut nonce = [0; NONCE_BYTES];
        // Without random bytes the link is valid, but equal to another one of the same second.
        let _ = SystemRandom::new().fill(&mut nonce);
        let code = hmac::sign(&self.key, &signed_bytes(session, expires, &nonce));
        let signature = URL_SAFE_NO_PAD.encode([&nonce[..], code.as_ref()].concat());
        let (url, name) = (&self.public_url, recording_name(session));
        format!("{url}/recordings/{name}?expires={expires}&signature={signature}")
    }

    /// Returns the session whose recording a link leads to; `None` if the signature is invalid or
    /// the link has expired.
    #[must_use]
    pub fn verify(&self, name: &str, expires: i64, signature: &str) -> Option<SessionId> {
        let session = name.strip_suffix(".mp4")?.parse::<SessionId>().ok()?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let (nonce, code) = signature.split_at_checked(NONCE_BYTES)?;
        hmac::verify(&self.key, &signed_bytes(session, expires, nonce), code).ok()?;
        let live = self.clock.now().timestamp() < expires;
        live.then_some(session)
    }
}

fn signed_bytes(session: SessionId, expires: i64, nonce: &[u8]) -> Vec<u8> {
    [session.as_uuid().as_bytes().as_slice(), &expires.to_be_bytes(), nonce].concat()
}
