//! Parts of a connection hidden by a proof in zero knowledge: the credentials in the request, and in
//! `zktls-full` what no claim names in the response, too.
//!
//! **What the witness does not get:** the handshake secret itself, the master secret, the client's
//! traffic secret and key; in `zktls-full` those of the server's data neither. None of them follows
//! from what it gets, since HKDF runs one way.

use std::ops::Range;

use chacha20::{
    ChaCha20,
    cipher::{KeyIvInit as _, StreamCipher as _},
};
use minicbor::{Decode, Encode, bytes::ByteArray};
use poly1305::{
    Poly1305,
    universal_hash::{KeyInit as _, UniversalHash as _},
};
use subtle::ConstantTimeEq as _;

use crate::{
    body::Proof,
    descriptor::{Descriptor, Mode},
    full_reveal::{Answer, Capture, Findings},
    http::{
        Seen, request,
        selective::{self, Hidden},
    },
    refusal::Refusal,
    tls::{
        ALERT, APPLICATION_DATA, HANDSHAKE,
        flight::{self, Trust, sha256},
        hello,
        open::{CLOSE_NOTIFY, Opened, Opener, client_data, nonce, server_data},
        schedule::Suite,
        wire::{Record, Wire},
    },
    zk::{BLOCK, Block, Class, MOST_BLOCKS, ServerData, Side, Statement, ZkBackend, ZkError},
};

/// The only suite whose stream is proved.
const SUITE: Suite = Suite::ChaCha20Poly1305Sha256;
const TAG: usize = 16;

/// What a prover tells once the connection is over.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Reveal {
    #[cbor(n(0), with = "minicbor::bytes")]
    pub server_handshake: [u8; 32],
    #[cbor(n(1), with = "minicbor::bytes")]
    pub client_handshake: [u8; 32],
    #[n(2)]
    pub server: Told,
    #[cbor(n(3), with = "minicbor::bytes")]
    pub client_iv: [u8; 12],
    /// By record of the client's data: the key of its tag, the beginning of its stream.
    #[n(4)]
    pub tag_keys: Vec<ByteArray<32>>,
    /// What the client said, with anything in the place of what is hidden.
    #[cbor(n(5), with = "minicbor::bytes")]
    pub said: Vec<u8>,
    /// In their order, none empty, none touching another.
    #[n(6)]
    pub hidden: Vec<Range<usize>>,
    #[cbor(n(7), with = "minicbor::bytes")]
    pub proof: Vec<u8>,
}

/// What is told of what the server said.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Told {
    /// The traffic secret: everything.
    #[n(0)]
    Opened(#[cbor(n(0), with = "minicbor::bytes")] [u8; 32]),
    /// Parts, by proof.
    #[n(1)]
    Proved(#[n(0)] Box<Answered>),
}

/// What is told of a response of which parts are hidden.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Answered {
    #[cbor(n(0), with = "minicbor::bytes")]
    pub iv: [u8; 12],
    /// By record of the server's after its flight.
    #[n(1)]
    pub records: Vec<Inner>,
    /// What the server said, with anything in the place of what is hidden.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub said: Vec<u8>,
    /// In their order, none empty, none touching another.
    #[n(3)]
    pub hidden: Vec<Range<usize>>,
}

/// What is told of a record of the server's.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Inner {
    /// The type of what it holds.
    #[n(0)]
    pub kind: u8,
    /// Zeros behind that (RFC 8446, section 5.4).
    #[n(1)]
    pub padding: u16,
    /// The key of its tag, the beginning of its stream.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub tag_key: [u8; 32],
}

impl Reveal {
    /// How much it hides.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        match self.server {
            Told::Opened(_) => Mode::ZktlsRequest,
            Told::Proved(_) => Mode::ZktlsFull,
        }
    }
}

