//! Exports an attestation with everything that `avouch-verify` needs.

use std::{fmt::Write as _, sync::Arc};

use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::id::SessionId;
use ports::{
    attestor::{AttestationPackage, AttestationStore, Issuer},
    driving::{AdministrationError, AttestationExportService, ExportedAttestation, ExportedFile},
    trusted_roots::TrustedRoots,
};
use serde_json::{Value, json};

/// The length of a line of a PEM file (RFC 7468, section 2).
const PEM_LINE_CHARS: usize = 64;

/// Implements [`AttestationExportService`].
pub struct AttestationExport {
    pub attestations: Arc<dyn AttestationStore>,
    pub roots: Arc<dyn TrustedRoots>,
}

#[async_trait]
impl AttestationExportService for AttestationExport {
    async fn export(&self, session: SessionId) -> Result<ExportedAttestation, AdministrationError> {
        let found = self.attestations.attestation(session).await?;
        let (proof, package) = found.ok_or(AdministrationError::NoAttestation(session))?;
        let mode = package.mode;
        Ok(ExportedAttestation { proof, mode, files: self.files(session, package) })
    }
}

impl AttestationExport {
    fn files(&self, session: SessionId, package: AttestationPackage) -> Vec<ExportedFile> {
        let AttestationPackage {
            salt, attestation, disclosure, evidence, inclusion, issuer, ..
        } = package;
        let files = [
            ("attestation.cbor", Some(attestation)),
            ("disclosure.cbor", Some(disclosure)),
            ("evidence.cbor", evidence),
            ("inclusion.tlog-proof", inclusion),
            ("issuers.json", Some(text(&issuers(&issuer)))),
            // The session's name in the attestation is the salted hash of its identifier.
            ("session.json", Some(text(&json!({ "sessionId": session, "salt": hex(&salt) })))),
            ("roots.pem", Some(pem(&self.roots.certificates()).into_bytes())),
        ];
        let files = files.into_iter();
        files.filter_map(|(name, content)| Some(ExportedFile { name, content: content? })).collect()
    }
}

/// Returns the issuer's key as this service trusts it. Another verifier asks the attestor for it.
fn issuers(issuer: &Issuer) -> Value {
    json!({ "issuers": [{
        "name": "the attestor's key as this service is configured to believe it",
        "publicKey": hex(&issuer.public_key),
        "validFrom": issuer.valid_from,
        "validTo": issuer.valid_to,
    }] })
}

fn text(value: &Value) -> Vec<u8> {
    format!("{value:#}\n").into_bytes()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn pem(certificates: &[Vec<u8>]) -> String {
    let block = |certificate: &Vec<u8>| {
        let text = STANDARD.encode(certificate);
        let lines = text.as_bytes().chunks(PEM_LINE_CHARS).map(String::from_utf8_lossy);
        let lines = lines.collect::<Vec<_>>().join("\n");
        format!("-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n")
    };
    certificates.iter().map(block).collect()
}
