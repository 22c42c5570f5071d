//! Examines evidence again on the verifier's machine.

use std::{
    panic::{self, AssertUnwindSafe},
    path::Path,
};

use attestation::{
    attest::Disclosure, evidence::Evidence, full_reveal::Findings, signed::Attestation, zk::Spartan,
};
use rustls_pki_types::{CertificateDer, pem::PemObject as _};

use crate::{error::VerifyError, input::read};

/// Maximum length of the file of root certificates.
const MAX_ROOTS_BYTES: usize = 16 * 1024 * 1024;

/// Examines evidence against these roots, and checks that it supports the attestation. Returns its
/// findings.
pub(crate) fn examine_evidence(
    (evidence, roots): (&[u8], &Path),
    attestation: &Attestation,
    disclosure: Option<&Disclosure>,
) -> Result<Findings, VerifyError> {
    let bad = |error: &dyn std::fmt::Display| {
        VerifyError::File(format!("{} has no certificates: {error}", roots.display()))
    };
    let pem = read(roots, MAX_ROOTS_BYTES)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let certificates = certificates.map_err(|error| bad(&error))?;
    let anchors =
        certificates.iter().filter_map(|root| webpki::anchor_from_trusted_cert(root).ok());
    let anchors: Vec<_> = anchors.collect();
    if anchors.is_empty() {
        return Err(bad(&"none of them can be parsed"));
    }
    catch_panic(|| {
        let evidence = Evidence::read(evidence)?;
        let backend = Spartan::default();
        let mut found = evidence.verify(&attestation.body, disclosure, &backend, &anchors)?;
        let descriptor = evidence.descriptor();
        let secret = descriptor.map(|descriptor| descriptor.hidden).unwrap_or_default();
        // The report names the headers that the prover chose, but no credentials that it left
        // visible.
        found.request.chosen.retain(|chosen| !secret.contains(&chosen.header));
        Ok(found)
    })
}

/// Evidence is untrusted, and third-party code parses the proof in it: a panic there counts as a
/// refusal with its own exit code, reported in one line.
fn catch_panic<T>(examine: impl FnOnce() -> Result<T, VerifyError>) -> Result<T, VerifyError> {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| ()));
    let result = panic::catch_unwind(AssertUnwindSafe(examine));
    panic::set_hook(hook);
    result.unwrap_or(Err(VerifyError::ExaminationPanicked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_in_the_examination_refuses_the_evidence() {
        let threaded = || {
            std::thread::scope(|scope| match scope.spawn(|| panic!("in a worker")).join() {
                Ok(()) => Ok(()),
                Err(payload) => panic::resume_unwind(payload),
            })
        };
        for refused in [catch_panic::<()>(|| panic!("at once")), catch_panic(threaded)] {
            let refused = refused.unwrap_err();
            assert_eq!(refused.class(), (7, "evidence"));
            assert_eq!(refused.to_string().lines().count(), 1);
        }
        assert_eq!(catch_panic(|| Ok(5)).unwrap(), 5);
    }
}
