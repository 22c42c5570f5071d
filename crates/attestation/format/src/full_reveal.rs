//! Full reveal: the attestor receives the handshake secret after the connection is closed, and
//! decrypts both directions with it. Nothing is hidden from it, including credentials; this is not
//! zkTLS.
//!
//! **Why a wrong secret is rejected.** The hellos are plaintext. Under the secret the server's
//! flight must decrypt, its signature must cover exactly the transcript, and its Finished must be
//! correct; a different secret would have to yield the same keystream over kilobytes. This also
//! fixes the handshake secret, because finding two HMAC keys with one result is infeasible, and
//! every later key is a function of it and of public hashes.

use std::ops::Range;

use crate::{
    body::ProofSummary,
    descriptor::{Descriptor, RevealMode},
    error::ExaminationError,
    http::{
        RedactedBytes,
        request::{self, ParsedRequest},
        response::{self, ParsedResponse},
        selective::SelectiveResponse,
    },
    json,
    tls::{
        decrypt::{client_data, server_data},
        flight::{self, CertificateTrust},
        hello::{self, NegotiatedParameters},
        key_schedule::Suite,
        records::RecordStreams,
    },
};

/// The bytes of a connection, as the attestor relayed them.
#[derive(Debug, Clone, Copy)]
pub struct Capture<'a> {
    /// From the client to the server, and back.
    pub client: &'a [u8],
    pub server: &'a [u8],
}

/// The verified TLS parameters of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedConnection {
    pub suite: Suite,
    pub group: u16,
    pub scheme: u16,
    pub leaf_key_sha256: [u8; 32],
    /// Over each certificate, preceded by its length in 4 bytes.
    pub chain_sha256: [u8; 32],
    /// The transcript hash up to the server's Finished.
    pub transcript: Vec<u8>,
}

/// The findings of an examination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    pub connection: VerifiedConnection,
    pub request: ParsedRequest,
    /// The bytes that the client sent.
    pub request_bytes: Vec<u8>,
    pub response: ParsedResponse,
    /// Number of hidden bytes of the response.
    pub hidden_response: usize,
    /// The value of each claim of the descriptor, as JSON text.
    pub claims: Vec<(String, String)>,
    pub mode: RevealMode,
    /// The proof about the hidden parts; `None` if everything is revealed.
    pub proof: Option<ProofSummary>,
}

/// The suites that are allowed with full reveal.
const ALLOWED_SUITES: &[Suite] =
    &[Suite::ChaCha20Poly1305Sha256, Suite::Aes128GcmSha256, Suite::Aes256GcmSha384];

/// Examines a closed connection with its handshake secret.
///
/// # Errors
/// The first check that fails.
pub fn examine(
    capture: Capture<'_>,
    handshake_secret: &[u8],
    descriptor: &Descriptor,
    trust: &CertificateTrust<'_>,
) -> Result<Findings, ExaminationError> {
    if !descriptor.modes.contains(&RevealMode::FullReveal) {
        return Err(ExaminationError::Mode);
    }
    let wire = RecordStreams::read(capture.client, capture.server)?;
    let negotiated =
        hello::read_hellos(wire.client.hello, wire.server.hello, &descriptor.host, ALLOWED_SUITES)?;
    let suite = negotiated.suite;
    if handshake_secret.len() != suite.hash_length() {
        return Err(ExaminationError::SecretLength);
    }
    let hellos = suite.hash(&[wire.client.hello, wire.server.hello]);
    let handshake = suite.handshake_traffic(handshake_secret, &hellos);
    let server = flight::verify_server(&wire, suite, &handshake.server, &descriptor.host, trust)?;
    let encrypted = &wire.client.encrypted;
    flight::verify_client_finished(suite, &handshake.client, encrypted, &server.transcript)?;
    let data = suite.application_traffic(handshake_secret, &server.transcript);
    let plaintext = client_data(suite, &data.client, encrypted.get(1..).unwrap_or_default())?;
    let rest = wire.server.encrypted.get(server.records..).unwrap_or_default();
    let response = server_data(suite, &data.server, rest)?;
    Findings::of((negotiated, server), plaintext, &[], RevealedResponse::Full(response), descriptor)
}

/// The known part of the server's application data.
pub(crate) enum RevealedResponse {
    /// All of it.
    Full(Vec<u8>),
    /// The declared parts.
    Selective(Box<SelectiveResponse>),
}

impl Findings {
    /// Compares the data of both directions, with these parts hidden, with the descriptor.
    pub(crate) fn of(
        (negotiated, server): (NegotiatedParameters, flight::AuthenticatedServer),
        plaintext: Vec<u8>,
        hidden: &[Range<usize>],
        answer: RevealedResponse,
        descriptor: &Descriptor,
    ) -> Result<Self, ExaminationError> {
        let mode = match &answer {
            RevealedResponse::Selective(_) => RevealMode::ZktlsFull,
            RevealedResponse::Full(_) => RevealMode::FullReveal,
        };
        let request = request::read(RedactedBytes { bytes: &plaintext, hidden }, descriptor)?;
        let (response, hidden, claims) = match answer {
            RevealedResponse::Full(plaintext) => {
                // Both modes that get here reveal everything except credentials.
                let response =
                    response::read(&plaintext, &descriptor.content_type, RevealMode::ZktlsRequest)?;
                let claims = claims(&response.body, descriptor)?;
                (response, 0, claims)
            }
            RevealedResponse::Selective(read) => {
                let hidden = read.hidden.iter().map(|hidden| hidden.range.len()).sum();
                (read.response, hidden, read.claims)
            }
        };
        let NegotiatedParameters { suite, group } = negotiated;
        let flight::AuthenticatedServer {
            scheme, leaf_key_sha256, chain_sha256, transcript, ..
        } = server;
        let connection =
            VerifiedConnection { suite, group, scheme, leaf_key_sha256, chain_sha256, transcript };
        let hidden_response = hidden;
        Ok(Self {
            connection,
            request,
            request_bytes: plaintext,
            response,
            hidden_response,
            claims,
            mode,
            proof: None,
        })
    }
}

/// Returns the values that a descriptor claims, in its order.
fn claims(body: &[u8], descriptor: &Descriptor) -> Result<Vec<(String, String)>, ExaminationError> {
    let whole = json::read(body)?;
    let claim = |claim: &crate::descriptor::ClaimDescriptor| {
        Ok((claim.field.clone(), json::value(body, &whole, &claim.pointer)?))
    };
    descriptor.claims.iter().map(claim).collect()
}
