//! Builds the signed body of an attestation from the findings about a connection, and the
//! disclosure that opens its commitments.

use std::collections::BTreeMap;

use minicbor::{Decode, Encode};

use crate::{
    body::{
        Body, Build, CaptureHash, Claim, ED25519, Hidden, LogPlace, Request, Response, Server,
        Time, Tls, VERSION,
    },
    commitment::{Kind, Opening, root},
    descriptor::Descriptor,
    full_reveal::{Capture, Findings},
    signed::{self, BadAttestation},
    tls::flight::sha256,
};

const CAPTURE: &[u8] = b"avouch/attestation-capture/v1\0";
const SESSION: &[u8] = b"avouch/attestation-session/v1\0";
const PARTNER: &[u8] = b"avouch/attestation-partner/v1\0";
const TLS13: u16 = 0x0304;
/// Length of the parts of the response's body that have one commitment each.
const PART: usize = 64;
/// Maximum length of a disclosure.
pub const LONGEST_DISCLOSURE: usize = 8 * 1024 * 1024;

/// The values of an attestation that only the attestor knows.
#[derive(Debug, Clone)]
pub struct Circumstances {
    pub id: [u8; 16],
    pub issuer: [u8; 32],
    pub session: [u8; 32],
    pub partner: [u8; 32],
    pub attempt: u32,
    pub challenge: Vec<u8>,
    pub server_address: Vec<u8>,
    pub egress: u8,
    pub resolver: u8,
    pub roots_sha256: [u8; 32],
    pub time: Time,
    pub attestor: Build,
    pub log: LogPlace,
    pub blind: [u8; 32],
}

/// Openings of an attestation's commitments, as far as the recipient may see the values.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Disclosure {
    /// The commitments to the request's revealed lines, in their order.
    #[n(0)]
    pub request: Vec<Leaf>,
    /// The commitments to the lines of the response's head and to the parts of its body.
    #[n(1)]
    pub response: Vec<Leaf>,
    #[n(2)]
    pub openings: Vec<Opening>,
}

/// A commitment in a Merkle tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(transparent)]
pub struct Leaf(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 32]);

/// Why a disclosure does not match an attestation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadDisclosure {
    #[error("it is longer than {LONGEST_DISCLOSURE} bytes")]
    Long,
    #[error("failed to decode it: {0}")]
    Form(#[from] BadAttestation),
    #[error("its commitments do not match the signed roots")]
    Root,
    #[error("the value of {0:?} {1} does not match its commitment")]
    Opening(Kind, u32),
}

/// Returns the hash that identifies a recorded connection.
#[must_use]
pub fn capture_hash(id: &[u8; 16], capture: Capture<'_>) -> [u8; 32] {
    let length = |bytes: &[u8]| u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes();
    let (client, server) = (capture.client, capture.server);
    sha256(&[CAPTURE, id, &length(client), client, &length(server), server].concat())
}

/// Returns the lengths and the hash of a recorded connection, as a body states them.
pub(crate) fn recorded(id: &[u8; 16], capture: Capture<'_>) -> CaptureHash {
    CaptureHash {
        client_length: number(capture.client.len()),
        server_length: number(capture.server.len()),
        sha256: capture_hash(id, capture),
    }
}

/// Returns the salted hash of a session in an attestation; only the holder of the salt can tell
/// which session it is.
#[must_use]
pub fn session_name(salt: &[u8; 32], session: &[u8; 16]) -> [u8; 32] {
    sha256(&[SESSION, salt, session].concat())
}

/// Returns the salted hash of a partner in an attestation, from its team's identifier and the
/// session's salt: without the salt it reveals neither the partner, nor that two attestations
/// belong to the same one.
#[must_use]
pub fn partner_name(salt: &[u8; 32], team: &[u8; 16]) -> [u8; 32] {
    sha256(&[PARTNER, salt, team].concat())
}

/// Builds the body to be signed, and its disclosure, from the findings about a connection. `salt`
/// returns random bytes.
pub fn attest(
    found: &Findings,
    capture: Capture<'_>,
    descriptor: &Descriptor,
    circumstances: Circumstances,
    salt: impl FnMut() -> [u8; 16],
) -> (Body, Disclosure) {
    let Openings { asked, answered, claimed } = Openings::of(found, salt);
    let leaves = |openings: &[Opening]| {
        openings.iter().map(|opening| Leaf(opening.commitment())).collect::<Vec<_>>()
    };
    let (asked_leaves, answered_leaves) = (leaves(&asked), leaves(&answered));
    let claims = descriptor.claims.iter().zip(&claimed);
    let claims = claims.map(|(claim, opening)| Claim {
        field: claim.field.clone(),
        pointer: claim.pointer.clone(),
        commitment: opening.commitment(),
    });
    let body = Body {
        version: VERSION,
        id: circumstances.id,
        issuer: circumstances.issuer,
        algorithm: ED25519,
        mode: found.mode.number(),
        session: circumstances.session,
        partner: circumstances.partner,
        attempt: circumstances.attempt,
        challenge: circumstances.challenge,
        descriptor: descriptor.name(),
        server: Server {
            name: descriptor.host.clone(),
            port: 443,
            address: circumstances.server_address,
            egress: circumstances.egress,
            resolver: circumstances.resolver,
        },
        tls: tls(found, circumstances.roots_sha256),
        time: circumstances.time,
        capture: recorded(&circumstances.id, capture),
        request: asked_for(found, descriptor, tree(&asked_leaves)),
        response: answered_with(found, descriptor, tree(&answered_leaves)),
        claims: claims.collect(),
        proof: found.proof.clone().unwrap_or_default(),
        attestor: circumstances.attestor,
        log: circumstances.log,
        blind: circumstances.blind,
    };
    let openings = asked.into_iter().chain(answered).chain(claimed).collect();
    (body, Disclosure { request: asked_leaves, response: answered_leaves, openings })
}

