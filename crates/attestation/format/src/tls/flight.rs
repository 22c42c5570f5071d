//! The server's flight: its certificate, its signature over the transcript, and the Finished
//! messages of both sides.

use ring::digest;
use rustls_pki_types::{
    CertificateDer, ServerName, SignatureVerificationAlgorithm, TrustAnchor, UnixTime,
};
use subtle::ConstantTimeEq as _;
use webpki::{EndEntityCert, KeyUsage, ring as algorithms};

use super::{
    CERTIFICATE, CERTIFICATE_VERIFY, ENCRYPTED_EXTENSIONS, FINISHED, HANDSHAKE,
    decrypt::RecordDecrypter,
    hello::{ALPN, HTTP11_ONLY, find_extension, parse_extensions},
    key_schedule::Suite,
    records::{RecordStreams, TlsRecord},
};
use crate::{bytes::ByteReader, error::ExaminationError};

/// Maximum number of certificates in a chain.
pub const MAX_CHAIN_CERTIFICATES: usize = 8;
/// Maximum length of a flight.
const MAX_FLIGHT_BYTES: usize = 128 * 1024;

/// The trust anchors of an examination, and its time.
#[derive(Debug, Clone, Copy)]
pub struct CertificateTrust<'a> {
    pub roots: &'a [TrustAnchor<'a>],
    pub now: UnixTime,
}

/// An authenticated server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AuthenticatedServer {
    /// The signature scheme's number (RFC 8446, section 4.2.3).
    pub(crate) scheme: u16,
    pub(crate) leaf_key_sha256: [u8; 32],
    pub(crate) chain_sha256: [u8; 32],
    /// The transcript hash up to the server's Finished.
    pub(crate) transcript: Vec<u8>,
    /// Number of records of its flight.
    pub(crate) records: usize,
}

/// The four messages of a flight, each with its header.
struct Flight {
    extensions: Vec<u8>,
    certificate: Vec<u8>,
    verify: Vec<u8>,
    finished: Vec<u8>,
    records: usize,
}

pub(crate) fn verify_server(
    wire: &RecordStreams<'_>,
    suite: Suite,
    secret: &[u8],
    host: &str,
    trust: &CertificateTrust<'_>,
) -> Result<AuthenticatedServer, ExaminationError> {
    let flight = read(suite, secret, &wire.server.encrypted)?;
    let agreed = encrypted_extensions(&flight.extensions)?;
    if find_extension(&agreed, ALPN) != Some(HTTP11_ONLY) {
        return Err(ExaminationError::Protocol);
    }
    let chain = parse_chain(&flight.certificate)?;
    let leaf = chain.first().ok_or(ExaminationError::NoCertificate)?;
    let leaf = EndEntityCert::try_from(leaf).map_err(ExaminationError::Certificate)?;
    leaf.verify_for_usage(
        webpki::ALL_VERIFICATION_ALGS,
        trust.roots,
        chain.get(1..).unwrap_or_default(),
        trust.now,
        KeyUsage::server_auth(),
        None,
        None,
    )
    .map_err(ExaminationError::Certificate)?;
    let name = ServerName::try_from(host).map_err(|_| ExaminationError::HostMismatch)?;
    leaf.verify_is_valid_for_subject_name(&name).map_err(ExaminationError::Certificate)?;
    let mut transcript_messages: Vec<&[u8]> = vec![wire.client.hello, wire.server.hello];
    transcript_messages.extend([flight.extensions.as_slice(), &flight.certificate]);
    let scheme = verify_signature(&leaf, &flight.verify, &suite.hash(&transcript_messages))?;
    transcript_messages.push(&flight.verify);
    verify_finished(suite, secret, &flight.finished, &suite.hash(&transcript_messages))
        .ok_or(ExaminationError::ServerFinished)?;
    transcript_messages.push(&flight.finished);
    let mut certificates = digest::Context::new(&digest::SHA256);
    for certificate in &chain {
        certificates.update(&u32::try_from(certificate.len()).unwrap_or(u32::MAX).to_be_bytes());
        certificates.update(certificate);
    }
    Ok(AuthenticatedServer {
        scheme,
        leaf_key_sha256: sha256(&leaf.subject_public_key_info()),
        chain_sha256: certificates.finish().as_ref().try_into().unwrap_or_default(),
        transcript: suite.hash(&transcript_messages),
        records: flight.records,
    })
}

