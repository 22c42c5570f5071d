//! The WebSocket of the embed page: frames and state to the page, the applicant's input from it.
//! The protocol is described in `docs/stream-protocol.md`.

mod frame_encoder;
pub(super) mod observer;
mod outgoing;
mod wire;

use std::{net::IpAddr, sync::Arc, time::Duration};

use actix_web::{HttpRequest, HttpResponse, http::header::ORIGIN, web};
use actix_ws::{
    AggregatedMessage, AggregatedMessageStream, CloseCode, CloseReason, Closed, Session,
};
use domain::id::SessionId;
use futures_util::StreamExt as _;
use ports::{
    driving::{ApplicantConnection, ApplicantError, ApplicantService, ServerEvent},
    refusals::{RefusalClass, RefusalLog},
};
use serde_json::json;
use tokio::time::Instant;
use tracing::field::display;

use self::{
    frame_encoder::FrameEncoder,
    outgoing::{code, guest, scene, state},
    wire::{ClientMessage, Hello},
};
use super::{caller::host, refusals::client};

const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
const PING_INTERVAL: Duration = Duration::from_secs(15);
/// The maximum length of a message; pasted text is the longest.
const MAX_MESSAGE_BYTES: usize = 64 * 1024;

pub(super) async fn open(
    applicants: web::Data<dyn ApplicantService>,
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
    actix_web::rt::spawn(converse(applicants.into_inner(), id, peer, session, messages));
    Ok(response)
}

fn split(
    request: &HttpRequest,
    body: web::Payload,
    max_bytes: usize,
) -> actix_web::Result<(HttpResponse, Session, AggregatedMessageStream)> {
    let (response, session, messages) = actix_ws::handle(request, body)?;
    let messages = messages.max_frame_size(max_bytes);
    Ok((response, session, messages.aggregate_continuations().max_continuation_size(max_bytes)))
}

async fn close(session: Session, code: CloseCode) {
    let _ = session.close(Some(CloseReason { code, description: None })).await;
}

/// Returns whether the page that opens the stream is ours: pages of other sites must not use a
/// token that they obtained.
fn same_origin(request: &HttpRequest) -> bool {
    let Some(origin) = request.headers().get(ORIGIN).and_then(|origin| origin.to_str().ok()) else {
        return true;
    };
    origin.split_once("://").is_some_and(|(_, authority)| authority == host(request))
}

async fn converse(
    applicants: Arc<dyn ApplicantService>,
    id: Option<SessionId>,
    peer: Peer,
    mut session: Session,
    mut messages: AggregatedMessageStream,
) {
    let hello = tokio::time::timeout(HELLO_TIMEOUT, next_text(&mut messages)).await;
    let hello = hello.ok().flatten().and_then(|text| serde_json::from_str::<Hello>(&text).ok());
    let joined = match (id, hello) {
        (Some(id), Some(hello)) => applicants.join(id, hello.into_join_request()).await,
        _ => Err(ApplicantError::NotFound),
    };
    let close_code = match joined {
        Ok(connection) => show(connection, &mut session, messages).await,
        Err(ApplicantError::NotFound) => {
            peer.refuse(id);
            let _ = session.text(json!({ "t": "refused" }).to_string()).await;
            CloseCode::Policy
        }
        Err(ApplicantError::Elsewhere(url)) => {
            let _ = session.text(json!({ "t": "elsewhere", "url": url }).to_string()).await;
            CloseCode::Normal
        }
        Err(ApplicantError::Store(error)) => {
            let error: &dyn std::error::Error = &error;
            tracing::error!(error, "failed to open a viewer");
            CloseCode::Error
        }
    };
    close(session, close_code).await;
}

/// The peer of a connection, for the log.
struct Peer {
    network: IpAddr,
    refusals: Arc<dyn RefusalLog>,
}

impl Peer {
    /// Logs that a session link was invalid.
    fn refuse(&self, id: Option<SessionId>) {
        let class = RefusalClass::Link;
        if self.refusals.may_log(class) {
            let (class, id) = (class.as_str(), id.map(display));
            let network = self.network;
            tracing::warn!(class, session.id = id, client.network = %network, "a link was refused");
        }
    }
}

