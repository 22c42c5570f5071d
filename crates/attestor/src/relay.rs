//! The way to a server, and what passes on it.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use attestation::{full_reveal::Capture, protocol::LONGEST_DATA};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use crate::{Settings, now};

/// Bytes from a prover to a server, and back.
pub(crate) const MOST_UP: usize = 64 * 1024;
pub(crate) const MOST_DOWN: usize = 1024 * 1024 + 128 * 1024;
const PORT: u16 = 443;
const CONNECT: Duration = Duration::from_secs(10);

/// An open way, with all that passed on it so far.
pub(crate) struct Relay {
    stream: Option<TcpStream>,
    client: Vec<u8>,
    server: Vec<u8>,
    pub(crate) address: SocketAddr,
    /// 0: looked up; 1: told by the attestor's own configuration.
    pub(crate) resolver: u8,
    pub(crate) opened: u64,
    buffer: Vec<u8>,
}

/// What passed, which nobody can change any more.
pub(crate) struct Recording {
    pub(crate) client: Vec<u8>,
    pub(crate) server: Vec<u8>,
    pub(crate) address: Vec<u8>,
    pub(crate) resolver: u8,
    pub(crate) opened: u64,
    pub(crate) closed: u64,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum RelayError {
    #[error("the server's name has no address that may be connected to")]
    NotPermitted,
    #[error("the server cannot be connected to")]
    Connect,
    #[error("more than {MOST_UP} bytes for the server")]
    Up,
    #[error("more than {MOST_DOWN} bytes from the server")]
    Down,
}

impl Relay {
    /// Looks a host up and connects to it.
    pub(crate) async fn open(settings: &Settings, host: &str) -> Result<Self, RelayError> {
        let told = settings.hosts.iter().find(|(name, _)| name == host);
        let (found, resolver) = match told {
            Some((_, address)) => (vec![*address], 1),
            None => (look_up(settings, host).await?, 0),
        };
        for address in found {
            if let Ok(Ok(stream)) = timeout(CONNECT, TcpStream::connect(address)).await {
                let _ = stream.set_nodelay(true);
                let (client, server) = (vec![], vec![]);
                let (opened, buffer) = (now(), vec![0; LONGEST_DATA]);
                let stream = Some(stream);
                return Ok(Self { stream, client, server, address, resolver, opened, buffer });
            }
        }
        Err(RelayError::Connect)
    }

    /// Passes bytes to the server. One that has gone away is no error: what it had said by then is
    /// what counts.
    pub(crate) async fn pass(&mut self, bytes: &[u8]) -> Result<(), RelayError> {
        if self.client.len() + bytes.len() > MOST_UP {
            return Err(RelayError::Up);
        }
        self.client.extend(bytes);
        if let Some(stream) = &mut self.stream
            && stream.write_all(bytes).await.is_err()
        {
            self.stream = None;
        }
        Ok(())
    }

    /// What the server says next; never comes back once it says nothing more. May be given up.
    pub(crate) async fn hear(&mut self) -> Result<Vec<u8>, RelayError> {
        let read = match &mut self.stream {
            Some(stream) => stream.read(&mut self.buffer).await,
            None => Err(io::ErrorKind::NotConnected.into()),
        };
        let Some(read) = read.ok().filter(|read| *read > 0) else {
            self.stream = None;
            return std::future::pending().await;
        };
        let heard = self.buffer.get(..read).unwrap_or_default();
        if self.server.len() + heard.len() > MOST_DOWN {
            return Err(RelayError::Down);
        }
        self.server.extend(heard);
        Ok(heard.to_vec())
    }

    /// Closes the way: from now on nothing reaches the server.
    pub(crate) fn close(self) -> Recording {
        drop(self.stream);
        let address = match self.address.ip() {
            IpAddr::V4(ip) => ip.octets().to_vec(),
            IpAddr::V6(ip) => ip.octets().to_vec(),
        };
        let (client, server) = (self.client, self.server);
        let (resolver, opened, closed) = (self.resolver, self.opened, now());
        Recording { client, server, address, resolver, opened, closed }
    }
}

impl Recording {
    pub(crate) fn capture(&self) -> Capture<'_> {
        Capture { client: &self.client, server: &self.server }
    }
}

async fn look_up(settings: &Settings, host: &str) -> Result<Vec<SocketAddr>, RelayError> {
    let found = timeout(CONNECT, tokio::net::lookup_host((host, PORT))).await;
    let found = found.ok().and_then(Result::ok).ok_or(RelayError::NotPermitted)?;
    let permitted: Vec<_> =
        found.filter(|address| settings.egress.permits(host, *address)).take(4).collect();
    if permitted.is_empty() { Err(RelayError::NotPermitted) } else { Ok(permitted) }
}
