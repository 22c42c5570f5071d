//! The prover's side: the values that it reveals of a connection, after all checks that the
//! attestor makes, and their proof.

use std::ops::Range;

use chacha20::{
    ChaCha20,
    cipher::{KeyIvInit as _, StreamCipher as _},
};

use super::{
    PartialResponse, Reveal, RevealedRecord, RevealedServerData, SUITE, array, examine_unproved,
    masked, statement::statement_of,
};
use crate::{
    descriptor::{Descriptor, RevealMode},
    error::ExaminationError,
    full_reveal::Capture,
    http::{
        request,
        selective::{self, HiddenBytes},
    },
    tls::{
        APPLICATION_DATA,
        decrypt::{InnerPlaintext, RecordDecrypter, client_data, nonce, server_data},
        flight::{self, CertificateTrust},
        hello,
        records::{RecordStreams, TlsRecord},
    },
    zk::{Statement, ZkBackend},
};

/// Hidden values that are shorter than this may occur elsewhere by chance.
const MIN_SEARCHED_BYTES: usize = 8;

/// The hidden parts of each direction, as functions of its bytes.
pub struct HidePolicy<'a> {
    request: HideRequest<'a>,
    /// `None` if the response is revealed.
    response: Option<HideResponse<'a>>,
    /// The descriptor for all checks before the reveal; `None` for a prover that does not check.
    descriptor: Option<&'a Descriptor>,
}

/// Returns the hidden parts of a request. After an error nothing may be revealed.
pub type HideRequest<'a> = Box<dyn Fn(&[u8]) -> Result<Vec<Range<usize>>, ExaminationError> + 'a>;

/// Returns the hidden parts of a response, with their proved classes.
pub type HideResponse<'a> = Box<dyn Fn(&[u8]) -> Result<Vec<HiddenBytes>, ExaminationError> + 'a>;

impl<'a> HidePolicy<'a> {
    /// Hides the parts that a descriptor's mode hides.
    #[must_use]
    pub fn of(descriptor: &'a Descriptor) -> Self {
        let response: HideResponse<'a> =
            Box::new(|plaintext| Ok(selective::hidden_parts(plaintext, descriptor)?));
        Self {
            request: Box::new(|plaintext| Ok(request::hidden_ranges(plaintext, descriptor)?)),
            response: descriptor.modes.contains(&RevealMode::ZktlsFull).then_some(response),
            descriptor: Some(descriptor),
        }
    }

    /// Hides arbitrary parts without checks, as a dishonest prover would.
    #[must_use]
    pub fn unchecked(request: HideRequest<'a>, response: Option<HideResponse<'a>>) -> Self {
        Self { request, response, descriptor: None }
    }
}

/// Returns the values that a prover with the handshake secret reveals of a connection, with their
/// proof. Takes seconds and gigabytes. With [`HidePolicy::of`], it returns nothing that
/// [`examine`](super::examine) would refuse.
///
/// # Errors
/// The connection would be refused, or cannot be proved.
pub fn reveal(
    capture: Capture<'_>,
    secret: &[u8; 32],
    hide: &HidePolicy<'_>,
    backend: &dyn ZkBackend,
    host: &str,
    trust: &CertificateTrust<'_>,
) -> Result<Reveal, ExaminationError> {
    let (mut reveal, statement) = prepare(capture, secret, hide, backend, (host, trust))?;
    reveal.proof = backend.prove(&statement, secret)?;
    Ok(reveal)
}