/// Examines a connection that is over.
///
/// # Errors
/// The first check that fails.
pub fn examine(
    capture: Capture<'_>,
    reveal: &Reveal,
    backend: &dyn ZkBackend,
    descriptor: &Descriptor,
    trust: &Trust<'_>,
) -> Result<Findings, Refusal> {
    if !descriptor.modes.contains(&reveal.mode()) {
        return Err(Refusal::Mode);
    }
    let wire = Wire::read(capture.client, capture.server)?;
    let agreed = hello::agreed(wire.client.hello, wire.server.hello, &descriptor.host, &[SUITE])?;
    let server = flight::server(&wire, SUITE, &reveal.server_handshake, &descriptor.host, trust)?;
    let sealed = &wire.client.sealed;
    flight::client_finished(SUITE, &reveal.client_handshake, sealed, &server.transcript)?;
    let rest = wire.server.sealed.get(server.records..).unwrap_or_default();
    is_short(&wire, rest, reveal)?;
    let (answer, hidden) = match &reveal.server {
        Told::Opened(secret) => (Answer::Opened(server_data(SUITE, secret, rest)?), vec![]),
        Told::Proved(told) => {
            ordered(&told.hidden, told.said.len())?;
            let seen = Seen { bytes: &told.said, hidden: &told.hidden };
            let read = selective::read(seen, descriptor)?;
            let hidden = read.hidden.clone();
            (Answer::Selective(Box::new(read)), hidden)
        }
    };
    let statement = statement(&wire, rest, reveal, &hidden, &server.transcript)?;
    backend.verify(&statement, &reveal.proof)?;
    let said = shown(&reveal.said, &reveal.hidden);
    let found = Findings::of((agreed, server), said, &reveal.hidden, answer, descriptor)?;
    let proof = Proof {
        system: backend.name().to_owned(),
        circuit: backend.circuit(&statement)?,
        sha256: sha256(&reveal.proof),
        public_sha256: sha256(&statement.public().concat()),
    };
    Ok(Findings { mode: reveal.mode(), proof: Some(proof), ..found })
}

/// What is hidden of each direction, by what was said there.
pub struct Hide<'a> {
    pub request: Box<dyn Fn(&[u8]) -> Vec<Range<usize>> + 'a>,
    /// None where the response is opened.
    pub response: Option<HideResponse<'a>>,
}

/// What is hidden of a response, and what that is proved to be.
pub type HideResponse<'a> = Box<dyn Fn(&[u8]) -> Result<Vec<Hidden>, Refusal> + 'a>;

impl<'a> Hide<'a> {
    /// What a descriptor's mode hides.
    #[must_use]
    pub fn of(descriptor: &'a Descriptor) -> Self {
        let response: HideResponse<'a> = Box::new(|said| Ok(selective::to_hide(said, descriptor)?));
        Self {
            // A request that is not the descriptor's is refused later, with the reason.
            request: Box::new(|said| request::to_hide(said, descriptor).unwrap_or_default()),
            response: descriptor.modes.contains(&Mode::ZktlsFull).then_some(response),
        }
    }
}

