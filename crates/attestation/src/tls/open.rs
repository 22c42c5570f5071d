//! Opening records with derived keys: each in its place from the first on, none left out.

use ring::aead::{Aad, LessSafeKey, NONCE_LEN, Nonce};

use super::{
    ALERT, APPLICATION_DATA, HANDSHAKE, NEW_SESSION_TICKET, schedule::Suite, wire::Record,
};
use crate::{bytes::Bytes, refusal::Refusal};

/// `close_notify`, a warning (RFC 8446, section 6.1).
pub(crate) const CLOSE_NOTIFY: [u8; 2] = [1, 0];

/// Opens one direction's records of one phase, in their order.
pub(crate) struct Opener {
    key: LessSafeKey,
    iv: [u8; NONCE_LEN],
    sequence: u64,
}

/// What was in a record.
pub(crate) struct Opened {
    pub(crate) kind: u8,
    pub(crate) content: Vec<u8>,
    /// Zeros behind the content (RFC 8446, section 5.4).
    pub(crate) padding: usize,
}

impl Opener {
    pub(crate) fn new(suite: Suite, secret: &[u8]) -> Result<Self, Refusal> {
        let keys = suite.key(secret).zip(suite.iv(secret));
        let (key, iv) = keys.ok_or(Refusal::SecretLength)?;
        Ok(Self { key, iv, sequence: 0 })
    }

    pub(crate) fn open(&mut self, record: &Record<'_>) -> Result<Opened, Refusal> {
        let nonce = nonce(self.iv, self.sequence);
        let mut content = record.body.to_vec();
        let opened = self.key.open_in_place(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(record.header),
            &mut content,
        );
        let length = opened.map_err(|_| Refusal::Tag(self.sequence))?.len();
        self.sequence += 1;
        content.truncate(length);
        let end = content.iter().rposition(|byte| *byte != 0).ok_or(Refusal::NoInnerType)?;
        let padding = content.len() - end - 1;
        let kind = content.get(end).copied().unwrap_or_default();
        content.truncate(end);
        Ok(Opened { kind, content, padding })
    }
}

/// The nonce of a record (RFC 8446, section 5.3).
pub(crate) fn nonce(mut iv: [u8; NONCE_LEN], sequence: u64) -> [u8; NONCE_LEN] {
    for (byte, count) in iv.iter_mut().skip(4).zip(sequence.to_be_bytes()) {
        *byte ^= count;
    }
    iv
}

/// What a client said: application data, then `close_notify`, nothing else.
pub(crate) fn client_data(
    suite: Suite,
    secret: &[u8],
    records: &[Record<'_>],
) -> Result<Vec<u8>, Refusal> {
    let mut opener = Opener::new(suite, secret)?;
    let (mut said, mut closed) = (vec![], false);
    for record in records {
        let Opened { kind, content, padding } = opener.open(record)?;
        if closed {
            return Err(Refusal::AfterClose);
        }
        if padding > 0 {
            return Err(Refusal::Padding);
        }
        match kind {
            APPLICATION_DATA if content.is_empty() => return Err(Refusal::EmptyData),
            APPLICATION_DATA => said.extend(content),
            ALERT if content == CLOSE_NOTIFY => closed = true,
            other => return Err(Refusal::InnerType(other)),
        }
    }
    Ok(said)
}

/// What a server said: application data and tickets, and `close_notify` at most at its end. Many
/// servers close TCP without one; then somebody may have cut off what follows, and it is for the
/// reader of the response to see that it is complete ([`crate::http::response::read`] takes no
/// other).
pub(crate) fn server_data(
    suite: Suite,
    secret: &[u8],
    records: &[Record<'_>],
) -> Result<Vec<u8>, Refusal> {
    let mut opener = Opener::new(suite, secret)?;
    let (mut said, mut closed) = (vec![], false);
    for record in records {
        let Opened { kind, content, .. } = opener.open(record)?;
        if closed {
            return Err(Refusal::AfterClose);
        }
        match kind {
            APPLICATION_DATA => said.extend(content),
            ALERT if content == CLOSE_NOTIFY => closed = true,
            HANDSHAKE => tickets(&content)?,
            other => return Err(Refusal::InnerType(other)),
        }
    }
    Ok(said)
}

/// After its flight a server may send tickets alone; a `KeyUpdate` would end what was bound.
fn tickets(content: &[u8]) -> Result<(), Refusal> {
    let mut rest = Bytes(content);
    while !rest.is_empty() {
        let message = rest.u8().zip(rest.vector24());
        let (kind, _) = message.ok_or(Refusal::HandshakeInPieces)?;
        if kind != NEW_SESSION_TICKET {
            return Err(Refusal::LateHandshake(kind));
        }
    }
    Ok(())
}
