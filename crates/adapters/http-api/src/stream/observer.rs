//! The WebSocket of the page that only watches: states and pictures out, nothing but receipts in.

use std::sync::Arc;

use actix_web::{HttpRequest, HttpResponse, web};
use actix_ws::{AggregatedMessage, AggregatedMessageStream, CloseCode, Session};
use domain::id::SessionId;
use futures_util::StreamExt as _;
use ports::{
    driving::{ObserveError, ObserverConnection, ObserverEvent, ObserverService},
    refusals::RefusalLog,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    HELLO_TIMEOUT, PING_INTERVAL, Peer, at, client, close, frame_encoder::FrameEncoder, next_text,
    same_origin, send, split,
};

/// Passes and receipts are short.
const MAX_MESSAGE_BYTES: usize = 1024;

#[derive(Deserialize)]
struct ObserverHello {
    pass: String,
}

/// All that an onlooker can say.
#[derive(Deserialize)]
#[serde(tag = "t", rename_all = "snake_case")]
enum ObserverMessage {
    Ack { seq: u32 },
    Refresh,
}

pub(crate) async fn open(
    watchers: web::Data<dyn ObserverService>,
    refusals: web::Data<dyn RefusalLog>,
    path: web::Path<String>,
    request: HttpRequest,
    body: web::Payload,
) -> actix_web::Result<HttpResponse> {
    if !same_origin(&request) {
        return Ok(HttpResponse::Forbidden().finish());
    }
    let (response, session, messages) = split(&request, body, MAX_MESSAGE_BYTES)?;
    let id = path.parse::<SessionId>().ok();
    let peer = Peer { network: client(&request), refusals: refusals.into_inner() };
    actix_web::rt::spawn(converse(watchers.into_inner(), id, peer, session, messages));
    Ok(response)
}

async fn converse(
    watchers: Arc<dyn ObserverService>,
    id: Option<SessionId>,
    peer: Peer,
    mut session: Session,
    mut messages: AggregatedMessageStream,
) {
    let hello = tokio::time::timeout(HELLO_TIMEOUT, next_text(&mut messages)).await;
    let hello =
        hello.ok().flatten().and_then(|text| serde_json::from_str::<ObserverHello>(&text).ok());
    let joined = match (id, hello) {
        (Some(id), Some(hello)) => watchers.watch(id, &hello.pass).await,
        _ => Err(ObserveError::NotFound),
    };
    let why = match joined {
        Ok(watching) => show(&*watching, &mut session, messages).await,
        Err(ObserveError::NotFound) => {
            peer.refuse(id);
            let _ = session.text(json!({ "t": "refused" }).to_string()).await;
            CloseCode::Policy
        }
        Err(ObserveError::Full) => {
            let _ = session.text(json!({ "t": "full" }).to_string()).await;
            CloseCode::Policy
        }
        Err(ObserveError::Store(error)) => {
            let error: &dyn std::error::Error = &error;
            tracing::error!(error, "a session could not be watched");
            CloseCode::Error
        }
    };
    close(session, why).await;
}

async fn show(
    watching: &dyn ObserverConnection,
    session: &mut Session,
    mut messages: AggregatedMessageStream,
) -> CloseCode {
    let mut pings = tokio::time::interval(PING_INTERVAL);
    let mut cast = FrameEncoder::default();
    let mut answered = true;
    loop {
        let settling = cast.settles_at();
        let sending = tokio::select! {
            sight = watching.next(cast.has_room()) => match sight {
                None => return CloseCode::Normal,
                Some(ObserverEvent::Frame(frame)) => send(session, cast.picture(frame, Instant::now())).await,
                Some(other) => session.text(told(&other).to_string()).await,
            },
            () = at(settling), if cast.has_room() && settling.is_some() => {
                send(session, cast.settle(Instant::now())).await
            }
            message = messages.next() => match message {
                Some(Ok(AggregatedMessage::Text(text))) => match serde_json::from_str(&text) {
                    Ok(ObserverMessage::Ack { seq }) => {
                        cast.drawn(seq, Instant::now());
                        Ok(())
                    }
                    Ok(ObserverMessage::Refresh) => send(session, cast.refresh(Instant::now())).await,
                    Err(_) => return CloseCode::Unsupported,
                },
                Some(Ok(AggregatedMessage::Ping(bytes))) => session.pong(&bytes).await,
                Some(Ok(AggregatedMessage::Pong(_))) => {
                    answered = true;
                    Ok(())
                }
                Some(Ok(AggregatedMessage::Binary(_) | AggregatedMessage::Close(_)) | Err(_))
                | None => return CloseCode::Normal,
            },
            _ = pings.tick() => {
                if !answered {
                    return CloseCode::Away;
                }
                answered = false;
                session.ping(b"").await
            }
        };
        if sending.is_err() {
            return CloseCode::Away;
        }
    }
}

fn told(sight: &ObserverEvent) -> Value {
    match sight {
        ObserverEvent::State { status, progress, withheld, over } => json!({
            "t": "sight", "status": status, "progress": progress, "withheld": withheld, "over": over,
        }),
        ObserverEvent::Covered | ObserverEvent::Frame(_) => json!({ "t": "covered" }),
    }
}
