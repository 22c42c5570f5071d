//! A viewer without a page: speaks the stream's protocol itself (`docs/stream-protocol.md`), as an
//! attacker with a link would.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::{net::TcpStream, sync::mpsc, task::JoinHandle};
use tokio_tungstenite::{WebSocketStream, client_async, tungstenite::Message};
use url::Url;

use crate::service::Deployment;

/// Returns a device secret for tests.
#[must_use]
pub fn secret(letter: char) -> String {
    letter.to_string().repeat(43)
}

/// One connection to a session's stream. As that of a page it answers pings and acknowledges frames also while
/// the test does something else; it ends when this is dropped.
pub struct Viewer {
    commands: mpsc::Sender<Message>,
    received: mpsc::UnboundedReceiver<Received>,
    connection: JoinHandle<()>,
    /// The number of frames received before the last message.
    pub frames: usize,
}

enum Received {
    Message(Value),
    Frame,
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
        let ((commands, sent), (told, received)) = (mpsc::channel(16), mpsc::unbounded_channel());
        let connection = tokio::spawn(converse(socket, sent, told));
        let mut viewer = Self { commands, received, connection, frames: 0 };
        viewer
            .send(&json!({ "t": "hello", "token": token, "secret": secret, "code": code,
                "width": 900, "height": 700, "language": "en" }))
            .await;
        viewer
    }

    pub async fn send(&mut self, message: &Value) {
        self.commands.send(Message::text(message.to_string())).await.expect("a connection");
    }

    /// Returns the next JSON message; `None` once the connection has ended, or after `within`.
    /// Frames are counted.
    pub async fn next_message(&mut self, within: Duration) -> Option<Value> {
        let ends = tokio::time::Instant::now() + within;
        loop {
            match tokio::time::timeout_at(ends, self.received.recv()).await.ok()?? {
                Received::Message(message) => return Some(message),
                Received::Frame => self.frames += 1,
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

impl Drop for Viewer {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

/// Sends and receives until the connection ends.
async fn converse(
    mut socket: WebSocketStream<TcpStream>,
    mut commands: mpsc::Receiver<Message>,
    told: mpsc::UnboundedSender<Received>,
) {
    loop {
        let message = tokio::select! {
            Some(command) = commands.recv() => {
                if socket.send(command).await.is_err() {
                    return;
                }
                continue;
            }
            message = socket.next() => message,
        };
        let received = match message {
            Some(Ok(Message::Text(text))) => {
                serde_json::from_str(&text).ok().map(Received::Message)
            }
            Some(Ok(Message::Binary(bytes))) => {
                if let Some(seq) = bytes.get(2..6).filter(|_| bytes[0] == 2) {
                    let seq = u32::from_le_bytes(seq.try_into().expect("four bytes"));
                    let ack = json!({ "t": "ack", "seq": seq });
                    if socket.send(Message::text(ack.to_string())).await.is_err() {
                        return;
                    }
                }
                Some(Received::Frame)
            }
            Some(Ok(Message::Close(_)) | Err(_)) | None => None,
            Some(Ok(_)) => continue,
        };
        let Some(received) = received else { return };
        if told.send(received).is_err() {
            return;
        }
    }
}

/// Returns the lines of a session's timeline that name a device.
pub async fn devices(deployment: &Deployment, id: &str) -> Vec<String> {
    let told = deployment.partner.timeline(id).await.into_iter();
    let lines = told.filter_map(|(event, detail)| Some(format!("{event}: {}", detail?)));
    lines.filter(|line| line.contains(": device ")).collect()
}
