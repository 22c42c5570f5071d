//! What a probe observes of a server. The names of the members are part of the JSON that the command
//! prints.

use serde::Serialize;

/// Everything that a probe observed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Observations {
    pub url: String,
    pub address: AddressObserved,
    /// Why no descriptor can have the URL.
    #[serde(skip)]
    pub url_defects: Vec<String>,
    /// Versions of TLS, by name.
    pub versions: Vec<Offer>,
    /// Cipher suites of TLS 1.3, by the names of the TLS registry.
    pub suites: Vec<Offer>,
    /// Groups of the key exchange in TLS 1.3.
    pub groups: Vec<Offer>,
    /// Whether the server asked for another key share when all groups were offered; absent if there
    /// was no such handshake in TLS 1.3.
    pub hello_retry_request: Option<bool>,
    pub alpn: AlpnOutcome,
    /// Absent if no handshake got that far.
    pub certificate: Option<CertificateObserved>,
    pub exchange: ExchangeOutcome,
    /// By mode: what the rules of the attestation say of the recorded connection. A mode in which it
    /// could not be examined is absent.
    #[serde(skip)]
    pub examined: Vec<(domain::workflow::AttestMode, ExaminedMode)>,
}

/// The address that was dialled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AddressObserved {
    pub socket_address: String,
    /// Whether it is on the public internet.
    pub is_public: bool,
}

/// A version, suite or group that was offered alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Offer {
    pub name: String,
    #[serde(flatten)]
    pub outcome: OfferOutcome,
}

/// What the server made of an offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "outcome", content = "reason")]
pub enum OfferOutcome {
    Accepted,
    /// With the error.
    Refused(String),
    /// The server did not answer in time.
    Unanswered,
    /// There was no time for it, or TLS 1.3 was not accepted at all.
    NotTried,
}

/// What the server made of the only protocol that was offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum AlpnOutcome {
    /// It selected `http/1.1`.
    Selected,
    /// It completed the handshake, and selected no protocol.
    NotSelected,
    /// It refused the handshake for that reason.
    Refused,
    /// No handshake got that far.
    Unknown,
}

/// The server's certificate chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateObserved {
    /// Why the chain is not valid for the host; absent if it is valid.
    pub error: Option<String>,
    /// Number of certificates that the server sent.
    pub length: usize,
    /// The first names of the server's certificate.
    pub names: Vec<String>,
}

/// What became of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "outcome", content = "content")]
pub enum ExchangeOutcome {
    /// The request was not sent, and why.
    NotSent(String),
    /// There was no response that can be read, and why.
    NoResponse(String),
    Response(Box<ResponseObserved>),
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResponseObserved {
    pub status: u16,
    pub http_version: String,
    pub content_type: Option<String>,
    pub content_encoding: Option<String>,
    pub json: JsonSyntax,
    /// The JSON pointer (RFC 6901) to the shortest value that an attestation could state.
    #[serde(skip)]
    pub shortest_value: Option<String>,
    pub framing: BodyFraming,
    /// Lengths of the status line and headers, and of the body without the framing of chunks, as far
    /// as they were read.
    pub head_bytes: usize,
    pub body_bytes: usize,
    /// Length of the whole response, as far as it was read.
    pub total_bytes: usize,
    /// Length of the request.
    pub request_bytes: usize,
    pub completeness: Completeness,
    /// Names of cookies that the response sets.
    pub cookies: Vec<String>,
    /// Names of headers that hold credentials, `set-cookie` among them.
    pub credential_headers: Vec<String>,
    /// Where a redirect leads, without query and fragment.
    pub location: Option<String>,
    pub end: ConnectionEnd,
}

/// Whether a body is JSON as attestations read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "outcome", content = "reason")]
pub enum JsonSyntax {
    Valid,
    Invalid(String),
    /// The body is encoded or incomplete.
    Unknown,
}

/// How a response states its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum BodyFraming {
    ContentLength,
    Chunked,
    /// In no way: it ends with the connection.
    Close,
    /// In two ways, or in another transfer coding.
    Ambiguous,
}

/// Whether a response was read to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "outcome", content = "reason")]
pub enum Completeness {
    Complete,
    /// The connection ended before it.
    Truncated,
    /// It is longer than an attested response may be; the rest was not read.
    TooLong,
    /// It did not end in time.
    TimedOut,
    /// Its framing cannot be read.
    Malformed(String),
}

/// How the server ended the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ConnectionEnd {
    CloseNotify,
    /// It closed TCP without `close_notify`.
    Closed,
    /// It stayed open, although `Connection: close` was sent.
    Open,
}

/// What the rules of an attestation say of a recorded connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExaminedMode {
    Accepted,
    /// The TLS connection is refused.
    ConnectionRefused(String),
    /// The connection is in order, and the response is refused.
    ResponseRefused(String),
    /// Request and response are too long for a proof.
    TooLong,
}
