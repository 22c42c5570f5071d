//! Many streams of bytes over one connection, each with a flow control of its own (yamux).

use std::{future::poll_fn, task::Poll};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{mpsc, oneshot},
    task::JoinHandle,
};
use tokio_util::compat::{FuturesAsyncReadCompatExt as _, TokioAsyncReadCompatExt as _};
use yamux::{Config, Connection, Mode};

use crate::browsers::ByteStream;

/// The streams of one connection: the connections of a browser to its proxy, of which the proxy serves 256
/// at a time, and a few more.
const MAX_STREAMS: usize = 288;
/// Bytes that the other side can make this one hold, for all streams together: yamux lets each stream have
/// at least 256 KiB.
const MAX_RECEIVE_WINDOW: usize = MAX_STREAMS * 256 * 1024;
/// Streams that were opened by the other side and are not accepted yet. Further ones are closed.
const MAX_INCOMING: usize = MAX_STREAMS;

/// One side of a connection. Dropping it closes the connection with all its streams.
pub(crate) struct Multiplexer {
    opens: mpsc::Sender<oneshot::Sender<yamux::Stream>>,
    incoming: mpsc::Receiver<ByteStream>,
    driver: Driver,
}

/// Opens streams of a connection.
#[derive(Clone)]
pub(crate) struct StreamOpener(mpsc::Sender<oneshot::Sender<yamux::Stream>>);

/// The task that passes the bytes of a connection on, which ends when this is dropped.
pub(crate) struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Multiplexer {
    /// Takes a connection over, on the side that opened it. Must be called within a Tokio runtime.
    pub(crate) fn client<T>(connection: T) -> Self
    where
        T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        Self::new(connection, Mode::Client)
    }

    /// Takes a connection over, on the side that accepted it.
    pub(crate) fn server<T>(connection: T) -> Self
    where
        T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        Self::new(connection, Mode::Server)
    }

    fn new<T>(connection: T, mode: Mode) -> Self
    where
        T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let mut config = Config::default();
        config.set_max_num_streams(MAX_STREAMS);
        config.set_max_connection_receive_window(Some(MAX_RECEIVE_WINDOW));
        let connection = Connection::new(connection.compat(), config, mode);
        let (opens, to_open) = mpsc::channel(1);
        let (accepted, incoming) = mpsc::channel(MAX_INCOMING);
        let driver = Driver(tokio::spawn(drive(connection, to_open, accepted)));
        Self { opens, incoming, driver }
    }

    /// Opens a stream; `None` if the connection is closed.
    pub(crate) async fn open(&self) -> Option<ByteStream> {
        self.opener().open().await
    }

    /// Waits for a stream that the other side opens; `None` once the connection is closed.
    pub(crate) async fn accept(&mut self) -> Option<ByteStream> {
        self.incoming.recv().await
    }

    pub(crate) fn opener(&self) -> StreamOpener {
        StreamOpener(self.opens.clone())
    }

    /// Returns the streams that the other side opens, and what keeps the connection open.
    pub(crate) fn into_parts(self) -> (mpsc::Receiver<ByteStream>, Driver) {
        (self.incoming, self.driver)
    }
}

impl StreamOpener {
    /// See [`Multiplexer::open`].
    pub(crate) async fn open(&self) -> Option<ByteStream> {
        let (reply, opened) = oneshot::channel();
        self.0.send(reply).await.ok()?;
        Some(Box::new(opened.await.ok()?.compat()))
    }
}

async fn drive<T>(
    mut connection: Connection<T>,
    mut to_open: mpsc::Receiver<oneshot::Sender<yamux::Stream>>,
    accepted: mpsc::Sender<ByteStream>,
) where
    T: futures_util::AsyncRead + futures_util::AsyncWrite + Unpin,
{
    let mut waiting = None;
    poll_fn(|context| {
        loop {
            if waiting.is_none()
                && let Poll::Ready(Some(reply)) = to_open.poll_recv(context)
            {
                waiting = Some(reply);
            }
            if waiting.is_some() {
                match connection.poll_new_outbound(context) {
                    Poll::Ready(Ok(stream)) => {
                        if let Some(reply) = waiting.take() {
                            // Whoever does not wait any more drops the stream, which closes it.
                            let _ = oneshot::Sender::send(reply, stream);
                        }
                        continue;
                    }
                    Poll::Ready(Err(_)) => return Poll::Ready(()),
                    Poll::Pending => (),
                }
            }
            match connection.poll_next_inbound(context) {
                Poll::Ready(Some(Ok(stream))) => {
                    let _ = accepted.try_send(Box::new(stream.compat()));
                }
                Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await;
}
