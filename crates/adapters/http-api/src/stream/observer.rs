//! The WebSocket of the observer page: frames and states to the page, only acknowledgements from
//! it.

use std::sync::Arc;

use actix_web::{HttpRequest, HttpResponse, web};
use actix_ws::{AggregatedMessageStream, CloseCode, Session};
use domain::id::SessionId;
use ports::{
    driving::{ObserveError, ObserverConnection, ObserverEvent, ObserverService},
    instances::SocketKind,
    refusals::RefusalLog,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Peer, client, close,
    connection::{Incoming, Outgoing, Viewer, hello, run},
    relay, same_origin, split,
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
    let id = path.parse::<SessionId>().ok();
    let socket = relay::find(&request, id, SocketKind::Observer).await;
    if let Some(socket) = socket {
        return Ok(relay::run(socket, body));
    }
    let (response, session, messages) = split(&request, body, MAX_MESSAGE_BYTES)?;
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
    let joined = match (id, hello::<ObserverHello>(&mut messages).await) {
        (Some(id), Some(hello)) => observers.watch(id, &hello.pass).await,
        _ => Err(ObserveError::NotFound),
    };
    let close_code = match joined {
        Ok(connection) => run(&mut ObserverViewer(connection), &mut session, messages).await,
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

/// The viewer of an observer.
struct ObserverViewer(Arc<dyn ObserverConnection>);

impl Viewer for ObserverViewer {
    async fn next(&mut self, has_capacity: bool) -> Option<Outgoing> {
        Some(match self.0.next(has_capacity).await? {
            ObserverEvent::Frame(frame) => Outgoing::Frame(frame),
            event @ (ObserverEvent::State { .. } | ObserverEvent::Covered) => {
                Outgoing::Text(message(&event).to_string())
            }
        })
    }

    async fn receive(&mut self, text: &str) -> Option<Incoming> {
        Some(match serde_json::from_str(text).ok()? {
            ObserverMessage::Ack { seq } => Incoming::Acknowledged(seq),
            ObserverMessage::Refresh => Incoming::Refresh,
        })
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
