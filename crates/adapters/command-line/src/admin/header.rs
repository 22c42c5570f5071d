//! The header of a new webhook: from a file, standard input or the command line.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use domain::{secret::Secret, webhook::WebhookHeader};

use crate::CommandError;

/// The maximum length of name and value together; many servers accept no longer header (RFC 9110
/// leaves the limit to them).
const MAX_HEADER_BYTES: u64 = 8192;

/// Reads `NAME: VALUE` from the argument or the file, if one of them is given. White space around
/// the value is not part of it (RFC 9110, section 5.5). Errors do not repeat the value.
pub(super) fn header(
    text: Option<&str>,
    file: Option<&Path>,
) -> Result<Option<WebhookHeader>, CommandError> {
    let line;
    let text = match (text, file) {
        (None, None) => return Ok(None),
        (Some(text), _) => text,
        (None, Some(file)) => {
            line = read_line(file).map_err(|error| format!("{}: {error}", file.display()))?;
            line.trim()
        }
    };
    let (name, value) = text.split_once(':').ok_or("a header reads 'NAME: VALUE'")?;
    Ok(Some(WebhookHeader { name: name.to_owned(), value: Secret::new(value.to_owned()) }))
}

fn read_line(file: &Path) -> Result<String, CommandError> {
    let mut line = String::new();
    let mut read =
        |source: &mut dyn Read| source.take(MAX_HEADER_BYTES + 1).read_to_string(&mut line);
    if file == Path::new("-") {
        read(&mut io::stdin().lock())?
    } else {
        read(&mut File::open(file)?)?
    };
    if u64::try_from(line.len())? > MAX_HEADER_BYTES {
        return Err(format!("a header has {MAX_HEADER_BYTES} bytes at most").into());
    }
    if line.trim().contains('\n') {
        return Err("there is more than one line in it".into());
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_file(text: &str) -> Result<Option<WebhookHeader>, CommandError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("header");
        std::fs::write(&file, text).unwrap();
        header(None, Some(&file))
    }

    #[test]
    fn a_header_is_read_from_a_file_without_the_end_of_its_line() {
        for text in ["Authorization: Bearer geheim", "Authorization: Bearer geheim\r\n"] {
            let header = from_file(text).unwrap().unwrap();
            assert_eq!(
                (&*header.name, header.value.expose().trim()),
                ("Authorization", "Bearer geheim")
            );
            assert!(header.value.expose().ends_with("geheim"));
        }
        assert!(header(None, None).unwrap().is_none());
    }

    #[test]
    fn an_invalid_header_is_refused_without_being_repeated() {
        let long = format!("x: {}", "geheim".repeat(2000));
        for text in ["geheim", "x: geheim\ny: geheim", &*long] {
            let error = from_file(text).map(drop).unwrap_err().to_string();
            assert!(!error.contains("geheim"), "{error}");
        }
        assert!(header(None, Some(Path::new("/nowhere"))).is_err());
    }
}
