//! The errors of an examination: each check has its own.

/// A defect of the recording, or of the revealed data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExaminationError {
    // Records (RFC 8446, section 5).
    #[error("a record is truncated")]
    RecordTruncated,
    #[error("a record is longer than RFC 8446 allows")]
    RecordTooLong,
    #[error("a record is empty")]
    RecordEmpty,
    #[error("a record has another version than 0x0303")]
    RecordVersion,
    #[error("there are too many records")]
    TooManyRecords,
    #[error("a record of type {0} is in plaintext where all records must be encrypted")]
    PlaintextRecord(u8),
    // Hellos (RFC 8446, section 4.1).
    #[error("a direction does not start with its hello")]
    NoHello,
    #[error("a hello is fragmented, or its record contains more data")]
    FragmentedHello,
    #[error("a hello is malformed")]
    MalformedHello,
    #[error("extension {0} occurs twice")]
    DuplicateExtension(u16),
    #[error("the session resumes another one, so that there is no certificate")]
    Resumption,
    #[error("data is sent before the server is authenticated")]
    EarlyData,
    #[error("the hello is encrypted, so that its host is not visible")]
    EncryptedHello,
    #[error("the client offers extension {0}, which is not allowed")]
    ClientExtension(u16),
    #[error("the server's hello has extension {0}, which is not allowed")]
    ServerExtension(u16),
    #[error("the connection is for another host")]
    HostMismatch,
    #[error("the only version must be TLS 1.3")]
    TlsVersion,
    #[error("the only protocol must be http/1.1")]
    Protocol,
    #[error("the server sends a HelloRetryRequest")]
    HelloRetry,
    #[error("the server does not echo the session identifier")]
    SessionEcho,
    #[error("the cipher suite was not offered, or is not allowed")]
    CipherSuite,
    #[error("the server's key share is for a group that was not offered, or is not allowed")]
    KeyShare,
    // The server's flight (RFC 8446, section 4.4).
    #[error("a secret has the wrong length for the cipher suite")]
    SecretLength,
    #[error("failed to decrypt record {0}: its tag is wrong for the derived key")]
    Tag(u64),
    #[error("a record contains only zeros")]
    NoInnerType,
    #[error("a record contains content of type {0}, which is not allowed there")]
    InnerType(u8),
    #[error("the server's flight does not consist of the four required messages")]
    Flight,
    #[error("the server's flight is too long")]
    FlightTooLong,
    #[error("the record of the server's Finished contains more data")]
    AfterFinished,
    #[error("the certificate has a request context, but there was no request")]
    CertificateContext,
    #[error("there is no certificate")]
    NoCertificate,
    #[error("the certificate chain is too long")]
    ChainTooLong,
    #[error("the certificate is refused: {0:?}")]
    Certificate(webpki::Error),
    #[error("signature scheme {0:#06x} is not allowed")]
    SignatureScheme(u16),
    #[error("the server's signature does not cover the transcript")]
    Signature,
    #[error("the server's Finished is wrong")]
    ServerFinished,
    #[error("the client's Finished is wrong, or not its first encrypted message")]
    ClientFinished,
    // Application data.
    #[error("the client pads a record")]
    Padding,
    #[error("the client sends a record without data")]
    EmptyData,
    #[error("a record comes after close_notify")]
    AfterClose,
    #[error("a handshake message is fragmented after the handshake")]
    FragmentedHandshake,
    #[error("handshake message {0} follows the handshake")]
    UnexpectedHandshake(u8),
    #[error("the descriptor does not allow this mode")]
    Mode,
    // The prover's reveal message and proof.
    #[error("the revealed data does not match the recording, or is ambiguous")]
    Reveal,
    #[error("a value that must be hidden occurs in the revealed data")]
    HiddenValueRevealed,
    #[error("the proof is refused: {0}")]
    Zk(#[from] crate::zk::ZkError),
    // HTTP/1.1 (RFC 9112) and JSON (RFC 8259).
    #[error("the request is refused: {0}")]
    Request(#[from] crate::http::request::RequestError),
    #[error("the response is refused: {0}")]
    Response(#[from] crate::http::response::ResponseError),
    #[error("the body is refused: {0}")]
    Body(#[from] crate::json::JsonError),
    #[error("the revealed part of the response is refused: {0}")]
    Selective(#[from] crate::http::selective::SelectiveError),
}
