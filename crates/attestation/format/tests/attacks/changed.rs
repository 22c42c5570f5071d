//! Valid connections, and connections with a changed bit, a missing byte, or another secret.

use attestation::{ExaminationError, http::response::ResponseError};
use proptest::prelude::*;

use crate::{
    forge::Inner,
    setup::{RESPONSE, Session, Setup, descriptor},
};

#[test]
fn what_a_server_said_is_found_with_every_suite() {
    for suite in [0x1301, 0x1302, 0x1303] {
        let found = Setup { suite, ..Setup::default() }.play().examine().unwrap();
        assert_eq!(found.connection.suite.number(), suite);
        assert_eq!(found.response.lines[0], b"HTTP/1.1 200 OK");
        assert!(RESPONSE.ends_with(&found.response.body));
        let claims =
            [("user_id".into(), "\"acct-829137\"".into()), ("verified".into(), "true".into())];
        assert_eq!(found.claims, claims);
        assert_eq!(found.request.revealed_lines.len(), 6);
    }
}

#[test]
fn a_connection_taken_apart_and_put_together_is_the_same() {
    let session = Setup::default().play();
    session.with(|_| ()).examine().unwrap();
}

/// Attack 7.
#[test]
fn no_other_handshake_secret_opens_a_connection() {
    let session = Setup::default().play();
    for bit in 0..256 {
        let mut secret = session.secret.clone();
        secret[bit / 8] ^= 1 << (bit % 8);
        let refused = Session { secret, ..session.clone() }.examine().unwrap_err();
        assert_eq!(refused, ExaminationError::Tag(0), "bit {bit}");
    }
    for length in [0, 31, 33, 48] {
        let secret = vec![1; length];
        let refused = Session { secret, ..session.clone() }.examine().unwrap_err();
        assert_eq!(refused, ExaminationError::SecretLength);
    }
}

/// Attack 9: every bit of both directions.
#[test]
fn no_bit_on_the_wire_can_be_changed() {
    let session = Setup::default().play();
    let mut changed = session.clone();
    for at in 0..8 * session.client.len() {
        changed.client[at / 8] ^= 1 << (at % 8);
        assert!(changed.examine().is_err(), "bit {at} of the client is free");
        changed.client[at / 8] ^= 1 << (at % 8);
    }
    for at in 0..8 * session.server.len() {
        changed.server[at / 8] ^= 1 << (at % 8);
        assert!(changed.examine().is_err(), "bit {at} of the server is free");
        changed.server[at / 8] ^= 1 << (at % 8);
    }
    changed.examine().unwrap();
}

/// Attack 10.
#[test]
fn a_connection_to_another_host_is_refused() {
    let session = Setup::default().play();
    let mut other = descriptor();
    other.host = "other.test".into();
    assert_eq!(session.examine_as(&other), Err(ExaminationError::HostMismatch));
}

/// Attack 11.
#[test]
fn what_is_cut_off_is_refused() {
    let session = Setup::default().play();
    // The record of `close_notify`: its header, two bytes, their type, the tag.
    let complete = session.server.len() - (5 + 2 + 1 + 16);
    for length in 0..session.server.len() {
        let server = session.server[..length].to_vec();
        let examined = Session { server, ..session.clone() }.examine();
        assert_eq!(examined.is_ok(), length == complete, "{length} bytes");
    }
    // Without the previous record the response is incomplete.
    let cut = session.with(|parts| {
        parts.server.pop();
        let response = parts.server.pop().unwrap();
        let (kept, _) = response.content.split_at(response.content.len() - 1);
        parts.server.push(Inner::new(23, kept));
    });
    assert_eq!(cut.examine(), Err(ExaminationError::Response(ResponseError::Truncated)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn anything_is_refused_in_peace(
        client in prop::collection::vec(any::<u8>(), 0..400),
        server in prop::collection::vec(any::<u8>(), 0..400),
        secret in prop::collection::vec(any::<u8>(), 0..50),
    ) {
        let session = Setup::default().play();
        let noise = Session { client, server, secret, ..session };
        prop_assert!(noise.examine().is_err());
    }
}