/// The openings of all commitments.
struct Openings {
    asked: Vec<Opening>,
    answered: Vec<Opening>,
    claimed: Vec<Opening>,
}

impl Openings {
    fn of(found: &Findings, mut salt: impl FnMut() -> [u8; 16]) -> Self {
        let mut open = |kind, values: Vec<&[u8]>, first: u32| -> Vec<Opening> {
            let places = first..;
            let opening = |(index, value): (u32, &[u8])| Opening {
                kind,
                index,
                salt: salt(),
                value: value.to_vec(),
            };
            places.zip(values).map(opening).collect()
        };
        let asked = found.request.opened.iter();
        let asked = asked.map(|line| found.said.get(line.clone()).unwrap_or_default()).collect();
        let head: Vec<_> = found.response.lines.iter().map(Vec::as_slice).collect();
        let lines = number(head.len());
        let asked = open(Kind::RequestLine, asked, 0);
        let mut answered = open(Kind::ResponseLine, head, 0);
        answered.extend(open(Kind::BodyPart, found.response.body.chunks(PART).collect(), lines));
        let values = found.claims.iter().map(|(_, value)| value.as_bytes()).collect();
        Self { asked, answered, claimed: open(Kind::Claim, values, 0) }
    }
}

fn tls(found: &Findings, roots_sha256: [u8; 32]) -> Tls {
    let connection = &found.connection;
    Tls {
        version: TLS13,
        suite: connection.suite.number(),
        group: connection.group,
        scheme: connection.scheme,
        leaf_key_sha256: connection.leaf_key_sha256,
        chain_sha256: connection.chain_sha256,
        roots_sha256,
        transcript: connection.transcript.clone(),
    }
}

fn asked_for(found: &Findings, descriptor: &Descriptor, root: [u8; 32]) -> Request {
    let hidden = found.request.hidden.iter().map(|hidden| Hidden {
        start: number(hidden.range.start),
        length: number(hidden.range.len()),
        header: hidden.header.clone(),
    });
    Request {
        method: "GET".into(),
        target: descriptor.target.clone(),
        length: number(found.said.len()),
        hidden: hidden.collect(),
        root,
    }
}

fn answered_with(found: &Findings, descriptor: &Descriptor, root: [u8; 32]) -> Response {
    Response {
        status: 200,
        content_type: descriptor.content_type.clone(),
        head_length: number(found.response.head_length),
        body_length: number(found.response.body.len()),
        root,
        hidden: number(found.hidden_response),
    }
}

impl Disclosure {
    /// Decodes a disclosure; [`Self::verify`] compares it with an attestation.
    pub fn read(bytes: &[u8]) -> Result<Self, BadDisclosure> {
        if bytes.len() > LONGEST_DISCLOSURE {
            return Err(BadDisclosure::Long);
        }
        Ok(signed::read(bytes)?)
    }

    pub fn write(&self) -> Result<Vec<u8>, BadDisclosure> {
        Ok(signed::write(self)?)
    }

    /// Checks that all disclosed values match the body's commitments.
    pub fn opens(&self, body: &Body) -> Result<(), BadDisclosure> {
        if tree(&self.request) != body.request.root || tree(&self.response) != body.response.root {
            return Err(BadDisclosure::Root);
        }
        for opening in &self.openings {
            let at = usize::try_from(opening.index).unwrap_or(usize::MAX);
            let committed = match opening.kind {
                Kind::RequestLine => self.request.get(at).map(|leaf| leaf.0),
                Kind::ResponseLine | Kind::BodyPart => self.response.get(at).map(|leaf| leaf.0),
                Kind::Claim => body.claims.get(at).map(|claim| claim.commitment),
            };
            if committed != Some(opening.commitment()) {
                return Err(BadDisclosure::Opening(opening.kind, opening.index));
            }
        }
        Ok(())
    }

    /// Returns the claimed values by field, of a body that it [matches](Self::verify), or `None` if
    /// one of them is missing. Numbers are rounded to doubles as in a browser: use them only for
    /// comparison with values that a browser displayed.
    #[must_use]
    pub fn claims(&self, body: &Body) -> Option<serde_json::Map<String, serde_json::Value>> {
        let value = |(at, claim): (u32, &Claim)| {
            Some((claim.field.clone(), serde_json::from_str(self.claim(at)?).ok()?))
        };
        (0..).zip(&body.claims).map(value).collect()
    }

    /// Returns the claimed values by field, each as the attested JSON text, of a body that it
    /// [matches](Self::verify), or `None` if one of them is missing.
    #[must_use]
    pub fn claim_texts(&self, body: &Body) -> Option<BTreeMap<String, String>> {
        let text =
            |(at, claim): (u32, &Claim)| Some((claim.field.clone(), self.claim(at)?.to_owned()));
        (0..).zip(&body.claims).map(text).collect()
    }

    /// Returns a claim's value as JSON text, if it is disclosed.
    #[must_use]
    pub fn claim(&self, at: u32) -> Option<&str> {
        let mut claims = self.openings.iter().filter(|opening| opening.kind == Kind::Claim);
        let opening = claims.find(|opening| opening.index == at)?;
        std::str::from_utf8(&opening.value).ok()
    }
}

fn tree(leaves: &[Leaf]) -> [u8; 32] {
    root(&leaves.iter().map(|leaf| leaf.0).collect::<Vec<_>>())
}

/// Converts a count. All counts were limited when their values were parsed.
fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
