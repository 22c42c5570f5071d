//! Decrypts records with derived keys: all of them, in sequence from the first one.

use ring::aead::{Aad, LessSafeKey, NONCE_LEN, Nonce};

use super::{
    ALERT, APPLICATION_DATA, HANDSHAKE, NEW_SESSION_TICKET, key_schedule::Suite, records::TlsRecord,
};
use crate::{bytes::ByteReader, error::ExaminationError};

/// `close_notify`, a warning (RFC 8446, section 6.1).
pub(crate) const CLOSE_NOTIFY: [u8; 2] = [1, 0];

/// Decrypts one direction's records of one phase, in sequence.
pub(crate) struct RecordDecrypter {
    key: LessSafeKey,
    iv: [u8; NONCE_LEN],
    sequence: u64,
}

/// The decrypted content of a record.
pub(crate) struct InnerPlaintext {
    pub(crate) kind: u8,
    pub(crate) content: Vec<u8>,
    /// Number of zeros after the content (RFC 8446, section 5.4).
    pub(crate) padding: usize,
}

impl RecordDecrypter {
    pub(crate) fn new(suite: Suite, secret: &[u8]) -> Result<Self, ExaminationError> {
        let keys = suite.key(secret).zip(suite.iv(secret));
        let (key, iv) = keys.ok_or(ExaminationError::SecretLength)?;
        Ok(Self { key, iv, sequence: 0 })
    }

    pub(crate) fn decrypt(
        &mut self,
        record: &TlsRecord<'_>,
    ) -> Result<InnerPlaintext, ExaminationError> {
        let nonce = nonce(self.iv, self.sequence);
        let mut content = record.body.to_vec();
        let opened = self.key.open_in_place(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(record.header),
            &mut content,
        );
        let length = opened.map_err(|_| ExaminationError::Tag(self.sequence))?.len();
        self.sequence += 1;
        content.truncate(length);
        let end =
            content.iter().rposition(|byte| *byte != 0).ok_or(ExaminationError::NoInnerType)?;
        let padding = content.len() - end - 1;
        let kind = content.get(end).copied().unwrap_or_default();
        content.truncate(end);
        Ok(InnerPlaintext { kind, content, padding })
    }
}

/// Returns the nonce of a record (RFC 8446, section 5.3).
pub(crate) fn nonce(mut iv: [u8; NONCE_LEN], sequence: u64) -> [u8; NONCE_LEN] {
    for (byte, count) in iv.iter_mut().skip(4).zip(sequence.to_be_bytes()) {
        *byte ^= count;
    }
    iv
}

/// Decrypts the client's data: application data, then `close_notify`, nothing else.
pub(crate) fn client_data(
    suite: Suite,
    secret: &[u8],
    records: &[TlsRecord<'_>],
) -> Result<Vec<u8>, ExaminationError> {
    let mut opener = RecordDecrypter::new(suite, secret)?;
    let (mut plaintext, mut closed) = (vec![], false);
    for record in records {
        let InnerPlaintext { kind, content, padding } = opener.decrypt(record)?;
        if closed {
            return Err(ExaminationError::AfterClose);
        }
        if padding > 0 {
            return Err(ExaminationError::Padding);
        }
        match kind {
            APPLICATION_DATA if content.is_empty() => return Err(ExaminationError::EmptyData),
            APPLICATION_DATA => plaintext.extend(content),
            ALERT if content == CLOSE_NOTIFY => closed = true,
            other => return Err(ExaminationError::InnerType(other)),
        }
    }
    Ok(plaintext)
}

/// Decrypts the server's data: application data and tickets, and at most one `close_notify` at the
/// end. Many servers close TCP without it; then an attacker may have truncated the data, and the
/// parser of the response has to detect that ([`crate::http::response::read`] accepts only complete
/// responses).
pub(crate) fn server_data(
    suite: Suite,
    secret: &[u8],
    records: &[TlsRecord<'_>],
) -> Result<Vec<u8>, ExaminationError> {
    let mut opener = RecordDecrypter::new(suite, secret)?;
    let (mut plaintext, mut closed) = (vec![], false);
    for record in records {
        let InnerPlaintext { kind, content, .. } = opener.decrypt(record)?;
        if closed {
            return Err(ExaminationError::AfterClose);
        }
        match kind {
            APPLICATION_DATA => plaintext.extend(content),
            ALERT if content == CLOSE_NOTIFY => closed = true,
            HANDSHAKE => check_tickets(&content)?,
            other => return Err(ExaminationError::InnerType(other)),
        }
    }
    Ok(plaintext)
}

/// Checks that the server sends only tickets after its flight; a `KeyUpdate` would leave the proved
/// keys.
fn check_tickets(content: &[u8]) -> Result<(), ExaminationError> {
    let mut rest = ByteReader(content);
    while !rest.is_empty() {
        let message = rest.u8().zip(rest.vector24());
        let (kind, _) = message.ok_or(ExaminationError::FragmentedHandshake)?;
        if kind != NEW_SESSION_TICKET {
            return Err(ExaminationError::UnexpectedHandshake(kind));
        }
    }
    Ok(())
}
