//! TLS 1.3 from the attestor's perspective: from the recorded bytes of both directions, with
//! secrets that are revealed after the connection is closed. Nothing is trusted that the bytes do
//! not prove.

pub(crate) mod decrypt;
pub(crate) mod flight;
pub(crate) mod hello;
pub(crate) mod key_schedule;
pub(crate) mod records;

/// Content types (RFC 8446, section 5.1).
pub(crate) const CHANGE_CIPHER_SPEC: u8 = 20;
pub(crate) const ALERT: u8 = 21;
pub(crate) const HANDSHAKE: u8 = 22;
pub(crate) const APPLICATION_DATA: u8 = 23;

/// Handshake messages (RFC 8446, section 4).
pub(crate) const CLIENT_HELLO: u8 = 1;
pub(crate) const SERVER_HELLO: u8 = 2;
pub(crate) const NEW_SESSION_TICKET: u8 = 4;
pub(crate) const ENCRYPTED_EXTENSIONS: u8 = 8;
pub(crate) const CERTIFICATE: u8 = 11;
pub(crate) const CERTIFICATE_VERIFY: u8 = 15;
pub(crate) const FINISHED: u8 = 20;
