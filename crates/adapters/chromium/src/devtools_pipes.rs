//! The pipes of the DevTools connection to a child process.

use std::{io, os::fd::OwnedFd};

use tokio::net::UnixStream;

/// The two pipes of the DevTools connection, with both their ends. They are sockets, since Tokio
/// supports both their directions.
pub(crate) struct DevToolsPipes {
    /// The ends of the child process.
    pub(crate) child_reader: OwnedFd,
    pub(crate) child_writer: OwnedFd,
    /// Our ends.
    pub(crate) reader: UnixStream,
    pub(crate) writer: UnixStream,
}

impl DevToolsPipes {
    pub(crate) fn new() -> io::Result<Self> {
        let (child_reader, writer) = std::os::unix::net::UnixStream::pair()?;
        let (child_writer, reader) = std::os::unix::net::UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        Ok(Self {
            child_reader: child_reader.into(),
            child_writer: child_writer.into(),
            reader: UnixStream::from_std(reader)?,
            writer: UnixStream::from_std(writer)?,
        })
    }
}
