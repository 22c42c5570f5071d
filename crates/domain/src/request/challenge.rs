//! A number of the partner's that an attestation repeats, so that it cannot be an older one.

use serde::{Deserialize, Serialize};

/// The longest challenge, in bytes.
const MAX_BYTES: usize = 64;
/// Its length in base64url without padding: six bits to a character.
pub(super) const MAX_CHARACTERS: usize = 86;

/// What the partner wants repeated in the signed attestation: 1 to 64 bytes in base64url without
/// padding (RFC 4648, section 5), in the one form that these bytes have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Challenge(String);

impl Challenge {
    /// Reads its text. `None` where it is not base64url without padding, has bits that belong to no
    /// byte, or is not 1 to 64 bytes long.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let bytes = decode(text)?;
        (1..=MAX_BYTES).contains(&bytes.len()).then(|| Self(text.to_owned()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        // It was decoded when it was made.
        decode(&self.0).unwrap_or_default()
    }
}

impl TryFrom<String> for Challenge {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::new(&text).ok_or("an attestation challenge is 1 to 64 bytes in base64url")
    }
}

impl From<Challenge> for String {
    fn from(challenge: Challenge) -> Self {
        challenge.0
    }
}

/// The bytes of base64url without padding. Two texts never stand for the same bytes.
fn decode(text: &str) -> Option<Vec<u8>> {
    if text.len() > MAX_CHARACTERS {
        return None;
    }
    let (mut bytes, mut rest, mut bits) = (vec![], 0_u32, 0_u32);
    for character in text.bytes() {
        let value = match character {
            b'A'..=b'Z' => character - b'A',
            b'a'..=b'z' => character - b'a' + 26,
            b'0'..=b'9' => character - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            _ => return None,
        };
        rest = (rest << 6) | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(rest >> bits).ok()?);
            rest &= (1 << bits) - 1;
        }
    }
    (bits < 6 && rest == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_read_by_the_vectors_of_rfc_4648() {
        for (text, bytes) in [
            ("Zg", "f"),
            ("Zm8", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg", "foob"),
            ("Zm9vYmE", "fooba"),
            ("Zm9vYmFy", "foobar"),
        ] {
            assert_eq!(Challenge::new(text).unwrap().bytes(), bytes.as_bytes(), "{text}");
        }
        assert_eq!(Challenge::new("-_-_").unwrap().bytes(), [0xfb, 0xff, 0xbf]);
        let longest = "_".repeat(85) + "w";
        assert_eq!(Challenge::new(&longest).unwrap().bytes(), [0xff; 64]);
    }

    #[test]
    fn a_challenge_has_one_form_and_a_bound() {
        let long = "A".repeat(87);
        for text in ["", "Z", "Zg==", "Zh", "Zm9", "+/+/", "Zm 9", "Zm9v\n", "é", "Zm9vY", &long] {
            assert_eq!(Challenge::new(text), None, "{text:?}");
        }
    }
}
