//! The `ClientHello` and `ServerHello` (RFC 8446, sections 4.1.2 and 4.1.3): offered and negotiated
//! parameters.

use super::key_schedule::Suite;
use crate::{bytes::ByteReader, error::ExaminationError};

/// Length of a handshake message's header: its type and its length.
const HEADER_BYTES: usize = 4;
const LEGACY_VERSION: u16 = 0x0303;
const TLS13: u16 = 0x0304;
/// The random value of a `HelloRetryRequest` (RFC 8446, section 4.1.3).
const HELLO_RETRY_RANDOM: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

// Extension types of the TLS registry.
const SERVER_NAME: u16 = 0;
pub(crate) const ALPN: u16 = 16;
const COMPRESS_CERTIFICATE: u16 = 27;
const PRE_SHARED_KEY: u16 = 41;
const EARLY_DATA: u16 = 42;
const SUPPORTED_VERSIONS: u16 = 43;
const POST_HANDSHAKE_AUTH: u16 = 49;
const KEY_SHARE: u16 = 51;
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;

/// `http/1.1` as the only name of a list (RFC 7301).
pub(crate) const HTTP11_ONLY: &[u8] = b"\x00\x09\x08http/1.1";

/// X25519 and P-256, with the length of a key share of each (RFC 8446, section 4.2.8.2).
const GROUPS: &[(u16, usize)] = &[(0x001d, 32), (0x0017, 65)];

/// The negotiated parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NegotiatedParameters {
    pub(crate) suite: Suite,
    pub(crate) group: u16,
}

struct ClientHello<'a> {
    session: &'a [u8],
    suites: &'a [u8],
    groups: Vec<u16>,
}

/// Reads both hellos of a connection to a host.
pub(crate) fn read_hellos(
    client: &[u8],
    server: &[u8],
    host: &str,
    suites: &[Suite],
) -> Result<NegotiatedParameters, ExaminationError> {
    let client = client_hello(client, host)?;
    server_hello(server, &client, suites)
}

fn client_hello<'a>(message: &'a [u8], host: &str) -> Result<ClientHello<'a>, ExaminationError> {
    let (fields, extensions) = client_fields(message).ok_or(ExaminationError::MalformedHello)?;
    let extensions = self::parse_extensions(extensions)?;
    for (kind, refusal) in [
        (PRE_SHARED_KEY, ExaminationError::Resumption),
        (EARLY_DATA, ExaminationError::EarlyData),
        (ENCRYPTED_CLIENT_HELLO, ExaminationError::EncryptedHello),
        (COMPRESS_CERTIFICATE, ExaminationError::ClientExtension(COMPRESS_CERTIFICATE)),
        (POST_HANDSHAKE_AUTH, ExaminationError::ClientExtension(POST_HANDSHAKE_AUTH)),
    ] {
        if find_extension(&extensions, kind).is_some() {
            return Err(refusal);
        }
    }
    if find_extension(&extensions, SERVER_NAME).and_then(server_name) != Some(host.as_bytes()) {
        return Err(ExaminationError::HostMismatch);
    }
    if find_extension(&extensions, SUPPORTED_VERSIONS) != Some(&[2, 3, 4]) {
        return Err(ExaminationError::TlsVersion);
    }
    if find_extension(&extensions, ALPN) != Some(HTTP11_ONLY) {
        return Err(ExaminationError::Protocol);
    }
    let groups = find_extension(&extensions, KEY_SHARE)
        .and_then(key_share_groups)
        .ok_or(ExaminationError::MalformedHello)?;
    Ok(ClientHello { groups, ..fields })
}

fn client_fields(message: &[u8]) -> Option<(ClientHello<'_>, ByteReader<'_>)> {
    let mut rest = ByteReader(message.get(HEADER_BYTES..)?);
    let version = rest.u16()?;
    rest.take(32)?;
    let session = rest.vector8()?;
    let suites = rest.vector16()?.0;
    let compression = rest.vector8()?;
    let extensions = rest.vector16()?;
    let whole = version == LEGACY_VERSION
        && session.len() <= 32
        && compression == [0]
        && suites.len().is_multiple_of(2)
        && rest.is_empty();
    whole.then_some((ClientHello { session, suites, groups: vec![] }, extensions))
}

