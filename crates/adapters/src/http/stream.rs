//! The WebSocket of the embed page: pictures and state out, the applicant's input in.
//!
//! Text frames are JSON. A binary frame is one picture: `u32` sequence number, `u16` width and
//! height of the page in CSS pixels, `u8` length of the origin, all little endian, then the origin
//! and a JPEG. The applicant's page acknowledges each picture; at most two are on their way.

use std::{sync::Arc, time::Duration};

use actix_web::{HttpRequest, HttpResponse, http::header::ORIGIN, web};
use actix_ws::{AggregatedMessage, AggregatedMessageStream, CloseCode, CloseReason, Session};
use domain::id::SessionId;
use futures_util::StreamExt as _;
use ports::{
    browser::{Frame, Input, MouseButton, MouseKind, Viewport},
    driving::{Act, ApplicantError, ApplicantService, Show, View, Viewing},
};
use serde::Deserialize;
use serde_json::{Value, json};

const HELLO_PATIENCE: Duration = Duration::from_secs(10);
const PING_EVERY: Duration = Duration::from_secs(15);
/// No message of the page is longer; pasted text is the longest.
const LONGEST_MESSAGE: usize = 16 * 1024;
const LONGEST_TEXT: usize = 4096;
const PICTURES_ON_THEIR_WAY: u32 = 2;

pub(super) async fn open(
    applicants: web::Data<dyn ApplicantService>,
    path: web::Path<String>,
    request: HttpRequest,
    body: web::Payload,
) -> actix_web::Result<HttpResponse> {
    if !same_origin(&request) {
        return Ok(HttpResponse::Forbidden().finish());
    }
    let (response, session, messages) = actix_ws::handle(&request, body)?;
    let messages = messages
        .max_frame_size(LONGEST_MESSAGE)
        .aggregate_continuations()
        .max_continuation_size(LONGEST_MESSAGE);
    let id = path.parse::<SessionId>().ok();
    actix_web::rt::spawn(converse(applicants.into_inner(), id, session, messages));
    Ok(response)
}

/// Another site's page must not open the stream with a token it has got hold of.
fn same_origin(request: &HttpRequest) -> bool {
    let Some(origin) = request.headers().get(ORIGIN).and_then(|origin| origin.to_str().ok()) else {
        return true;
    };
    let host = request.connection_info().host().to_owned();
    origin.split_once("://").is_some_and(|(_, authority)| authority == host)
}