/// What a prover who has the handshake secret tells of a connection, of which parts are hidden.
/// Seconds, and gigabytes.
///
/// # Errors
/// Where the connection is not one that [`examine`] would take, or cannot be proved.
pub fn reveal(
    capture: Capture<'_>,
    secret: &[u8; 32],
    hide: &Hide<'_>,
    backend: &dyn ZkBackend,
    host: &str,
    trust: &Trust<'_>,
) -> Result<Reveal, Refusal> {
    let wire = Wire::read(capture.client, capture.server)?;
    hello::agreed(wire.client.hello, wire.server.hello, host, &[SUITE])?;
    let hellos = SUITE.hash(&[wire.client.hello, wire.server.hello]);
    let handshake = SUITE.handshake_traffic(secret, &hellos);
    let server = flight::server(&wire, SUITE, &handshake.server, host, trust)?;
    let data = SUITE.application_traffic(secret, &server.transcript);
    let records = wire.client.sealed.get(1..).unwrap_or_default();
    let said = client_data(SUITE, &data.client, records)?;
    let hidden = (hide.request)(&said);
    let client = StreamKey::new(&data.client)?;
    let rest = wire.server.sealed.get(server.records..).unwrap_or_default();
    let (told, hidden_answer) = match &hide.response {
        None => (Told::Opened(array(&data.server)?), vec![]),
        Some(hide) => {
            let (told, hidden) = answered(&data.server, rest, hide)?;
            (Told::Proved(Box::new(told)), hidden)
        }
    };
    let mut reveal = Reveal {
        server_handshake: array(&handshake.server)?,
        client_handshake: array(&handshake.client)?,
        server: told,
        client_iv: client.iv,
        tag_keys: (0..).zip(records).map(|(at, _)| client.tag_key(at).into()).collect(),
        said: shown(&said, &hidden),
        hidden,
        proof: vec![],
    };
    let statement = statement(&wire, rest, &reveal, &hidden_answer, &server.transcript)?;
    reveal.proof = backend.prove(&statement, secret)?;
    Ok(reveal)
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

/// Hidden ranges in the one order that they can be told in: at least one byte is between two.
fn ordered(hidden: &[Range<usize>], length: usize) -> Result<(), Refusal> {
    let mut end = 0;
    for hidden in hidden {
        if hidden.is_empty() || hidden.start < end || hidden.end > length {
            return Err(Refusal::Reveal);
        }
        end = hidden.end.saturating_add(1);
    }
    Ok(())
}

/// Whether a circuit can hold all that has to be proved, by lengths alone: before a byte of it is
/// gone through. Hidden ranges are bounded with it, since none of them is empty ([`ordered`]).
fn is_short(wire: &Wire<'_>, answer: &[Record<'_>], reveal: &Reveal) -> Result<(), Refusal> {
    let asked = wire.client.sealed.iter().skip(1).map(|record| blocks(record, 0));
    let (answered, told) = match &reveal.server {
        Told::Opened(_) => (0, 0),
        Told::Proved(told) => {
            let answered = answer.iter().zip(&told.records).map(|(record, inner)| {
                // Of messages of the handshake only the type behind them is proved.
                let sealed = if inner.kind == HANDSHAKE {
                    record.body.len().saturating_sub(TAG + 1 + usize::from(inner.padding)) / BLOCK
                } else {
                    0
                };
                blocks(record, sealed)
            });
            (answered.sum(), told.said.len())
        }
    };
    let count = asked.sum::<usize>() + answered;
    let longest = MOST_BLOCKS * BLOCK;
    let short = count <= MOST_BLOCKS && reveal.said.len() <= longest && told <= longest;
    if short { Ok(()) } else { Err(ZkError::TooLong.into()) }
}

/// Blocks of a record, that of its tag included, without the first ones of its content.
fn blocks(record: &Record<'_>, first: usize) -> usize {
    1 + record.body.len().saturating_sub(TAG).div_ceil(BLOCK).saturating_sub(first)
}

