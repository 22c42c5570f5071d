//! A lying prover's reveal of an honest connection, with a backend that accepts every proof: the
//! findings are those of an honest reveal, or the statement to be proved differs.
#![no_main]

#[path = "../../tests/attacks/any_certificate.rs"]
mod any_certificate;
#[expect(dead_code, reason = "the attacks use the other items")]
#[path = "../../tests/attacks/forge.rs"]
mod forge;
#[expect(dead_code, reason = "the attacks use the other items")]
#[path = "../../tests/attacks/setup.rs"]
mod setup;

use std::{
    ops::Range,
    sync::{LazyLock, Mutex},
};

use attestation::{
    Refusal, Trust,
    descriptor::{Descriptor, Mode},
    full_reveal::{Capture, Findings},
    signed,
    zk::{Statement, ZkBackend, ZkError},
    zktls::{Answered, Hide, Reveal, Told, examine, reveal},
};
use libfuzzer_sys::fuzz_target;
use rustls_pki_types::UnixTime;

use crate::{
    forge::Inner,
    setup::{HOST, Setup, Session, descriptor},
};

/// Accepts every proof, and records the statement.
#[derive(Default)]
struct Believing(Mutex<Option<Statement>>);

impl ZkBackend for Believing {
    fn name(&self) -> &'static str {
        "none"
    }

    fn prove(&self, _: &Statement, _: &[u8; 32]) -> Result<Vec<u8>, ZkError> {
        Ok(vec![])
    }

    fn circuit(&self, _: &Statement) -> Result<[u8; 32], ZkError> {
        Ok([0; 32])
    }

    fn verify(&self, statement: &Statement, _: &[u8]) -> Result<(), ZkError> {
        *self.0.lock().expect("no panic before") = Some(statement.clone());
        Ok(())
    }
}

/// A connection with its honest reveal, and the results.
struct Honest {
    session: Session,
    descriptor: Descriptor,
    told: Reveal,
    found: Findings,
    statement: Statement,
}

impl Honest {
    fn of(mode: Mode) -> Self {
        let session = Setup::default().play().with(|parts| {
            let data = parts.server.iter().position(|inner| inner.kind == 23);
            let whole = parts.server.remove(data.expect("a response")).content;
            let (first, second) = whole.split_at(90);
            let padded = Inner { padding: 2, ..Inner::new(23, second) };
            let ticket = [&[4, 0, 0, 80], [7; 80].as_slice()].concat();
            parts.server.splice(0..0, [Inner::new(22, &ticket), Inner::new(23, first), padded]);
        });
        let descriptor = Descriptor { modes: vec![mode], ..descriptor() };
        let secret = session.secret.as_slice().try_into().expect("32 bytes");
        let capture = Capture { client: &session.client, server: &session.server };
        let trust = Trust { roots: &session.roots, now: UnixTime::now() };
        let hide = Hide::of(&descriptor);
        let told = reveal(capture, secret, &hide, &Believing::default(), HOST, &trust);
        let told = told.expect("an honest connection");
        let (found, statement) = examined(&session, &descriptor, &told).expect("it is honest");
        drop(hide);
        Self { session, descriptor, told, found, statement }
    }
}

static HONEST: LazyLock<[Honest; 2]> =
    LazyLock::new(|| [Honest::of(Mode::ZktlsRequest), Honest::of(Mode::ZktlsFull)]);

fn examined(
    session: &Session,
    descriptor: &Descriptor,
    told: &Reveal,
) -> Result<(Findings, Statement), Refusal> {
    let capture = Capture { client: &session.client, server: &session.server };
    let trust = Trust { roots: &session.roots, now: UnixTime::now() };
    let backend = Believing::default();
    let found = examine(capture, told, &backend, descriptor, &trust)?;
    let statement = backend.0.into_inner().expect("no panic before");
    // The proof itself is not compared here.
    Ok((Findings { proof: None, ..found }, statement.expect("findings need a proof")))
}

type Change = (u8, u16, u8);

fn change_bytes(bytes: &mut Vec<u8>, (how, at, by): Change) {
    let at = usize::from(at).checked_rem(bytes.len()).unwrap_or_default();
    match how % 4 {
        0 => bytes.insert(at, by),
        1 if !bytes.is_empty() => drop(bytes.remove(at)),
        _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = by),
    }
}

fn change_ranges(ranges: &mut Vec<Range<usize>>, (how, at, by): Change) {
    let count = ranges.len();
    let which = usize::from(by).checked_rem(count).unwrap_or_default();
    let at = usize::from(at);
    match (how % 6, ranges.get_mut(which)) {
        (0, Some(range)) => range.start = at,
        (1, Some(range)) => range.end = at,
        (2, Some(range)) => range.end = range.end.saturating_add(1),
        (3, Some(_)) => drop(ranges.remove(which)),
        (4, Some(_)) => ranges.rotate_left(which),
        _ => ranges.insert(which, at..at + usize::from(by)),
    }
}

fn change_answered(told: &mut Answered, (how, at, by): Change) {
    let which = usize::from(at).checked_rem(told.records.len()).unwrap_or_default();
    match (how % 8, told.records.get_mut(which)) {
        (0, _) => told.iv[usize::from(at) % 12] ^= by,
        (1, Some(record)) => record.kind = by,
        (2, Some(record)) => record.padding = u16::from(by),
        (3, Some(record)) => record.tag_key[usize::from(by) % 32] ^= 1,
        (4, Some(_)) => drop(told.records.remove(which)),
        (5, Some(record)) => {
            let again = record.clone();
            told.records.insert(which, again);
        }
        (6, _) => change_bytes(&mut told.said, (by, at, how)),
        _ => change_ranges(&mut told.hidden, (by, at, how)),
    }
}

fn change(told: &mut Reveal, (how, at, by): Change) {
    let place = usize::from(at);
    let next = (how / 8, at, by);
    match how % 8 {
        0 => told.client_iv[place % 12] ^= by,
        1 => told.server_handshake[place % 32] ^= by,
        2 => told.client_handshake[place % 32] ^= by,
        3 => change_bytes(&mut told.said, next),
        4 => change_ranges(&mut told.hidden, next),
        5 if by % 2 == 0 => drop(told.tag_keys.pop()),
        5 => told.tag_keys.extend(told.tag_keys.first().copied()),
        _ => match &mut told.server {
            Told::Opened(secret) => secret[place % 32] ^= by,
            Told::Proved(answered) => change_answered(answered, next),
        },
    }
}

fuzz_target!(init: LazyLock::force(&HONEST), |input: (bool, Vec<Change>, &[u8])| {
    let (full, changes, bytes) = input;
    let Honest { session, descriptor, told, found, statement } = &HONEST[usize::from(full)];
    // Modifies the honest reveal or, without modifications, decodes arbitrary bytes as one.
    let mut told = told.clone();
    for one in changes.iter().take(8) {
        change(&mut told, *one);
    }
    if changes.is_empty() && !bytes.is_empty() {
        let Ok(read) = signed::read::<Reveal>(bytes) else { return };
        told = read;
    }
    let Ok((other, asked)) = examined(session, descriptor, &told) else { return };
    assert!(asked != *statement || other == *found, "one statement has two findings");
});
