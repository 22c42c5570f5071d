//! The channel to a prover: messages with limits on size and time, and the bytes relayed to a
//! server.

use std::time::Duration;

use attestation::protocol::{FromAttestor, FromProver, LONGEST_DATA, LONGEST_FROM_PROVER};
use jobs::frames;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadHalf, WriteHalf},
    net::TcpStream,
    time::{timeout, timeout_at},
};
use tokio_rustls::server::TlsStream;

use super::refused::Refused;
use crate::relay::Relay;

/// Time limit for writing one message.
pub(super) const WRITING: Duration = Duration::from_secs(30);

/// Both directions of a channel.
pub(super) struct Channel {
    pub(super) read: ReadHalf<TlsStream<TcpStream>>,
    pub(super) write: WriteHalf<TlsStream<TcpStream>>,
}

impl Channel {
    pub(super) async fn say(&mut self, message: &FromAttestor) -> Result<(), Refused> {
        say(&mut self.write, message).await
    }

    pub(super) async fn hear(&mut self, patience: Duration) -> Result<FromProver, Refused> {
        timeout(patience, hear(&mut self.read)).await.map_err(|_| Refused::Broken)?
    }

    /// Relays bytes in both directions until the prover sends `End`.
    pub(super) async fn pass_on(&mut self, relay: &mut Relay) -> Result<(), Refused> {
        // A read in progress is never cancelled, because a partly read message would be lost.
        let (read, write) = (&mut self.read, &mut self.write);
        let mut next = Box::pin(hear_with(read));
        loop {
            tokio::select! {
                (read, message) = &mut next => match message? {
                    FromProver::Data(bytes) if bytes.len() <= LONGEST_DATA => {
                        relay.pass(&bytes).await?;
                        next = Box::pin(hear_with(read));
                    }
                    FromProver::End => return Ok(()),
                    FromProver::Data(_) | FromProver::Open(_) | FromProver::Reveal(_) => {
                        return Err(Refused::OutOfPlace);
                    }
                },
                heard = relay.hear() => {
                    let heard = heard?;
                    for part in heard.chunks(LONGEST_DATA) {
                        say(write, &FromAttestor::Data(part.to_vec())).await?;
                    }
                    if heard.is_empty() {
                        say(write, &FromAttestor::Data(vec![])).await?;
                    }
                }
            }
        }
    }
}

async fn say(to: &mut (impl AsyncWrite + Unpin), message: &FromAttestor) -> Result<(), Refused> {
    let bytes = message.write().map_err(|_| Refused::Broken)?;
    let until = tokio::time::Instant::now() + WRITING;
    let written = timeout_at(until, frames::write(to, &bytes)).await;
    written.ok().and_then(Result::ok).ok_or(Refused::Broken)
}

async fn hear(from: &mut (impl AsyncRead + Unpin)) -> Result<FromProver, Refused> {
    let message = frames::read(from, LONGEST_FROM_PROVER).await;
    let message = message.ok().flatten().ok_or(Refused::Broken)?;
    FromProver::read(&message).map_err(|_| Refused::Broken)
}

async fn hear_with<R: AsyncRead + Unpin>(from: &mut R) -> (&mut R, Result<FromProver, Refused>) {
    let message = hear(from).await;
    (from, message)
}
