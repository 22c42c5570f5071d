//! A viewer without a page: speaks the stream's protocol itself (`docs/stream-protocol.md`), as an
//! attacker with a link would.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::{WebSocketStream, client_async, tungstenite::Message};
use url::Url;

use crate::service::Deployment;

/// Returns a device secret for tests.
#[must_use]
pub fn secret(letter: char) -> String {
    letter.to_string().repeat(43)
}

/// One connection to a session's stream.
pub struct Viewer {
    socket: WebSocketStream<TcpStream>,
    /// The number of frames received.
    pub frames: usize,
}

impl Viewer {
    /// Connects with the token of a link, and with the code in its fragment if it has one.
    pub async fn open(link: &str, secret: &str) -> Self {
        let url = Url::parse(link).expect("a link");
        let token = url.query_pairs().find(|(name, _)| name == "token").expect("a token").1;
        let code = url.fragment().and_then(|fragment| fragment.strip_prefix("code="));
        let authority = url.authority();
        let stream = TcpStream::connect(authority).await.expect("the service");
        let address = format!("ws://{authority}{}/stream", url.path());
        let (socket, _) = client_async(address, stream).await.expect("a stream");
        let mut viewer = Self { socket, frames: 0 };
        viewer
            .send(&json!({ "t": "hello", "token": token, "secret": secret, "code": code,
                "width": 900, "height": 700, "language": "en" }))
            .await;
        viewer
    }

    pub async fn send(&mut self, message: &Value) {
        self.socket.send(Message::text(message.to_string())).await.expect("sent");
    }

    /// Returns the next JSON message; `None` once the connection has ended, or after `within`.
    /// Frames are counted and acknowledged.
    pub async fn next_message(&mut self, within: Duration) -> Option<Value> {
        let ends = tokio::time::Instant::now() + within;
        loop {
            let message = tokio::time::timeout_at(ends, self.socket.next()).await.ok()??;
            match message.ok()? {
                Message::Text(text) => return serde_json::from_str(&text).ok(),
                Message::Binary(bytes) => {
                    self.frames += 1;
                    if let Some(seq) = bytes.get(2..6).filter(|_| bytes[0] == 2) {
                        let seq = u32::from_le_bytes(seq.try_into().expect("four bytes"));
                        self.send(&json!({ "t": "ack", "seq": seq })).await;
                    }
                }
                Message::Close(_) => return None,
                _ => (),
            }
        }
    }

    /// Waits for a message of this kind that satisfies a condition.
    ///
    /// # Panics
    /// Where none comes within a minute.
    pub async fn until(&mut self, kind: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let ends = tokio::time::Instant::now() + Duration::from_secs(60);
        loop {
            let left = ends - tokio::time::Instant::now();
            let told = self.next_message(left).await;
            let told = told.unwrap_or_else(|| panic!("the stream ended before a `{kind}`"));
            if told["t"] == kind && holds(&told) {
                return told;
            }
        }
    }
}

/// Returns the lines of a session's timeline that name a device.
pub async fn devices(deployment: &Deployment, id: &str) -> Vec<String> {
    let told = deployment.partner.timeline(id).await.into_iter();
    let lines = told.filter_map(|(event, detail)| Some(format!("{event}: {}", detail?)));
    lines.filter(|line| line.contains(": device ")).collect()
}
