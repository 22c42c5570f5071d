//! The prover's side: what is told of a connection, after everything was checked that the witness
//! checks, and the proof for it.

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

/// What is hidden of each direction, by what was said there.
pub struct Hide<'a> {
    request: HideRequest<'a>,
    /// None where the response is opened.
    response: Option<HideResponse<'a>>,
    /// What everything is held against before it is told; none for a prover who does not mind.
    descriptor: Option<&'a Descriptor>,
}

/// What is hidden of a request. Where that is not known, nothing may be told.
pub type HideRequest<'a> = Box<dyn Fn(&[u8]) -> Result<Vec<Range<usize>>, Refusal> + 'a>;

/// What is hidden of a response, and what that is proved to be.
pub type HideResponse<'a> = Box<dyn Fn(&[u8]) -> Result<Vec<Hidden>, Refusal> + 'a>;

impl<'a> Hide<'a> {
    /// What a descriptor's mode hides.
    #[must_use]
    pub fn of(descriptor: &'a Descriptor) -> Self {
        let response: HideResponse<'a> = Box::new(|said| Ok(selective::to_hide(said, descriptor)?));
        Self {
            request: Box::new(|said| Ok(request::to_hide(said, descriptor)?)),
            response: descriptor.modes.contains(&Mode::ZktlsFull).then_some(response),
            descriptor: Some(descriptor),
        }
    }

    /// Anything, of which nothing is checked: what a dishonest prover would tell.
    #[must_use]
    pub fn unchecked(request: HideRequest<'a>, response: Option<HideResponse<'a>>) -> Self {
        Self { request, response, descriptor: None }
    }
}

/// What a prover who has the handshake secret tells of a connection, of which parts are hidden.
/// Seconds, and gigabytes. Of [`Hide::of`], nothing is answered that [`examine`](super::examine)
/// would refuse.
///
/// # Errors
/// Where the connection is not one that would be taken, or cannot be proved.
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

/// What is told without the proof, and what has to be proved.
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
        // Late messages and what follows close_notify are refused here in every mode.
        let answer = server_data(SUITE, &data.server, rest)?;
        stays_hidden(&said, &answer, &reveal)?;
        examine_own(capture, &reveal, backend, descriptor, trust)?;
    }
    let statement = statement_of(&wire, rest, &reveal, &hidden_answer, &server.transcript)?;
    Ok((reveal, statement))
}

/// Whether no value that is hidden of the request stands in anything that is told: in the rest of
/// it, or in what is opened of the answer.
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

/// What a prover tells of the server's records, and what it hides of them.
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
