//! Parses the records (RFC 8446, section 5.1) of both directions.

use super::{APPLICATION_DATA, CHANGE_CIPHER_SPEC, CLIENT_HELLO, HANDSHAKE, SERVER_HELLO};
use crate::{bytes::ByteReader, error::ExaminationError};

const HEADER_BYTES: usize = 5;
/// Maximum length of an encrypted record (RFC 8446, section 5.2).
const MAX_CIPHERTEXT_BYTES: usize = (1 << 14) + 256;
/// Maximum number of records; an honest exchange of the largest allowed size has fewer.
const MAX_RECORDS: usize = 4096;
const LEGACY_VERSION: [u8; 2] = [3, 3];
/// The version of the record of a first `ClientHello` (RFC 8446, section 5.1).
const CLIENT_HELLO_RECORD_VERSION: [u8; 2] = [3, 1];

/// A record with its header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TlsRecord<'a> {
    pub(crate) header: [u8; HEADER_BYTES],
    pub(crate) body: &'a [u8],
}

/// One direction: its hello, and the encrypted records after it.
#[derive(Debug)]
pub(crate) struct Direction<'a> {
    /// The complete message with its header.
    pub(crate) hello: &'a [u8],
    pub(crate) encrypted: Vec<TlsRecord<'a>>,
}

/// Both directions of a connection.
#[derive(Debug)]
pub(crate) struct RecordStreams<'a> {
    pub(crate) client: Direction<'a>,
    pub(crate) server: Direction<'a>,
}

impl<'a> RecordStreams<'a> {
    pub(crate) fn read(client: &'a [u8], server: &'a [u8]) -> Result<Self, ExaminationError> {
        Ok(Self {
            client: direction(client, CLIENT_HELLO)?,
            server: direction(server, SERVER_HELLO)?,
        })
    }
}

fn direction(bytes: &[u8], kind: u8) -> Result<Direction<'_>, ExaminationError> {
    let mut rest = ByteReader(bytes);
    let first = record(&mut rest)?;
    let [content, major, minor, ..] = first.header;
    // No signature covers this version: only the value that the prover's TLS library writes is
    // accepted, so that no byte can be chosen freely.
    let version = if kind == CLIENT_HELLO { CLIENT_HELLO_RECORD_VERSION } else { LEGACY_VERSION };
    if content != HANDSHAKE || [major, minor] != version {
        return Err(ExaminationError::NoHello);
    }
    let mut message = ByteReader(first.body);
    if message.u8() != Some(kind) {
        return Err(ExaminationError::NoHello);
    }
    // A fragmented hello, or more data in its record, would be ambiguous.
    if message.vector24().is_none() || !message.is_empty() {
        return Err(ExaminationError::FragmentedHello);
    }
    let (mut sealed, mut compatible) = (vec![], false);
    while !rest.is_empty() {
        let record = record(&mut rest)?;
        let [content, major, minor, ..] = record.header;
        if [major, minor] != LEGACY_VERSION {
            return Err(ExaminationError::RecordVersion);
        }
        match content {
            APPLICATION_DATA => sealed.push(record),
            // For middlebox compatibility, once, before anything is encrypted (RFC 8446, appendix
            // D.4).
            CHANGE_CIPHER_SPEC if record.body == [1] && sealed.is_empty() && !compatible => {
                compatible = true;
            }
            other => return Err(ExaminationError::PlaintextRecord(other)),
        }
        if sealed.len() > MAX_RECORDS {
            return Err(ExaminationError::TooManyRecords);
        }
    }
    Ok(Direction { hello: first.body, encrypted: sealed })
}

fn record<'a>(rest: &mut ByteReader<'a>) -> Result<TlsRecord<'a>, ExaminationError> {
    let header: [u8; HEADER_BYTES] = rest.array().ok_or(ExaminationError::RecordTruncated)?;
    let [.., high, low] = header;
    let length = usize::from(u16::from_be_bytes([high, low]));
    if length > MAX_CIPHERTEXT_BYTES {
        return Err(ExaminationError::RecordTooLong);
    }
    if length == 0 {
        return Err(ExaminationError::RecordEmpty);
    }
    let body = rest.take(length).ok_or(ExaminationError::RecordTruncated)?;
    Ok(TlsRecord { header, body })
}
