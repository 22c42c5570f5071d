//! Messages over a pair of pipes, each with a NUL byte at its end.

use std::sync::Arc;

use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::UnixStream,
    sync::mpsc,
};

use super::{Event, Inner, LONGEST};

pub(super) async fn write(mut to: UnixStream, mut commands: mpsc::Receiver<String>) {
    while let Some(command) = commands.recv().await {
        let mut bytes = command.into_bytes();
        bytes.push(0);
        if to.write_all(&bytes).await.is_err() {
            return;
        }
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
