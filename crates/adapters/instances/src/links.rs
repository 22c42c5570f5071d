//! Opens sockets at other instances, and has them answer requests.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::{
    HeaderMap, Request, Response, StatusCode,
    body::Incoming,
    client::conn::http1::{self, SendRequest},
    header::{
        CACHE_CONTROL, CONNECTION, CONTENT_LANGUAGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST,
        HeaderName, LOCATION, REFERRER_POLICY, RETRY_AFTER, SEC_WEBSOCKET_ACCEPT,
        SEC_WEBSOCKET_PROTOCOL, SET_COOKIE, UPGRADE, VARY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
    },
    upgrade::Upgraded,
};
use hyper_util::rt::TokioIo;
use ports::instances::{
    ByteReader, ByteWriter, ForwardedRequest, ForwardedResponse, InstanceLinks, LinkError,
    MAX_ANSWERED_BYTES, MAX_READ, RelayedSocket, SocketRequest,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use crate::{identity::InstanceIdentity, socket::prepare};

const OPEN_TIMEOUT: Duration = Duration::from_secs(5);
const REACH_TIMEOUT: Duration = Duration::from_secs(2);
/// How long bytes may wait for room at the other instance.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long an instance may send nothing over a socket while it is read. It sends a ping every 15 s over
/// each, so three are missing then: its machine is gone, or its process stands still.
const READ_TIMEOUT: Duration = Duration::from_secs(45);
/// How long an instance that was reached may take to answer a request. Longer than a studio's page waits for
/// a change.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// The headers of the response to a handshake that the client needs (RFC 6455, section 4.2.2).
const HANDSHAKE_HEADERS: [HeaderName; 2] = [SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_PROTOCOL];
/// The headers of the response to a request that the client needs. Others are of the connection between the
/// instances, or are set by the one that forwards.
const PAGE_HEADERS: [HeaderName; 11] = [
    CACHE_CONTROL,
    CONTENT_LANGUAGE,
    CONTENT_SECURITY_POLICY,
    CONTENT_TYPE,
    LOCATION,
    REFERRER_POLICY,
    RETRY_AFTER,
    SET_COOKIE,
    VARY,
    X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
];

/// Links over TLS with a certificate on both sides.
pub struct TlsLinks {
    identity: Arc<InstanceIdentity>,
    answer_timeout: Duration,
}

#[async_trait]
impl InstanceLinks for TlsLinks {
    async fn open(
        &self,
        address: &str,
        request: SocketRequest,
    ) -> Result<RelayedSocket, LinkError> {
        let opened = tokio::time::timeout(OPEN_TIMEOUT, self.handshake(address, &request)).await;
        let late = |_| LinkError::Unreachable(format!("no answer within {OPEN_TIMEOUT:?}"));
        let mut response = opened.map_err(late)??;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(LinkError::Refused(response.status().as_u16()));
        }
        let headers = listed(response.headers(), &HANDSHAKE_HEADERS);
        let upgraded = hyper::upgrade::on(&mut response).await.map_err(unreachable)?;
        let (reader, writer) = tokio::io::split(TokioIo::new(upgraded));
        let reader = Reader { stream: reader, buffer: vec![0; MAX_READ] };
        Ok(RelayedSocket { headers, reader: Box::new(reader), writer: Box::new(Writer(writer)) })
    }

    async fn request(
        &self,
        address: &str,
        request: ForwardedRequest,
    ) -> Result<ForwardedResponse, LinkError> {
        if !request.is_within_bounds() {
            return Err(LinkError::RequestTooLarge);
        }
        let request = sendable(request)?;
        let connected = tokio::time::timeout(OPEN_TIMEOUT, self.connect(address)).await;
        let late = |_| LinkError::Unreachable(format!("no connection within {OPEN_TIMEOUT:?}"));
        let sender = connected.map_err(late)??;
        let answered = tokio::time::timeout(self.answer_timeout, exchange(sender, request)).await;
        answered.map_err(|_| LinkError::TimedOut)?
    }

    async fn reach(&self, address: &str) -> Result<(), LinkError> {
        let answer = async {
            // With TLS 1.3 a server refuses a client's certificate after the handshake: only an answer
            // shows that it did not.
            let request = Request::get("/").header(HOST, address).body(Full::<Bytes>::default());
            let request = request.map_err(unreachable)?;
            self.connect(address).await?.send_request(request).await.map_err(unreachable)
        };
        let answered = tokio::time::timeout(REACH_TIMEOUT, answer).await;
        let late = |_| LinkError::Unreachable(format!("no answer within {REACH_TIMEOUT:?}"));
        answered.map_err(late)?.map(drop)
    }
}

