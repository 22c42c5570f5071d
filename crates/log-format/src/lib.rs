//! The lines of the log: each event is one line, for any text of other parties in it, and names the
//! trace that it belongs to.

mod trace_ids;

use std::{
    borrow::Cow,
    io::{self, Write},
};

pub use self::trace_ids::{TraceIds, WithTraceId};

/// A writer that writes each event, given in a single call, as one line. Control characters and line
/// separators in it are escaped in Rust's notation.
pub struct LineWriter<W> {
    to: W,
    colours: bool,
}

impl<W: Write> LineWriter<W> {
    /// Creates a writer. With `colours`, escape sequences for terminals in events are preserved.
    #[must_use]
    pub const fn new(to: W, colours: bool) -> Self {
        Self { to, colours }
    }
}

impl<W: Write> Write for LineWriter<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        self.to.write_all(escape_line(&text, self.colours).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Escapes an event; the final line break is preserved.
fn escape_line(event: &str, colours: bool) -> Cow<'_, str> {
    let (text, end) = match event.strip_suffix('\n') {
        Some(text) => (text, "\n"),
        None => (event, ""),
    };
    let is_escaped = |c: char| {
        let separates = matches!(c, '\u{2028}' | '\u{2029}');
        (c.is_control() || separates) && !(colours && c == '\u{1b}')
    };
    if !text.contains(is_escaped) {
        return Cow::Borrowed(event);
    }
    let mut escaped = String::with_capacity(event.len() + 16);
    for c in text.chars() {
        if is_escaped(c) {
            escaped.extend(c.escape_default());
        } else {
            escaped.push(c);
        }
    }
    escaped.push_str(end);
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    pub(crate) struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl Buffer {
        pub(crate) fn lines(&self) -> Vec<String> {
            let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
            text.lines().map(str::to_owned).collect()
        }
    }

    impl Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[derive(Debug)]
    struct Hostile;

    impl std::fmt::Display for Hostile {
        fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            out.write_str("it said:\r\n2026-01-01T00:00:00Z  INFO all is well\u{85}\u{2028}\0 ü")
        }
    }

    impl std::error::Error for Hostile {}

    #[test]
    fn one_event_is_one_line() {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let log = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || LineWriter::new(writer.clone(), false))
            .finish();
        tracing::subscriber::with_default(log, || {
            let error: &dyn std::error::Error = &Hostile;
            tracing::error!(error, host = "a\nb", text = %Hostile, "a call\nfailed");
            tracing::info!("another");
        });
        let text = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.ends_with("another\n") && text.contains(" ü"), "{text}");
        assert!(
            text.contains(r"it said:\r\n2026") && text.contains(r"\u{85}\u{2028}\u{0}"),
            "{text}"
        );
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    }

    #[test]
    fn only_escape_sequences_are_preserved_for_terminals() {
        assert_eq!(
            escape_line("\u{1b}[31mred\u{1b}[0m\tx\n", true),
            "\u{1b}[31mred\u{1b}[0m\\tx\n"
        );
        assert_eq!(escape_line("\u{1b}[31mred\n", false), "\\u{1b}[31mred\n");
        assert!(matches!(escape_line("unchanged\n", false), Cow::Borrowed(_)));
    }
}
