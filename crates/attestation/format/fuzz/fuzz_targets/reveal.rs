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
    CertificateTrust, ExaminationError,
    descriptor::{Descriptor, RevealMode},
    full_reveal::{Capture, Findings},
    signed,
    zk::{Statement, ZkBackend, ZkError},
    zktls::{HidePolicy, PartialResponse, Reveal, RevealedServerData, examine, reveal},
};
use libfuzzer_sys::fuzz_target;
use rustls_pki_types::UnixTime;

use crate::{
    forge::Inner,
    setup::{HOST, Session, Setup, descriptor},
};

/// Accepts every proof, and records the statement.
#[derive(Default)]
struct AcceptingBackend(Mutex<Option<Statement>>);

impl ZkBackend for AcceptingBackend {
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
    revealed: Reveal,
    found: Findings,
    statement: Statement,
}

impl Honest {
    fn of(mode: RevealMode) -> Self {
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
        let trust = CertificateTrust { roots: &session.roots, now: UnixTime::now() };
        let hide = HidePolicy::of(&descriptor);
        let revealed = reveal(capture, secret, &hide, &AcceptingBackend::default(), HOST, &trust);
        let revealed = revealed.expect("an honest connection");
        let (found, statement) = examined(&session, &descriptor, &revealed).expect("it is honest");
        drop(hide);
        Self { session, descriptor, revealed, found, statement }
    }
}

static HONEST: LazyLock<[Honest; 2]> =
    LazyLock::new(|| [Honest::of(RevealMode::ZktlsRequest), Honest::of(RevealMode::ZktlsFull)]);

fn examined(
    session: &Session,
    descriptor: &Descriptor,
    revealed: &Reveal,
) -> Result<(Findings, Statement), ExaminationError> {
    let capture = Capture { client: &session.client, server: &session.server };
    let trust = CertificateTrust { roots: &session.roots, now: UnixTime::now() };
    let backend = AcceptingBackend::default();
    let found = examine(capture, revealed, &backend, descriptor, &trust)?;
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

fn change_answered(revealed: &mut PartialResponse, (how, at, by): Change) {
    let which = usize::from(at).checked_rem(revealed.records.len()).unwrap_or_default();
    match (how % 8, revealed.records.get_mut(which)) {
        (0, _) => revealed.iv[usize::from(at) % 12] ^= by,
        (1, Some(record)) => record.kind = by,
        (2, Some(record)) => record.padding = u16::from(by),
        (3, Some(record)) => record.tag_key[usize::from(by) % 32] ^= 1,
        (4, Some(_)) => drop(revealed.records.remove(which)),
        (5, Some(record)) => {
            let again = record.clone();
            revealed.records.insert(which, again);
        }
        (6, _) => change_bytes(&mut revealed.response_bytes, (by, at, how)),
        _ => change_ranges(&mut revealed.hidden, (by, at, how)),
    }
}

fn change(revealed: &mut Reveal, (how, at, by): Change) {
    let place = usize::from(at);
    let next = (how / 8, at, by);
    match how % 8 {
        0 => revealed.client_iv[place % 12] ^= by,
        1 => revealed.server_handshake[place % 32] ^= by,
        2 => revealed.client_handshake[place % 32] ^= by,
        3 => change_bytes(&mut revealed.request_bytes, next),
        4 => change_ranges(&mut revealed.hidden, next),
        5 if by % 2 == 0 => drop(revealed.tag_keys.pop()),
        5 => revealed.tag_keys.extend(revealed.tag_keys.first().copied()),
        _ => match &mut revealed.server {
            RevealedServerData::TrafficSecret(secret) => secret[place % 32] ^= by,
            RevealedServerData::Proved(answered) => change_answered(answered, next),
        },
    }
}

fuzz_target!(init: LazyLock::force(&HONEST), |input: (bool, Vec<Change>, &[u8])| {
    let (full, changes, bytes) = input;
    let Honest { session, descriptor, revealed, found, statement } = &HONEST[usize::from(full)];
    // Modifies the honest reveal or, without modifications, decodes arbitrary bytes as one.
    let mut revealed = revealed.clone();
    for one in changes.iter().take(8) {
        change(&mut revealed, *one);
    }
    if changes.is_empty() && !bytes.is_empty() {
        let Ok(read) = signed::read::<Reveal>(bytes) else { return };
        revealed = read;
    }
    let Ok((other, proved)) = examined(session, descriptor, &revealed) else { return };
    assert!(proved != *statement || other == *found, "one statement has two findings");
});
