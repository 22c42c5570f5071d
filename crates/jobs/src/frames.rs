//! Messages with their length before them, in 4 bytes, the highest first.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Writes one message.
///
/// # Errors
/// The stream's, or that the message is 4 GiB or more.
pub async fn write(stream: &mut (impl AsyncWrite + Unpin), message: &[u8]) -> io::Result<()> {
    stream.write_all(&header(message)?).await?;
    stream.write_all(message).await?;
    stream.flush().await
}

/// Reads one message of at most so many bytes; none where the stream ends before it. May not be
/// given up half-way where it is to go on after.
///
/// # Errors
/// The stream's, that it ends within the message, or that the message is longer; no more than its
/// length has been read then.
pub async fn read(
    stream: &mut (impl AsyncRead + Unpin),
    longest: usize,
) -> io::Result<Option<Vec<u8>>> {
    let mut header = [0; 4];
    match stream.read_exact(&mut header).await {
        Ok(_) => (),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let length = usize::try_from(u32::from_be_bytes(header)).unwrap_or(usize::MAX);
    if length > longest {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the message is too long"));
    }
    // Room is made as bytes come: a length alone costs nothing.
    let mut message = vec![];
    let most = u64::try_from(length).unwrap_or(u64::MAX);
    stream.take(most).read_to_end(&mut message).await?;
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
        let mut cut = &stream[..stream.len() - 1];
        cut = &cut[11..];
        assert_eq!(read(&mut cut, 100).await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert!(read(&mut [].as_slice(), 99).await.unwrap().is_none());
    }
}
