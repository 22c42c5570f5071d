//! DevTools messages over a WebSocket (RFC 6455), plain or over TLS.

use std::{io, sync::Arc, time::Duration};

use futures_util::{
    SinkExt as _, StreamExt as _,
    stream::{SplitSink, SplitStream},
};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::{Request, StatusCode, Uri, body::Bytes, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, pki_types::ServerName};
use serde::Deserialize;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::mpsc,
};
use tokio_rustls::TlsConnector;
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{self, Message, protocol::WebSocketConfig},
};

use super::{DevToolsEvent, Inner, MAX_MESSAGE_BYTES, Outgoing};

/// The time to connect, including TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The time of the WebSocket handshake: a fleet may start a browser first.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);
/// The interval of pings.
const PING_INTERVAL: Duration = Duration::from_secs(10);
/// The time without a message after which the connection counts as lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of the response with the address of a browser.
const MAX_VERSION_BYTES: usize = 64 * 1024;

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

type BoxedStream = Box<dyn Stream>;

/// An open WebSocket.
pub(crate) struct Socket(WebSocketStream<BoxedStream>);

#[derive(Debug, thiserror::Error)]
pub(crate) enum SocketError {
    #[error("its address is malformed")]
    Address,
    #[error("failed to connect to it")]
    Connect(#[source] io::Error),
    #[error("it did not respond in time")]
    TimedOut,
    #[error("it is at capacity: {0}")]
    AtCapacity(StatusCode),
    #[error("it responded with {0}")]
    Status(StatusCode),
    #[error("the WebSocket handshake failed")]
    Protocol(#[source] Box<tungstenite::Error>),
    #[error("it does not give the address of its browser")]
    NoDebuggerUrl,
}

impl Socket {
    /// Opens a connection to a `ws:` or `wss:` address. If an address without a path responds with 404,
    /// the path is requested from `/json/version`, as Chromium provides it.
    pub(crate) async fn open(url: &str, tls: &Arc<ClientConfig>) -> Result<Self, SocketError> {
        let url: Uri = url.parse().map_err(|_| SocketError::Address)?;
        match Self::handshake(&url, tls).await {
            Err(SocketError::Status(StatusCode::NOT_FOUND)) if url.path() == "/" => {
                let requested =
                    tokio::time::timeout(CONNECT_TIMEOUT, debugger_url(&url, tls)).await;
                let found = requested.map_err(|_| SocketError::TimedOut)??;
                Self::handshake(&found, tls).await
            }
            opened => opened,
        }
    }

    async fn handshake(url: &Uri, tls: &Arc<ClientConfig>) -> Result<Self, SocketError> {
        let stream = connect(url, tls).await?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_MESSAGE_BYTES));
        let opening = client_async_with_config(url.clone(), stream, Some(config));
        let opened = tokio::time::timeout(HANDSHAKE_TIMEOUT, opening).await;
        match opened.map_err(|_| SocketError::TimedOut)? {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(tungstenite::Error::Http(response)) => Err(match response.status() {
                full @ (StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) => {
                    SocketError::AtCapacity(full)
                }
                status => SocketError::Status(status),
            }),
            Err(error) => Err(SocketError::Protocol(Box::new(error))),
        }
    }

    /// Spawns the tasks that write commands and read messages.
    pub(super) fn spawn_tasks(
        self,
        inner: Arc<Inner>,
        commands: mpsc::Receiver<Outgoing>,
        events: mpsc::Sender<DevToolsEvent>,
    ) {
        let (sink, stream) = self.0.split();
        tokio::spawn(write(sink, inner.clone(), commands));
        tokio::spawn(read(stream, inner, events));
    }
}

