//! Stand-ins for driven ports in unit tests.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    branding::Brand,
    id::{SessionId, TeamId},
    secret::Secret,
    template::TemplateText,
};
use ports::{
    StoreError,
    account_store::PasswordHash,
    attestation_reader::{AttestationReader, ReadError},
    attestor::AttestationPackage,
    browser::{Cover, Frame, FrameRedactor},
    credentials::{PasswordHasher, TotpVerifier},
    notifier::{MailRenderer, RenderedMail},
};

/// Writes what it was asked to cover behind the image; bytes without text cannot be redacted.
pub(crate) struct NamingRedactor;

impl FrameRedactor for NamingRedactor {
    fn redact(&self, frame: &Frame, areas: &[[f32; 4]]) -> Option<Vec<u8>> {
        let text = str::from_utf8(&frame.jpeg).ok().filter(|text| text.contains(' '))?;
        Some(format!("{text} without {areas:?}").into_bytes())
    }

    fn reencode(&self, frame: &Frame, cover: Cover) -> Option<Vec<u8>> {
        Some([frame.jpeg.as_slice(), format!(" with {cover:?} covered").as_bytes()].concat())
    }
}

/// Takes the disclosure of a package as the JSON object of its claims; compares values as text.
pub(crate) struct TextReader;

impl AttestationReader for TextReader {
    fn claims(&self, package: &AttestationPackage) -> Result<BTreeMap<String, String>, ReadError> {
        if package.disclosure == b"outdated" {
            return Err(ReadError::Outdated("version 0".into()));
        }
        let claims: BTreeMap<String, serde_json::Value> =
            serde_json::from_slice(&package.disclosure)
                .map_err(|error| ReadError::Damaged(error.into()))?;
        Ok(claims.into_iter().map(|(field, value)| (field, value.to_string())).collect())
    }

    fn is_same_value(&self, one: &str, other: &str) -> bool {
        one == other
    }

    fn portable(
        &self,
        _: SessionId,
        _: TeamId,
        package: AttestationPackage,
    ) -> Result<Vec<u8>, ReadError> {
        self.claims(&package)?;
        Ok(package.attestation)
    }
}

/// Returns the hash that [`PlainHasher`] makes of a password.
pub(crate) fn plain_hash(password: &str) -> PasswordHash {
    PasswordHash(format!("plain:{password}"))
}

/// Stores passwords as they are, and counts how often it verifies one.
#[derive(Default)]
pub(crate) struct PlainHasher {
    pub(crate) verified: AtomicU64,
}

#[async_trait]
impl PasswordHasher for PlainHasher {
    async fn hash(&self, password: Secret) -> Result<PasswordHash, StoreError> {
        Ok(plain_hash(password.expose()))
    }

    async fn verify(&self, password: Secret, hash: Option<PasswordHash>) -> bool {
        self.verified.fetch_add(1, Ordering::Relaxed);
        hash.is_some_and(|hash| hash == plain_hash(password.expose()))
    }

    fn is_frequent(&self, password: &Secret) -> bool {
        password.expose().contains("frequent")
    }

    async fn is_guessable(&self, password: Secret, words: Vec<String>) -> bool {
        words.iter().any(|word| password.expose().contains(word))
    }
}

/// A code is the first six characters of the secret and the time step.
pub(crate) struct PlainTotp;

impl PlainTotp {
    pub(crate) fn code(secret: &str, now: DateTime<Utc>) -> String {
        format!("{}-{}", &secret[..6], now.timestamp() / 30)
    }
}

impl TotpVerifier for PlainTotp {
    fn secret(&self, bits: [u8; 20]) -> Secret {
        // The bits that differ come first in a recovery code as well.
        let digits: Vec<_> = bits[2..18].iter().map(|byte| format!("{byte:02X}")).collect();
        Secret::new(digits.concat())
    }

    fn step(&self, secret: &Secret, code: &str, now: DateTime<Utc>) -> Option<i64> {
        (code == Self::code(secret.expose(), now)).then(|| now.timestamp() / 30)
    }

    fn url(&self, secret: &Secret, account: &str) -> Secret {
        Secret::new(format!("otpauth://totp/{account}?secret={}", secret.expose()))
    }
}

/// Renders everything but what contains `broken`.
pub(crate) struct PlainRenderer;

impl MailRenderer for PlainRenderer {
    fn preview(
        &self,
        wording: &TemplateText,
        sender: &str,
        _: &Brand,
    ) -> Result<RenderedMail, Vec<String>> {
        if wording.body.contains("broken") {
            return Err(vec!["the body is broken".to_owned()]);
        }
        let subject = format!("{sender}: {}", wording.subject);
        Ok(RenderedMail { subject, text: wording.body.clone(), html: String::new() })
    }
}
