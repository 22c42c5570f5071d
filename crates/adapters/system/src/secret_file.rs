//! Secrets in files of their own, as container platforms provide them.

use std::{
    fs,
    io::{self, Read as _},
};

/// The maximum size of a secret's file.
const MAX_SECRET_BYTES: u64 = 64 << 10;

/// Why a file is not a secret. The texts do not repeat its content.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    #[error("cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    #[error("has more than {MAX_SECRET_BYTES} bytes")]
    TooLong,
    #[error("is not UTF-8")]
    NotText,
    #[error("is empty")]
    Empty,
}

/// Returns the content of a file without its trailing newline.
///
/// # Errors
/// The file cannot be read, or its content is empty, too long or not text.
pub fn read_secret(path: &str) -> Result<String, SecretFileError> {
    let mut bytes = vec![];
    let read = fs::File::open(path)?.take(MAX_SECRET_BYTES + 1).read_to_end(&mut bytes)?;
    if u64::try_from(read).is_ok_and(|read| read > MAX_SECRET_BYTES) {
        return Err(SecretFileError::TooLong);
    }
    let text = String::from_utf8(bytes).map_err(|_| SecretFileError::NotText)?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.is_empty() { Err(SecretFileError::Empty) } else { Ok(line.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_the_content_without_the_end_of_its_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        for (content, expected) in [("one", "one"), ("one\n", "one"), ("one\r\n", "one")] {
            fs::write(path, content).unwrap();
            assert_eq!(read_secret(path).unwrap(), expected);
        }
        fs::write(path, "two\n\n").unwrap();
        assert_eq!(read_secret(path).unwrap(), "two\n");
    }

    #[test]
    fn what_is_no_secret_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        let max = usize::try_from(MAX_SECRET_BYTES).unwrap();
        fs::write(path, vec![b'a'; max]).unwrap();
        assert_eq!(read_secret(path).unwrap().len(), max);
        for (content, expected) in [
            (vec![b'a'; max + 1], "has more than 65536 bytes"),
            (vec![0xFF], "is not UTF-8"),
            (b"\n".to_vec(), "is empty"),
        ] {
            fs::write(path, content).unwrap();
            assert_eq!(read_secret(path).unwrap_err().to_string(), expected);
        }
        let missing = read_secret("/nowhere").unwrap_err().to_string();
        assert!(missing.starts_with("cannot be read: "), "{missing}");
    }
}