async fn converse(
    applicants: Arc<dyn ApplicantService>,
    id: Option<SessionId>,
    mut session: Session,
    mut messages: AggregatedMessageStream,
) {
    let hello = tokio::time::timeout(HELLO_PATIENCE, next_text(&mut messages)).await;
    let hello = hello.ok().flatten().and_then(|text| serde_json::from_str::<Hello>(&text).ok());
    let joined = match (id, hello) {
        (Some(id), Some(hello)) => {
            let language = hello.language.as_deref();
            applicants.join(id, &hello.token, hello.viewport(), language).await
        }
        _ => Err(ApplicantError::NotFound),
    };
    let why = match joined {
        Ok(viewing) => show(viewing, &mut session, messages).await,
        Err(ApplicantError::NotFound) => {
            let _ = session.text(json!({ "t": "refused" }).to_string()).await;
            CloseCode::Policy
        }
        Err(ApplicantError::Store(error)) => {
            let error: &dyn std::error::Error = &error;
            tracing::error!(error, "a view could not be opened");
            CloseCode::Error
        }
    };
    let _ = session.close(Some(CloseReason { code: why, description: None })).await;
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
    viewing: Arc<dyn Viewing>,
    session: &mut Session,
    mut messages: AggregatedMessageStream,
) -> CloseCode {
    let mut pings = tokio::time::interval(PING_EVERY);
    let (mut sent, mut seen) = (0_u32, 0_u32);
    let mut answered = true;
    loop {
        let room = sent.saturating_sub(seen) < PICTURES_ON_THEIR_WAY;
        tokio::select! {
            shown = viewing.next(), if room => {
                let sending = match shown {
                    None => return CloseCode::Normal,
                    Some(Show::Replaced) => {
                        let _ = session.text(json!({ "t": "replaced" }).to_string()).await;
                        return CloseCode::Normal;
                    }
                    Some(Show::View(view)) => session.text(state(&view).to_string()).await,
                    Some(Show::Frame(frame)) => {
                        sent = sent.saturating_add(1);
                        session.binary(picture(sent, &frame)).await
                    }
                };
                if sending.is_err() {
                    return CloseCode::Away;
                }
            }
            message = messages.next() => match message {
                Some(Ok(AggregatedMessage::Text(text))) => {
                    match serde_json::from_str::<FromPage>(&text) {
                        Ok(FromPage::Ack { seq }) => seen = seen.max(seq.min(sent)),
                        Ok(other) => {
                            if let Some(act) = other.act() {
                                viewing.act(act).await;
                            }
                        }
                        Err(_) => return CloseCode::Unsupported,
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

fn picture(seq: u32, frame: &Frame) -> Vec<u8> {
    let origin = frame.origin.as_bytes();
    let origin = origin.get(..origin.len().min(255)).unwrap_or_default();
    let mut bytes = Vec::with_capacity(frame.jpeg.len() + origin.len() + 9);
    bytes.extend(seq.to_le_bytes());
    bytes.extend(frame.viewport.width.to_le_bytes());
    bytes.extend(frame.viewport.height.to_le_bytes());
    bytes.push(u8::try_from(origin.len()).unwrap_or(u8::MAX));
    bytes.extend(origin);
    bytes.extend(&frame.jpeg);
    bytes
}

fn state(view: &View) -> Value {
    let prompt = view.prompt.as_ref().map(|prompt| {
        json!({
            "kind": prompt.kind,
            "text": prompt.text,
            "deadline": domain::webhook::wire_time(prompt.deadline),
            "share": prompt.share,
        })
    });
    let outcome = view
        .outcome
        .as_ref()
        .map(|outcome| json!({ "text": outcome.text, "shared": outcome.shared }));
    json!({
        "t": "state",
        "status": view.status,
        "progress": view.progress,
        "platform": view.platform,
        "prompt": prompt,
        "outcome": outcome,
    })
}

/// The first message of the page.
#[derive(Deserialize)]
struct Hello {
    token: String,
    width: u16,
    height: u16,
    language: Option<String>,
}

impl Hello {
    fn viewport(&self) -> Viewport {
        Viewport { width: self.width.clamp(320, 1600), height: self.height.clamp(320, 1200) }
    }
}

/// What the page says. **Invariant:** no `Debug`: keys and text may be a password.
#[derive(Deserialize)]
#[serde(tag = "t", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum FromPage {
    Ack { seq: u32 },
    Mouse { k: Mouse, x: f64, y: f64, button: u8, buttons: u8, clicks: u8, modifiers: u8 },
    Wheel { x: f64, y: f64, dx: f64, dy: f64, modifiers: u8 },
    Key { down: bool, key: String, code: String, key_code: u16, repeat: bool, modifiers: u8 },
    Text { text: String },
    Share { share: bool },
    Cancel,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mouse {
    Move,
    Down,
    Up,
}

impl FromPage {
    /// The act, where it is within bounds.
    fn act(self) -> Option<Act> {
        let place = |x: f64, y: f64| {
            (0.0..=4096.0).contains(&x).then_some(x).zip((0.0..=4096.0).contains(&y).then_some(y))
        };
        let input = match self {
            Self::Ack { .. } => return None,
            Self::Share { share } => return Some(Act::Share(share)),
            Self::Cancel => return Some(Act::Cancel),
            Self::Mouse { k, x, y, button, buttons, clicks, modifiers } => {
                let (x, y) = place(x, y)?;
                let (kind, button) = match k {
                    Mouse::Move => (MouseKind::Moved, MouseButton::None),
                    Mouse::Down => (MouseKind::Pressed, mouse_button(button)?),
                    Mouse::Up => (MouseKind::Released, mouse_button(button)?),
                };
                let (buttons, modifiers) = (buttons & 7, modifiers & 15);
                Input::Mouse { kind, x, y, button, buttons, clicks: clicks.min(3), modifiers }
            }
            Self::Wheel { x, y, dx, dy, modifiers } => {
                let (x, y) = place(x, y)?;
                let turn = |delta: f64| delta.clamp(-5000.0, 5000.0);
                Input::Wheel { x, y, dx: turn(dx), dy: turn(dy), modifiers: modifiers & 15 }
            }
            Self::Key { down, key, code, key_code, repeat, modifiers } => {
                if key.len() > 32 || code.len() > 32 {
                    return None;
                }
                Input::Key { down, key, code, key_code, repeat, modifiers: modifiers & 15 }
            }
            Self::Text { text } => {
                if text.chars().count() > LONGEST_TEXT {
                    return None;
                }
                Input::Text(text)
            }
        };
        Some(Act::Input(input))
    }
}

const fn mouse_button(button: u8) -> Option<MouseButton> {
    match button {
        0 => Some(MouseButton::Left),
        1 => Some(MouseButton::Middle),
        2 => Some(MouseButton::Right),
        _ => None,
    }
}
