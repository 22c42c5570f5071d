//! Derives the statement to be proved from the recorded connection.

use std::ops::Range;

use poly1305::{
    Poly1305,
    universal_hash::{KeyInit as _, UniversalHash as _},
};
use subtle::ConstantTimeEq as _;

use super::{Answered, Inner, Reveal, SUITE, Told, array, shown, stream::Stream};
use crate::{
    http::selective::Hidden,
    refusal::Refusal,
    tls::{
        ALERT, APPLICATION_DATA, HANDSHAKE,
        open::CLOSE_NOTIFY,
        wire::{Record, Wire},
    },
    zk::{BLOCK, Block, Class, MOST_BLOCKS, ServerData, Side, Statement, ZkError},
};

const TAG: usize = 16;

/// Checks that hidden ranges are in their only valid order: with at least one byte between two of
/// them.
pub(super) fn ordered(hidden: &[Range<usize>], length: usize) -> Result<(), Refusal> {
    let mut end = 0;
    for hidden in hidden {
        if hidden.is_empty() || hidden.start < end || hidden.end > length {
            return Err(Refusal::Reveal);
        }
        end = hidden.end.saturating_add(1);
    }
    Ok(())
}

/// Checks by lengths only whether a circuit can hold the statement, before any byte is processed.
/// This also limits the number of hidden ranges, because none of them is empty ([`ordered`]).
pub(super) fn is_short(
    wire: &Wire<'_>,
    answer: &[Record<'_>],
    reveal: &Reveal,
) -> Result<(), Refusal> {
    let asked = wire.client.sealed.iter().skip(1).map(|record| blocks(record, 0));
    let (answered, told) = match &reveal.server {
        Told::Opened(_) => (0, 0),
        Told::Proved(told) => {
            let answered = answer.iter().zip(&told.records).map(|(record, inner)| {
                // Of handshake messages only the type after them is proved.
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

/// Returns the number of blocks of a record, including that of its tag, without the first ones of
/// its content.
fn blocks(record: &Record<'_>, first: usize) -> usize {
    1 + record.body.len().saturating_sub(TAG).div_ceil(BLOCK).saturating_sub(first)
}

/// Derives the statement from the recording; of the prover's values it uses only those that the
/// proof covers.
pub(super) fn statement_of(
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

/// Returns the blocks of the client's data: all of it, then `close_notify`.
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
            // The client's last record must be a close_notify, regardless of the prover's
            // statement.
            stream.record(sequence, tag_key, ciphertext, &CLOSE_NOTIFY, (ALERT, 0))?;
        } else {
            let length = ciphertext.len().checked_sub(1).filter(|length| *length > 0);
            let length = length.ok_or(Refusal::EmptyData)?;
            stream.data(sequence, tag_key, ciphertext, (length, 0))?;
        }
    }
    stream.end()
}

/// Returns the blocks of the server's data. Of tickets only their type, handshake messages, is
/// revealed: if one of them changed the key, no later record would have the correct tag.
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

/// Returns a record's ciphertext if its tag (RFC 8439, section 2.8) is correct for this key.
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