async fn connect(url: &Uri, tls: &Arc<ClientConfig>) -> Result<BoxedStream, SocketError> {
    let secure = url.scheme_str() == Some("wss");
    let host = url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let port = url.port_u16().unwrap_or(if secure { 443 } else { 80 });
    let connected = async {
        let stream = TcpStream::connect((host, port)).await?;
        stream.set_nodelay(true)?;
        if !secure {
            return Ok::<BoxedStream, io::Error>(Box::new(stream));
        }
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        Ok(Box::new(TlsConnector::from(tls.clone()).connect(name, stream).await?))
    };
    let connected = tokio::time::timeout(CONNECT_TIMEOUT, connected).await;
    connected.map_err(|_| SocketError::TimedOut)?.map_err(SocketError::Connect)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct VersionInfo {
    web_socket_debugger_url: String,
}

/// Returns the debugger URL of the Chromium at this address, whose path changes with each start.
async fn debugger_url(url: &Uri, tls: &Arc<ClientConfig>) -> Result<Uri, SocketError> {
    let no_url = |_| SocketError::NoDebuggerUrl;
    let stream = connect(url, tls).await?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|_| SocketError::NoDebuggerUrl)?;
    tokio::spawn(connection);
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    let authority = url.authority().map(ToString::to_string).unwrap_or_default();
    let request = Request::get(format!("/json/version{query}"))
        .header(header::HOST, &authority)
        .body(Empty::<Bytes>::new());
    let request = request.map_err(|_| SocketError::NoDebuggerUrl)?;
    let response = sender.send_request(request).await.map_err(|_| SocketError::NoDebuggerUrl)?;
    let body = Limited::new(response.into_body(), MAX_VERSION_BYTES).collect().await;
    let body = body.map_err(|_| SocketError::NoDebuggerUrl)?.to_bytes();
    let version: VersionInfo =
        serde_json::from_slice(&body).map_err(|_| SocketError::NoDebuggerUrl)?;
    // Only the path is used: the host and port that it reports may not be reachable from here.
    let reported: Uri =
        version.web_socket_debugger_url.parse().map_err(|_| SocketError::NoDebuggerUrl)?;
    Uri::builder()
        .scheme(url.scheme_str().unwrap_or("ws"))
        .authority(authority)
        .path_and_query(format!("{}{query}", reported.path()))
        .build()
        .map_err(no_url)
}

async fn write(
    mut sink: SplitSink<WebSocketStream<BoxedStream>, Message>,
    inner: Arc<Inner>,
    mut commands: mpsc::Receiver<Outgoing>,
) {
    let mut closed = inner.closed.subscribe();
    let mut pings = tokio::time::interval(PING_INTERVAL);
    loop {
        let (message, permit) = tokio::select! {
            command = commands.recv() => match command {
                Some(Outgoing { text, permit }) => (Message::text(text), permit),
                None => break,
            },
            _ = pings.tick() => (Message::Ping(tungstenite::Bytes::new()), None),
            _ = closed.wait_for(|closed| *closed) => break,
        };
        let sent = tokio::time::timeout(IDLE_TIMEOUT, sink.send(message)).await;
        drop(permit);
        if !matches!(sent, Ok(Ok(()))) {
            break;
        }
    }
    inner.close();
    let _ = tokio::time::timeout(CONNECT_TIMEOUT, sink.close()).await;
}

async fn read(
    mut stream: SplitStream<WebSocketStream<BoxedStream>>,
    inner: Arc<Inner>,
    events: mpsc::Sender<DevToolsEvent>,
) {
    let mut closed = inner.closed.subscribe();
    loop {
        let message = tokio::select! {
            message = tokio::time::timeout(IDLE_TIMEOUT, stream.next()) => message,
            _ = closed.wait_for(|closed| *closed) => break,
        };
        match message {
            Ok(Some(Ok(Message::Text(text)))) => inner.dispatch(text.as_bytes(), &events).await,
            Ok(Some(Ok(Message::Binary(bytes)))) => inner.dispatch(&bytes, &events).await,
            Ok(Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)))) => (),
            Ok(Some(Ok(Message::Close(_)) | Err(_)) | None) | Err(_) => break,
        }
    }
    inner.close();
}
