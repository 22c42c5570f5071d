//! The WebSocket of the observer page: frames and states to the page, only acknowledgements from
//! it.

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
    HELLO_TIMEOUT, PING_INTERVAL, Peer, client, close, frame_encoder::FrameEncoder, next_text,
    same_origin, send, sleep_until, split,
};

/// Stream tokens and acknowledgements are short.
const MAX_MESSAGE_BYTES: usize = 1024;

#[derive(Deserialize)]
struct ObserverHello {
    pass: String,
}

/// The messages that an observer can send.
#[derive(Deserialize)]
#[serde(tag = "t", rename_all = "snake_case")]
enum ObserverMessage {
    Ack { seq: u32 },
    Refresh,
}

pub(crate) async fn open(
    observers: web::Data<dyn ObserverService>,
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
    actix_web::rt::spawn(converse(observers.into_inner(), id, peer, session, messages));
    Ok(response)
}

async fn converse(
    observers: Arc<dyn ObserverService>,
    id: Option<SessionId>,
    peer: Peer,
    mut session: Session,
    mut messages: AggregatedMessageStream,
) {
    let hello = tokio::time::timeout(HELLO_TIMEOUT, next_text(&mut messages)).await;
    let hello =
        hello.ok().flatten().and_then(|text| serde_json::from_str::<ObserverHello>(&text).ok());
    let joined = match (id, hello) {
        (Some(id), Some(hello)) => observers.watch(id, &hello.pass).await,
        _ => Err(ObserveError::NotFound),
    };
    let close_code = match joined {
        Ok(connection) => show(&*connection, &mut session, messages).await,
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
            tracing::error!(error, "failed to open an observer");
            CloseCode::Error
        }
    };
    close(session, close_code).await;
}

async fn show(
    connection: &dyn ObserverConnection,
    session: &mut Session,
    mut messages: AggregatedMessageStream,
) -> CloseCode {
    let mut pings = tokio::time::interval(PING_INTERVAL);
    let mut encoder = FrameEncoder::default();
    let mut answered = true;
    loop {
        let refine_at = encoder.refine_time();
        let sent = tokio::select! {
            event = connection.next(encoder.has_capacity()) => match event {
                None => return CloseCode::Normal,
                Some(ObserverEvent::Frame(frame)) => send(session, encoder.frame(frame, Instant::now())).await,
                Some(other) => session.text(message(&other).to_string()).await,
            },
            () = sleep_until(refine_at), if encoder.has_capacity() && refine_at.is_some() => {
                send(session, encoder.refine(Instant::now())).await
            }
            message = messages.next() => match message {
                Some(Ok(AggregatedMessage::Text(text))) => match serde_json::from_str(&text) {
                    Ok(ObserverMessage::Ack { seq }) => {
                        encoder.acknowledge(seq, Instant::now());
                        Ok(())
                    }
                    Ok(ObserverMessage::Refresh) => send(session, encoder.refresh(Instant::now())).await,
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
        if sent.is_err() {
            return CloseCode::Away;
        }
    }
}

fn message(event: &ObserverEvent) -> Value {
    match event {
        ObserverEvent::State { status, progress, withheld, over } => json!({
            "t": "sight", "status": status, "progress": progress, "withheld": withheld, "over": over,
        }),
        ObserverEvent::Covered | ObserverEvent::Frame(_) => json!({ "t": "covered" }),
    }
}