/// What has to be proved, made of what was recorded; of the prover's words only those that the
/// proof covers.
fn statement(
    wire: &Wire<'_>,
    answer: &[Record<'_>],
    reveal: &Reveal,
    hidden_answer: &[Hidden],
    transcript: &[u8],
) -> Result<Statement, Refusal> {
    ordered(&reveal.hidden, reveal.said.len())?;
    let mut blocks = asked_blocks(wire, reveal)?;
    let server = match &reveal.server {
        Told::Opened(secret) => ServerData::Opened(*secret),
        Told::Proved(told) => {
            blocks.extend(answer_blocks(answer, told, hidden_answer)?);
            ServerData::Proved(told.iv)
        }
    };
    Ok(Statement {
        hellos: array(&SUITE.hash(&[wire.client.hello, wire.server.hello]))?,
        transcript: array(transcript)?,
        server_handshake: reveal.server_handshake,
        client_handshake: reveal.client_handshake,
        server,
        client_iv: reveal.client_iv,
        blocks,
    })
}

/// The blocks of the client's data: all of it, then `close_notify`.
fn asked_blocks(wire: &Wire<'_>, reveal: &Reveal) -> Result<Vec<Block>, Refusal> {
    let records = wire.client.sealed.get(1..).unwrap_or_default();
    if reveal.tag_keys.len() != records.len() {
        return Err(Refusal::Reveal);
    }
    let said = shown(&reveal.said, &reveal.hidden);
    let printable = |range: &Range<usize>| Hidden { range: range.clone(), class: Class::Printable };
    let hidden: Vec<_> = reveal.hidden.iter().map(printable).collect();
    let mut stream = Stream::new(Side::Client, reveal.client_iv, &said, &hidden);
    for (sequence, (record, tag_key)) in (0_u64..).zip(records.iter().zip(&reveal.tag_keys)) {
        let last = usize::try_from(sequence).is_ok_and(|sequence| sequence + 1 == records.len());
        let ciphertext = tagged(record, tag_key).ok_or(Refusal::Tag(sequence))?;
        if last {
            // A client says that it has said all, whatever its record is said to hold.
            stream.record(sequence, tag_key, ciphertext, &CLOSE_NOTIFY, (ALERT, 0))?;
        } else {
            let length = ciphertext.len().checked_sub(1).filter(|length| *length > 0);
            let length = length.ok_or(Refusal::EmptyData)?;
            stream.data(sequence, tag_key, ciphertext, (length, 0))?;
        }
    }
    stream.end()
}

/// The blocks of the server's data. Of tickets nothing is opened but that they are messages of the
/// handshake: should one of them change the key, no later record has its tag.
fn answer_blocks(
    records: &[Record<'_>],
    told: &Answered,
    hidden: &[Hidden],
) -> Result<Vec<Block>, Refusal> {
    if told.records.len() != records.len() {
        return Err(Refusal::Reveal);
    }
    let said = shown(&told.said, &told.hidden);
    let mut stream = Stream::new(Side::Server, told.iv, &said, hidden);
    let mut closed = false;
    for (sequence, (record, inner)) in (0_u64..).zip(records.iter().zip(&told.records)) {
        let Inner { kind, padding, tag_key } = inner;
        let ciphertext = tagged(record, tag_key).ok_or(Refusal::Tag(sequence))?;
        if closed {
            return Err(Refusal::AfterClose);
        }
        let padding = usize::from(*padding);
        let length = ciphertext.len().checked_sub(padding + 1).ok_or(Refusal::Reveal)?;
        match *kind {
            APPLICATION_DATA => stream.data(sequence, tag_key, ciphertext, (length, padding))?,
            ALERT => {
                closed = true;
                stream.record(sequence, tag_key, ciphertext, &CLOSE_NOTIFY, (ALERT, padding))?;
            }
            HANDSHAKE => stream.opaque(sequence, tag_key, ciphertext, (length, padding))?,
            other => return Err(Refusal::InnerType(other)),
        }
    }
    stream.end()
}

/// Makes the blocks of one direction, record by record.
struct Stream<'a> {
    side: Side,
    iv: [u8; 12],
    /// What is said in all, and how much of it the records had so far.
    said: &'a [u8],
    at: usize,
    /// What is hidden of it from there on, in its order.
    hidden: &'a [Hidden],
    blocks: Vec<Block>,
}

impl<'a> Stream<'a> {
    const fn new(side: Side, iv: [u8; 12], said: &'a [u8], hidden: &'a [Hidden]) -> Self {
        Self { side, iv, said, at: 0, hidden, blocks: vec![] }
    }

    /// A record of application data with so much content and padding.
    fn data(
        &mut self,
        sequence: u64,
        tag_key: &[u8; 32],
        ciphertext: &[u8],
        (length, padding): (usize, usize),
    ) -> Result<(), Refusal> {
        let (start, end) = (self.at, self.at.saturating_add(length));
        let shown = self.said.get(start..end).ok_or(Refusal::Reveal)?;
        let plain = [shown, &[APPLICATION_DATA], &vec![0; padding]].concat();
        // The type of what a record holds is never hidden.
        let mut rest = self.hidden;
        let seen = |place: usize| {
            let at = start + place;
            while let Some((_, after)) = rest.split_first().filter(|(one, _)| one.range.end <= at) {
                rest = after;
            }
            match rest.first().filter(|one| place < length && one.range.contains(&at)) {
                Some(hidden) => Seeing::Hidden(Some(hidden.class)),
                None => Seeing::Opened,
            }
        };
        self.push(sequence, tag_key, (ciphertext, &plain, 0), seen)?;
        let over = self.hidden.iter().take_while(|hidden| hidden.range.end <= end).count();
        self.hidden = self.hidden.get(over..).unwrap_or_default();
        self.at = end;
        Ok(())
    }

    /// A record that holds just this content, all of it opened.
    fn record(
        &mut self,
        sequence: u64,
        tag_key: &[u8; 32],
        ciphertext: &[u8],
        content: &[u8],
        (kind, padding): (u8, usize),
    ) -> Result<(), Refusal> {
        let plain = [content, &[kind], &vec![0; padding]].concat();
        if plain.len() != ciphertext.len() {
            return Err(Refusal::InnerType(kind));
        }
        self.push(sequence, tag_key, (ciphertext, &plain, 0), |_| Seeing::Opened)
    }

    /// A record with messages of the handshake, of which nothing is proved but that.
    fn opaque(
        &mut self,
        sequence: u64,
        tag_key: &[u8; 32],
        ciphertext: &[u8],
        (length, padding): (usize, usize),
    ) -> Result<(), Refusal> {
        let plain = [vec![0; length], vec![HANDSHAKE], vec![0; padding]].concat();
        let seen = |place| if place < length { Seeing::Hidden(None) } else { Seeing::Opened };
        self.push(sequence, tag_key, (ciphertext, &plain, length / BLOCK), seen)
    }

    /// The block of a record's tag, and those of its content from this one on.
    fn push(
        &mut self,
        sequence: u64,
        tag_key: &[u8; 32],
        (ciphertext, plain, first): (&[u8], &[u8], usize),
        mut seen: impl FnMut(usize) -> Seeing,
    ) -> Result<(), Refusal> {
        if plain.len() != ciphertext.len() {
            return Err(Refusal::Reveal);
        }
        let (side, nonce) = (self.side, nonce(self.iv, sequence));
        let mut tag = Block { side, nonce, opened: u64::from(u32::MAX), ..Block::BLANK };
        // The first block of a record's stream: half of it is the key of the tag (RFC 8439, section
        // 2.6).
        for (place, byte) in tag.plain.iter_mut().zip(tag_key) {
            *place = *byte;
        }
        self.blocks.push(tag);
        let parts = ciphertext.chunks(BLOCK).zip(plain.chunks(BLOCK)).enumerate().skip(first);
        self.blocks.extend(parts.map(|(part, (ciphertext, plain))| {
            let counter = u32::try_from(part + 1).unwrap_or(u32::MAX);
            let mut block = Block { side, nonce, counter, ..Block::BLANK };
            let places = block.ciphertext.iter_mut().zip(&mut block.plain);
            for (at, ((cipher, shown), (own, plain))) in
                places.zip(ciphertext.iter().zip(plain)).enumerate()
            {
                *cipher = *own;
                let mask = match seen(part * BLOCK + at) {
                    Seeing::Opened => {
                        *shown = *plain;
                        &mut block.opened
                    }
                    Seeing::Hidden(Some(Class::Printable)) => &mut block.printable,
                    Seeing::Hidden(Some(Class::Text)) => &mut block.text,
                    Seeing::Hidden(Some(Class::Scalar)) => &mut block.scalar,
                    Seeing::Hidden(None) => continue,
                };
                *mask |= 1 << at;
            }
            block
        }));
        Ok(())
    }

    /// All blocks, where the records had all that is said.
    fn end(self) -> Result<Vec<Block>, Refusal> {
        if self.at == self.said.len() { Ok(self.blocks) } else { Err(Refusal::Reveal) }
    }
}

/// What is to be seen of a byte.
enum Seeing {
    Opened,
    /// With what it is proved to be, if anything.
    Hidden(Option<Class>),
}

/// A record's ciphertext, where its tag (RFC 8439, section 2.8) is that of this key.
fn tagged<'a>(record: &Record<'a>, key: &[u8; 32]) -> Option<&'a [u8]> {
    let (ciphertext, tag) = record.body.split_at_checked(record.body.len().checked_sub(TAG)?)?;
    let mut mac = Poly1305::new(key.into());
    mac.update_padded(&record.header);
    mac.update_padded(ciphertext);
    let lengths = [record.header.len(), ciphertext.len()].map(u64::try_from);
    let [header, data] = lengths.map(|length| length.unwrap_or(u64::MAX).to_le_bytes());
    mac.update_padded(&[header, data].concat());
    bool::from(mac.finalize().as_slice().ct_eq(tag)).then_some(ciphertext)
}

/// What is shown of what somebody said: zeros where it is hidden, whatever was told.
fn shown(said: &[u8], hidden: &[Range<usize>]) -> Vec<u8> {
    let mut said = said.to_vec();
    for hidden in hidden {
        said.get_mut(hidden.clone()).unwrap_or_default().fill(0);
    }
    said
}

fn array<const N: usize>(bytes: &[u8]) -> Result<[u8; N], Refusal> {
    bytes.try_into().map_err(|_| Refusal::SecretLength)
}
