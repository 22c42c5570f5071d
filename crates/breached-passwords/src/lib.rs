//! A bundled list of passwords that are frequent or were found in breaches, looked up without a
//! network. `data/README.md` describes its source.
//!
//! The format of `data/frequent.bin`: the eight bytes `AVPWLST1`; for each of the 65,536 values of the
//! first two bytes of a hash, in order, one byte with the number of entries of that prefix; then for
//! each entry the third and the fourth byte of its hash, in order. The hash is SHA-256 of the password
//! in lower case, in UTF-8. With 32 bits of each hash, about 8 of 100,000 passwords that are not on the
//! list are false positives.
//!
//! **Invariant:** the list contains no password, and nothing from which one could be recovered.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};

/// Characters of the shortest password on the list; shorter ones are not permitted anyway.
pub const MIN_CHARS: usize = 15;

static BUNDLED_LIST: &[u8] = include_bytes!("../data/frequent.bin");
const MAGIC: &[u8; 8] = b"AVPWLST1";
/// The number of values of two bytes.
const PREFIXES: usize = 1 << 16;

/// Whether a password is on the list, ignoring case.
#[must_use]
pub fn is_frequent(password: &str) -> bool {
    contains(BUNDLED_LIST, hash_prefix(password)).unwrap_or(false)
}

/// Returns the number of entries of a list.
#[must_use]
pub fn entry_count(list: &[u8]) -> usize {
    split(list).map_or(0, |(_, suffixes)| suffixes.len() / 2)
}

/// Returns the list of those passwords that are long enough.
///
/// # Errors
/// There are too many entries for the format.
pub fn write<'a>(passwords: impl Iterator<Item = &'a str>) -> Result<Vec<u8>, TooManyEntries> {
    let listed = passwords.filter(|password| password.chars().count() >= MIN_CHARS);
    let prefixes: BTreeSet<_> = listed.map(hash_prefix).collect();
    let mut list = MAGIC.to_vec();
    for group in 0..=u16::MAX {
        let [one, two] = group.to_be_bytes();
        let members = prefixes.range([one, two, 0, 0]..=[one, two, u8::MAX, u8::MAX]).count();
        list.push(u8::try_from(members).map_err(|_| TooManyEntries)?);
    }
    list.extend(prefixes.iter().flat_map(|[_, _, three, four]| [*three, *four]));
    Ok(list)
}

/// More entries with the same prefix than the format permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyEntries;

impl std::fmt::Display for TooManyEntries {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("there are too many passwords for the format of the list")
    }
}

impl std::error::Error for TooManyEntries {}

/// Returns the first four bytes of a password's hash.
fn hash_prefix(password: &str) -> [u8; 4] {
    let hash: [u8; 32] = Sha256::digest(password.to_lowercase()).into();
    hash.first_chunk().copied().unwrap_or_default()
}

/// Splits a list into the numbers of entries and their suffixes; `None` if it is not a list.
fn split(list: &[u8]) -> Option<(&[u8], &[u8])> {
    list.strip_prefix(MAGIC)?.split_at_checked(PREFIXES)
}

/// Whether a list contains an entry; `None` if it is not a list.
fn contains(list: &[u8], [one, two, three, four]: [u8; 4]) -> Option<bool> {
    let (counts, suffixes) = split(list)?;
    let group = usize::from(u16::from_be_bytes([one, two]));
    let (before, from) = counts.split_at_checked(group)?;
    let first: usize = before.iter().copied().map(usize::from).sum();
    let members = from.first().copied().map_or(0, usize::from);
    let suffixes = suffixes.get(first * 2..(first + members) * 2)?;
    Some(suffixes.chunks_exact(2).any(|suffix| suffix == [three, four]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_list_contains_frequent_passwords() {
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

    /// Its length matches its counts, it is sorted, and it has the expected number of entries.
    #[test]
    fn the_bundled_list_is_well_formed() {
        let (counts, suffixes) = split(BUNDLED_LIST).unwrap();
        let sum: usize = counts.iter().copied().map(usize::from).sum();
        assert_eq!(suffixes.len(), 2 * sum);
        assert!((300_000..450_000).contains(&sum), "{sum}");
        let source = include_str!("../data/SOURCE");
        assert!(source.contains(&format!("entries: {}\n", entry_count(BUNDLED_LIST))), "{source}");
        let mut first = 0;
        for count in counts.iter().copied().map(usize::from) {
            let group = &suffixes[first..first + 2 * count];
            assert!(group.chunks_exact(2).is_sorted());
            first += 2 * count;
        }
    }

    /// False positives are rare.
    #[test]
    fn false_positives_are_rare() {
        let positives =
            (0..10_000).filter(|n| is_frequent(&format!("no list has number {n}"))).count();
        assert!(positives < 8, "{positives} of 10,000");
    }

    #[test]
    fn written_entries_are_found() {
        let passwords = ["Ein Passwort mit Ü", "another long one", "short"];
        let list = write(passwords.into_iter()).unwrap();
        assert_eq!(list.len(), MAGIC.len() + PREFIXES + 2 * 2);
        let contains = |password: &str| contains(&list, hash_prefix(password));
        assert_eq!(contains("ein passwort mit ü"), Some(true));
        assert_eq!(contains("ANOTHER LONG ONE"), Some(true));
        assert_eq!(contains("short"), Some(false));
        assert_eq!(super::contains(b"AVPWLST0", [0; 4]), None);
        assert_eq!(super::contains(&list[..list.len() - 4], hash_prefix(passwords[0])), None);
    }
}
