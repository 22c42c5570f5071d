//! DevTools messages over a pair of pipes or a byte stream, each terminated by a NUL byte.

use std::sync::Arc;

use tokio::{
    io::{
        AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader,
    },
    sync::mpsc,
};

use super::{DevToolsEvent, Inner, MAX_MESSAGE_BYTES, Outgoing};

pub(super) async fn write(mut to: impl AsyncWrite + Unpin, mut commands: mpsc::Receiver<Outgoing>) {
    while let Some(Outgoing { text, permit: room }) = commands.recv().await {
        let mut bytes = text.into_bytes();
        bytes.push(0);
        if to.write_all(&bytes).await.is_err() || to.flush().await.is_err() {
            return;
        }
        drop(room);
    }
}

pub(super) async fn read(
    from: impl AsyncRead + Unpin,
    inner: Arc<Inner>,
    events: mpsc::Sender<DevToolsEvent>,
) {
    let mut from = BufReader::with_capacity(1 << 18, from);
    let mut message = Vec::new();
    while read_message(&mut from, &mut message, MAX_MESSAGE_BYTES).await {
        inner.dispatch(&message, &events).await;
        message.clear();
    }
    inner.close();
}

/// Reads a message without its terminator. Returns `false` at the end of the stream, and for a message
/// that is longer than the bound, of which no more than that is kept in memory.
async fn read_message(
    from: &mut (impl AsyncBufRead + Unpin),
    message: &mut Vec<u8>,
    max: usize,
) -> bool {
    loop {
        let Ok(bytes) = from.fill_buf().await else { return false };
        if bytes.is_empty() {
            return false;
        }
        let end = bytes.iter().position(|byte| *byte == 0);
        let part = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
        if message.len().saturating_add(part.len()) > max {
            return false;
        }
        message.extend_from_slice(part);
        let consumed = end.map_or(bytes.len(), |end| end + 1);
        from.consume(consumed);
        if end.is_some() {
            return true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_are_bounded_before_their_end_is_read() {
        let mut from = BufReader::with_capacity(3, &b"one\0\0four\0five5"[..]);
        let mut message = vec![];
        for expected in [Some("one"), Some(""), Some("four"), None] {
            message.clear();
            let read = read_message(&mut from, &mut message, 4).await;
            assert_eq!(read.then_some(&*message), expected.map(str::as_bytes));
        }
        let mut endless = BufReader::new(tokio::io::repeat(b'x'));
        message.clear();
        assert!(!read_message(&mut endless, &mut message, 100_000).await);
        assert!(message.len() <= 100_000);
        // A message without its terminator is not one.
        message.clear();
        assert!(!read_message(&mut BufReader::new(&b"cut"[..]), &mut message, 100).await);
    }
}
