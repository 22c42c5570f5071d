//! Builds the signed body of an attestation from the findings about a connection, and the
//! disclosure that opens its commitments.

mod disclosure;

use crate::{
    body::{
        AttestationTimes, AttestedClaim, AttestedRequest, AttestedResponse, AttestedServer,
        AttestedTls, AttestorBuild, Body, CaptureHash, ED25519, HiddenHeaderPart, LogPosition,
        VERSION,
    },
    commitment::{Opening, OpeningKind},
    descriptor::Descriptor,
    full_reveal::{Capture, Findings},
    tls::flight::sha256,
};

use self::disclosure::tree_root;
pub use self::disclosure::{Disclosure, DisclosureError, Leaf, MAX_DISCLOSURE_BYTES};

const CAPTURE_LABEL: &[u8] = b"avouch/attestation-capture/v1\0";
const SESSION_LABEL: &[u8] = b"avouch/attestation-session/v1\0";
const PARTNER_LABEL: &[u8] = b"avouch/attestation-partner/v1\0";
const TLS13: u16 = 0x0304;
/// Length of the parts of the response's body that have one commitment each.
const BODY_PART_BYTES: usize = 64;

/// The values of an attestation that only the attestor knows.
#[derive(Debug, Clone)]
pub struct AttestationContext {
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
    pub time: AttestationTimes,
    pub attestor: AttestorBuild,
    pub log: LogPosition,
    pub blinding: [u8; 32],
}

/// Returns the hash that identifies a recorded connection.
#[must_use]
pub fn capture_hash(id: &[u8; 16], capture: Capture<'_>) -> [u8; 32] {
    let length = |bytes: &[u8]| u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes();
    let (client, server) = (capture.client, capture.server);
    sha256(&[CAPTURE_LABEL, id, &length(client), client, &length(server), server].concat())
}

/// Returns the lengths and the hash of a recorded connection, as a body states them.
pub(crate) fn capture_summary(id: &[u8; 16], capture: Capture<'_>) -> CaptureHash {
    CaptureHash {
        client_length: to_u32(capture.client.len()),
        server_length: to_u32(capture.server.len()),
        sha256: capture_hash(id, capture),
    }
}

/// Returns the salted hash of a session in an attestation; only the holder of the salt can tell
/// which session it is.
#[must_use]
pub fn session_hash(salt: &[u8; 32], session: &[u8; 16]) -> [u8; 32] {
    sha256(&[SESSION_LABEL, salt, session].concat())
}

/// Returns the salted hash of a partner in an attestation, from its team's identifier and the
/// session's salt: without the salt it reveals neither the partner, nor that two attestations
/// belong to the same one.
#[must_use]
pub fn partner_hash(salt: &[u8; 32], team: &[u8; 16]) -> [u8; 32] {
    sha256(&[PARTNER_LABEL, salt, team].concat())
}

/// Builds the body to be signed, and its disclosure, from the findings about a connection. `salt`
/// returns random bytes.
pub fn attest(
    findings: &Findings,
    capture: Capture<'_>,
    descriptor: &Descriptor,
    context: AttestationContext,
    salt: impl FnMut() -> [u8; 16],
) -> (Body, Disclosure) {
    let Openings { request: asked, response: answered, claims: claimed } =
        Openings::of(findings, salt);
    let leaves = |openings: &[Opening]| {
        openings.iter().map(|opening| Leaf(opening.commitment())).collect::<Vec<_>>()
    };
    let (asked_leaves, answered_leaves) = (leaves(&asked), leaves(&answered));
    let claims = descriptor.claims.iter().zip(&claimed);
    let claims = claims.map(|(claim, opening)| AttestedClaim {
        field: claim.field.clone(),
        pointer: claim.pointer.clone(),
        commitment: opening.commitment(),
    });
    let body = Body {
        version: VERSION,
        id: context.id,
        issuer: context.issuer,
        algorithm: ED25519,
        mode: findings.mode.number(),
        session: context.session,
        partner: context.partner,
        attempt: context.attempt,
        challenge: context.challenge,
        descriptor: descriptor.reference(),
        server: AttestedServer {
            name: descriptor.host.clone(),
            port: 443,
            address: context.server_address,
            egress: context.egress,
            resolver: context.resolver,
        },
        tls: tls(findings, context.roots_sha256),
        time: context.time,
        capture: capture_summary(&context.id, capture),
        request: request_statement(findings, descriptor, tree_root(&asked_leaves)),
        response: response_statement(findings, descriptor, tree_root(&answered_leaves)),
        claims: claims.collect(),
        proof: findings.proof.clone().unwrap_or_default(),
        attestor: context.attestor,
        log: context.log,
        blinding: context.blinding,
    };
    let openings = asked.into_iter().chain(answered).chain(claimed).collect();
    (body, Disclosure { request: asked_leaves, response: answered_leaves, openings })
}

/// The openings of all commitments.
struct Openings {
    request: Vec<Opening>,
    response: Vec<Opening>,
    claims: Vec<Opening>,
}

impl Openings {
    fn of(findings: &Findings, mut salt: impl FnMut() -> [u8; 16]) -> Self {
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
        let asked = findings.request.revealed_lines.iter();
        let asked = asked
            .map(|line| findings.request_bytes.get(line.clone()).unwrap_or_default())
            .collect();
        let head: Vec<_> = findings.response.lines.iter().map(Vec::as_slice).collect();
        let lines = to_u32(head.len());
        let asked = open(OpeningKind::RequestLine, asked, 0);
        let mut answered = open(OpeningKind::ResponseLine, head, 0);
        answered.extend(open(
            OpeningKind::BodyPart,
            findings.response.body.chunks(BODY_PART_BYTES).collect(),
            lines,
        ));
        let values = findings.claims.iter().map(|(_, value)| value.as_bytes()).collect();
        Self { request: asked, response: answered, claims: open(OpeningKind::Claim, values, 0) }
    }
}

fn tls(findings: &Findings, roots_sha256: [u8; 32]) -> AttestedTls {
    let connection = &findings.connection;
    AttestedTls {
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

fn request_statement(
    findings: &Findings,
    descriptor: &Descriptor,
    root: [u8; 32],
) -> AttestedRequest {
    let hidden = findings.request.hidden.iter().map(|hidden| HiddenHeaderPart {
        start: to_u32(hidden.range.start),
        length: to_u32(hidden.range.len()),
        header: hidden.header.clone(),
    });
    AttestedRequest {
        method: "GET".into(),
        target: descriptor.target.clone(),
        length: to_u32(findings.request_bytes.len()),
        hidden: hidden.collect(),
        root,
    }
}

fn response_statement(
    findings: &Findings,
    descriptor: &Descriptor,
    root: [u8; 32],
) -> AttestedResponse {
    AttestedResponse {
        status: 200,
        content_type: descriptor.content_type.clone(),
        head_length: to_u32(findings.response.head_length),
        body_length: to_u32(findings.response.body.len()),
        root,
        hidden: to_u32(findings.hidden_response),
    }
}

/// Converts a count. All counts were limited when their values were parsed.
fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
