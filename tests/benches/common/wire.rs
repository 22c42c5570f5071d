//! A viewer without a page: reads what the service sends over its WebSocket
//! (`docs/stream-protocol.md`) as soon as it arrives.

use std::time::{Duration, Instant};

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::{WebSocketStream, client_async, tungstenite::Message};
use url::Url;

const PICTURE: u8 = 2;

pub(crate) struct Wire {
    socket: WebSocketStream<TcpStream>,
    /// Whether the session waits for the applicant.
    asked: bool,
}

impl Wire {
    /// Joins a session, and returns when its page waits for the applicant.
    pub(crate) async fn open(embed_url: &str, (width, height): (u32, u32)) -> Self {
        let url = Url::parse(embed_url).expect("a link");
        let token = url.query_pairs().find(|(name, _)| name == "token").expect("a token").1;
        let authority = url.authority();
        let stream = TcpStream::connect(authority).await.expect("the service");
        stream.set_nodelay(true).expect("a socket");
        let address = format!("ws://{authority}{}/stream", url.path());
        let (socket, _) = client_async(address, stream).await.expect("a stream");
        let mut wire = Self { socket, asked: false };
        let hello = json!({ "t": "hello", "token": token, "secret": "w".repeat(43), "width": width, "height": height,
            "ratio": 1, "touch": false, "dark": false, "still": false, "language": "en" });
        wire.send(&hello).await;
        while !wire.asked {
            wire.message().await;
        }
        wire
    }

    pub(crate) async fn keys(&mut self, count: usize) -> Vec<f64> {
        let mut times = Vec::new();
        for _ in 0..count {
            // Frames of the previous key are discarded.
            let quiet = Duration::from_millis(130);
            while tokio::time::timeout(quiet, self.picture()).await.is_ok() {}
            let began = Instant::now();
            self.send(
                &json!({ "t": "key", "down": true, "key": "a", "code": "KeyA", "keyCode": 65,
                "repeat": false, "modifiers": 0 }),
            )
            .await;
            self.picture().await;
            times.push(began.elapsed().as_secs_f64() * 1e3);
        }
        times
    }

    pub(crate) async fn end(mut self) {
        self.send(&json!({ "t": "cancel" })).await;
        let closed = async { while let Some(Ok(_)) = self.socket.next().await {} };
        tokio::time::timeout(Duration::from_secs(20), closed).await.expect("the stream ends");
    }

    /// Waits for the next frame.
    async fn picture(&mut self) {
        while !self.message().await {}
    }

    /// Reads the next message; returns whether it was a frame, which is acknowledged.
    async fn message(&mut self) -> bool {
        match self.socket.next().await.expect("a message").expect("a stream") {
            Message::Binary(bytes) if bytes[0] == PICTURE => {
                let seq = u32::from_le_bytes(bytes[2..6].try_into().expect("four bytes"));
                self.send(&json!({ "t": "ack", "seq": seq })).await;
                return true;
            }
            Message::Text(text) => {
                let said = serde_json::from_str::<Value>(&text).expect("JSON");
                self.asked |= said["prompt"].is_object();
            }
            _ => (),
        }
        false
    }

    async fn send(&mut self, message: &Value) {
        self.socket.send(Message::text(message.to_string())).await.expect("sent");
    }
}
