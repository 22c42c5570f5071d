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
    liar::{SPARTAN, Witness, cover, not_proved, secret},
    selective::{FORGED, HONEST, declaring, response, session},
    setup::Session,
};

const OTHER: ExaminationError = not_proved(ProofError::PublicValues);

/// Returns the honest reveal with a modified response.
fn telling(change: impl FnOnce(&mut PartialResponse)) -> Reveal {
    let mut told = HONEST.1.clone();
    let RevealedServerData::Proved(answered) = &mut told.server else {
        unreachable!("everything is proved")
    };
    change(answered);
    told
}

fn refused(told: &Reveal) -> ExaminationError {
    Witness { session: &HONEST.0, descriptor: &declaring() }.refuses(told)
}

fn changed(change: impl FnOnce(&mut PartialResponse)) -> ExaminationError {
    refused(&telling(change))
}

fn place(text: &str) -> Range<usize> {
    let (said, text) = (response(), text.as_bytes());
    let at = said.windows(text.len()).position(|part| part == text).unwrap();
    at..at + text.len()
}

/// Returns a reveal that hides all of a text, and not only the required parts.
fn hides(text: &str) -> Reveal {
    let place = place(text);
    telling(|told| {
        told.hidden.retain(|hidden| hidden.end <= place.start || hidden.start >= place.end);
        let before = told.hidden.iter().filter(|hidden| hidden.end <= place.start).count();
        told.hidden.insert(before, place);
    })
}

/// The rest is a valid response with all declared values: only the proof shows that hidden bytes
/// end no value that contains them.
#[test]
fn what_is_hidden_ends_nothing_that_it_is_in() {
    let witness = Witness { session: &HONEST.0, descriptor: &declaring() };
    for (what, text) in [
        ("quotation marks, and a member of an object", "canary@mail.test\",\"name\":\""),
        ("backslashes", "\\u041a\\\"Канарейка\\\"\\n"),
        ("a comma", "1,2.5e3"),
        ("line ends, and a header", " sid=rotated-canary; Secure\r\nX-Empty:\r\nX-Tab: rotated"),
    ] {
        let told = hides(text);
        assert_eq!(witness.refuses(&told), OTHER, "{what}: with the honest proof");
        let covered = witness.refuses_covered(&told);
        assert_eq!(
            covered,
            not_proved(ProofError::Challenge),
            "{what}: with replaced public values"
        );
        let proved = witness.refuses_a_proof_of(&told);
        assert_eq!(proved, not_proved(ProofError::OuterSumCheck), "{what}: with its own proof");
    }
}

#[test]
fn what_is_told_of_the_response_is_what_was_proved() {
    assert_eq!(changed(|told| told.iv[0] ^= 1), OTHER);
    for record in 0..4 {
        let refusal = changed(|told| told.records[record].tag_key[31] ^= 1);
        assert_eq!(refusal, ExaminationError::Tag(record as u64));
    }
    let declared = place("829137").start;
    assert_eq!(changed(|told| told.said[declared] ^= 1), OTHER, "another declared value");
    let (hidden, other) = (place("7318209").start, telling(|_| ()));
    let odd = telling(|told| told.said[hidden] = b'"');
    let witness = Witness { session: &HONEST.0, descriptor: &declaring() };
    assert_eq!(
        witness.asks(&odd),
        witness.asks(&other),
        "revealed values of hidden bytes are ignored"
    );
    let unread = ExaminationError::Selective(SelectiveError::Hidden);
    let whole = |hide: fn(&mut Vec<Range<usize>>)| {
        changed(|told| {
            told.said = response();
            hide(&mut told.hidden);
        })
    };
    assert_eq!(whole(|hidden| hidden[1].end -= 1), unread);
    assert_eq!(whole(|hidden| hidden[1].end += 2), unread);
    assert_eq!(whole(Vec::clear), unread);
    assert_eq!(whole(|hidden| hidden.truncate(hidden.len() - 1)), unread);
    assert_eq!(changed(|told| told.hidden.swap(0, 1)), ExaminationError::Reveal);
    assert_eq!(changed(|told| told.hidden[0].end = 99_999), ExaminationError::Reveal);
}

