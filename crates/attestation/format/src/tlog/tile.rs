//! The files of a log: paths and contents of tiles and entry bundles (C2SP tlog-tiles).

use super::{Hash, MAX_TREE_SIZE, TlogError};
use crate::bytes::ByteReader;

/// Hashes of a full tile, and entries of a full bundle.
pub const TILE_WIDTH: u16 = 256;
/// Maximum length of an entry.
pub const MAX_ENTRY_BYTES: usize = 256;

/// Adjacent hashes of a tree, at a height that is a multiple of 8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tile {
    pub level: u8,
    pub index: u64,
    /// From 1 to [`TILE_WIDTH`].
    pub hashes: Vec<Hash>,
}

impl Tile {
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.hashes.len() == usize::from(TILE_WIDTH)
    }

    /// Returns the path of its file, relative to the log's address.
    #[must_use]
    pub fn path(&self) -> String {
        let width = u16::try_from(self.hashes.len()).unwrap_or(TILE_WIDTH);
        format!("tile/{}/{}", self.level, index_path(self.index, width))
    }

    /// Returns the content of its file.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.hashes.concat()
    }
}

/// Returns the path of the entry bundle for the level 0 tile of the same index and width.
#[must_use]
pub fn entries_path(index: u64, width: u16) -> String {
    format!("tile/entries/{}", index_path(index, width))
}

/// Formats three digits per path element, with `x` before all but the last: 1234067 is
/// `x001/x234/067`.
fn index_path(index: u64, width: u16) -> String {
    let mut text = format!("{:03}", index % 1000);
    let mut rest = index / 1000;
    while rest > 0 {
        text = format!("x{:03}/{text}", rest % 1000);
        rest /= 1000;
    }
    if width < TILE_WIDTH { format!("{text}.p/{width}") } else { text }
}

/// Parses a tile of this width.
///
/// # Errors
/// It has another width.
pub fn read_tile(bytes: &[u8], width: u16) -> Result<Vec<Hash>, TlogError> {
    let (hashes, rest) = bytes.as_chunks::<32>();
    if !rest.is_empty() || hashes.len() != usize::from(width) {
        return Err(TlogError::Malformed("the tile has the wrong width"));
    }
    Ok(hashes.to_vec())
}

/// Encodes a bundle of entries, each preceded by its length in 2 bytes.
///
/// # Errors
/// An entry is longer than [`MAX_ENTRY_BYTES`].
pub fn write_bundle<'a>(entries: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<u8>, TlogError> {
    let mut bytes = vec![];
    for entry in entries {
        let length = u16::try_from(entry.len()).ok().filter(|_| entry.len() <= MAX_ENTRY_BYTES);
        bytes.extend(length.ok_or(TlogError::TooLong(MAX_ENTRY_BYTES))?.to_be_bytes());
        bytes.extend(entry);
    }
    Ok(bytes)
}

/// Parses a bundle of this many entries.
///
/// # Errors
/// It has more or fewer entries, or one that is longer than [`MAX_ENTRY_BYTES`].
pub fn read_bundle(bytes: &[u8], width: u16) -> Result<Vec<&[u8]>, TlogError> {
    let mut rest = ByteReader(bytes);
    let mut entries = vec![];
    for _ in 0..width.min(TILE_WIDTH) {
        let entry =
            rest.vector16().ok_or(TlogError::Malformed("the bundle ends within an entry"))?;
        if entry.0.len() > MAX_ENTRY_BYTES {
            return Err(TlogError::TooLong(MAX_ENTRY_BYTES));
        }
        entries.push(entry.0);
    }
    if rest.is_empty() {
        Ok(entries)
    } else {
        Err(TlogError::Malformed("the bundle has more entries"))
    }
}

/// Parses a decimal number without leading zeros, as sizes and indexes are written.
pub(super) fn parse_number(text: &str) -> Result<u64, TlogError> {
    let wrong = TlogError::Malformed("a number is not decimal, or too large");
    let number: u64 = text.parse().map_err(|_| wrong.clone())?;
    if number > MAX_TREE_SIZE || number.to_string() != text { Err(wrong) } else { Ok(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_the_paths_of_the_specification() {
        for (index, width, path) in [
            (0, 256, "tile/entries/000"),
            (999, 255, "tile/entries/999.p/255"),
            (1067, 256, "tile/entries/x001/067"),
            (1_234_067, 1, "tile/entries/x001/x234/067.p/1"),
        ] {
            assert_eq!(entries_path(index, width), path);
        }
        let tile = |hashes| Tile { level: 2, index: 1000, hashes };
        assert_eq!(tile(vec![[0; 32]; 256]).path(), "tile/2/x001/000");
        assert_eq!(tile(vec![[0; 32]; 17]).path(), "tile/2/x001/000.p/17");
    }

    #[test]
    fn a_bundle_has_one_encoding() {
        let entries: [&[u8]; 3] = [b"one", b"", &[7; 256]];
        let bytes = write_bundle(entries).unwrap();
        assert_eq!(bytes[..7], [0, 3, b'o', b'n', b'e', 0, 0]);
        assert_eq!(read_bundle(&bytes, 3).unwrap(), entries);
        assert!(read_bundle(&bytes, 2).is_err() && read_bundle(&bytes, 4).is_err());
        for length in 0..bytes.len() {
            assert!(read_bundle(&bytes[..length], 3).is_err(), "{length}");
        }
        let long = [&[1_u8, 1][..], &[0; 257]].concat();
        assert_eq!(read_bundle(&long, 1), Err(TlogError::TooLong(MAX_ENTRY_BYTES)));
        assert_eq!(write_bundle([&[0; 257][..]]), Err(TlogError::TooLong(MAX_ENTRY_BYTES)));
        assert_eq!(read_tile(&[1; 64], 2), Ok(vec![[1; 32]; 2]));
        assert!(read_tile(&[1; 64], 1).is_err() && read_tile(&[1; 65], 2).is_err());
    }

    #[test]
    fn a_number_has_one_encoding() {
        assert_eq!(parse_number("0"), Ok(0));
        assert_eq!(parse_number("1099511627776"), Ok(MAX_TREE_SIZE));
        for wrong in ["", "00", "01", "+1", "-1", " 1", "1 ", "1e3", "1099511627777", "٣"] {
            assert!(parse_number(wrong).is_err(), "{wrong}");
        }
    }
}
