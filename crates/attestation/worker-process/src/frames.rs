//! Frames: messages preceded by their length in 4 bytes, big endian.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Writes one message.
///
/// # Errors
/// The stream fails, or the message has 4 GiB or more.
pub async fn write(stream: &mut (impl AsyncWrite + Unpin), message: &[u8]) -> io::Result<()> {
    stream.write_all(&header(message)?).await?;
    stream.write_all(message).await?;
    stream.flush().await
}

/// Reads one message of at most `max_bytes`; `None` if the stream ends before it. Not cancel-safe: the
/// stream cannot be read further if this is cancelled.
///
/// # Errors
/// The stream fails or ends within the message, or the message is longer; in that case only its length
/// has been read.
pub async fn read(
    stream: &mut (impl AsyncRead + Unpin),
    max_bytes: usize,
) -> io::Result<Option<Vec<u8>>> {
    let mut header = [0; 4];
    match stream.read_exact(&mut header).await {
        Ok(_) => (),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let length = usize::try_from(u32::from_be_bytes(header)).unwrap_or(usize::MAX);
    if length > max_bytes {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the message is too long"));
    }
    // Memory is allocated as bytes arrive, so that a length alone costs nothing.
    let mut message = vec![];
    let limit = u64::try_from(length).unwrap_or(u64::MAX);
    stream.take(limit).read_to_end(&mut message).await?;
    if message.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(message))
}

pub(crate) fn header(message: &[u8]) -> io::Result<[u8; 4]> {
    let length = u32::try_from(message.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    Ok(length.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_are_read_back_and_bounded() {
        let mut stream = vec![];
        for message in [b"one".as_slice(), b"", &[7; 100]] {
            write(&mut stream, message).await.unwrap();
        }
        let mut rest = stream.as_slice();
        assert_eq!(read(&mut rest, 99).await.unwrap().unwrap(), b"one");
        assert_eq!(read(&mut rest, 99).await.unwrap().unwrap(), b"");
        let long = read(&mut rest, 99).await.unwrap_err();
        assert_eq!(long.kind(), io::ErrorKind::InvalidData);
        let mut truncated = &stream[..stream.len() - 1];
        truncated = &truncated[11..];
        assert_eq!(
            read(&mut truncated, 100).await.unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
        assert!(read(&mut [].as_slice(), 99).await.unwrap().is_none());
    }
}
