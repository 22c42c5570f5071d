//! Attacks on the server's authentication: certificates, signatures, hellos.

use attestation::{ExaminationError, descriptor::RevealMode};
use rcgen::{ExtendedKeyUsagePurpose, KeyPair, SigningKey as _};

use crate::{
    forge::{Inner, first, plain, records},
    setup::{Certificate, Session, Setup, descriptor},
};

fn shown(certificate: Certificate) -> ExaminationError {
    Setup { certificate, ..Setup::default() }.play().examine().unwrap_err()
}

/// Attack 12.
#[test]
fn certificates_that_prove_nothing_are_refused() {
    let is = |refusal: ExaminationError, part: &str| {
        let ExaminationError::Certificate(error) = refusal else { panic!("{refusal}") };
        assert!(format!("{error:?}").contains(part), "{error:?} is not {part}");
    };
    is(shown(Certificate { name: "other.test".into(), ..Default::default() }), "NotValidForName");
    is(shown(Certificate { self_signed: true, ..Default::default() }), "UnknownIssuer");
    is(shown(Certificate { gap: true, ..Default::default() }), "UnknownIssuer");
    is(shown(Certificate { years: (-3, -2), ..Default::default() }), "CertExpired");
    is(shown(Certificate { years: (2, 3), ..Default::default() }), "CertNotValidYet");
    let usage = ExtendedKeyUsagePurpose::ClientAuth;
    is(shown(Certificate { usage, ..Default::default() }), "RequiredEkuNotFound");
    let roots = Setup::default().play().roots;
    is(Session { roots, ..Setup::default().play() }.examine().unwrap_err(), "UnknownIssuer");
}

/// Attack 13: the prover knows the handshake secrets and makes everything else consistent.
#[test]
fn signatures_by_other_keys_or_over_other_words_are_refused() {
    let session = Setup::default().play();
    let other = KeyPair::generate().unwrap();
    let signed = session.with(|parts| {
        let signature = other.sign(b"something").unwrap();
        let length = u16::try_from(signature.len()).unwrap().to_be_bytes();
        let body = [&[4, 3], length.as_slice(), &signature].concat();
        let [.., high, low] = u32::try_from(body.len()).unwrap().to_be_bytes();
        parts.flight[2] = [&[15, 0, high, low], body.as_slice()].concat();
    });
    assert_eq!(signed.examine(), Err(ExaminationError::Signature));
    let another = Setup::default().play();
    let borrowed = session.with(|parts| parts.flight[2] = another.parts().flight[2].clone());
    assert_eq!(borrowed.examine(), Err(ExaminationError::Signature));
    let twisted = session.with(|parts| parts.client_hello[10] ^= 1);
    assert_eq!(twisted.examine(), Err(ExaminationError::Signature), "the hello is covered");
    let scheme = session.with(|parts| parts.flight[2][4..6].copy_from_slice(&[2, 1]));
    assert_eq!(scheme.examine(), Err(ExaminationError::SignatureScheme(0x0201)));
    let scheme = session.with(|parts| parts.flight[2][4..6].copy_from_slice(&[8, 7]));
    assert_eq!(scheme.examine(), Err(ExaminationError::Signature), "another kind of key");
}

/// Attack 14.
#[test]
fn a_finished_that_does_not_fit_is_refused() {
    let session = Setup::default().play();
    let altered = session.with(|parts| {
        parts.finish = false;
        parts.flight[3][10] ^= 1;
    });
    assert_eq!(altered.examine(), Err(ExaminationError::ServerFinished));
    let mut without = records(&session.client);
    let hello = without.remove(0).1;
    without.retain(|(kind, _)| *kind == 23);
    let rest = without.iter().skip(1).flat_map(|(kind, body)| sealed(*kind, body));
    let client = first(&hello).into_iter().chain(rest).collect();
    let refused = Session { client, ..session }.examine().unwrap_err();
    assert_eq!(refused, ExaminationError::Tag(0), "not the handshake key");
}

