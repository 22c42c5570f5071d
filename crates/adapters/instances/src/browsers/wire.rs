//! The requests of instances and the responses of browser hosts: lines of JSON.

use std::{io, time::Duration};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::ByteStream;

/// The protocol and its version, agreed on in the TLS handshake (ALPN, RFC 7301).
pub(super) const PROTOCOL: &[u8] = b"avouch-browser/1";
/// The maximum length of a line, in bytes.
const MAX_LINE_BYTES: usize = 1024;
/// How often a host reports its usage at least.
pub(super) const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// What an instance asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub(super) enum Request {
    /// A browser with this device scale factor, 1 or 2.
    Browser { scale: u8 },
    /// A [`Usage`] now, and each time that it has changed, but at least once a second.
    Usage,
}

/// The response to [`Request::Browser`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "response", rename_all = "snake_case")]
pub(super) enum Response {
    /// DevTools messages follow.
    Started,
    /// All slots are in use, or the host drains.
    Full,
    Failed {
        reason: String,
    },
}

/// How much of a host is in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Usage {
    pub(crate) slots: u32,
    pub(crate) used: u32,
    pub(crate) region: Option<String>,
    pub(crate) version: String,
    /// Whether the host starts no browsers any more.
    pub(crate) draining: bool,
}

impl Response {
    /// Returns a failure whose reason fits into a line.
    pub(super) fn failed(reason: &str) -> Self {
        Self::Failed { reason: reason.chars().take(200).collect() }
    }
}

/// Reads a line. Nothing beyond it is read, since the bytes of a browser follow.
pub(super) async fn read_line<T: DeserializeOwned>(stream: &mut ByteStream) -> io::Result<T> {
    let mut line = Vec::with_capacity(128);
    loop {
        match stream.read_u8().await? {
            b'\n' => return serde_json::from_slice(&line).map_err(io::Error::other),
            byte if line.len() < MAX_LINE_BYTES => line.push(byte),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// Writes a line.
pub(super) async fn write_line<T: Serialize>(stream: &mut ByteStream, value: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    stream.write_all(&line).await?;
    stream.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_bounded_and_nothing_beyond_them_is_read() {
        let (mut ours, theirs) = tokio::io::duplex(4096);
        let mut theirs: ByteStream = Box::new(theirs);
        ours.write_all(b"{\"request\":\"browser\",\"scale\":2}\nrest").await.unwrap();
        let request: Request = read_line(&mut theirs).await.unwrap();
        assert_eq!(request, Request::Browser { scale: 2 });
        let mut rest = [0; 4];
        theirs.read_exact(&mut rest).await.unwrap();
        assert_eq!(&rest, b"rest");
        for bad in [&b"{\"request\":\"key\"}\n"[..], b"\n", &[b'x'; MAX_LINE_BYTES + 1]] {
            ours.write_all(bad).await.unwrap();
            assert!(read_line::<Request>(&mut theirs).await.is_err());
        }
    }

    #[test]
    fn reasons_fit_into_a_line() {
        let line = serde_json::to_vec(&Response::failed(&"\u{1f600}".repeat(5000))).unwrap();
        assert!(line.len() < MAX_LINE_BYTES, "{}", line.len());
    }
}
