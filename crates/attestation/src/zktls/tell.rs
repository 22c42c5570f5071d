//! The prover's side: the values that it reveals of a connection, after all checks that the
//! attestor makes, and their proof.

use std::ops::Range;

use chacha20::{
    ChaCha20,
    cipher::{KeyIvInit as _, StreamCipher as _},
};

use super::{
    Answered, Inner, Reveal, SUITE, Told, array, examine_own, shown, statement::statement_of,
};
use crate::{
    descriptor::{Descriptor, Mode},
    full_reveal::Capture,
    http::{
        request,
        selective::{self, Hidden},
    },
    refusal::Refusal,
    tls::{
        APPLICATION_DATA,
        flight::{self, Trust},
        hello,
        open::{Opened, Opener, client_data, nonce, server_data},
        wire::{Record, Wire},
    },
    zk::{Statement, ZkBackend},
};

/// Hidden values that are shorter than this may occur elsewhere by chance.
const SHORTEST: usize = 8;

/// The hidden parts of each direction, as functions of its bytes.
pub struct Hide<'a> {
    request: HideRequest<'a>,
    /// `None` if the response is revealed.
    response: Option<HideResponse<'a>>,
    /// The descriptor for all checks before the reveal; `None` for a prover that does not check.
    descriptor: Option<&'a Descriptor>,
}

/// Returns the hidden parts of a request. After an error nothing may be revealed.
pub type HideRequest<'a> = Box<dyn Fn(&[u8]) -> Result<Vec<Range<usize>>, Refusal> + 'a>;

/// Returns the hidden parts of a response, with their proved classes.
pub type HideResponse<'a> = Box<dyn Fn(&[u8]) -> Result<Vec<Hidden>, Refusal> + 'a>;

impl<'a> Hide<'a> {
    /// Hides the parts that a descriptor's mode hides.
    #[must_use]
    pub fn of(descriptor: &'a Descriptor) -> Self {
        let response: HideResponse<'a> = Box::new(|said| Ok(selective::to_hide(said, descriptor)?));
        Self {
            request: Box::new(|said| Ok(request::to_hide(said, descriptor)?)),
            response: descriptor.modes.contains(&Mode::ZktlsFull).then_some(response),
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
/// proof. Takes seconds and gigabytes. With [`Hide::of`], it returns nothing that
/// [`examine`](super::examine) would refuse.
///
/// # Errors
/// The connection would be refused, or cannot be proved.
pub fn reveal(
    capture: Capture<'_>,
    secret: &[u8; 32],
    hide: &Hide<'_>,
    backend: &dyn ZkBackend,
    host: &str,
    trust: &Trust<'_>,
) -> Result<Reveal, Refusal> {
    let (mut reveal, statement) = stated(capture, secret, hide, backend, (host, trust))?;
    reveal.proof = backend.prove(&statement, secret)?;
    Ok(reveal)
}

/// Returns the revealed values without the proof, and the statement to be proved.
fn stated(
    capture: Capture<'_>,
    secret: &[u8; 32],
    hide: &Hide<'_>,
    backend: &dyn ZkBackend,
    (host, trust): (&str, &Trust<'_>),
) -> Result<(Reveal, Statement), Refusal> {
    let wire = Wire::read(capture.client, capture.server)?;
    hello::agreed(wire.client.hello, wire.server.hello, host, &[SUITE])?;
    let hellos = SUITE.hash(&[wire.client.hello, wire.server.hello]);
    let handshake = SUITE.handshake_traffic(secret, &hellos);
    let server = flight::server(&wire, SUITE, &handshake.server, host, trust)?;
    let data = SUITE.application_traffic(secret, &server.transcript);
    let records = wire.client.sealed.get(1..).unwrap_or_default();
    let said = client_data(SUITE, &data.client, records)?;
    let hidden = (hide.request)(&said)?;
    let client = StreamKey::new(&data.client)?;
    let rest = wire.server.sealed.get(server.records..).unwrap_or_default();
    let (told, hidden_answer) = match &hide.response {
        None => (Told::Opened(array(&data.server)?), vec![]),
        Some(hide) => {
            let (told, hidden) = answered(&data.server, rest, hide)?;
            (Told::Proved(Box::new(told)), hidden)
        }
    };
    let reveal = Reveal {
        server_handshake: array(&handshake.server)?,
        client_handshake: array(&handshake.client)?,
        server: told,
        client_iv: client.iv,
        tag_keys: (0..).zip(records).map(|(at, _)| client.tag_key(at).into()).collect(),
        said: shown(&said, &hidden),
        hidden,
        proof: vec![],
    };
    if let Some(descriptor) = hide.descriptor {
        // Late handshake messages and data after close_notify are refused here in every mode.
        let answer = server_data(SUITE, &data.server, rest)?;
        stays_hidden(&said, &answer, &reveal)?;
        examine_own(capture, &reveal, backend, descriptor, trust)?;
    }
    let statement = statement_of(&wire, rest, &reveal, &hidden_answer, &server.transcript)?;
    Ok((reveal, statement))
}

/// Checks that no hidden value of the request occurs in the revealed data: neither in the rest of
/// the request, nor in the revealed part of the response.
fn stays_hidden(said: &[u8], answer: &[u8], reveal: &Reveal) -> Result<(), Refusal> {
    let opened = match &reveal.server {
        Told::Opened(_) => answer,
        Told::Proved(told) => &told.said,
    };
    let is_told = |range: &Range<usize>| {
        let value = said.get(range.clone()).unwrap_or_default().trim_ascii();
        let has = |text: &[u8]| text.windows(value.len().max(1)).any(|part| part == value);
        value.len() >= SHORTEST && (has(&reveal.said) || has(opened))
    };
    if reveal.hidden.iter().any(is_told) { Err(Refusal::HiddenIsTold) } else { Ok(()) }
}

/// Returns the revealed values of the server's records, and the hidden parts.
fn answered(
    secret: &[u8],
    records: &[Record<'_>],
    hide: &HideResponse<'_>,
) -> Result<(Answered, Vec<Hidden>), Refusal> {
    let key = StreamKey::new(secret)?;
    let mut opener = Opener::new(SUITE, secret)?;
    let (mut said, mut inner) = (vec![], vec![]);
    for (sequence, record) in (0..).zip(records) {
        let Opened { kind, content, padding } = opener.open(record)?;
        if kind == APPLICATION_DATA {
            said.extend(content);
        }
        let padding = u16::try_from(padding).map_err(|_| Refusal::Reveal)?;
        inner.push(Inner { kind, padding, tag_key: key.tag_key(sequence) });
    }
    let hidden = hide(&said)?;
    let ranges: Vec<_> = hidden.iter().map(|hidden| hidden.range.clone()).collect();
    let said = shown(&said, &ranges);
    Ok((Answered { iv: key.iv, records: inner, said, hidden: ranges }, hidden))
}

/// The key and the IV of one direction's data.
struct StreamKey {
    key: [u8; 32],
    iv: [u8; 12],
}

impl StreamKey {
    fn new(secret: &[u8]) -> Result<Self, Refusal> {
        let iv = SUITE.iv(secret).ok_or(Refusal::SecretLength)?;
        Ok(Self { key: array(&SUITE.expand(secret, "key", &[], 32))?, iv })
    }

    fn tag_key(&self, sequence: u64) -> [u8; 32] {
        let (mut stream, nonce) = ([0; 32], nonce(self.iv, sequence));
        ChaCha20::new(&self.key.into(), &nonce.into()).apply_keystream(&mut stream);
        stream
    }
}
