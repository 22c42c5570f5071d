//! DevTools messages over a pair of pipes, each terminated by a NUL byte.

use std::sync::Arc;

use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::UnixStream,
    sync::mpsc,
};

use super::{DevToolsEvent, Inner, MAX_MESSAGE_BYTES, Outgoing};

pub(super) async fn write(mut to: UnixStream, mut commands: mpsc::Receiver<Outgoing>) {
    while let Some(Outgoing { text, permit: room }) = commands.recv().await {
        let mut bytes = text.into_bytes();
        bytes.push(0);
        if to.write_all(&bytes).await.is_err() {
            return;
        }
        drop(room);
    }
}

pub(super) async fn read(from: UnixStream, inner: Arc<Inner>, events: mpsc::Sender<DevToolsEvent>) {
    let mut from = BufReader::with_capacity(1 << 18, from);
    let mut message = Vec::new();
    while let Ok(read) = from.read_until(0, &mut message).await {
        if read == 0 || message.len() > MAX_MESSAGE_BYTES {
            break;
        }
        message.pop();
        inner.dispatch(&message, &events).await;
        message.clear();
    }
    inner.close();
}
