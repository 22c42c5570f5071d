//! Messages over a pair of pipes, each with a NUL byte at its end.

use std::sync::Arc;

use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::UnixStream,
    sync::mpsc,
};

use super::{Event, Inner, LONGEST, Outgoing};

pub(super) async fn write(mut to: UnixStream, mut commands: mpsc::Receiver<Outgoing>) {
    while let Some(Outgoing { text, room }) = commands.recv().await {
        let mut bytes = text.into_bytes();
        bytes.push(0);
        if to.write_all(&bytes).await.is_err() {
            return;
        }
        drop(room);
    }
}

pub(super) async fn read(from: UnixStream, inner: Arc<Inner>, events: mpsc::Sender<Event>) {
    let mut from = BufReader::with_capacity(1 << 18, from);
    let mut message = Vec::new();
    while let Ok(read) = from.read_until(0, &mut message).await {
        if read == 0 || message.len() > LONGEST {
            break;
        }
        message.pop();
        inner.take(&message, &events).await;
        message.clear();
    }
    inner.close();
}