/// Flights of other messages than the four.
#[test]
fn flights_with_other_messages_are_refused() {
    let session = Setup::default().play();
    let asked = session.with(|parts| parts.flight.insert(1, vec![13, 0, 0, 3, 0, 0, 0]));
    assert_eq!(asked.examine(), Err(ExaminationError::Flight), "a request for a certificate");
    let without = session.with(|parts| drop(parts.flight.remove(0)));
    assert_eq!(without.examine(), Err(ExaminationError::Flight));
    let context = session.with(|parts| {
        let body = [&[1, 7], &parts.flight[1][5..]].concat();
        let [.., high, low] = u32::try_from(body.len()).unwrap().to_be_bytes();
        parts.flight[1] = [&[11, 0, high, low], body.as_slice()].concat();
    });
    assert_eq!(context.examine(), Err(ExaminationError::CertificateContext));
    let behind = session.with(|parts| {
        parts.finish = false;
        parts.flight[3].extend([4, 0, 0, 0]);
    });
    assert_eq!(behind.examine(), Err(ExaminationError::AfterFinished));
    let kind = session.with(|parts| parts.flight_kind = 23);
    assert_eq!(kind.examine(), Err(ExaminationError::InnerType(23)));
    let protocol = session.with(|parts| parts.flight[0] = vec![8, 0, 0, 2, 0, 0]);
    assert_eq!(protocol.examine(), Err(ExaminationError::Protocol));
}

/// Attacks 15, 16, 19: hellos that hide parameters or skip authentication, and malformed hellos.
#[test]
fn hellos_that_offer_what_must_not_be_are_refused() {
    let session = Setup::default().play();
    let offered = |kind: u16, value: &[u8]| {
        session.with(|parts| parts.client_hello = with_extension(&parts.client_hello, kind, value))
    };
    assert_eq!(offered(41, &[0; 40]).examine(), Err(ExaminationError::Resumption));
    assert_eq!(offered(42, &[]).examine(), Err(ExaminationError::EarlyData));
    assert_eq!(offered(0xfe0d, &[0; 20]).examine(), Err(ExaminationError::EncryptedHello));
    assert_eq!(offered(27, &[2, 0, 1]).examine(), Err(ExaminationError::ClientExtension(27)));
    assert_eq!(offered(49, &[]).examine(), Err(ExaminationError::ClientExtension(49)));
    assert_eq!(
        offered(16, b"\0\x03\x02h2").examine(),
        Err(ExaminationError::DuplicateExtension(16))
    );
    let instead = |kind: u16, value: &[u8]| {
        session.with(|parts| {
            let hello = without_extension(&parts.client_hello, kind);
            parts.client_hello = with_extension(&hello, kind, value);
        })
    };
    assert_eq!(instead(43, &[4, 3, 4, 3, 3]).examine(), Err(ExaminationError::TlsVersion));
    assert_eq!(instead(16, b"\0\x0c\x02h2\x08http/1.1").examine(), Err(ExaminationError::Protocol));
    assert_eq!(instead(0, b"\0\x08\0\0\x05a.com").examine(), Err(ExaminationError::HostMismatch));
    let chosen = |kind: u16, value: &[u8]| {
        session.with(|parts| {
            let hello = &parts.server_hello;
            let at = 4 + 2 + 32 + 1 + usize::from(hello[38]) + 3;
            parts.server_hello = extended(hello, at, kind, value);
        })
    };
    assert_eq!(chosen(41, &[0, 0]).examine(), Err(ExaminationError::Resumption));
    assert_eq!(chosen(0x1234, &[]).examine(), Err(ExaminationError::ServerExtension(0x1234)));
}

/// Attack 17.
#[test]
fn a_hello_retry_request_is_refused() {
    let retry = ring::digest::digest(&ring::digest::SHA256, b"HelloRetryRequest");
    let session = Setup::default().play();
    let again = session.with(|parts| parts.server_hello[6..38].copy_from_slice(retry.as_ref()));
    assert_eq!(again.examine(), Err(ExaminationError::HelloRetry));
}

