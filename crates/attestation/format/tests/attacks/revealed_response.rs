//! Attacks on the revealed part of a selectively disclosed response: by a prover that has all
//! secrets of the connection, and proves everything that can be proved.

use std::ops::Range;

use attestation::{
    ExaminationError,
    descriptor::{Descriptor, RevealMode},
    http::selective::SelectiveError,
    zk::{ProofError, Side, ZkBackend as _},
    zktls::{self, PartialResponse, Reveal, RevealedServerData},
};

use crate::{
    forge::{Inner, iv_and_tag_keys, records},
    hidden,
    lying_prover::{SPARTAN, TestAttestor, cover, not_proved, secret},
    selective::{FORGED, HONEST, declaring, response, session},
    setup::Session,
};

const OTHER: ExaminationError = not_proved(ProofError::PublicValues);

/// Returns the honest reveal with a modified response.
fn telling(change: impl FnOnce(&mut PartialResponse)) -> Reveal {
    let mut revealed = HONEST.1.clone();
    let RevealedServerData::Proved(answered) = &mut revealed.server else {
        unreachable!("everything is proved")
    };
    change(answered);
    revealed
}

fn refused(revealed: &Reveal) -> ExaminationError {
    TestAttestor { session: &HONEST.0, descriptor: &declaring() }.refuses(revealed)
}

fn changed(change: impl FnOnce(&mut PartialResponse)) -> ExaminationError {
    refused(&telling(change))
}

fn place(text: &str) -> Range<usize> {
    let (plaintext, text) = (response(), text.as_bytes());
    let at = plaintext.windows(text.len()).position(|part| part == text).unwrap();
    at..at + text.len()
}

/// Returns a reveal that hides all of a text, and not only the required parts.
fn hides(text: &str) -> Reveal {
    let place = place(text);
    telling(|revealed| {
        revealed.hidden.retain(|hidden| hidden.end <= place.start || hidden.start >= place.end);
        let before = revealed.hidden.iter().filter(|hidden| hidden.end <= place.start).count();
        revealed.hidden.insert(before, place);
    })
}

/// The rest is a valid response with all declared values: only the proof shows that hidden bytes
/// end no value that contains them.
#[test]
fn what_is_hidden_ends_nothing_that_it_is_in() {
    let attestor = TestAttestor { session: &HONEST.0, descriptor: &declaring() };
    for (what, text) in [
        ("quotation marks, and a member of an object", "canary@mail.test\",\"name\":\""),
        ("backslashes", "\\u041a\\\"Канарейка\\\"\\n"),
        ("a comma", "1,2.5e3"),
        ("line ends, and a header", " sid=rotated-canary; Secure\r\nX-Empty:\r\nX-Tab: rotated"),
    ] {
        let revealed = hides(text);
        assert_eq!(attestor.refuses(&revealed), OTHER, "{what}: with the honest proof");
        let covered = attestor.refuses_covered(&revealed);
        assert_eq!(
            covered,
            not_proved(ProofError::Challenge),
            "{what}: with replaced public values"
        );
        let proved = attestor.refuses_a_proof_of(&revealed);
        assert_eq!(proved, not_proved(ProofError::OuterSumCheck), "{what}: with its own proof");
    }
}

#[test]
fn what_is_told_of_the_response_is_what_was_proved() {
    assert_eq!(changed(|revealed| revealed.iv[0] ^= 1), OTHER);
    for record in 0..4 {
        let refusal = changed(|revealed| revealed.records[record].tag_key[31] ^= 1);
        assert_eq!(refusal, ExaminationError::Tag(record as u64));
    }
    let declared = place("829137").start;
    assert_eq!(
        changed(|revealed| revealed.response_bytes[declared] ^= 1),
        OTHER,
        "another declared value"
    );
    let (hidden, other) = (place("7318209").start, telling(|_| ()));
    let odd = telling(|revealed| revealed.response_bytes[hidden] = b'"');
    let attestor = TestAttestor { session: &HONEST.0, descriptor: &declaring() };
    assert_eq!(
        attestor.asks(&odd),
        attestor.asks(&other),
        "revealed values of hidden bytes are ignored"
    );
    let unread = ExaminationError::Selective(SelectiveError::Hidden);
    let whole = |hide: fn(&mut Vec<Range<usize>>)| {
        changed(|revealed| {
            revealed.response_bytes = response();
            hide(&mut revealed.hidden);
        })
    };
    assert_eq!(whole(|hidden| hidden[1].end -= 1), unread);
    assert_eq!(whole(|hidden| hidden[1].end += 2), unread);
    assert_eq!(whole(Vec::clear), unread);
    assert_eq!(whole(|hidden| hidden.truncate(hidden.len() - 1)), unread);
    assert_eq!(changed(|revealed| revealed.hidden.swap(0, 1)), ExaminationError::Reveal);
    assert_eq!(changed(|revealed| revealed.hidden[0].end = 99_999), ExaminationError::Reveal);
}

