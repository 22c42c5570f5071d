//! The format of segments: time in microseconds, kind, length, content; numbers are little endian.

use chrono::DateTime;
use domain::recording::{RecordedContent, RecordedItem};

const FRAME: u8 = 0;
const NODE: u8 = 1;
const END: u8 = 2;

pub(super) fn write(items: &[RecordedItem]) -> Vec<u8> {
    let mut bytes = vec![];
    for RecordedItem { at, what } in items {
        let (kind, content): (_, &[u8]) = match what {
            RecordedContent::Picture(jpeg) => (FRAME, jpeg),
            RecordedContent::Node(name) => (NODE, name.as_bytes()),
            RecordedContent::End => (END, &[]),
        };
        bytes.extend(at.timestamp_micros().to_le_bytes());
        bytes.push(kind);
        bytes.extend(u32::try_from(content.len()).unwrap_or_default().to_le_bytes());
        bytes.extend(content);
    }
    bytes
}

/// Returns `None` if the bytes are not a segment.
pub(super) fn read(mut bytes: &[u8]) -> Option<Vec<RecordedItem>> {
    let mut items = vec![];
    while !bytes.is_empty() {
        let (at, rest) = bytes.split_first_chunk()?;
        let ([kind], rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (content, rest) = rest.split_at_checked(length)?;
        let what = match *kind {
            FRAME => RecordedContent::Picture(content.to_vec()),
            NODE => RecordedContent::Node(String::from_utf8(content.to_vec()).ok()?),
            END => RecordedContent::End,
            _ => return None,
        };
        items.push(RecordedItem {
            at: DateTime::from_timestamp_micros(i64::from_le_bytes(*at))?,
            what,
        });
        bytes = rest;
    }
    Some(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_nothing_else_is() {
        let at = DateTime::from_timestamp_micros(1_800_000_000_000_001).unwrap();
        let items = vec![
            RecordedItem { at, what: RecordedContent::Node("login".into()) },
            RecordedItem { at, what: RecordedContent::Picture(vec![0xff, 0xd8, 0, 1]) },
            RecordedItem { at, what: RecordedContent::End },
        ];
        let bytes = write(&items);
        assert_eq!(read(&bytes), Some(items.clone()));
        assert_eq!(read(&[]), Some(vec![]));
        for cut in 1..bytes.len() {
            let whole = read(&bytes[..cut]).is_none_or(|some| some == items[..some.len()]);
            assert!(whole, "{cut} bytes");
        }
        let mut odd = bytes.clone();
        odd[8] = 9;
        assert_eq!(read(&odd), None);
        odd[9..13].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(read(&odd), None);
    }
}
