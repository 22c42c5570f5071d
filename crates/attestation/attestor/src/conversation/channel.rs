//! The channel to a prover: messages with limits on size and time, and the bytes relayed to a
//! server.

use std::time::Duration;

use attestation::protocol::{
    AttestorMessage, MAX_DATA_BYTES, MAX_PROVER_MESSAGE_BYTES, ProverMessage,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadHalf, WriteHalf},
    net::TcpStream,
    time::{timeout, timeout_at},
};
use tokio_rustls::server::TlsStream;
use worker_process::frames;

use super::error::ConversationError;
use crate::relay::Relay;

/// Time limit for writing one message.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Both directions of a channel.
pub(super) struct ProverChannel {
    pub(super) read: ReadHalf<TlsStream<TcpStream>>,
    pub(super) write: WriteHalf<TlsStream<TcpStream>>,
}

impl ProverChannel {
    pub(super) async fn send(
        &mut self,
        message: &AttestorMessage,
    ) -> Result<(), ConversationError> {
        send(&mut self.write, message).await
    }

    pub(super) async fn receive(
        &mut self,
        limit: Duration,
    ) -> Result<ProverMessage, ConversationError> {
        timeout(limit, receive(&mut self.read))
            .await
            .map_err(|_| ConversationError::BrokenChannel)?
    }

    /// Relays bytes in both directions until the prover sends `End`.
    pub(super) async fn relay_to_server(
        &mut self,
        relay: &mut Relay,
    ) -> Result<(), ConversationError> {
        // A read in progress is never cancelled, because a partly read message would be lost.
        let (read, write) = (&mut self.read, &mut self.write);
        let mut next = Box::pin(receive_returning(read));
        loop {
            tokio::select! {
                (read, message) = &mut next => match message? {
                    ProverMessage::Data(bytes) if bytes.len() <= MAX_DATA_BYTES => {
                        relay.send(&bytes).await?;
                        next = Box::pin(receive_returning(read));
                    }
                    ProverMessage::End => return Ok(()),
                    ProverMessage::Data(_) | ProverMessage::Open(_) | ProverMessage::Reveal(_) => {
                        return Err(ConversationError::UnexpectedMessage);
                    }
                },
                received = relay.receive() => {
                    let received = received?;
                    for part in received.chunks(MAX_DATA_BYTES) {
                        send(write, &AttestorMessage::Data(part.to_vec())).await?;
                    }
                    if received.is_empty() {
                        send(write, &AttestorMessage::Data(vec![])).await?;
                    }
                }
            }
        }
    }
}

async fn send(
    to: &mut (impl AsyncWrite + Unpin),
    message: &AttestorMessage,
) -> Result<(), ConversationError> {
    let bytes = message.write().map_err(|_| ConversationError::BrokenChannel)?;
    let deadline = tokio::time::Instant::now() + WRITE_TIMEOUT;
    let written = timeout_at(deadline, frames::write(to, &bytes)).await;
    written.ok().and_then(Result::ok).ok_or(ConversationError::BrokenChannel)
}

async fn receive(from: &mut (impl AsyncRead + Unpin)) -> Result<ProverMessage, ConversationError> {
    let message = frames::read(from, MAX_PROVER_MESSAGE_BYTES).await;
    let message = message.ok().flatten().ok_or(ConversationError::BrokenChannel)?;
    ProverMessage::read(&message).map_err(|_| ConversationError::BrokenChannel)
}

async fn receive_returning<R: AsyncRead + Unpin>(
    from: &mut R,
) -> (&mut R, Result<ProverMessage, ConversationError>) {
    let message = receive(from).await;
    (from, message)
}
