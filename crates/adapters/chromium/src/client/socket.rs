//! DevTools messages over a WebSocket (RFC 6455), plain or over TLS.

use std::{io, sync::Arc, time::Duration};

use domain::secret::Secret;
use futures_util::{
    SinkExt as _, StreamExt as _,
    stream::{SplitSink, SplitStream},
};
use hyper::{
    StatusCode, Uri,
    header::{AUTHORIZATION, HeaderValue},
};
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
    tungstenite::{self, Message, client::IntoClientRequest as _, protocol::WebSocketConfig},
};

use super::{
    DevToolsEvent, Inner, MAX_MESSAGE_BYTES, Outgoing,
    http::{HttpMethod, HttpRequest},
};

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

pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

pub(super) type BoxedStream = Box<dyn Stream>;

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
    #[error("the HTTP connection failed")]
    Http(#[source] hyper::Error),
    #[error("its response is too long or ended early")]
    Body,
    #[error("the WebSocket handshake failed")]
    Protocol(#[source] Box<tungstenite::Error>),
    #[error("it does not give the address of its browser")]
    NoDebuggerUrl,
}

impl Socket {
    /// Opens a connection to a `ws:` or `wss:` address, with the value of the header `Authorization` if
    /// there is one. If an address without a path responds with 404, the path is requested from
    /// `/json/version`, as Chromium provides it.
    pub(crate) async fn open(
        url: &str,
        authorization: Option<&Secret>,
        tls: &Arc<ClientConfig>,
    ) -> Result<Self, SocketError> {
        let url: Uri = url.parse().map_err(|_| SocketError::Address)?;
        match Self::handshake(&url, authorization, tls).await {
            Err(SocketError::Status(StatusCode::NOT_FOUND)) if url.path() == "/" => {
                let found = debugger_url(&url, authorization, tls).await?;
                Self::handshake(&found, authorization, tls).await
            }
            opened => opened,
        }
    }

    async fn handshake(
        url: &Uri,
        authorization: Option<&Secret>,
        tls: &Arc<ClientConfig>,
    ) -> Result<Self, SocketError> {
        let stream = connect(url, tls).await?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_MESSAGE_BYTES));
        let mut request = url.into_client_request().map_err(|_| SocketError::Address)?;
        if let Some(authorization) = authorization {
            let value = HeaderValue::from_str(authorization.expose());
            request.headers_mut().insert(AUTHORIZATION, value.map_err(|_| SocketError::Address)?);
        }
        let opening = client_async_with_config(request, stream, Some(config));
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

/// Connects to the host of a URL; over TLS if its scheme is `wss` or `https`.
pub(super) async fn connect(
    url: &Uri,
    tls: &Arc<ClientConfig>,
) -> Result<BoxedStream, SocketError> {
    let secure = matches!(url.scheme_str(), Some("wss" | "https"));
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
async fn debugger_url(
    url: &Uri,
    authorization: Option<&Secret>,
    tls: &Arc<ClientConfig>,
) -> Result<Uri, SocketError> {
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    let build = |path: &str| {
        Uri::builder()
            .scheme(url.scheme_str().unwrap_or("ws"))
            .authority(url.authority().map_or("", |authority| authority.as_str()))
            .path_and_query(format!("{path}{query}"))
            .build()
            .map_err(|_| SocketError::NoDebuggerUrl)
    };
    let request = HttpRequest {
        method: HttpMethod::Get,
        url: &build("/json/version")?.to_string(),
        authorization,
        body: String::new(),
        timeout: CONNECT_TIMEOUT,
        max_bytes: MAX_VERSION_BYTES,
    };
    let response = request.send(tls).await?;
    let version: VersionInfo =
        serde_json::from_slice(&response.body).map_err(|_| SocketError::NoDebuggerUrl)?;
    // Only the path is used: the host and port that it reports may not be reachable from here.
    let reported: Uri =
        version.web_socket_debugger_url.parse().map_err(|_| SocketError::NoDebuggerUrl)?;
    build(reported.path())
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
