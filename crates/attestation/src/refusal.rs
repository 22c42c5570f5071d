//! Why a witness refuses: each check has a reason of its own.

/// What is wrong with what was recorded, or with what was told of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    // Records (RFC 8446, section 5).
    #[error("a record is cut off")]
    RecordCutOff,
    #[error("a record is longer than RFC 8446 allows")]
    RecordTooLong,
    #[error("a record is empty")]
    RecordEmpty,
    #[error("a record has another version than 0x0303")]
    RecordVersion,
    #[error("there are too many records")]
    TooManyRecords,
    #[error("a record of type {0} stands in plain where all must be encrypted")]
    PlaintextRecord(u8),
    // Hellos (RFC 8446, section 4.1).
    #[error("a direction does not begin with its hello")]
    NoHello,
    #[error("a hello is split over records, or something stands behind it")]
    HelloInPieces,
    #[error("a hello cannot be read")]
    BrokenHello,
    #[error("extension {0} comes twice")]
    ExtensionTwice(u16),
    #[error("the session resumes another one, so that no certificate is shown")]
    Resumption,
    #[error("data is sent before the server has proved who it is")]
    EarlyData,
    #[error("the hello is encrypted, so that its host cannot be seen")]
    HiddenHello,
    #[error("the client offers extension {0}, which is not allowed")]
    ClientExtension(u16),
    #[error("the server answers with extension {0}, which is not allowed")]
    ServerExtension(u16),
    #[error("the connection is to another host")]
    AnotherHost,
    #[error("the version is not TLS 1.3 alone")]
    TlsVersion,
    #[error("the protocol is not http/1.1 alone")]
    Protocol,
    #[error("the server asks for another hello")]
    HelloRetry,
    #[error("the server does not echo the session identifier")]
    SessionEcho,
    #[error("the cipher suite was not offered, or is not allowed")]
    CipherSuite,
    #[error("the server's key share is of a group that was not offered, or is not allowed")]
    KeyShare,
    // The server's flight (RFC 8446, section 4.4).
    #[error("a secret has the wrong length for the cipher suite")]
    SecretLength,
    #[error("record {0} does not open: its tag is wrong for the derived key")]
    Tag(u64),
    #[error("a record holds zeros alone")]
    NoInnerType,
    #[error("a record holds content of type {0} where that must not be")]
    InnerType(u8),
    #[error("the server's flight is not the four messages that it has to be")]
    Flight,
    #[error("the server's flight is too long")]
    FlightTooLong,
    #[error("something stands behind the server's Finished in its record")]
    AfterFinished,
    #[error("the certificate answers a request that nobody made")]
    CertificateContext,
    #[error("there is no certificate")]
    NoCertificate,
    #[error("the chain of certificates is too long")]
    ChainTooLong,
    #[error("the certificate is refused: {0:?}")]
    Certificate(webpki::Error),
    #[error("signature scheme {0:#06x} is not allowed")]
    SignatureScheme(u16),
    #[error("the server's signature does not cover what was said")]
    Signature,
    #[error("the server's Finished is wrong")]
    ServerFinished,
    #[error("the client's Finished is wrong, or not the first that it encrypts")]
    ClientFinished,
    // Application data.
    #[error("the client pads a record")]
    Padding,
    #[error("the client sends a record without data")]
    EmptyData,
    #[error("a record comes after close_notify")]
    AfterClose,
    #[error("a handshake message is split over records after the handshake")]
    HandshakeInPieces,
    #[error("handshake message {0} comes after the handshake")]
    LateHandshake(u8),
    #[error("the descriptor does not allow this mode")]
    Mode,
    // What a prover tells, and proves.
    #[error("what is told does not fit what was recorded, or can be told in another way")]
    Reveal,
    #[error("a value that is to be hidden stands in what would be told")]
    HiddenIsTold,
    #[error("the proof is refused: {0}")]
    Zk(#[from] crate::zk::ZkError),
    // HTTP/1.1 (RFC 9112) and JSON (RFC 8259).
    #[error("the request is refused: {0}")]
    Request(#[from] crate::http::request::BadRequest),
    #[error("the response is refused: {0}")]
    Response(#[from] crate::http::response::BadResponse),
    #[error("the body is refused: {0}")]
    Body(#[from] crate::json::BadJson),
    #[error("what is told of the response is refused: {0}")]
    Selective(#[from] crate::http::selective::BadDisclosure),
}