#[test]
fn records_are_told_as_they_are() {
    assert_eq!(
        changed(|revealed| revealed.records.truncate(revealed.records.len() - 1)),
        ExaminationError::Reveal
    );
    assert_eq!(
        changed(|revealed| revealed.records = revealed.records.split_off(1)),
        ExaminationError::Reveal
    );
    assert_eq!(
        changed(|revealed| revealed.records.push(revealed.records[3].clone())),
        ExaminationError::Reveal
    );
    assert_eq!(changed(|revealed| revealed.records.swap(1, 2)), ExaminationError::Tag(1));
    // The contents of the records: a ticket, data, data, `close_notify`.
    let kinds = |kinds: [u8; 4]| {
        changed(|revealed| {
            revealed.records.iter_mut().zip(kinds).for_each(|(record, kind)| record.kind = kind);
        })
    };
    assert_eq!(kinds([23, 23, 23, 21]), ExaminationError::Reveal, "a ticket as data");
    assert_eq!(kinds([22, 22, 23, 21]), ExaminationError::Reveal, "data as a ticket");
    assert_eq!(kinds([23, 22, 23, 21]), ExaminationError::Reveal, "both");
    assert_eq!(kinds([21, 23, 23, 21]), ExaminationError::InnerType(21), "a ticket as the end");
    assert_eq!(kinds([22, 21, 23, 21]), ExaminationError::InnerType(21), "data as the end");
    assert_eq!(kinds([22, 23, 23, 23]), ExaminationError::Reveal, "the end as data");
    assert_eq!(kinds([22, 23, 23, 22]), OTHER, "the end as a ticket");
    for kind in [0, 20, 24, 255] {
        assert_eq!(kinds([kind, 23, 23, 21]), ExaminationError::InnerType(kind));
    }
    let padding = |padding: [i32; 4]| {
        changed(|revealed| {
            for (record, more) in revealed.records.iter_mut().zip(padding) {
                record.padding = u16::try_from(i32::from(record.padding) + more).unwrap();
            }
        })
    };
    assert_eq!(padding([1, 0, 0, 0]), OTHER, "of a ticket");
    assert_eq!(padding([999, 0, 0, 0]), ExaminationError::Reveal);
    assert_eq!(padding([0, -1, 1, 0]), OTHER, "a byte moves to the other record");
    assert_eq!(padding([0, 1, -1, 0]), OTHER);
    assert_eq!(padding([0, 1, 0, 0]), ExaminationError::Reveal);
    assert_eq!(padding([0, 0, -1, 0]), ExaminationError::Reveal);
    assert_eq!(padding([0, 0, 0, 1]), ExaminationError::InnerType(21));
}

/// The attestor sees no content of tickets, nor of data that is declared as one. A server's ticket
/// that can be parsed as a response could otherwise replace it.
#[test]
fn a_ticket_is_no_response() {
    let revealed = telling(|revealed| {
        for (record, kind) in revealed.records.iter_mut().zip([23, 22, 22]) {
            record.kind = kind;
        }
        revealed.response_bytes = FORGED.to_vec();
        revealed.hidden.clear();
    });
    let attestor = TestAttestor { session: &HONEST.0, descriptor: &declaring() };
    assert_eq!(attestor.refuses(&revealed), OTHER);
    assert_eq!(attestor.refuses_covered(&revealed), not_proved(ProofError::Challenge));
    assert_eq!(attestor.refuses_a_proof_of(&revealed), not_proved(ProofError::ChecksPublicValues));
}

/// A recording without one of its records, and a reveal that agrees with it: the tag keys are those
/// that the prover states, but not those of their sequence numbers.
#[test]
fn no_record_can_be_left_out() {
    let mut recorded = records(&HONEST.0.server);
    recorded.remove(recorded.len() - 4);
    let server = recorded.iter().flat_map(|(kind, body)| {
        let length = u16::try_from(body.len()).unwrap().to_be_bytes();
        [&[*kind, 3, 3], length.as_slice(), body].concat()
    });
    let session = Session { server: server.collect(), ..HONEST.0.clone() };
    let attestor = TestAttestor { session: &session, descriptor: &declaring() };
    let revealed = telling(|revealed| revealed.records = revealed.records.split_off(1));
    assert_eq!(attestor.refuses(&revealed), OTHER);
    assert_eq!(attestor.refuses_covered(&revealed), not_proved(ProofError::Challenge));
    assert_eq!(attestor.refuses_a_proof_of(&revealed), not_proved(ProofError::ChecksPublicValues));
}