#[test]
fn records_are_told_as_they_are() {
    assert_eq!(
        changed(|told| told.records.truncate(told.records.len() - 1)),
        ExaminationError::Reveal
    );
    assert_eq!(changed(|told| told.records = told.records.split_off(1)), ExaminationError::Reveal);
    assert_eq!(
        changed(|told| told.records.push(told.records[3].clone())),
        ExaminationError::Reveal
    );
    assert_eq!(changed(|told| told.records.swap(1, 2)), ExaminationError::Tag(1));
    // The contents of the records: a ticket, data, data, `close_notify`.
    let kinds = |kinds: [u8; 4]| {
        changed(|told| {
            told.records.iter_mut().zip(kinds).for_each(|(record, kind)| record.kind = kind);
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
        changed(|told| {
            for (record, more) in told.records.iter_mut().zip(padding) {
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
    let told = telling(|told| {
        for (record, kind) in told.records.iter_mut().zip([23, 22, 22]) {
            record.kind = kind;
        }
        told.said = FORGED.to_vec();
        told.hidden.clear();
    });
    let witness = Witness { session: &HONEST.0, descriptor: &declaring() };
    assert_eq!(witness.refuses(&told), OTHER);
    assert_eq!(witness.refuses_covered(&told), not_proved(ProofError::Challenge));
    assert_eq!(witness.refuses_a_proof_of(&told), not_proved(ProofError::ChecksPublicValues));
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
    let witness = Witness { session: &session, descriptor: &declaring() };
    let told = telling(|told| told.records = told.records.split_off(1));
    assert_eq!(witness.refuses(&told), OTHER);
    assert_eq!(witness.refuses_covered(&told), not_proved(ProofError::Challenge));
    assert_eq!(witness.refuses_a_proof_of(&told), not_proved(ProofError::ChecksPublicValues));
}

/// Returns a response under a secret that is not derived from the handshake, with a matching
/// reveal.
fn under(chosen: [u8; 32]) -> (Session, Reveal) {
    let forged = HONEST.0.with(|parts| {
        parts.server_data = Some(chosen);
        parts.server = vec![Inner::new(23, FORGED), Inner::new(21, &[1, 0])];
    });
    let told = telling(|told| {
        let (iv, keys) = iv_and_tag_keys(&chosen, 2);
        let record = |(kind, tag_key)| zktls::RevealedRecord { kind, padding: 0, tag_key };
        *told = PartialResponse {
            iv,
            records: [23, 21].into_iter().zip(keys).map(record).collect(),
            said: FORGED.to_vec(),
            hidden: vec![],
        };
    });
    (forged, told)
}

/// Attack 45: with a secret that the prover chose, or that belongs to another connection. Every tag
/// is correct and the response is valid: the proof refuses it, because it derives another key.
#[test]
fn a_response_under_a_key_of_the_provers_choice_is_refused_by_the_proof() {
    let (forged, told) = under([7; 32]);
    assert_eq!(forged.client, HONEST.0.client, "nothing else differs");
    let witness = Witness { session: &forged, descriptor: &declaring() };
    assert_eq!(witness.refuses(&told), OTHER);
    assert_eq!(witness.refuses_covered(&told), not_proved(ProofError::Challenge));
    assert_eq!(witness.refuses_a_proof_of(&told), not_proved(ProofError::ChecksPublicValues));
}

/// The same with the client's own key, whose stream the circuit derives as well. The attestor
/// determines the stream of each block.
#[test]
fn no_block_of_the_clients_is_one_of_the_servers() {
    let (forged, told) = under(HONEST.0.client_data());
    let witness = Witness { session: &forged, descriptor: &declaring() };
    let asked = witness.asks(&told);
    assert_eq!(asked.client_iv, told.client_iv);
    let mut holds = asked.clone();
    let honest = Witness { session: &HONEST.0, descriptor: &declaring() };
    holds.server = honest.asks(&HONEST.1).server;
    let of_server = holds.blocks.iter_mut().filter(|block| block.side == Side::Server);
    of_server.for_each(|block| block.side = Side::Client);
    let mut told = Reveal { proof: SPARTAN.prove(&holds, &secret(&forged)).unwrap(), ..told };
    assert_eq!(SPARTAN.verify(&holds, &told.proof), Ok(()), "it proves the true statement");
    assert_eq!(witness.refuses(&told), OTHER);
    cover(&mut told.proof, &asked);
    assert_eq!(witness.refuses(&told), not_proved(ProofError::Challenge));
    assert_eq!(witness.refuses_a_proof_of(&told), not_proved(ProofError::ChecksPublicValues));
}

#[test]
fn the_response_of_another_connection_is_refused() {
    let other = session(response());
    let mixed = Session { server: other.server.clone(), ..HONEST.0.clone() };
    let witness = Witness { session: &mixed, descriptor: &declaring() };
    assert_eq!(witness.refuses(&HONEST.1), ExaminationError::SessionEcho);
    let witness = Witness { session: &other, descriptor: &declaring() };
    assert_eq!(witness.refuses(&HONEST.1), ExaminationError::Tag(0));
}

/// The descriptor determines the hidden parts exactly.
#[test]
fn the_mode_is_the_descriptors() {
    let full = Witness { session: &HONEST.0, descriptor: &declaring() };
    let request = Descriptor { modes: vec![RevealMode::ZktlsRequest], ..declaring() };
    let opened = Descriptor { modes: vec![RevealMode::FullReveal], ..declaring() };
    for descriptor in [&request, &opened, &hidden::hiding()] {
        assert_eq!(Witness { descriptor, ..full }.refuses(&HONEST.1), ExaminationError::Mode);
    }
    let (session, told) = &*hidden::HONEST;
    let witness = Witness { session, descriptor: &declaring() };
    assert_eq!(witness.refuses(told), ExaminationError::Mode);
    // With the other kind of reveal and the same proof.
    let RevealedServerData::Opened(_) = told.server else { unreachable!("everything is revealed") };
    let RevealedServerData::Proved(answered) = HONEST.1.server.clone() else {
        unreachable!("it is proved")
    };
    let told = Reveal { server: RevealedServerData::Proved(answered), ..told.clone() };
    assert_eq!(witness.refuses(&told), ExaminationError::Reveal);
}
