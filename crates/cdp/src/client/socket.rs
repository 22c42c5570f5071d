//! Messages over a WebSocket (RFC 6455), plain or over TLS.

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

use super::{Event, Inner, LONGEST, Outgoing};

/// Until the other end takes the connection.
const DIAL_PATIENCE: Duration = Duration::from_secs(10);
/// Until it speaks WebSocket: a fleet may start a browser first.
const OPEN_PATIENCE: Duration = Duration::from_secs(30);
/// How often the other end is asked whether it is there.
const PING_EVERY: Duration = Duration::from_secs(10);
/// Without a word for this long the connection is lost.
const SILENCE: Duration = Duration::from_secs(30);
/// Bytes of the answer that tells where a browser listens.
const LONGEST_WORD: usize = 64 * 1024;

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

type Carrier = Box<dyn Stream>;

/// An open WebSocket.
pub(crate) struct Socket(WebSocketStream<Carrier>);

#[derive(Debug, thiserror::Error)]
pub(crate) enum SocketError {
    #[error("its address cannot be read")]
    Address,
    #[error("it cannot be reached")]
    Dial(#[source] io::Error),
    #[error("it did not answer in time")]
    Silent,
    #[error("it has no room: {0}")]
    Full(StatusCode),
    #[error("it answered {0}")]
    Answered(StatusCode),
    #[error("it does not speak WebSocket")]
    Protocol(#[source] Box<tungstenite::Error>),
    #[error("it does not say where its browser listens")]
    Unknown,
}

impl Socket {
    /// Opens a connection to a `ws:` or `wss:` address. Where nothing listens at an address without
    /// a path, the browser there is asked for it, as Chromium wants it.
    pub(crate) async fn open(url: &str, tls: &Arc<ClientConfig>) -> Result<Self, SocketError> {
        let url: Uri = url.parse().map_err(|_| SocketError::Address)?;
        match Self::handshake(&url, tls).await {
            Err(SocketError::Answered(StatusCode::NOT_FOUND)) if url.path() == "/" => {
                let asked = tokio::time::timeout(DIAL_PATIENCE, ask(&url, tls)).await;
                let found = asked.map_err(|_| SocketError::Silent)??;
                Self::handshake(&found, tls).await
            }
            opened => opened,
        }
    }

    async fn handshake(url: &Uri, tls: &Arc<ClientConfig>) -> Result<Self, SocketError> {
        let stream = dial(url, tls).await?;
        let bounds = WebSocketConfig::default()
            .max_message_size(Some(LONGEST))
            .max_frame_size(Some(LONGEST));
        let opening = client_async_with_config(url.clone(), stream, Some(bounds));
        let opened = tokio::time::timeout(OPEN_PATIENCE, opening).await;
        match opened.map_err(|_| SocketError::Silent)? {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(tungstenite::Error::Http(answer)) => Err(match answer.status() {
                full @ (StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) => {
                    SocketError::Full(full)
                }
                status => SocketError::Answered(status),
            }),
            Err(error) => Err(SocketError::Protocol(Box::new(error))),
        }
    }

    pub(super) fn speak(
        self,
        inner: Arc<Inner>,
        commands: mpsc::Receiver<Outgoing>,
        events: mpsc::Sender<Event>,
    ) {
        let (sink, stream) = self.0.split();
        tokio::spawn(write(sink, inner.clone(), commands));
        tokio::spawn(read(stream, inner, events));
    }
}

async fn dial(url: &Uri, tls: &Arc<ClientConfig>) -> Result<Carrier, SocketError> {
    let secure = url.scheme_str() == Some("wss");
    let host = url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let port = url.port_u16().unwrap_or(if secure { 443 } else { 80 });
    let dialled = async {
        let stream = TcpStream::connect((host, port)).await?;
        stream.set_nodelay(true)?;
        if !secure {
            return Ok::<Carrier, io::Error>(Box::new(stream));
        }
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        Ok(Box::new(TlsConnector::from(tls.clone()).connect(name, stream).await?))
    };
    let dialled = tokio::time::timeout(DIAL_PATIENCE, dialled).await;
    dialled.map_err(|_| SocketError::Silent)?.map_err(SocketError::Dial)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    web_socket_debugger_url: String,
}

/// Where a Chromium at this address listens: a path that is another one after each start.
async fn ask(url: &Uri, tls: &Arc<ClientConfig>) -> Result<Uri, SocketError> {
    let unknown = |_| SocketError::Unknown;
    let stream = dial(url, tls).await?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|_| SocketError::Unknown)?;
    tokio::spawn(connection);
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    let authority = url.authority().map(ToString::to_string).unwrap_or_default();
    let request = Request::get(format!("/json/version{query}"))
        .header(header::HOST, &authority)
        .body(Empty::<Bytes>::new());
    let request = request.map_err(|_| SocketError::Unknown)?;
    let answer = sender.send_request(request).await.map_err(|_| SocketError::Unknown)?;
    let body = Limited::new(answer.into_body(), LONGEST_WORD).collect().await;
    let body = body.map_err(|_| SocketError::Unknown)?.to_bytes();
    let version: Version = serde_json::from_slice(&body).map_err(|_| SocketError::Unknown)?;
    // Its own idea of its address need not be ours.
    let told: Uri = version.web_socket_debugger_url.parse().map_err(|_| SocketError::Unknown)?;
    Uri::builder()
        .scheme(url.scheme_str().unwrap_or("ws"))
        .authority(authority)
        .path_and_query(format!("{}{query}", told.path()))
        .build()
        .map_err(unknown)
}

async fn write(
    mut sink: SplitSink<WebSocketStream<Carrier>, Message>,
    inner: Arc<Inner>,
    mut commands: mpsc::Receiver<Outgoing>,
) {
    let mut closed = inner.closed.subscribe();
    let mut pings = tokio::time::interval(PING_EVERY);
    loop {
        let (message, room) = tokio::select! {
            command = commands.recv() => match command {
                Some(Outgoing { text, room }) => (Message::text(text), room),
                None => break,
            },
            _ = pings.tick() => (Message::Ping(tungstenite::Bytes::new()), None),
            _ = closed.wait_for(|closed| *closed) => break,
        };
        let sent = tokio::time::timeout(SILENCE, sink.send(message)).await;
        drop(room);
        if !matches!(sent, Ok(Ok(()))) {
            break;
        }
    }
    inner.close();
    let _ = tokio::time::timeout(DIAL_PATIENCE, sink.close()).await;
}

async fn read(
    mut stream: SplitStream<WebSocketStream<Carrier>>,
    inner: Arc<Inner>,
    events: mpsc::Sender<Event>,
) {
    let mut closed = inner.closed.subscribe();
    loop {
        let message = tokio::select! {
            message = tokio::time::timeout(SILENCE, stream.next()) => message,
            _ = closed.wait_for(|closed| *closed) => break,
        };
        match message {
            Ok(Some(Ok(Message::Text(text)))) => inner.take(text.as_bytes(), &events).await,
            Ok(Some(Ok(Message::Binary(bytes)))) => inner.take(&bytes, &events).await,
            Ok(Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)))) => (),
            Ok(Some(Ok(Message::Close(_)) | Err(_)) | None) | Err(_) => break,
        }
    }
    inner.close();
}
