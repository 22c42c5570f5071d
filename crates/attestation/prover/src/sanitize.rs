//! Sanitizes texts of the attestor and of the platform's server before they are logged or stored.

use ports::attestor::AttestError;

/// Maximum length of a reason, in characters.
const MAX_REASON_CHARS: usize = 300;

/// Returns the same error, its text truncated and without control characters.
pub(crate) fn sanitize_error(error: AttestError) -> AttestError {
    match error {
        AttestError::None => AttestError::None,
        AttestError::TimedOut => AttestError::TimedOut,
        AttestError::Plan(why) => AttestError::Plan(sanitize_text(&why)),
        AttestError::Attestor(why) => AttestError::Attestor(sanitize_text(&why)),
        AttestError::Lost(why) => AttestError::Lost(sanitize_text(&why)),
        AttestError::Busy(why) => AttestError::Busy(sanitize_text(&why)),
        AttestError::Platform(why) => AttestError::Platform(sanitize_text(&why)),
        AttestError::Credentials(header) => AttestError::Credentials(sanitize_text(&header)),
        AttestError::Proof(why) => AttestError::Proof(sanitize_text(&why)),
        AttestError::Refused(why) => AttestError::Refused(sanitize_text(&why)),
        AttestError::Untrue(why) => AttestError::Untrue(sanitize_text(&why)),
    }
}

fn sanitize_text(text: &str) -> String {
    let is_printable = |character: &char| !character.is_control() && !is_invisible(*character);
    text.chars().filter(is_printable).take(MAX_REASON_CHARS).collect()
}

/// Characters that end a line, or change the direction or appearance of the characters around them.
const fn is_invisible(character: char) -> bool {
    matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_truncated_and_have_no_control_characters() {
        let odd = "a\r\nERROR b\u{1b}[2J\u{9b}\u{202e}c\0";
        assert_eq!(
            sanitize_error(AttestError::Busy(odd.into()))
                .to_string()
                .matches("aERROR b[2Jc")
                .count(),
            1
        );
        let AttestError::Refused(why) =
            sanitize_error(AttestError::Refused("\u{e9}".repeat(9_000_000)))
        else {
            panic!("it is another error")
        };
        assert_eq!(why, "\u{e9}".repeat(300));
    }
}
