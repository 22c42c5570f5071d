//! The input files of a verification: a portable attestation, or its parts as separate files.

use std::{fs::File, io::Read as _, path::Path};

use attestation::{
    attest::{MAX_DISCLOSURE_BYTES, partner_hash, session_hash},
    body::Body,
    evidence,
    portable::{AttestationBundle, MAX_PORTABLE_BYTES, Subject},
    tlog::MAX_PROOF_BYTES,
};

use crate::VerifyError;

/// The input of a verification, not verified yet.
pub(crate) struct VerificationInput {
    pub(crate) attestation: Vec<u8>,
    pub(crate) disclosure: Option<Vec<u8>>,
    pub(crate) evidence: Option<Vec<u8>>,
    /// The attestation's inclusion proof.
    pub(crate) inclusion: Option<Vec<u8>>,
    /// Session and partner according to a portable attestation.
    pub(crate) subject: Option<Subject>,
}

impl VerificationInput {
    /// Reads the attestation's file and the other files. A separate file replaces the same part of
    /// a portable attestation.
    pub(crate) fn read(
        file: &Path,
        disclosure: Option<&Path>,
        evidence: Option<&Path>,
        inclusion: Option<&Path>,
    ) -> Result<Self, VerifyError> {
        let bytes = read(file, MAX_PORTABLE_BYTES)?;
        let mut input = if AttestationBundle::has_format_prefix(&bytes) {
            let AttestationBundle { attestation, disclosure, evidence, inclusion, subject, .. } =
                AttestationBundle::read(&bytes)?;
            let (disclosure, subject) = (Some(disclosure), Some(subject));
            Self { attestation, disclosure, evidence, inclusion, subject }
        } else {
            let (disclosure, evidence, inclusion) = (None, None, None);
            Self { attestation: bytes, disclosure, evidence, inclusion, subject: None }
        };
        if let Some(file) = disclosure {
            input.disclosure = Some(read(file, MAX_DISCLOSURE_BYTES)?);
        }
        if let Some(file) = evidence {
            input.evidence = Some(read(file, evidence::MAX_EVIDENCE_BYTES)?);
        }
        if let Some(file) = inclusion {
            input.inclusion = Some(read(file, MAX_PROOF_BYTES)?);
        }
        Ok(input)
    }

    /// Checks that the attestation belongs to the session and partner that a portable file states.
    /// Returns the salt of these names if it has one.
    pub(crate) fn check_subject(&self, body: &Body) -> Result<Option<[u8; 32]>, VerifyError> {
        let Some(Subject { session, partner, salt }) = &self.subject else { return Ok(None) };
        let names = (session_hash(salt, session), partner_hash(salt, partner));
        if names == (body.session, body.partner) {
            Ok(Some(*salt))
        } else {
            Err(VerifyError::Session)
        }
    }
}

/// Reads a file up to `max_bytes` and one byte more, so that the caller detects a longer file.
pub(crate) fn read(file: &Path, max_bytes: usize) -> Result<Vec<u8>, VerifyError> {
    let failed = |error| VerifyError::File(format!("failed to read {}: {error}", file.display()));
    let mut bytes = vec![];
    let limit = u64::try_from(max_bytes).unwrap_or(u64::MAX).saturating_add(1);
    File::open(file).map_err(failed)?.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}
