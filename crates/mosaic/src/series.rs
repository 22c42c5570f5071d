//! Pictures that come one after another, of which most is as it was.
//!
//! What stands in a row of units depends on its bits and on the last means of the row before, and
//! on nothing else. So a row whose bits are those of the picture before, wherever they begin in
//! the byte, is taken over from there instead of being read.

use crate::{
    bits::Reader,
    picture::{Picture, Unreadable},
    read,
    scan::{RowStart, Scan},
};

/// Reads one picture after another, and of each only what the one before did not have.
#[derive(Default)]
pub struct Series {
    last: Option<Last>,
    /// Its room is used for the next one.
    spare: Option<Picture>,
}

struct Last {
    jpeg: Vec<u8>,
    scan: Scan,
    /// Bytes before the numbers.
    head: usize,
    picture: Picture,
    /// By row of units; and one more for where the last one ends.
    rows: Vec<RowStart>,
}

impl Series {
    /// Reads a baseline JPEG; the result is that of [`Picture::read`], whatever came before.
    ///
    /// # Errors
    /// As [`Picture::read`]; the next picture is then read whole.
    pub fn read(&mut self, jpeg: &[u8]) -> Result<&Picture, Unreadable> {
        let last = self.last.take();
        let next = match last {
            Some(last) if jpeg == last.jpeg => last,
            Some(last) if jpeg.get(..last.head) == last.jpeg.get(..last.head) => {
                self.follow(last, jpeg)?
            }
            _ => {
                self.spare = None;
                whole(jpeg)?
            }
        };
        Ok(&self.last.insert(next).picture)
    }

    /// The picture read last, unless that failed.
    #[must_use]
    pub fn last(&self) -> Option<&Picture> {
        self.last.as_ref().map(|last| &last.picture)
    }

    /// The picture read last, of which nothing is needed any more but this.
    pub(crate) fn into_last(self) -> Option<Picture> {
        self.last.map(|last| last.picture)
    }

    fn follow(&mut self, last: Last, jpeg: &[u8]) -> Result<Last, Unreadable> {
        let Last { jpeg: before, scan, head, picture: old, rows: known } = last;
        let (numbers, past) = (tail(jpeg, head), tail(&before, head));
        let alike = common(numbers, past);
        let mut picture = self.spare.take().unwrap_or_else(|| scan.blank.clone());
        picture.begin();
        picture.reserve(numbers.len());
        let mut rows = Vec::with_capacity(known.len());
        let mut bits = Reader::new(numbers);
        let mut means = [0; 3];
        let pairs = known.iter().zip(known.iter().skip(1));
        for (row, (start, end)) in (0..).zip(pairs) {
            rows.push(RowStart { mark: bits.mark(numbers), means });
            let same = if end.mark.bytes <= alike {
                // So far not a byte differs, so that the reader stands where it stood.
                bits = Reader::at(numbers, &end.mark);
                true
            } else {
                let length = end.mark.bits - start.mark.bits;
                let mut ahead = bits;
                let same =
                    means == start.means && ahead.same(&mut Reader::at(past, &start.mark), length);
                if same {
                    bits = ahead;
                }
                same
            };
            if same {
                means = end.means;
                picture.copy_row(&old, row);
            } else {
                scan.row(&mut bits, &mut means, &mut picture)?;
            }
        }
        rows.push(RowStart { mark: bits.mark(numbers), means });
        self.spare = Some(old);
        let mut bytes = before;
        bytes.clear();
        bytes.extend_from_slice(jpeg);
        Ok(Last { jpeg: bytes, scan, head, picture, rows })
    }
}

fn whole(jpeg: &[u8]) -> Result<Last, Unreadable> {
    let (scan, head) = read::read(jpeg)?;
    let numbers = tail(jpeg, head);
    let mut picture = scan.blank.clone();
    picture.begin();
    picture.reserve(numbers.len());
    let mut rows = vec![];
    let mut bits = Reader::new(numbers);
    let mut means = [0; 3];
    for _ in 0..picture.units.1 {
        rows.push(RowStart { mark: bits.mark(numbers), means });
        scan.row(&mut bits, &mut means, &mut picture)?;
    }
    rows.push(RowStart { mark: bits.mark(numbers), means });
    Ok(Last { jpeg: jpeg.to_vec(), scan, head, picture, rows })
}

fn tail(jpeg: &[u8], head: usize) -> &[u8] {
    jpeg.get(head..).unwrap_or_default()
}

/// Bytes that both begin with.
fn common(one: &[u8], other: &[u8]) -> usize {
    const STEP: usize = 64;
    let steps = one.chunks_exact(STEP).zip(other.chunks_exact(STEP));
    let whole = STEP * steps.take_while(|(one, other)| one == other).count();
    let rest = tail(one, whole).iter().zip(tail(other, whole));
    whole + rest.take_while(|(one, other)| one == other).count()
}
