//! Derives the statement to be proved from the recorded connection.

use std::ops::Range;

use poly1305::{
    Poly1305,
    universal_hash::{KeyInit as _, UniversalHash as _},
};
use subtle::ConstantTimeEq as _;

use super::{
    PartialResponse, Reveal, RevealedRecord, RevealedServerData, SUITE, array, masked,
    stream::BlockBuilder,
};
use crate::{
    error::ExaminationError,
    http::selective::HiddenBytes,
    tls::{
        ALERT, APPLICATION_DATA, HANDSHAKE,
        decrypt::CLOSE_NOTIFY,
        records::{RecordStreams, TlsRecord},
    },
    zk::{
        BLOCK_BYTES, Block, ByteClass, MAX_BLOCKS, MAX_PROVED_BYTES, ServerData, Side, Statement,
        ZkError,
    },
};

const TAG_BYTES: usize = 16;

/// Checks that hidden ranges are in their only valid order: with at least one byte between two of
/// them.
pub(super) fn check_order(hidden: &[Range<usize>], length: usize) -> Result<(), ExaminationError> {
    let mut end = 0;
    for hidden in hidden {
        if hidden.is_empty() || hidden.start < end || hidden.end > length {
            return Err(ExaminationError::Reveal);
        }
        end = hidden.end.saturating_add(1);
    }
    Ok(())
}

