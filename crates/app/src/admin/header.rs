//! The header of a new webhook: from a file, standard input or the command line.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use domain::{secret::Secret, webhook::WebhookHeader};

use crate::storage::StartupError;

/// Bytes of a name and a value together; servers take no more (RFC 9110 leaves it to them).
const LONGEST: u64 = 8192;

/// Reads `NAME: VALUE` from one of both, if there is one. Spaces and the end of the line around the
/// value are not part of it (RFC 9110, section 5.5).
pub(super) fn header(
    text: Option<&str>,
    file: Option<&Path>,
) -> Result<Option<WebhookHeader>, StartupError> {
    let read;
    let text = match (text, file) {
        (None, None) => return Ok(None),
        (Some(text), _) => text,
        (None, Some(file)) => {
            read = line(file).map_err(|error| format!("{}: {error}", file.display()))?;
            read.trim()
        }
    };
    let (name, value) = text.split_once(':').ok_or("a header reads 'NAME: VALUE'")?;
    Ok(Some(WebhookHeader { name: name.to_owned(), value: Secret::new(value.to_owned()) }))
}

fn line(file: &Path) -> Result<String, StartupError> {
    let mut line = String::new();
    let mut whole = |from: &mut dyn Read| from.take(LONGEST + 1).read_to_string(&mut line);
    if file == Path::new("-") {
        whole(&mut io::stdin().lock())?
    } else {
        whole(&mut File::open(file)?)?
    };
    if u64::try_from(line.len())? > LONGEST {
        return Err(format!("a header has {LONGEST} bytes at most").into());
    }
    if line.trim().contains('\n') {
        return Err("there is more than one line in it".into());
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_file(text: &str) -> Result<Option<WebhookHeader>, StartupError> {
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
    fn what_is_no_header_is_refused_without_being_repeated() {
        let long = format!("x: {}", "geheim".repeat(2000));
        for text in ["geheim", "x: geheim\ny: geheim", &*long] {
            let error = from_file(text).map(drop).unwrap_err().to_string();
            assert!(!error.contains("geheim"), "{error}");
        }
        assert!(header(None, Some(Path::new("/nowhere"))).is_err());
    }
}
