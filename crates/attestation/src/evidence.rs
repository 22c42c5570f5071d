//! What convinces somebody who believes the attestor's recording, but not its reading: the
//! recorded bytes and all that the attestor was told, so that everything can be examined again.
//! Credentials are not in it; there is none for attestations in which they were opened.

use minicbor::{Decode, Encode};
use rustls_pki_types::{TrustAnchor, UnixTime};

use crate::{
    attest::{Circumstances, Disclosure, Leaf, attest, recorded},
    body::Body,
    descriptor::Descriptor,
    full_reveal::{Capture, Findings},
    refusal::Refusal,
    signed::{self, BadAttestation},
    tls::flight::Trust,
    zk::ZkBackend,
    zktls::{Reveal, examine},
};

/// The longest evidence.
pub const LONGEST: usize = 4 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Evidence {
    /// From the client to the server, and back, as recorded.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub client: Vec<u8>,
    #[cbor(n(1), with = "minicbor::bytes")]
    pub server: Vec<u8>,
    #[n(2)]
    pub reveal: Reveal,
    /// The descriptor's JSON.
    #[n(3)]
    pub descriptor: String,
}

/// Why evidence does not bear an attestation out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadEvidence {
    #[error("it is longer than {LONGEST} bytes")]
    Long,
    #[error("it cannot be read: {0}")]
    Form(#[from] BadAttestation),
    #[error("its descriptor is not the one that was attested")]
    Descriptor,
    #[error("what it shows is refused: {0}")]
    Refused(#[from] Refusal),
    #[error("what it shows is not what was signed")]
    Another,
    #[error("what was disclosed is not what it shows")]
    Disclosure,
}

impl Evidence {
    /// Reads some; whether it bears anything out is [`Self::bears_out`].
    pub fn read(bytes: &[u8]) -> Result<Self, BadEvidence> {
        if bytes.len() > LONGEST { Err(BadEvidence::Long) } else { Ok(signed::read(bytes)?) }
    }

    pub fn write(&self) -> Result<Vec<u8>, BadEvidence> {
        Ok(signed::write(self)?)
    }

    /// Its descriptor, where that is a sound one.
    #[must_use]
    pub fn descriptor(&self) -> Option<Descriptor> {
        let descriptor: Descriptor = serde_json::from_str(&self.descriptor).ok()?;
        descriptor.check().is_ok().then_some(descriptor)
    }

    #[must_use]
    pub fn capture(&self) -> Capture<'_> {
        Capture { client: &self.client, server: &self.server }
    }

    /// Examines everything again, by the clock of the attestor, and holds what is found against
    /// what was signed and disclosed. Seconds.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn bears_out(
        &self,
        body: &Body,
        disclosure: Option<&Disclosure>,
        backend: &dyn ZkBackend,
        roots: &[TrustAnchor<'_>],
    ) -> Result<Findings, BadEvidence> {
        let descriptor =
            self.descriptor().filter(|descriptor| descriptor.name() == body.descriptor);
        let descriptor = descriptor.ok_or(BadEvidence::Descriptor)?;
        let capture = self.capture();
        // Before anything that takes longer.
        if recorded(&body.id, capture) != body.capture {
            return Err(BadEvidence::Another);
        }
        let now = std::time::Duration::from_millis(body.time.opened);
        let trust = Trust { roots, now: UnixTime::since_unix_epoch(now) };
        let found = examine(capture, &self.reveal, backend, &descriptor, &trust)?;
        agrees(&found, capture, &descriptor, body, disclosure)?;
        Ok(found)
    }
}

/// Whether what was signed and disclosed of a connection is what was found in it. What the attestor
/// alone knows (times, names, numbers of attempts) is taken as it is signed.
///
/// # Errors
/// It is not.
pub fn agrees(
    found: &Findings,
    capture: Capture<'_>,
    descriptor: &Descriptor,
    body: &Body,
    disclosure: Option<&Disclosure>,
) -> Result<(), BadEvidence> {
    let (again, opened) = attest(found, capture, descriptor, Circumstances::of(body), || [0; 16]);
    if bare(again) != bare(body.clone()) {
        return Err(BadEvidence::Another);
    }
    let shown = |told: &crate::commitment::Opening| {
        opened
            .openings
            .iter()
            .any(|own| (own.kind, own.index, &own.value) == (told.kind, told.index, &told.value))
    };
    if disclosure.is_some_and(|disclosure| !disclosure.openings.iter().all(shown)) {
        return Err(BadEvidence::Disclosure);
    }
    Ok(())
}

/// A body without the commitments, which only a disclosure can be held against.
fn bare(body: Body) -> Body {
    let none = Leaf([0; 32]).0;
    let mut body = body;
    body.request.root = none;
    body.response.root = none;
    for claim in &mut body.claims {
        claim.commitment = none;
    }
    body
}

impl Circumstances {
    fn of(body: &Body) -> Self {
        Self {
            id: body.id,
            issuer: body.issuer,
            session: body.session,
            partner: body.partner,
            attempt: body.attempt,
            challenge: body.challenge.clone(),
            server_address: body.server.address.clone(),
            egress: body.server.egress,
            resolver: body.server.resolver,
            roots_sha256: body.tls.roots_sha256,
            time: body.time.clone(),
            attestor: body.attestor.clone(),
            log: body.log.clone(),
            blind: body.blind,
        }
    }
}
