//! Opens sockets at other instances.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::Empty;
use hyper::{
    Request, Response, StatusCode,
    body::Incoming,
    client::conn::http1::{self, SendRequest},
    header::{CONNECTION, HOST, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_PROTOCOL, UPGRADE},
    upgrade::Upgraded,
};
use hyper_util::rt::TokioIo;
use ports::instances::{
    ByteReader, ByteWriter, InstanceLinks, LinkError, MAX_READ, RelayedSocket, SocketRequest,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use crate::identity::InstanceIdentity;

const OPEN_TIMEOUT: Duration = Duration::from_secs(5);
const REACH_TIMEOUT: Duration = Duration::from_secs(2);
/// How long bytes may wait for room at the other instance.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// The headers of the response that the client needs (RFC 6455, section 4.2.2).
const ANSWERED: [hyper::header::HeaderName; 2] = [SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_PROTOCOL];

/// Links over TLS with a certificate on both sides.
pub struct TlsLinks(pub Arc<InstanceIdentity>);

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
        let headers = ANSWERED.iter().filter_map(|name| {
            let value = response.headers().get(name)?.to_str().ok()?;
            Some((name.as_str().to_owned(), value.to_owned()))
        });
        let headers = headers.collect();
        let upgraded = hyper::upgrade::on(&mut response).await.map_err(unreachable)?;
        let (reader, writer) = tokio::io::split(TokioIo::new(upgraded));
        let reader = Reader { stream: reader, buffer: vec![0; MAX_READ] };
        Ok(RelayedSocket { headers, reader: Box::new(reader), writer: Box::new(Writer(writer)) })
    }

    async fn reach(&self, address: &str) -> Result<(), LinkError> {
        let answer = async {
            // With TLS 1.3 a server refuses a client's certificate after the handshake: only an answer
            // shows that it did not.
            let request = Request::get("/").header(HOST, address).body(Empty::<Bytes>::new());
            let request = request.map_err(unreachable)?;
            self.connect(address).await?.send_request(request).await.map_err(unreachable)
        };
        let answered = tokio::time::timeout(REACH_TIMEOUT, answer).await;
        let late = |_| LinkError::Unreachable(format!("no answer within {REACH_TIMEOUT:?}"));
        answered.map_err(late)?.map(drop)
    }
}

impl TlsLinks {
    async fn connect(&self, address: &str) -> Result<SendRequest<Empty<Bytes>>, LinkError> {
        let stream = TcpStream::connect(address).await.map_err(unreachable)?;
        // Input is small, and an applicant waits for its effect.
        stream.set_nodelay(true).map_err(unreachable)?;
        let connector = TlsConnector::from(self.0.current().client.clone());
        let stream = connector.connect(self.0.peer().clone(), stream).await.map_err(unreachable)?;
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
        let open = open.body(Empty::<Bytes>::new()).map_err(unreachable)?;
        sender.send_request(open).await.map_err(unreachable)
    }
}

fn unreachable(error: impl std::error::Error) -> LinkError {
    let mut line = error.to_string();
    if let Some(cause) = error.source() {
        line = format!("{line}: {cause}");
    }
    LinkError::Unreachable(line)
}

struct Reader {
    stream: ReadHalf<TokioIo<Upgraded>>,
    buffer: Vec<u8>,
}

#[async_trait]
impl ByteReader for Reader {
    async fn read(&mut self) -> Option<Vec<u8>> {
        match self.stream.read(&mut self.buffer).await {
            Ok(0) | Err(_) => None,
            Ok(length) => self.buffer.get(..length).map(<[u8]>::to_vec),
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