impl TlsLinks {
    #[must_use]
    pub fn new(identity: Arc<InstanceIdentity>) -> Self {
        Self { identity, answer_timeout: ANSWER_TIMEOUT }
    }

    /// Has instances answer requests within this time, in place of 60 s.
    #[must_use]
    pub fn with_answer_timeout(self, answer_timeout: Duration) -> Self {
        Self { answer_timeout, ..self }
    }

    async fn connect(&self, address: &str) -> Result<SendRequest<Full<Bytes>>, LinkError> {
        let stream = TcpStream::connect(address).await.map_err(unreachable)?;
        prepare(&stream).map_err(unreachable)?;
        let connector = TlsConnector::from(self.identity.current().client.clone());
        let peer = self.identity.peer().clone();
        let stream = connector.connect(peer, stream).await.map_err(unreachable)?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(unreachable)?;
        // Ends with the upgraded connection, or when `sender` is dropped.
        tokio::spawn(connection.with_upgrades());
        Ok(sender)
    }

    async fn handshake(
        &self,
        address: &str,
        request: &SocketRequest,
    ) -> Result<Response<Incoming>, LinkError> {
        let mut sender = self.connect(address).await?;
        let mut open = Request::get(request.kind.path(request.session))
            .header(CONNECTION, "upgrade")
            .header(UPGRADE, "websocket");
        for (name, value) in &request.headers {
            open = open.header(*name, value);
        }
        let open = open.body(Full::<Bytes>::default()).map_err(unreachable)?;
        sender.send_request(open).await.map_err(unreachable)
    }
}

/// Returns a request as it is sent. What is wrong with it says nothing of the instance.
fn sendable(request: ForwardedRequest) -> Result<Request<Full<Bytes>>, LinkError> {
    let ForwardedRequest { method, path, headers, body } = request;
    let mut sent = Request::builder().method(method.as_str()).uri(path);
    for (name, value) in headers {
        sent = sent.header(name, value);
    }
    sent.body(Full::new(Bytes::from(body))).map_err(|error| LinkError::Invalid(error.to_string()))
}

/// Sends a request, and reads the response within its bound. The instance was reached: what fails from here
/// on may be due to this request.
async fn exchange(
    mut sender: SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> Result<ForwardedResponse, LinkError> {
    let broken = |error: hyper::Error| LinkError::Broken(with_cause(&error));
    let response = sender.send_request(request).await.map_err(broken)?;
    let status = response.status().as_u16();
    let headers = listed(response.headers(), &PAGE_HEADERS);
    let body = Limited::new(response.into_body(), MAX_ANSWERED_BYTES).collect().await;
    let body = body.map_err(|error| {
        if error.is::<LengthLimitError>() {
            LinkError::ResponseTooLarge
        } else {
            LinkError::Broken(error.to_string())
        }
    })?;
    Ok(ForwardedResponse { status, headers, body: Vec::from(body.to_bytes()) })
}

/// Returns the headers with these names.
fn listed(headers: &HeaderMap, names: &[HeaderName]) -> Vec<(String, String)> {
    let of_name = |name: &HeaderName| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        let pair = |value: &str| (name.as_str().to_owned(), value.to_owned());
        values.map(pair).collect::<Vec<_>>()
    };
    names.iter().flat_map(of_name).collect()
}

fn unreachable(error: impl std::error::Error) -> LinkError {
    LinkError::Unreachable(with_cause(&error))
}

/// Returns the text of an error with that of its cause.
fn with_cause(error: &impl std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

struct Reader {
    stream: ReadHalf<TokioIo<Upgraded>>,
    buffer: Vec<u8>,
}

#[async_trait]
impl ByteReader for Reader {
    async fn read(&mut self) -> Option<Vec<u8>> {
        let read = self.stream.read(&mut self.buffer);
        match tokio::time::timeout(READ_TIMEOUT, read).await {
            Ok(Ok(0) | Err(_)) | Err(_) => None,
            Ok(Ok(length)) => self.buffer.get(..length).map(<[u8]>::to_vec),
        }
    }
}

struct Writer(WriteHalf<TokioIo<Upgraded>>);

#[async_trait]
impl ByteWriter for Writer {
    async fn write(&mut self, bytes: &[u8]) -> bool {
        let written = async {
            self.0.write_all(bytes).await?;
            self.0.flush().await
        };
        matches!(tokio::time::timeout(WRITE_TIMEOUT, written).await, Ok(Ok(())))
    }
}