/// Attack 18.
#[test]
fn other_versions_and_suites_are_refused() {
    let session = Setup::default().play();
    let suite = |number: [u8; 2]| {
        session.with(|parts| {
            let at = 39 + usize::from(parts.server_hello[38]);
            parts.server_hello[at..at + 2].copy_from_slice(&number);
        })
    };
    assert_eq!(suite([0x13, 0x01]).examine(), Err(ExaminationError::CipherSuite), "not offered");
    assert_eq!(suite([0xc0, 0x2f]).examine(), Err(ExaminationError::CipherSuite));
    let version = session.with(|parts| {
        let at = parts.server_hello.windows(6).position(|w| w == [0, 43, 0, 2, 3, 4]).unwrap();
        parts.server_hello[at + 5] = 3;
    });
    assert_eq!(version.examine(), Err(ExaminationError::TlsVersion));
    let session_id = session.with(|parts| parts.server_hello[40] ^= 1);
    assert_eq!(session_id.examine(), Err(ExaminationError::SessionEcho));
    let group = session.with(|parts| {
        let at = parts.server_hello.windows(4).position(|w| w == [0, 51, 0, 36]).unwrap();
        parts.server_hello[at + 5] = 0x1e;
    });
    assert_eq!(group.examine(), Err(ExaminationError::KeyShare));
    // A group that was offered, but is not supported.
    let both = session.with(|parts| {
        let hello = without_extension(&parts.client_hello, 51);
        let share = [&[0, 36, 0, 0x1e, 0, 32], [7; 32].as_slice()].concat();
        parts.client_hello = with_extension(&hello, 51, &share);
        let at = parts.server_hello.windows(4).position(|w| w == [0, 51, 0, 36]).unwrap();
        parts.server_hello[at + 5] = 0x1e;
    });
    assert_eq!(both.examine(), Err(ExaminationError::KeyShare));
    let mut hidden = descriptor();
    hidden.modes = vec![RevealMode::ZktlsRequest];
    assert_eq!(session.examine_as(&hidden), Err(ExaminationError::Mode));
}

/// Attack 20, and malformed records.
#[test]
fn records_in_plain_are_refused() {
    let session = Setup::default().play();
    let hello = session.parts().client_hello;
    let (ccs, alert) = ([20, 3, 3, 0, 1, 1], [21, 3, 3, 0, 2, 1, 0]);
    let behind = |more: &[u8]| {
        let client = [session.client.as_slice(), more].concat();
        Session { client, ..session.clone() }.examine().unwrap_err()
    };
    assert_eq!(behind(&plain(&hello)), ExaminationError::PlaintextRecord(22));
    assert_eq!(behind(&ccs), ExaminationError::PlaintextRecord(20));
    assert_eq!(behind(&alert), ExaminationError::PlaintextRecord(21));
    assert_eq!(behind(&[23, 3, 3, 0, 0]), ExaminationError::RecordEmpty);
    assert_eq!(behind(&[23, 3, 3, 0x41, 1]), ExaminationError::RecordTooLong);
    assert_eq!(behind(&[23, 3, 4, 0, 1, 0]), ExaminationError::RecordVersion);
    assert_eq!(behind(&[23, 3, 3, 0]), ExaminationError::RecordTruncated);
    assert_eq!(behind(&[23, 3, 3, 0, 1, 0].repeat(5000)), ExaminationError::TooManyRecords);
    let begun = |client: Vec<u8>| Session { client, ..session.clone() }.examine().unwrap_err();
    let rest = &session.client[5 + hello.len()..];
    let (one, two) = hello.split_at(60);
    assert_eq!(begun([&first(one), &plain(two), rest].concat()), ExaminationError::FragmentedHello);
    let two = [hello.as_slice(), &[1, 0, 0, 0]].concat();
    assert_eq!(begun([&first(&two), rest].concat()), ExaminationError::FragmentedHello);
    assert_eq!(begun(rest.to_vec()), ExaminationError::NoHello);
    assert_eq!(
        begun([&first(&hello), ccs.as_slice(), rest].concat()),
        ExaminationError::PlaintextRecord(20)
    );
}

