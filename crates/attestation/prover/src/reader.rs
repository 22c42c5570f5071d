//! Reads stored attestations.

use std::collections::BTreeMap;

use attestation::{
    attest::Disclosure,
    json::same_value,
    portable::{AttestationBundle, PortableError, Subject},
    signed::{AttestationError, decode_unverified},
};
use domain::id::{SessionId, TeamId};
use ports::{
    attestation_reader::{AttestationReader, ReadError},
    attestor::AttestationPackage,
};

/// Reads attestations in the format of the `attestation` crate.
pub struct PackageReader;

/// A disclosure that does not open its attestation.
#[derive(Debug, thiserror::Error)]
#[error("the disclosure does not open the attestation")]
struct NotOpened;

impl AttestationReader for PackageReader {
    fn claims(&self, package: &AttestationPackage) -> Result<BTreeMap<String, String>, ReadError> {
        let (body, _) = decode_unverified(&package.attestation).map_err(read_error)?;
        let disclosure = Disclosure::read(&package.disclosure).ok();
        let opened = disclosure.filter(|disclosure| disclosure.verify(&body).is_ok());
        let claims = opened.and_then(|disclosure| disclosure.claim_texts(&body));
        claims.ok_or_else(|| ReadError::Damaged(NotOpened.into()))
    }

    fn is_same_value(&self, one: &str, other: &str) -> bool {
        same_value(one, other)
    }

    fn portable(
        &self,
        session: SessionId,
        team: TeamId,
        package: AttestationPackage,
    ) -> Result<Vec<u8>, ReadError> {
        let subject = Subject {
            session: *session.as_uuid().as_bytes(),
            partner: *team.as_uuid().as_bytes(),
            salt: package.salt,
        };
        let AttestationPackage { attestation, disclosure, evidence, inclusion, .. } = package;
        let portable =
            AttestationBundle::from_parts(subject, attestation, &disclosure, evidence, inclusion);
        portable.and_then(|portable| portable.write()).map_err(|error| {
            if let PortableError::Malformed(error) = error {
                read_error(error)
            } else {
                ReadError::Damaged(error.into())
            }
        })
    }
}

fn read_error(error: AttestationError) -> ReadError {
    if matches!(error, AttestationError::UnsupportedVersion(..)) {
        ReadError::Outdated(error.to_string())
    } else {
        ReadError::Damaged(error.into())
    }
}

#[cfg(test)]
mod tests {
    use domain::workflow::AttestMode;
    use ports::attestor::Issuer;

    use super::*;

    #[test]
    fn an_attestation_of_an_earlier_version_is_told_from_a_damaged_one() {
        let body = [&[0x85, 1, 0x50][..], &[1; 16], &[0x58, 32], &[2; 32], &[1, 0xf6]].concat();
        let attestation = [&[0x82, 0x58, 55][..], &body, &[0x58, 64], &[0; 64]].concat();
        let package = |attestation: Vec<u8>| AttestationPackage {
            mode: AttestMode::ZktlsRequest,
            salt: [0; 32],
            attestation,
            disclosure: vec![],
            evidence: None,
            inclusion: None,
            issuer: Issuer { public_key: [0; 32], valid_from: 0, valid_to: 0 },
        };
        let outdated = PackageReader.claims(&package(attestation)).unwrap_err();
        assert!(matches!(outdated, ReadError::Outdated(_)));
        let damaged = PackageReader.claims(&package(vec![0x82])).unwrap_err();
        assert!(matches!(damaged, ReadError::Damaged(_)));
    }

    #[test]
    fn numbers_are_compared_digit_by_digit() {
        let same = |one, other| PackageReader.is_same_value(one, other);
        assert!(same("18446744073709551616", "18446744073709551616.0"));
        assert!(!same("18446744073709551616", "18446744073709551617"));
        assert!(!same("18446744073709551616", "\"18446744073709551616\""));
    }
}