/// Returns the revealed values without the proof, and the statement to be proved.
fn prepare(
    capture: Capture<'_>,
    secret: &[u8; 32],
    hide: &HidePolicy<'_>,
    backend: &dyn ZkBackend,
    (host, trust): (&str, &CertificateTrust<'_>),
) -> Result<(Reveal, Statement), ExaminationError> {
    let wire = RecordStreams::read(capture.client, capture.server)?;
    hello::read_hellos(wire.client.hello, wire.server.hello, host, &[SUITE])?;
    let hellos = SUITE.hash(&[wire.client.hello, wire.server.hello]);
    let handshake = SUITE.handshake_traffic(secret, &hellos);
    let server = flight::verify_server(&wire, SUITE, &handshake.server, host, trust)?;
    let data = SUITE.application_traffic(secret, &server.transcript);
    let records = wire.client.encrypted.get(1..).unwrap_or_default();
    let plaintext = client_data(SUITE, &data.client, records)?;
    let hidden = (hide.request)(&plaintext)?;
    let client = StreamKey::new(&data.client)?;
    let rest = wire.server.encrypted.get(server.records..).unwrap_or_default();
    let (revealed, hidden_answer) = match &hide.response {
        None => (RevealedServerData::TrafficSecret(array(&data.server)?), vec![]),
        Some(hide) => {
            let (revealed, hidden) = reveal_response(&data.server, rest, hide)?;
            (RevealedServerData::Proved(Box::new(revealed)), hidden)
        }
    };
    let reveal = Reveal {
        server_handshake: array(&handshake.server)?,
        client_handshake: array(&handshake.client)?,
        server: revealed,
        client_iv: client.iv,
        tag_keys: (0..).zip(records).map(|(at, _)| client.tag_key(at).into()).collect(),
        request_bytes: masked(&plaintext, &hidden),
        hidden,
        proof: vec![],
    };
    if let Some(descriptor) = hide.descriptor {
        // Late handshake messages and data after close_notify are refused here in every mode.
        let answer = server_data(SUITE, &data.server, rest)?;
        check_not_revealed(&plaintext, &answer, &reveal)?;
        examine_unproved(capture, &reveal, backend, descriptor, trust)?;
    }
    let statement = statement_of(&wire, rest, &reveal, &hidden_answer, &server.transcript)?;
    Ok((reveal, statement))
}

/// Checks that no hidden value of the request occurs in the revealed data: neither in the rest of
/// the request, nor in the revealed part of the response.
fn check_not_revealed(
    plaintext: &[u8],
    answer: &[u8],
    reveal: &Reveal,
) -> Result<(), ExaminationError> {
    let opened = match &reveal.server {
        RevealedServerData::TrafficSecret(_) => answer,
        RevealedServerData::Proved(revealed) => &revealed.response_bytes,
    };
    let is_told = |range: &Range<usize>| {
        let value = plaintext.get(range.clone()).unwrap_or_default().trim_ascii();
        let has = |text: &[u8]| text.windows(value.len().max(1)).any(|part| part == value);
        value.len() >= MIN_SEARCHED_BYTES && (has(&reveal.request_bytes) || has(opened))
    };
    if reveal.hidden.iter().any(is_told) {
        Err(ExaminationError::HiddenValueRevealed)
    } else {
        Ok(())
    }
}

/// Returns the revealed values of the server's records, and the hidden parts.
fn reveal_response(
    secret: &[u8],
    records: &[TlsRecord<'_>],
    hide: &HideResponse<'_>,
) -> Result<(PartialResponse, Vec<HiddenBytes>), ExaminationError> {
    let key = StreamKey::new(secret)?;
    let mut opener = RecordDecrypter::new(SUITE, secret)?;
    let (mut plaintext, mut inner) = (vec![], vec![]);
    for (sequence, record) in (0..).zip(records) {
        let InnerPlaintext { kind, content, padding } = opener.decrypt(record)?;
        if kind == APPLICATION_DATA {
            plaintext.extend(content);
        }
        let padding = u16::try_from(padding).map_err(|_| ExaminationError::Reveal)?;
        inner.push(RevealedRecord { kind, padding, tag_key: key.tag_key(sequence) });
    }
    let hidden = hide(&plaintext)?;
    let ranges: Vec<_> = hidden.iter().map(|hidden| hidden.range.clone()).collect();
    let plaintext = masked(&plaintext, &ranges);
    Ok((
        PartialResponse { iv: key.iv, records: inner, response_bytes: plaintext, hidden: ranges },
        hidden,
    ))
}

/// The key and the IV of one direction's data.
struct StreamKey {
    key: [u8; 32],
    iv: [u8; 12],
}

impl StreamKey {
    fn new(secret: &[u8]) -> Result<Self, ExaminationError> {
        let iv = SUITE.iv(secret).ok_or(ExaminationError::SecretLength)?;
        Ok(Self { key: array(&SUITE.expand_label(secret, "key", &[], 32))?, iv })
    }

    fn tag_key(&self, sequence: u64) -> [u8; 32] {
        let (mut stream, nonce) = ([0; 32], nonce(self.iv, sequence));
        ChaCha20::new(&self.key.into(), &nonce.into()).apply_keystream(&mut stream);
        stream
    }
}
