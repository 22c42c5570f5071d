//! The WebSocket of the embed page: pictures and state out, the applicant's input in. How it is
//! written is in `docs/stream-protocol.md`.

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
/// No message of the page is longer; pasted text is the longest.
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
    longest: usize,
) -> actix_web::Result<(HttpResponse, Session, AggregatedMessageStream)> {
    let (response, session, messages) = actix_ws::handle(request, body)?;
    let messages = messages.max_frame_size(longest);
    Ok((response, session, messages.aggregate_continuations().max_continuation_size(longest)))
}

async fn close(session: Session, why: CloseCode) {
    let _ = session.close(Some(CloseReason { code: why, description: None })).await;
}

/// Another site's page must not open the stream with a token it has got hold of.
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
        (Some(id), Some(hello)) => applicants.join(id, hello.joining()).await,
        _ => Err(ApplicantError::NotFound),
    };
    let why = match joined {
        Ok(viewing) => show(viewing, &mut session, messages).await,
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
            tracing::error!(error, "a view could not be opened");
            CloseCode::Error
        }
    };
    close(session, why).await;
}

/// The other side of a connection, for the log.
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
    viewing: Arc<dyn ApplicantConnection>,
    session: &mut Session,
    mut messages: AggregatedMessageStream,
) -> CloseCode {
    let mut pings = tokio::time::interval(PING_INTERVAL);
    let mut cast = FrameEncoder::default();
    let mut answered = true;
    let mut last_scene = String::new();
    loop {
        let settling = cast.settles_at();
        tokio::select! {
            shown = viewing.next(cast.has_room()) => {
                let sending = match shown {
                    None => return CloseCode::Normal,
                    Some(last @ (ServerEvent::Replaced | ServerEvent::Admitted)) => {
                        let kind = if last == ServerEvent::Admitted { "admitted" } else { "replaced" };
                        let _ = session.text(json!({ "t": kind }).to_string()).await;
                        return CloseCode::Normal;
                    }
                    Some(ServerEvent::Guest(told)) => session.text(guest(&told).to_string()).await,
                    Some(ServerEvent::View(view)) => session.text(state(&view, viewing.now()).to_string()).await,
                    Some(ServerEvent::Scene(news)) => {
                        let told = scene(&news).to_string();
                        // Some of what changes in a scene is not for the page.
                        if told == last_scene { continue }
                        last_scene.clone_from(&told);
                        session.text(told).await
                    }
                    Some(ServerEvent::Frame(frame)) => send(session, cast.picture(frame, Instant::now())).await,
                };
                if sending.is_err() {
                    return CloseCode::Away;
                }
            }
            () = at(settling), if cast.has_room() && settling.is_some() => {
                if send(session, cast.settle(Instant::now())).await.is_err() {
                    return CloseCode::Away;
                }
            }
            message = messages.next() => match message {
                Some(Ok(AggregatedMessage::Text(text))) => {
                    let Ok(said) = serde_json::from_str(&text) else {
                        return CloseCode::Unsupported;
                    };
                    if take(said, &*viewing, &mut cast, session).await.is_err() {
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
    said: ClientMessage,
    viewing: &dyn ApplicantConnection,
    cast: &mut FrameEncoder,
    session: &mut Session,
) -> Result<(), Closed> {
    if let ClientMessage::Ack { seq } = said {
        cast.drawn(seq, Instant::now());
    } else if let ClientMessage::Refresh = said {
        return send(session, cast.refresh(Instant::now())).await;
    } else if let ClientMessage::Handover = said {
        if let Some(code) = viewing.handover().await.and_then(|handover| code(&handover)) {
            return session.text(code.to_string()).await;
        }
    } else if let Some(act) = said.act() {
        viewing.handle(act).await;
    }
    Ok(())
}

async fn send(session: &mut Session, messages: Vec<Vec<u8>>) -> Result<(), Closed> {
    for message in messages {
        session.binary(message).await?;
    }
    Ok(())
}

async fn at(moment: Option<Instant>) {
    if let Some(moment) = moment {
        tokio::time::sleep_until(moment).await;
    }
}

#[cfg(test)]
mod tests;
