//! Stand-ins for driven ports in unit tests.

use std::collections::BTreeMap;

use domain::id::{SessionId, TeamId};
use ports::{
    attestation_reader::{AttestationReader, ReadError},
    attestor::AttestationPackage,
    browser::{Cover, Frame, FrameRedactor},
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
