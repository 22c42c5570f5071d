//! Finds the literal text of a value in a text that was parsed before ([`super::read`]), because no
//! type of a fixed size represents every number.

/// Returns the text of the value at a pointer (RFC 6901). The text must be one that [`super::read`]
/// accepts; the result for other texts is unspecified.
pub(super) fn literal<'a>(text: &'a [u8], pointer: &str) -> Option<&'a [u8]> {
    let mut value = Scanner(text).value()?;
    for token in pointer.split('/').skip(1) {
        value = member(value, &token.replace("~1", "/").replace("~0", "~"))?;
    }
    Some(value)
}

/// Returns a member of an object by its name, or of an array by its index.
fn member<'a>(compound: &'a [u8], token: &str) -> Option<&'a [u8]> {
    let (kind, rest) = compound.split_first().filter(|(kind, _)| b"{[".contains(kind))?;
    let mut rest = Scanner(rest);
    let mut index = 0_usize;
    loop {
        let matches = if *kind == b'{' {
            let name: String = serde_json::from_slice(rest.value()?).ok()?;
            rest.skip(b':')?;
            name == token
        } else {
            index.to_string() == token
        };
        let value = rest.value()?;
        if matches {
            return Some(value);
        }
        rest.skip(b',')?;
        index += 1;
    }
}

/// The remaining text.
struct Scanner<'a>(&'a [u8]);

impl<'a> Scanner<'a> {
    /// Skips spaces and this byte.
    fn skip(&mut self, byte: u8) -> Option<()> {
        self.0 = self.0.trim_ascii_start().strip_prefix(&[byte])?;
        Some(())
    }

    /// Returns the next value, without the spaces around it.
    fn value(&mut self) -> Option<&'a [u8]> {
        self.0 = self.0.trim_ascii_start();
        let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
        let end = self.0.iter().position(|byte| {
            if quoted {
                (quoted, escaped) = (escaped || *byte != b'"', !escaped && *byte == b'\\');
                return false;
            }
            match byte {
                b'"' => quoted = true,
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth > 0 => depth -= 1,
                b',' | b':' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n' => return depth == 0,
                _ => (),
            }
            false
        });
        let (value, rest) = self.0.split_at_checked(end.unwrap_or(self.0.len()))?;
        self.0 = rest;
        (!value.is_empty()).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_literal_text() {
        let text = br#" {"a" : [ 1.0 ,{"b/c":-0,"d~":"}]\\\",","":18446744073709551617}, 0.1 ] ,
            "\u0061b":1E+2,"e":{},"f":[] } "#;
        for (pointer, written) in [
            ("/a/0", Some("1.0")),
            ("/a/1/b~1c", Some("-0")),
            ("/a/1/d~0", Some(r#""}]\\\",""#)),
            ("/a/1/", Some("18446744073709551617")),
            ("/a/2", Some("0.1")),
            ("/ab", Some("1E+2")),
            ("/e", Some("{}")),
            ("/e/x", None),
            ("/f/0", None),
            ("/a/3", None),
            ("/a/00", None),
            ("/a/0/0", None),
            ("/none", None),
        ] {
            assert_eq!(literal(text, pointer), written.map(str::as_bytes), "{pointer}");
        }
    }
}
