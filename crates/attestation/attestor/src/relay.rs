//! The connection to a server, and its recording.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use attestation::{full_reveal::Capture, protocol::MAX_DATA_BYTES};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::timeout,
};

use crate::{Settings, now};

/// Maximum number of bytes from the prover to the server, and back.
pub(crate) const MAX_CLIENT_BYTES: usize = 64 * 1024;
pub(crate) const MAX_SERVER_BYTES: usize = 1024 * 1024 + 128 * 1024;
const PORT: u16 = 443;
/// Length of a record header, and maximum length of a record's content (RFC 8446, section 5.2).
const RECORD_HEADER_BYTES: usize = 5;
const MAX_RECORD_BYTES: usize = (1 << 14) + 256;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// An open connection, with everything that was sent on it so far.
pub(crate) struct Relay {
    read: OwnedReadHalf,
    write: Option<OwnedWriteHalf>,
    client: Vec<u8>,
    server: Vec<u8>,
    /// Start of a record of the server whose remainder has not arrived yet.
    partial_record: Vec<u8>,
    ended: bool,
    pub(crate) address: SocketAddr,
    /// 0: resolved by DNS; 1: fixed by the attestor's own configuration.
    pub(crate) resolver: u8,
    pub(crate) opened: u64,
    buffer: Vec<u8>,
}

/// A closed connection's bytes, which cannot change any more.
pub(crate) struct TlsRecording {
    pub(crate) client: Vec<u8>,
    pub(crate) server: Vec<u8>,
    pub(crate) address: Vec<u8>,
    pub(crate) resolver: u8,
    pub(crate) opened: u64,
    pub(crate) closed: u64,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum RelayError {
    #[error("the server's name resolves to no permitted address")]
    NotPermitted,
    #[error("failed to connect to the server")]
    Connect,
    #[error("more than {MAX_CLIENT_BYTES} bytes for the server")]
    TooManyClientBytes,
    #[error("more than {MAX_SERVER_BYTES} bytes from the server")]
    TooManyServerBytes,
}

impl Relay {
    /// Resolves a host and connects to it.
    pub(crate) async fn open(settings: &Settings, host: &str) -> Result<Self, RelayError> {
        let configured = settings.hosts.iter().find(|(name, _)| name == host);
        let (addresses, resolver) = match configured {
            Some((_, address)) => (vec![*address], 1),
            None => (resolve(settings, host).await?, 0),
        };
        for address in addresses {
            if let Ok(Ok(stream)) = timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
                let _ = stream.set_nodelay(true);
                let (read, write) = stream.into_split();
                return Ok(Self {
                    read,
                    write: Some(write),
                    client: vec![],
                    server: vec![],
                    partial_record: vec![],
                    ended: false,
                    address,
                    resolver,
                    opened: now(),
                    buffer: vec![0; MAX_DATA_BYTES],
                });
            }
        }
        Err(RelayError::Connect)
    }

    /// Sends bytes to the server. A server that has closed the connection is no error: the bytes
    /// that it sent before count.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<(), RelayError> {
        if self.client.len() + bytes.len() > MAX_CLIENT_BYTES {
            return Err(RelayError::TooManyClientBytes);
        }
        self.client.extend(bytes);
        if let Some(write) = &mut self.write
            && write.write_all(bytes).await.is_err()
        {
            self.write = None;
        }
        Ok(())
    }

    /// Returns the next bytes of the server, in whole records, so that a recording never ends
    /// within one. Returns an empty vector once when the server has closed, and never completes
    /// after that. Cancel safe.
    pub(crate) async fn receive(&mut self) -> Result<Vec<u8>, RelayError> {
        if self.ended {
            return std::future::pending().await;
        }
        loop {
            let Some(read) = self.read.read(&mut self.buffer).await.ok().filter(|read| *read > 0)
            else {
                self.ended = true;
                return Ok(vec![]);
            };
            self.partial_record.extend(self.buffer.get(..read).unwrap_or_default());
            if self.server.len() + self.partial_record.len() > MAX_SERVER_BYTES {
                return Err(RelayError::TooManyServerBytes);
            }
            let rest = self.partial_record.split_off(whole_records(&self.partial_record));
            let whole = std::mem::replace(&mut self.partial_record, rest);
            if !whole.is_empty() {
                self.server.extend(&whole);
                return Ok(whole);
            }
        }
    }

    /// Closes the connection: from now on nothing reaches the server.
    pub(crate) fn close(self) -> TlsRecording {
        drop((self.read, self.write));
        let address = match self.address.ip() {
            IpAddr::V4(ip) => ip.octets().to_vec(),
            IpAddr::V6(ip) => ip.octets().to_vec(),
        };
        let (client, server) = (self.client, self.server);
        let (resolver, opened, closed) = (self.resolver, self.opened, now());
        TlsRecording { client, server, address, resolver, opened, closed }
    }
}

impl TlsRecording {
    pub(crate) fn capture(&self) -> Capture<'_> {
        Capture { client: &self.client, server: &self.server }
    }
}

/// Returns how many of these bytes form whole records (RFC 8446, section 5.1). Bytes that cannot be
/// a record are relayed unchanged: the prover refuses them.
fn whole_records(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some([_, _, _, high, low]) = bytes.get(at..at + RECORD_HEADER_BYTES) {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        if length > MAX_RECORD_BYTES {
            return bytes.len();
        }
        if bytes.len() < at + RECORD_HEADER_BYTES + length {
            break;
        }
        at += RECORD_HEADER_BYTES + length;
    }
    at
}

async fn resolve(settings: &Settings, host: &str) -> Result<Vec<SocketAddr>, RelayError> {
    let addresses = timeout(CONNECT_TIMEOUT, tokio::net::lookup_host((host, PORT))).await;
    let addresses = addresses.ok().and_then(Result::ok).ok_or(RelayError::NotPermitted)?;
    let permitted: Vec<_> =
        addresses.filter(|address| settings.egress.permits(host, *address)).take(4).collect();
    if permitted.is_empty() { Err(RelayError::NotPermitted) } else { Ok(permitted) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_passed_on_whole() {
        let record = [22, 3, 3, 0, 2, 7, 7];
        for (bytes, whole) in [
            (vec![], 0),
            (record[..4].to_vec(), 0),
            (record[..6].to_vec(), 0),
            (record.to_vec(), 7),
            ([&record[..], &record[..6]].concat(), 7),
            ([record, record].concat(), 14),
            // No record is that long: the bytes are relayed at once.
            (vec![22, 3, 3, 0x41, 1, 0], 6),
        ] {
            assert_eq!(whole_records(&bytes), whole, "{bytes:?}");
        }
    }
}