/// Verifies that the client's first encrypted record contains its Finished and nothing else.
pub(crate) fn verify_client_finished(
    suite: Suite,
    secret: &[u8],
    records: &[TlsRecord<'_>],
    transcript: &[u8],
) -> Result<(), ExaminationError> {
    let first = records.first().ok_or(ExaminationError::ClientFinished)?;
    let opened = RecordDecrypter::new(suite, secret)?.decrypt(first)?;
    if opened.kind != HANDSHAKE || opened.padding > 0 {
        return Err(ExaminationError::ClientFinished);
    }
    verify_finished(suite, secret, &opened.content, transcript)
        .ok_or(ExaminationError::ClientFinished)
}

fn verify_finished(suite: Suite, secret: &[u8], message: &[u8], transcript: &[u8]) -> Option<()> {
    let mut rest = ByteReader(message);
    let (kind, verify_data) = (rest.u8()?, rest.vector24()?);
    let expected = suite.finished(secret, transcript);
    let same = bool::from(verify_data.0.ct_eq(&expected));
    (kind == FINISHED && rest.is_empty() && same).then_some(())
}

/// Reads exactly `EncryptedExtensions`, Certificate, `CertificateVerify` and Finished; their last
/// record must contain nothing else.
fn read(
    suite: Suite,
    secret: &[u8],
    records: &[TlsRecord<'_>],
) -> Result<Flight, ExaminationError> {
    let mut opener = RecordDecrypter::new(suite, secret)?;
    let (mut stream, mut used) = (vec![], 0);
    for record in records {
        let inner = opener.decrypt(record)?;
        used += 1;
        if inner.kind != HANDSHAKE {
            return Err(ExaminationError::InnerType(inner.kind));
        }
        stream.extend(inner.content);
        if stream.len() > MAX_FLIGHT_BYTES {
            return Err(ExaminationError::FlightTooLong);
        }
        let mut rest = ByteReader(&stream);
        let mut messages = vec![];
        while let Some(message) = message(&mut rest) {
            messages.push(message);
        }
        let is_finished = |message: &&[u8]| message.first() == Some(&FINISHED);
        match messages.iter().position(is_finished) {
            None => continue,
            Some(at) if at + 1 < messages.len() || !rest.is_empty() => {
                return Err(ExaminationError::AfterFinished);
            }
            Some(_) => (),
        }
        let kinds: Vec<_> = messages.iter().filter_map(|message| message.first()).collect();
        let [extensions, certificate, verify, finished] = *messages.as_slice() else {
            return Err(ExaminationError::Flight);
        };
        if kinds != [&ENCRYPTED_EXTENSIONS, &CERTIFICATE, &CERTIFICATE_VERIFY, &FINISHED] {
            return Err(ExaminationError::Flight);
        }
        let [extensions, certificate, verify, finished] =
            [extensions, certificate, verify, finished].map(<[u8]>::to_vec);
        return Ok(Flight { extensions, certificate, verify, finished, records: used });
    }
    Err(ExaminationError::Flight)
}

/// Returns the next complete message with its header.
fn message<'a>(rest: &mut ByteReader<'a>) -> Option<&'a [u8]> {
    let mut ahead = *rest;
    ahead.u8()?;
    let body = ahead.vector24()?;
    rest.take(4 + body.0.len())
}

fn encrypted_extensions(message: &[u8]) -> Result<Vec<(u16, &[u8])>, ExaminationError> {
    let mut rest = ByteReader(message.get(4..).unwrap_or_default());
    let list = rest.vector16().filter(|_| rest.is_empty()).ok_or(ExaminationError::Flight)?;
    parse_extensions(list)
}

fn parse_chain(message: &[u8]) -> Result<Vec<CertificateDer<'_>>, ExaminationError> {
    let mut rest = ByteReader(message.get(4..).unwrap_or_default());
    let context = rest.vector8().ok_or(ExaminationError::Flight)?;
    if !context.is_empty() {
        return Err(ExaminationError::CertificateContext);
    }
    let mut list = rest.vector24().filter(|_| rest.is_empty()).ok_or(ExaminationError::Flight)?;
    let mut chain = vec![];
    while !list.is_empty() {
        let entry = list.vector24().zip(list.vector16());
        let (certificate, own) = entry.ok_or(ExaminationError::Flight)?;
        // Extensions of a certificate (an OCSP response, SCTs) are not needed and not interpreted.
        parse_extensions(own)?;
        chain.push(CertificateDer::from(certificate.0));
        if chain.len() > MAX_CHAIN_CERTIFICATES {
            return Err(ExaminationError::ChainTooLong);
        }
    }
    if chain.is_empty() { Err(ExaminationError::NoCertificate) } else { Ok(chain) }
}

/// Verifies `CertificateVerify` (RFC 8446, section 4.4.3) and returns its scheme.
fn verify_signature(
    leaf: &EndEntityCert<'_>,
    message: &[u8],
    transcript: &[u8],
) -> Result<u16, ExaminationError> {
    let mut rest = ByteReader(message.get(4..).unwrap_or_default());
    let (scheme, signature) = rest.u16().zip(rest.vector16()).ok_or(ExaminationError::Flight)?;
    if !rest.is_empty() {
        return Err(ExaminationError::Flight);
    }
    let algorithm = algorithm(scheme).ok_or(ExaminationError::SignatureScheme(scheme))?;
    let mut signed = vec![0x20; 64];
    signed.extend(b"TLS 1.3, server CertificateVerify\0");
    signed.extend(transcript);
    let verified = leaf.verify_signature(algorithm, &signed, signature.0);
    verified.map(|()| scheme).map_err(|_| ExaminationError::Signature)
}

/// Returns the algorithm of a signature scheme. In TLS 1.3 each ECDSA scheme implies a curve.
fn algorithm(scheme: u16) -> Option<&'static dyn SignatureVerificationAlgorithm> {
    Some(match scheme {
        0x0403 => algorithms::ECDSA_P256_SHA256,
        0x0503 => algorithms::ECDSA_P384_SHA384,
        0x0804 => algorithms::RSA_PSS_2048_8192_SHA256_LEGACY_KEY,
        0x0805 => algorithms::RSA_PSS_2048_8192_SHA384_LEGACY_KEY,
        0x0806 => algorithms::RSA_PSS_2048_8192_SHA512_LEGACY_KEY,
        0x0807 => algorithms::ED25519,
        _ => return None,
    })
}

pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    digest::digest(&digest::SHA256, bytes).as_ref().try_into().unwrap_or_default()
}
