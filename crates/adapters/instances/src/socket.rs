//! The options of the connections between machines.

use std::{io, time::Duration};

use rustix::net::sockopt;
use tokio::net::TcpStream;

/// The time after which the kernel takes a peer for gone that does not answer, or takes no bytes.
const SILENCE: Duration = Duration::from_secs(15);

/// Sends input at once, and has the kernel close the connection if the machine at the other end is gone: it
/// then sends no FIN, and without this a reader waits for ever.
pub(crate) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, SILENCE / 3)?;
    sockopt::set_tcp_keepintvl(stream, SILENCE / 3)?;
    sockopt::set_tcp_keepcnt(stream, 2)?;
    let milliseconds = u32::try_from(SILENCE.as_millis()).unwrap_or(u32::MAX);
    Ok(sockopt::set_tcp_user_timeout(stream, milliseconds)?)
}
