//! The partner's challenge, which an attestation repeats to prove that it is not an older one.

use serde::{Deserialize, Serialize};

/// The maximum length of a challenge.
const MAX_BYTES: usize = 64;
/// The length of [`MAX_BYTES`] in base64url without padding: six bits to a character.
pub(super) const MAX_CHARS: usize = 86;

/// The value that the signed attestation repeats for the partner: 1 to 64 bytes in base64url
/// without padding (RFC 4648, section 5), in the one encoding that these bytes have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Challenge(String);

impl Challenge {
    /// Parses the text. `None` if it is not base64url without padding, has bits that belong to no
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
        // Cannot fail: `new` has decoded the text.
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

/// Decodes base64url without padding. No two texts decode to the same bytes.
fn decode(text: &str) -> Option<Vec<u8>> {
    if text.len() > MAX_CHARS {
        return None;
    }
    let (mut bytes, mut buffer, mut bits) = (vec![], 0_u32, 0_u32);
    for character in text.bytes() {
        let value = match character {
            b'A'..=b'Z' => character - b'A',
            b'a'..=b'z' => character - b'a' + 26,
            b'0'..=b'9' => character - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            _ => return None,
        };
        buffer = (buffer << 6) | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(buffer >> bits).ok()?);
            buffer &= (1 << bits) - 1;
        }
    }
    (bits < 6 && buffer == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_decodes_the_test_vectors_of_rfc_4648() {
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
        let longest_text = "_".repeat(85) + "w";
        assert_eq!(Challenge::new(&longest_text).unwrap().bytes(), [0xff; 64]);
    }

    #[test]
    fn a_challenge_has_one_encoding_and_a_maximum_length() {
        let long = "A".repeat(87);
        for text in ["", "Z", "Zg==", "Zh", "Zm9", "+/+/", "Zm 9", "Zm9v\n", "é", "Zm9vY", &long] {
            assert_eq!(Challenge::new(text), None, "{text:?}");
        }
    }
}