/// Checks by lengths only whether a circuit can hold the statement, before any byte is processed.
/// This also limits the number of hidden ranges, because none of them is empty ([`check_order`]).
pub(super) fn check_length(
    wire: &RecordStreams<'_>,
    answer: &[TlsRecord<'_>],
    reveal: &Reveal,
) -> Result<(), ExaminationError> {
    let request_counts = wire.client.encrypted.iter().skip(1).map(|record| blocks(record, 0));
    let (response_count, revealed) = match &reveal.server {
        RevealedServerData::TrafficSecret(_) => (0, 0),
        RevealedServerData::Proved(revealed) => {
            let counts = answer.iter().zip(&revealed.records).map(|(record, inner)| {
                // Of handshake messages only the type after them is proved.
                let encrypted = if inner.kind == HANDSHAKE {
                    record.body.len().saturating_sub(TAG_BYTES + 1 + usize::from(inner.padding))
                        / BLOCK_BYTES
                } else {
                    0
                };
                blocks(record, encrypted)
            });
            (counts.sum(), revealed.response_bytes.len())
        }
    };
    let count = request_counts.sum::<usize>() + response_count;
    let fits = count <= MAX_BLOCKS
        && reveal.request_bytes.len() <= MAX_PROVED_BYTES
        && revealed <= MAX_PROVED_BYTES;
    if fits { Ok(()) } else { Err(ZkError::TooLong.into()) }
}

/// Returns the number of blocks of a record, including that of its tag, without the first ones of
/// its content.
fn blocks(record: &TlsRecord<'_>, first: usize) -> usize {
    1 + record.body.len().saturating_sub(TAG_BYTES).div_ceil(BLOCK_BYTES).saturating_sub(first)
}

/// Derives the statement from the recording; of the prover's values it uses only those that the
/// proof covers.
pub(super) fn statement_of(
    wire: &RecordStreams<'_>,
    answer: &[TlsRecord<'_>],
    reveal: &Reveal,
    hidden_answer: &[HiddenBytes],
    transcript: &[u8],
) -> Result<Statement, ExaminationError> {
    check_order(&reveal.hidden, reveal.request_bytes.len())?;
    let mut blocks = request_blocks(wire, reveal)?;
    let server = match &reveal.server {
        RevealedServerData::TrafficSecret(secret) => ServerData::TrafficSecret(*secret),
        RevealedServerData::Proved(revealed) => {
            blocks.extend(response_blocks(answer, revealed, hidden_answer)?);
            ServerData::Proved(revealed.iv)
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
fn request_blocks(
    wire: &RecordStreams<'_>,
    reveal: &Reveal,
) -> Result<Vec<Block>, ExaminationError> {
    let records = wire.client.encrypted.get(1..).unwrap_or_default();
    if reveal.tag_keys.len() != records.len() {
        return Err(ExaminationError::Reveal);
    }
    let plaintext = masked(&reveal.request_bytes, &reveal.hidden);
    let printable =
        |range: &Range<usize>| HiddenBytes { range: range.clone(), class: ByteClass::Printable };
    let hidden: Vec<_> = reveal.hidden.iter().map(printable).collect();
    let mut stream = BlockBuilder::new(Side::Client, reveal.client_iv, &plaintext, &hidden);
    for (sequence, (record, tag_key)) in (0_u64..).zip(records.iter().zip(&reveal.tag_keys)) {
        let last = usize::try_from(sequence).is_ok_and(|sequence| sequence + 1 == records.len());
        let ciphertext = authenticated(record, tag_key).ok_or(ExaminationError::Tag(sequence))?;
        if last {
            // The client's last record must be a close_notify, regardless of the prover's
            // statement.
            stream.record(sequence, tag_key, ciphertext, &CLOSE_NOTIFY, (ALERT, 0))?;
        } else {
            let length = ciphertext.len().checked_sub(1).filter(|length| *length > 0);
            let length = length.ok_or(ExaminationError::EmptyData)?;
            stream.data(sequence, tag_key, ciphertext, (length, 0))?;
        }
    }
    stream.end()
}

/// Returns the blocks of the server's data. Of tickets only their type, handshake messages, is
/// revealed: if one of them changed the key, no later record would have the correct tag.
fn response_blocks(
    records: &[TlsRecord<'_>],
    revealed: &PartialResponse,
    hidden: &[HiddenBytes],
) -> Result<Vec<Block>, ExaminationError> {
    if revealed.records.len() != records.len() {
        return Err(ExaminationError::Reveal);
    }
    let plaintext = masked(&revealed.response_bytes, &revealed.hidden);
    let mut stream = BlockBuilder::new(Side::Server, revealed.iv, &plaintext, hidden);
    let mut closed = false;
    for (sequence, (record, inner)) in (0_u64..).zip(records.iter().zip(&revealed.records)) {
        let RevealedRecord { kind, padding, tag_key } = inner;
        let ciphertext = authenticated(record, tag_key).ok_or(ExaminationError::Tag(sequence))?;
        if closed {
            return Err(ExaminationError::AfterClose);
        }
        let padding = usize::from(*padding);
        let length = ciphertext.len().checked_sub(padding + 1).ok_or(ExaminationError::Reveal)?;
        match *kind {
            APPLICATION_DATA => stream.data(sequence, tag_key, ciphertext, (length, padding))?,
            ALERT => {
                closed = true;
                stream.record(sequence, tag_key, ciphertext, &CLOSE_NOTIFY, (ALERT, padding))?;
            }
            HANDSHAKE => stream.opaque(sequence, tag_key, ciphertext, (length, padding))?,
            other => return Err(ExaminationError::InnerType(other)),
        }
    }
    stream.end()
}

/// Returns a record's ciphertext if its tag (RFC 8439, section 2.8) is correct for this key.
fn authenticated<'a>(record: &TlsRecord<'a>, key: &[u8; 32]) -> Option<&'a [u8]> {
    let (ciphertext, tag) =
        record.body.split_at_checked(record.body.len().checked_sub(TAG_BYTES)?)?;
    let mut mac = Poly1305::new(key.into());
    mac.update_padded(&record.header);
    mac.update_padded(ciphertext);
    let lengths = [record.header.len(), ciphertext.len()].map(u64::try_from);
    let [header, data] = lengths.map(|length| length.unwrap_or(u64::MAX).to_le_bytes());
    mac.update_padded(&[header, data].concat());
    bool::from(mac.finalize().as_slice().ct_eq(tag)).then_some(ciphertext)
}