/// Returns a response under a secret that is not derived from the handshake, with a matching
/// reveal.
fn under(chosen: [u8; 32]) -> (Session, Reveal) {
    let forged = HONEST.0.with(|parts| {
        parts.server_data = Some(chosen);
        parts.server = vec![Inner::new(23, FORGED), Inner::new(21, &[1, 0])];
    });
    let revealed = telling(|revealed| {
        let (iv, keys) = iv_and_tag_keys(&chosen, 2);
        let record = |(kind, tag_key)| zktls::RevealedRecord { kind, padding: 0, tag_key };
        *revealed = PartialResponse {
            iv,
            records: [23, 21].into_iter().zip(keys).map(record).collect(),
            response_bytes: FORGED.to_vec(),
            hidden: vec![],
        };
    });
    (forged, revealed)
}

/// Attack 45: with a secret that the prover chose, or that belongs to another connection. Every tag
/// is correct and the response is valid: the proof refuses it, because it derives another key.
#[test]
fn a_response_under_a_key_of_the_provers_choice_is_refused_by_the_proof() {
    let (forged, revealed) = under([7; 32]);
    assert_eq!(forged.client, HONEST.0.client, "nothing else differs");
    let attestor = TestAttestor { session: &forged, descriptor: &declaring() };
    assert_eq!(attestor.refuses(&revealed), OTHER);
    assert_eq!(attestor.refuses_covered(&revealed), not_proved(ProofError::Challenge));
    assert_eq!(attestor.refuses_a_proof_of(&revealed), not_proved(ProofError::ChecksPublicValues));
}

/// The same with the client's own key, whose stream the circuit derives as well. The attestor
/// determines the stream of each block.
#[test]
fn no_block_of_the_clients_is_one_of_the_servers() {
    let (forged, revealed) = under(HONEST.0.client_data());
    let attestor = TestAttestor { session: &forged, descriptor: &declaring() };
    let asked = attestor.asks(&revealed);
    assert_eq!(asked.client_iv, revealed.client_iv);
    let mut holds = asked.clone();
    let honest = TestAttestor { session: &HONEST.0, descriptor: &declaring() };
    holds.server = honest.asks(&HONEST.1).server;
    let of_server = holds.blocks.iter_mut().filter(|block| block.side == Side::Server);
    of_server.for_each(|block| block.side = Side::Client);
    let mut revealed =
        Reveal { proof: SPARTAN.prove(&holds, &secret(&forged)).unwrap(), ..revealed };
    assert_eq!(SPARTAN.verify(&holds, &revealed.proof), Ok(()), "it proves the true statement");
    assert_eq!(attestor.refuses(&revealed), OTHER);
    cover(&mut revealed.proof, &asked);
    assert_eq!(attestor.refuses(&revealed), not_proved(ProofError::Challenge));
    assert_eq!(attestor.refuses_a_proof_of(&revealed), not_proved(ProofError::ChecksPublicValues));
}

#[test]
fn the_response_of_another_connection_is_refused() {
    let other = session(response());
    let mixed = Session { server: other.server.clone(), ..HONEST.0.clone() };
    let attestor = TestAttestor { session: &mixed, descriptor: &declaring() };
    assert_eq!(attestor.refuses(&HONEST.1), ExaminationError::SessionEcho);
    let attestor = TestAttestor { session: &other, descriptor: &declaring() };
    assert_eq!(attestor.refuses(&HONEST.1), ExaminationError::Tag(0));
}

/// The descriptor determines the hidden parts exactly.
#[test]
fn the_mode_is_the_descriptors() {
    let full = TestAttestor { session: &HONEST.0, descriptor: &declaring() };
    let request = Descriptor { modes: vec![RevealMode::ZktlsRequest], ..declaring() };
    let opened = Descriptor { modes: vec![RevealMode::FullReveal], ..declaring() };
    for descriptor in [&request, &opened, &hidden::hiding()] {
        assert_eq!(TestAttestor { descriptor, ..full }.refuses(&HONEST.1), ExaminationError::Mode);
    }
    let (session, revealed) = &*hidden::HONEST;
    let attestor = TestAttestor { session, descriptor: &declaring() };
    assert_eq!(attestor.refuses(revealed), ExaminationError::Mode);
    // With the other kind of reveal and the same proof.
    let RevealedServerData::TrafficSecret(_) = revealed.server else {
        unreachable!("everything is revealed")
    };
    let RevealedServerData::Proved(answered) = HONEST.1.server.clone() else {
        unreachable!("it is proved")
    };
    let revealed = Reveal { server: RevealedServerData::Proved(answered), ..revealed.clone() };
    assert_eq!(attestor.refuses(&revealed), ExaminationError::Reveal);
}
