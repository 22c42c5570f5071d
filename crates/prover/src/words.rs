//! Sanitizes texts of the attestor and of the platform's server before they are logged or stored.

use ports::attestor::AttestError;

/// Maximum length of a reason, in characters.
const LONGEST: usize = 300;

/// Returns the same error, its text truncated and without control characters.
pub(crate) fn bounded(error: AttestError) -> AttestError {
    match error {
        AttestError::None => AttestError::None,
        AttestError::TimedOut => AttestError::TimedOut,
        AttestError::Plan(why) => AttestError::Plan(clean(&why)),
        AttestError::Attestor(why) => AttestError::Attestor(clean(&why)),
        AttestError::Lost(why) => AttestError::Lost(clean(&why)),
        AttestError::Busy(why) => AttestError::Busy(clean(&why)),
        AttestError::Platform(why) => AttestError::Platform(clean(&why)),
        AttestError::Credentials(header) => AttestError::Credentials(clean(&header)),
        AttestError::Proof(why) => AttestError::Proof(clean(&why)),
        AttestError::Refused(why) => AttestError::Refused(clean(&why)),
        AttestError::Untrue(why) => AttestError::Untrue(clean(&why)),
    }
}

fn clean(words: &str) -> String {
    let legible = |character: &char| !character.is_control() && !is_invisible(*character);
    words.chars().filter(legible).take(LONGEST).collect()
}

/// Characters that end a line, or change the direction or appearance of the characters around them.
const fn is_invisible(character: char) -> bool {
    matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_bounded_and_have_no_control_characters() {
        let odd = "a\r\nERROR b\u{1b}[2J\u{9b}\u{202e}c\0";
        assert_eq!(
            bounded(AttestError::Busy(odd.into())).to_string().matches("aERROR b[2Jc").count(),
            1
        );
        let AttestError::Refused(why) = bounded(AttestError::Refused("\u{e9}".repeat(9_000_000)))
        else {
            panic!("it is another error")
        };
        assert_eq!(why, "\u{e9}".repeat(300));
    }
}
