//! The WebSocket of the embed page: frames and state to the page, the applicant's input from it.
//! The protocol is described in `docs/stream-protocol.md`.

mod connection;
mod frame_encoder;
pub(super) mod observer;
mod outgoing;
mod relay;
mod wire;

use std::{net::IpAddr, sync::Arc};

use actix_web::{HttpRequest, HttpResponse, http::header::ORIGIN, web};
use actix_ws::{AggregatedMessageStream, CloseCode, CloseReason, Session};
use domain::id::SessionId;
use ports::{
    driving::{ApplicantConnection, ApplicantError, ApplicantService, ServerEvent},
    instances::SocketKind,
    refusals::{RefusalClass, RefusalLog},
};
use serde_json::json;
use tracing::field::display;

use self::{
    connection::{Incoming, Outgoing, Viewer, hello, run},
    outgoing::{code, guest, outline, scene, state},
    wire::{ClientMessage, Hello},
};
use super::{caller::host, refusals::client};

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
    let id = path.parse::<SessionId>().ok();
    let socket = relay::find(&request, id, SocketKind::Applicant).await;
    if let Some(socket) = socket {
        return Ok(relay::run(socket, body));
    }
    let (response, session, messages) = split(&request, body, MAX_MESSAGE_BYTES)?;
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
    let joined = match (id, hello::<Hello>(&mut messages).await) {
        (Some(id), Some(hello)) => applicants.join(id, hello.into_join_request()).await,
        _ => Err(ApplicantError::NotFound),
    };
    let close_code = match joined {
        Ok(connection) => {
            let mut viewer = ApplicantViewer { connection, last_scene: String::new() };
            run(&mut viewer, &mut session, messages).await
        }
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

/// The viewer of an applicant.
struct ApplicantViewer {
    connection: Arc<dyn ApplicantConnection>,
    /// The page state that was sent last.
    last_scene: String,
}

impl Viewer for ApplicantViewer {
    async fn next(&mut self, has_capacity: bool) -> Option<Outgoing> {
        Some(match self.connection.next(has_capacity).await? {
            ServerEvent::Replaced => Outgoing::Last(json!({ "t": "replaced" }).to_string()),
            ServerEvent::Admitted => Outgoing::Last(json!({ "t": "admitted" }).to_string()),
            ServerEvent::Guest(text) => Outgoing::Text(guest(&text).to_string()),
            ServerEvent::View(view) => {
                Outgoing::Text(state(&view, self.connection.now()).to_string())
            }
            ServerEvent::Scene(page_state) => {
                let text = scene(&page_state).to_string();
                // Some changes of a page state are not sent to the page.
                if text == self.last_scene {
                    return Some(Outgoing::Nothing);
                }
                self.last_scene.clone_from(&text);
                Outgoing::Text(text)
            }
            ServerEvent::Outline(page) => Outgoing::Text(outline(page.as_deref()).to_string()),
            ServerEvent::Frame(frame) => Outgoing::Frame(frame),
        })
    }

    async fn receive(&mut self, text: &str) -> Option<Incoming> {
        let message: ClientMessage = serde_json::from_str(text).ok()?;
        Some(match message {
            ClientMessage::Ack { seq } => Incoming::Acknowledged(seq),
            ClientMessage::Refresh => Incoming::Refresh,
            ClientMessage::Handover => {
                let handover = self.connection.handover().await;
                let code = handover.and_then(|handover| code(&handover));
                code.map_or(Incoming::Handled, |code| Incoming::Reply(code.to_string()))
            }
            command @ (ClientMessage::Mouse { .. }
            | ClientMessage::Wheel { .. }
            | ClientMessage::Key { .. }
            | ClientMessage::Touch { .. }
            | ClientMessage::Text { .. }
            | ClientMessage::Compose { .. }
            | ClientMessage::Fill { .. }
            | ClientMessage::Outline
            | ClientMessage::Activate { .. }
            | ClientMessage::Answer { .. }
            | ClientMessage::Close
            | ClientMessage::Reload
            | ClientMessage::Back
            | ClientMessage::Size { .. }
            | ClientMessage::Share { .. }
            | ClientMessage::CustomUrl { .. }
            | ClientMessage::Cancel
            | ClientMessage::Retry
            | ClientMessage::Decline
            | ClientMessage::Present
            | ClientMessage::Admit { .. }
            | ClientMessage::Code { .. }
            | ClientMessage::Ask
            | ClientMessage::Send) => {
                if let Some(command) = command.into_command() {
                    self.connection.handle(command).await;
                }
                Incoming::Handled
            }
        })
    }
}

#[cfg(test)]
mod tests;
