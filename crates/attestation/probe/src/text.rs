//! Texts of the server as they may be printed: bounded, and with escapes for characters that a
//! terminal would interpret.

use std::borrow::Cow;

/// Maximum length of a text, in characters of its escaped form.
const MAX_TEXT_CHARS: usize = 200;

/// Returns a text without control characters, truncated.
pub(crate) fn printable(text: &str) -> String {
    let mut printed = String::new();
    let mut length = 0;
    for character in text.chars() {
        let escaped: Cow<'_, str> = if character.is_control() || is_invisible(character) {
            character.escape_default().to_string().into()
        } else {
            character.to_string().into()
        };
        length += escaped.chars().count();
        if length > MAX_TEXT_CHARS {
            printed.push('…');
            break;
        }
        printed.push_str(&escaped);
    }
    printed
}

/// Returns bytes as a text that may be printed.
pub(crate) fn printable_bytes(bytes: &[u8]) -> String {
    // An escaped character has at least one byte, so that the rest is cut off in any case.
    let start = bytes.get(..4 * MAX_TEXT_CHARS + 4).unwrap_or(bytes);
    printable(&String::from_utf8_lossy(start))
}

/// Characters that end a line, or change the direction or appearance of the characters around them.
const fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(
            printable("a\u{1b}[2J\r\n\u{9b}b\u{202e}é\0"),
            r"a\u{1b}[2J\r\n\u{9b}b\u{202e}é\u{0}"
        );
        assert_eq!(printable_bytes(b"\x1b]0;\xff\x07"), "\\u{1b}]0;\u{fffd}\\u{7}");
    }

    #[test]
    fn long_texts_are_truncated() {
        assert_eq!(printable(&"é".repeat(200)), "é".repeat(200));
        assert_eq!(printable(&"é".repeat(201)), format!("{}…", "é".repeat(200)));
        assert_eq!(printable_bytes(&[b'a'; 9000]).chars().count(), 201);
    }

    proptest! {
        #[test]
        fn nothing_that_a_terminal_interprets_is_printed(bytes: Vec<u8>) {
            let text = printable_bytes(&bytes);
            prop_assert!(!text.chars().any(|it| it.is_control() || is_invisible(it)));
            prop_assert!(text.chars().count() <= MAX_TEXT_CHARS + 1);
        }
    }
}