fn server_hello(
    message: &[u8],
    client: &ClientHello<'_>,
    allowed: &[Suite],
) -> Result<NegotiatedParameters, ExaminationError> {
    let mut rest = ByteReader(message.get(HEADER_BYTES..).unwrap_or_default());
    let mut read = || {
        let (version, random) = (rest.u16()?, rest.array::<32>()?);
        let (session, suite, compression) = (rest.vector8()?, rest.u16()?, rest.u8()?);
        let extensions = rest.vector16()?;
        let whole = version == LEGACY_VERSION && compression == 0 && rest.is_empty();
        whole.then_some((random, session, suite, extensions))
    };
    let (random, session, suite, extensions) = read().ok_or(ExaminationError::MalformedHello)?;
    if random == HELLO_RETRY_RANDOM {
        return Err(ExaminationError::HelloRetry);
    }
    if session != client.session {
        return Err(ExaminationError::SessionEcho);
    }
    let offered = client.suites.chunks_exact(2).any(|offer| offer == suite.to_be_bytes());
    let suite = Suite::from_number(suite).filter(|suite| offered && allowed.contains(suite));
    let suite = suite.ok_or(ExaminationError::CipherSuite)?;
    let extensions = self::parse_extensions(extensions)?;
    for (kind, _) in &extensions {
        match *kind {
            SUPPORTED_VERSIONS | KEY_SHARE => (),
            PRE_SHARED_KEY => return Err(ExaminationError::Resumption),
            other => return Err(ExaminationError::ServerExtension(other)),
        }
    }
    if find_extension(&extensions, SUPPORTED_VERSIONS) != Some(&TLS13.to_be_bytes()) {
        return Err(ExaminationError::TlsVersion);
    }
    let mut share =
        ByteReader(find_extension(&extensions, KEY_SHARE).ok_or(ExaminationError::KeyShare)?);
    let group = share.u16().filter(|group| client.groups.contains(group));
    let length = share.vector16().map(|key| key.0.len()).filter(|_| share.is_empty());
    let (group, length) = group.zip(length).ok_or(ExaminationError::KeyShare)?;
    if !GROUPS.contains(&(group, length)) {
        return Err(ExaminationError::KeyShare);
    }
    Ok(NegotiatedParameters { suite, group })
}

/// Parses extensions by their types, without duplicates (RFC 8446, section 4.2).
pub(crate) fn parse_extensions(
    mut rest: ByteReader<'_>,
) -> Result<Vec<(u16, &[u8])>, ExaminationError> {
    let mut found: Vec<(u16, &[u8])> = vec![];
    while !rest.is_empty() {
        let (kind, value) =
            rest.u16().zip(rest.vector16()).ok_or(ExaminationError::MalformedHello)?;
        if find_extension(&found, kind).is_some() {
            return Err(ExaminationError::DuplicateExtension(kind));
        }
        found.push((kind, value.0));
    }
    Ok(found)
}

pub(crate) fn find_extension<'a>(extensions: &[(u16, &'a [u8])], kind: u16) -> Option<&'a [u8]> {
    extensions.iter().find(|(known, _)| *known == kind).map(|(_, value)| *value)
}

/// Returns the only name of a server name list (RFC 6066, section 3).
fn server_name(value: &[u8]) -> Option<&[u8]> {
    let mut rest = ByteReader(value);
    let mut list = rest.vector16().filter(|_| rest.is_empty())?;
    let (kind, name) = (list.u8()?, list.vector16()?);
    (kind == 0 && list.is_empty()).then_some(name.0)
}

/// Returns the groups of the client's key shares.
fn key_share_groups(value: &[u8]) -> Option<Vec<u16>> {
    let mut rest = ByteReader(value);
    let mut list = rest.vector16().filter(|_| rest.is_empty())?;
    let mut groups = vec![];
    while !list.is_empty() {
        groups.push(list.u16()?);
        list.vector16()?;
    }
    Some(groups)
}
