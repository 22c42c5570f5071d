//! A viewer's WebSocket: the first message, and the loop that both kinds of viewers share.

use std::{sync::Arc, time::Duration};

use actix_ws::{AggregatedMessage, AggregatedMessageStream, CloseCode, Closed, Session};
use futures_util::StreamExt as _;
use ports::browser::Frame;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::frame_encoder::FrameEncoder;

const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
const PING_INTERVAL: Duration = Duration::from_secs(15);

/// The viewer behind a WebSocket.
pub(super) trait Viewer {
    /// Returns the next message to the page; `None` ends the connection. The call may be dropped
    /// before it returns, and then loses no message.
    async fn next(&mut self, has_capacity: bool) -> Option<Outgoing>;

    /// Handles a text message of the page. Returns `None` if the message is invalid.
    async fn receive(&mut self, text: &str) -> Option<Incoming>;
}

/// A message to the page.
pub(super) enum Outgoing {
    Text(String),
    Frame(Arc<Frame>),
    /// The connection ends after this message.
    Last(String),
    /// There is nothing to send this time.
    Nothing,
}

/// What follows from a message of the page.
pub(super) enum Incoming {
    /// The page has drawn the frame with this number.
    Acknowledged(u32),
    /// The page needs the whole frame again.
    Refresh,
    Reply(String),
    Handled,
}

/// Waits for the first message, up to ten seconds. `None` if it is missing or invalid.
pub(super) async fn hello<T: DeserializeOwned>(
    messages: &mut AggregatedMessageStream,
) -> Option<T> {
    let text = tokio::time::timeout(HELLO_TIMEOUT, next_text(messages)).await.ok().flatten()?;
    serde_json::from_str(&text).ok()
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

/// Sends and receives until one side ends the connection, or the page does not answer a ping within
/// fifteen seconds.
pub(super) async fn run(
    viewer: &mut impl Viewer,
    session: &mut Session,
    mut messages: AggregatedMessageStream,
) -> CloseCode {
    let mut pings = tokio::time::interval(PING_INTERVAL);
    let mut encoder = FrameEncoder::default();
    let mut answered = true;
    loop {
        let refine_at = encoder.refine_time();
        let sent = tokio::select! {
            outgoing = viewer.next(encoder.has_capacity()) => match outgoing {
                None => return CloseCode::Normal,
                Some(Outgoing::Last(text)) => {
                    let _ = session.text(text).await;
                    return CloseCode::Normal;
                }
                Some(Outgoing::Text(text)) => session.text(text).await,
                Some(Outgoing::Frame(frame)) => {
                    send(session, encoder.frame(frame, Instant::now())).await
                }
                Some(Outgoing::Nothing) => Ok(()),
            },
            () = sleep_until(refine_at), if encoder.has_capacity() && refine_at.is_some() => {
                send(session, encoder.refine(Instant::now())).await
            }
            message = messages.next() => match message {
                Some(Ok(AggregatedMessage::Text(text))) => match viewer.receive(&text).await {
                    None => return CloseCode::Unsupported,
                    Some(Incoming::Acknowledged(seq)) => {
                        encoder.acknowledge(seq, Instant::now());
                        Ok(())
                    }
                    Some(Incoming::Refresh) => send(session, encoder.refresh(Instant::now())).await,
                    Some(Incoming::Reply(text)) => session.text(text).await,
                    Some(Incoming::Handled) => Ok(()),
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
