//! Passwords that were found in breaches, or are used by many: a list that is shipped, and looked up
//! without a network. `data/README.md` says where it comes from.
//!
//! The form of `data/frequent.bin`: the eight bytes `AVPWLST1`; for each of the 65,536 values that
//! the first two bytes of a hash can have, in order, one byte that says how many entries begin with
//! it; then of each entry the third and the fourth byte of its hash, in order. The hash is SHA-256 of
//! the password in lower case, in UTF-8. With 32 bits of each hash some 8 of 100,000 passwords that
//! are on no list are taken for one that is.
//!
//! **Invariant:** the list has no password, and nothing from which one could be told.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};

/// Characters of the shortest password on the list: shorter ones cannot be chosen anyway.
pub const SHORTEST: usize = 15;

static SHIPPED: &[u8] = include_bytes!("../data/frequent.bin");
const MAGIC: &[u8; 8] = b"AVPWLST1";
/// How many values two bytes have.
const GROUPS: usize = 1 << 16;

/// Whether a password is on the list, in whatever case it is written.
#[must_use]
pub fn is_frequent(password: &str) -> bool {
    has(SHIPPED, begin_of_hash(password)).unwrap_or(false)
}

/// How many entries a list has.
#[must_use]
pub fn entries_of(list: &[u8]) -> usize {
    parts(list).map_or(0, |(_, rests)| rests.len() / 2)
}

/// The list of those passwords that are long enough.
///
/// # Errors
/// There are too many for the form.
pub fn write<'a>(passwords: impl Iterator<Item = &'a str>) -> Result<Vec<u8>, TooMany> {
    let long = passwords.filter(|password| password.chars().count() >= SHORTEST);
    let begins: BTreeSet<_> = long.map(begin_of_hash).collect();
    let mut list = MAGIC.to_vec();
    for group in 0..=u16::MAX {
        let [one, two] = group.to_be_bytes();
        let members = begins.range([one, two, 0, 0]..=[one, two, u8::MAX, u8::MAX]).count();
        list.push(u8::try_from(members).map_err(|_| TooMany)?);
    }
    list.extend(begins.iter().flat_map(|[_, _, three, four]| [*three, *four]));
    Ok(list)
}

/// More passwords than the form has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMany;

impl std::fmt::Display for TooMany {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("there are too many passwords for the form of the list")
    }
}

impl std::error::Error for TooMany {}

fn begin_of_hash(password: &str) -> [u8; 4] {
    let hash: [u8; 32] = Sha256::digest(password.to_lowercase()).into();
    hash.first_chunk().copied().unwrap_or_default()
}

/// The numbers of entries and what is kept of each.
fn parts(list: &[u8]) -> Option<(&[u8], &[u8])> {
    list.strip_prefix(MAGIC)?.split_at_checked(GROUPS)
}

/// `None`: that is no list.
fn has(list: &[u8], [one, two, three, four]: [u8; 4]) -> Option<bool> {
    let (counts, rests) = parts(list)?;
    let group = usize::from(u16::from_be_bytes([one, two]));
    let (before, from) = counts.split_at_checked(group)?;
    let first: usize = before.iter().copied().map(usize::from).sum();
    let members = from.first().copied().map_or(0, usize::from);
    let rests = rests.get(first * 2..(first + members) * 2)?;
    Some(rests.chunks_exact(2).any(|rest| rest == [three, four]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_list_knows_what_many_chose() {
        for known in [
            "123456789012345",
            "qwertyuiopasdfgh",
            "1q2w3e4r5t6y7u8i",
            "1Q2W3E4R5T6Y7U8I",
            "passwordpassword",
            "PasswordPassword",
        ] {
            assert!(is_frequent(known), "{known}");
        }
        for other in ["nine teapots under glass", "correct horse battery stapler", "", "123456"] {
            assert!(!is_frequent(other), "{other}");
        }
    }

    /// Its length follows from its numbers, it is sorted, and as many as it should.
    #[test]
    fn the_shipped_list_is_whole() {
        let (counts, rests) = parts(SHIPPED).unwrap();
        let sum: usize = counts.iter().copied().map(usize::from).sum();
        assert_eq!(rests.len(), 2 * sum);
        assert!((300_000..450_000).contains(&sum), "{sum}");
        let source = include_str!("../data/SOURCE");
        assert!(source.contains(&format!("entries: {}\n", entries_of(SHIPPED))), "{source}");
        let mut first = 0;
        for count in counts.iter().copied().map(usize::from) {
            let group = &rests[first..first + 2 * count];
            assert!(group.chunks_exact(2).is_sorted());
            first += 2 * count;
        }
    }

    /// Next to nobody is refused a password by chance.
    #[test]
    fn other_passwords_are_seldom_taken_for_one() {
        let taken = (0..10_000).filter(|n| is_frequent(&format!("no list has number {n}"))).count();
        assert!(taken < 8, "{taken} of 10,000");
    }

    #[test]
    fn what_is_written_is_found() {
        let passwords = ["Ein Passwort mit Ü", "another long one", "short"];
        let list = write(passwords.into_iter()).unwrap();
        assert_eq!(list.len(), MAGIC.len() + GROUPS + 2 * 2);
        let has = |password: &str| has(&list, begin_of_hash(password));
        assert_eq!(has("ein passwort mit ü"), Some(true));
        assert_eq!(has("ANOTHER LONG ONE"), Some(true));
        assert_eq!(has("short"), Some(false));
        assert_eq!(super::has(b"AVPWLST0", [0; 4]), None);
        assert_eq!(super::has(&list[..list.len() - 4], begin_of_hash(passwords[0])), None);
    }
}