/// Attacks 21, 22, 42.
#[test]
fn records_with_other_content_than_data_are_refused() {
    let session = Setup::default().play();
    let client_sent = |at: usize, inner: Inner| {
        session.with(|parts| parts.client.insert(at, inner)).examine().unwrap_err()
    };
    let server_sent = |at: usize, inner: Inner| {
        session.with(|parts| parts.server.insert(at, inner)).examine().unwrap_err()
    };
    let update = Inner::new(22, &[24, 0, 0, 1, 0]);
    assert_eq!(client_sent(0, update.clone()), ExaminationError::InnerType(22));
    assert_eq!(server_sent(0, update), ExaminationError::UnexpectedHandshake(24));
    assert_eq!(server_sent(0, Inner::new(22, &[4, 0])), ExaminationError::FragmentedHandshake);
    assert_eq!(client_sent(0, Inner::new(23, &[])), ExaminationError::EmptyData);
    assert_eq!(
        client_sent(0, Inner { padding: 1, ..Inner::new(23, b"x") }),
        ExaminationError::Padding
    );
    assert_eq!(client_sent(0, Inner::new(21, &[2, 40])), ExaminationError::InnerType(21));
    assert_eq!(client_sent(0, Inner::new(21, &[1, 0])), ExaminationError::AfterClose);
    assert_eq!(client_sent(0, Inner::new(24, b"x")), ExaminationError::InnerType(24));
    assert_eq!(server_sent(0, Inner::new(21, &[1, 0])), ExaminationError::AfterClose);
    assert_eq!(server_sent(0, Inner::new(21, &[2, 80])), ExaminationError::InnerType(21));
    assert_eq!(
        server_sent(0, Inner { padding: 9, ..Inner::new(0, &[]) }),
        ExaminationError::NoInnerType
    );
    let mut twice = records(&session.server);
    let last = twice.pop().unwrap();
    twice.extend([last.clone(), last]);
    let server = twice.iter().flat_map(|(kind, body)| sealed(*kind, body)).collect();
    let refused = Session { server, ..session.clone() }.examine().unwrap_err();
    assert!(matches!(refused, ExaminationError::Tag(_)), "a record twice: {refused}");
}

fn sealed(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).unwrap().to_be_bytes();
    [&[kind, 3, 3], length.as_slice(), body].concat()
}

/// Appends an extension to a `ClientHello`.
fn with_extension(hello: &[u8], kind: u16, value: &[u8]) -> Vec<u8> {
    extended(hello, extensions_at(hello), kind, value)
}

/// Removes an extension. The lengths are corrected when another one is added.
fn without_extension(hello: &[u8], kind: u16) -> Vec<u8> {
    let at = extensions_at(hello);
    let (mut kept, mut rest) = (hello[..at + 2].to_vec(), &hello[at + 2..]);
    while !rest.is_empty() {
        let length = 4 + usize::from(u16::from_be_bytes([rest[2], rest[3]]));
        if rest[..2] != kind.to_be_bytes() {
            kept.extend(&rest[..length]);
        }
        rest = &rest[length..];
    }
    kept
}

/// Returns the position of the length of a `ClientHello`'s extensions.
fn extensions_at(hello: &[u8]) -> usize {
    let mut at = 4 + 2 + 32;
    at += 1 + usize::from(hello[at]);
    at += 2 + usize::from(u16::from_be_bytes([hello[at], hello[at + 1]]));
    at + 1 + usize::from(hello[at])
}

/// Appends an extension to a message whose extensions start at `at`.
fn extended(hello: &[u8], at: usize, kind: u16, value: &[u8]) -> Vec<u8> {
    let own = &hello[at + 2..];
    let length = u16::try_from(value.len()).unwrap().to_be_bytes();
    let all = [own, &kind.to_be_bytes(), &length, value].concat();
    let count = u16::try_from(all.len()).unwrap().to_be_bytes();
    let body = [&hello[4..at], &count, &all].concat();
    let [.., high, low] = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[hello[0], 0, high, low], body.as_slice()].concat()
}
