//! The code by which the support finds a session.

use domain::id::SessionId;

use crate::digest::sha256;

/// Crockford's base 32, without letters that are easily confused.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Returns the support reference of a session: eight letters and digits in two groups. It is derived
/// from the identifier, which it does not reveal, since applicants pass it on.
#[must_use]
pub(crate) fn support_reference(id: SessionId) -> String {
    let hash = sha256(format!("support reference {id}").as_bytes());
    let number = hash.iter().take(5).fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    let digit = |at: u32| {
        let index = usize::try_from((number >> (5 * at)) & 31).unwrap_or_default();
        ALPHABET.get(index).copied().map_or('0', char::from)
    };
    let digits: String = (0..8).map(digit).collect();
    let (first, second) = digits.split_at(4);
    format!("{first}-{second}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_short_and_the_same_each_time() {
        let [one, other] = [1, 2].map(|id| support_reference(SessionId::from_u128(id)));
        assert_eq!(one, support_reference(SessionId::from_u128(1)));
        assert_ne!(one, other);
        assert_eq!(one.len(), 9);
        assert!(one.bytes().all(|byte| byte == b'-' || ALPHABET.contains(&byte)), "{one}");
    }
}