async fn next_text(messages: &mut AggregatedMessageStream) -> Option<String> {
    loop {
        match messages.next().await? {
            Ok(AggregatedMessage::Text(text)) => return Some(text.to_string()),
            Ok(AggregatedMessage::Ping(_) | AggregatedMessage::Pong(_)) => (),
            Ok(AggregatedMessage::Binary(_) | AggregatedMessage::Close(_)) | Err(_) => return None,
        }
    }
}

/// Runs both directions until one of them ends.
async fn show(
    connection: Arc<dyn ApplicantConnection>,
    session: &mut Session,
    mut messages: AggregatedMessageStream,
) -> CloseCode {
    let mut pings = tokio::time::interval(PING_INTERVAL);
    let mut encoder = FrameEncoder::default();
    let mut answered = true;
    let mut last_scene = String::new();
    loop {
        let refine_at = encoder.refine_time();
        tokio::select! {
            event = connection.next(encoder.has_capacity()) => {
                let sent = match event {
                    None => return CloseCode::Normal,
                    Some(last @ (ServerEvent::Replaced | ServerEvent::Admitted)) => {
                        let kind = if last == ServerEvent::Admitted { "admitted" } else { "replaced" };
                        let _ = session.text(json!({ "t": kind }).to_string()).await;
                        return CloseCode::Normal;
                    }
                    Some(ServerEvent::Guest(text)) => session.text(guest(&text).to_string()).await,
                    Some(ServerEvent::View(view)) => session.text(state(&view, connection.now()).to_string()).await,
                    Some(ServerEvent::Scene(page_state)) => {
                        let text = scene(&page_state).to_string();
                        // Some changes of a page state are not sent to the page.
                        if text == last_scene { continue }
                        last_scene.clone_from(&text);
                        session.text(text).await
                    }
                    Some(ServerEvent::Frame(frame)) => send(session, encoder.frame(frame, Instant::now())).await,
                };
                if sent.is_err() {
                    return CloseCode::Away;
                }
            }
            () = sleep_until(refine_at), if encoder.has_capacity() && refine_at.is_some() => {
                if send(session, encoder.refine(Instant::now())).await.is_err() {
                    return CloseCode::Away;
                }
            }
            message = messages.next() => match message {
                Some(Ok(AggregatedMessage::Text(text))) => {
                    let Ok(message) = serde_json::from_str(&text) else {
                        return CloseCode::Unsupported;
                    };
                    if take(message, &*connection, &mut encoder, session).await.is_err() {
                        return CloseCode::Away;
                    }
                }
                Some(Ok(AggregatedMessage::Ping(bytes))) => {
                    let _ = session.pong(&bytes).await;
                }
                Some(Ok(AggregatedMessage::Pong(_))) => answered = true,
                Some(Ok(AggregatedMessage::Binary(_) | AggregatedMessage::Close(_)) | Err(_))
                | None => return CloseCode::Normal,
            },
            _ = pings.tick() => {
                if !answered || session.ping(b"").await.is_err() {
                    return CloseCode::Away;
                }
                answered = false;
            }
        }
    }
}

async fn take(
    message: ClientMessage,
    connection: &dyn ApplicantConnection,
    encoder: &mut FrameEncoder,
    session: &mut Session,
) -> Result<(), Closed> {
    if let ClientMessage::Ack { seq } = message {
        encoder.acknowledge(seq, Instant::now());
    } else if let ClientMessage::Refresh = message {
        return send(session, encoder.refresh(Instant::now())).await;
    } else if let ClientMessage::Handover = message {
        if let Some(code) = connection.handover().await.and_then(|handover| code(&handover)) {
            return session.text(code.to_string()).await;
        }
    } else if let Some(command) = message.into_command() {
        connection.handle(command).await;
    }
    Ok(())
}

async fn send(session: &mut Session, messages: Vec<Vec<u8>>) -> Result<(), Closed> {
    for message in messages {
        session.binary(message).await?;
    }
    Ok(())
}

async fn sleep_until(moment: Option<Instant>) {
    if let Some(moment) = moment {
        tokio::time::sleep_until(moment).await;
    }
}

#[cfg(test)]
mod tests;
