//! Relays the bytes of a WebSocket between a client and the instance that serves its session. They are
//! not parsed. Neither direction is read ahead, so a slow client slows down the other instance, and the
//! other way round.

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{HeaderName, ORIGIN, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE},
    web::{self, Bytes},
};
use domain::id::SessionId;
use futures_util::{StreamExt as _, stream};
use ports::{
    driving::SocketRouter,
    instances::{ByteWriter, RelayedSocket, SocketKind, SocketRequest},
};

use crate::caller::{address, host};

/// The length of a key: 16 bytes in Base64 (RFC 6455, section 4.1).
const KEY_LENGTH: usize = 24;

/// Opens the socket at the instance that serves the session, unless it is this one or the request opens
/// no WebSocket.
pub(super) async fn find(
    request: &HttpRequest,
    id: Option<SessionId>,
    kind: SocketKind,
) -> Option<RelayedSocket> {
    let router = request.app_data::<web::Data<dyn SocketRouter>>()?;
    let headers = handshake(request)?;
    router.relay(SocketRequest { session: id?, kind, headers }).await
}

/// Returns the headers of the request for the other instance, or `None` if it opens no WebSocket.
fn handshake(request: &HttpRequest) -> Option<Vec<(&'static str, String)>> {
    let header = |name: HeaderName| request.headers().get(name)?.to_str().ok().map(str::to_owned);
    let key = header(SEC_WEBSOCKET_KEY).filter(|key| key.len() == KEY_LENGTH)?;
    let version = header(SEC_WEBSOCKET_VERSION).filter(|version| version == "13")?;
    header(UPGRADE).filter(|protocol| protocol.eq_ignore_ascii_case("websocket"))?;
    let mut headers = vec![
        ("sec-websocket-key", key),
        ("sec-websocket-version", version),
        ("host", host(request)),
        ("x-forwarded-for", address(request).to_string()),
    ];
    headers.extend(header(ORIGIN).map(|origin| ("origin", origin)));
    Some(headers)
}

/// Returns the response that passes bytes on until one side closes.
pub(super) fn run(socket: RelayedSocket, body: web::Payload) -> HttpResponse {
    let RelayedSocket { headers, reader, writer } = socket;
    actix_web::rt::spawn(upload(body, writer));
    let download = stream::unfold(reader, async |mut reader| {
        let bytes = reader.read().await?;
        Some((Ok::<_, actix_web::Error>(Bytes::from(bytes)), reader))
    });
    let mut response = HttpResponse::SwitchingProtocols();
    response.upgrade("websocket");
    for header in headers {
        response.insert_header(header);
    }
    response.streaming(Box::pin(download))
}

async fn upload(mut body: web::Payload, mut writer: Box<dyn ByteWriter>) {
    while let Some(Ok(bytes)) = body.next().await {
        if !writer.write(&bytes).await {
            return;
        }
    }
}
