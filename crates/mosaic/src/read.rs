//! Reads what a baseline JPEG (T.81, annex B) says of itself before its numbers.

use crate::{
    LONGEST_SIDE,
    huffman::Decoder,
    picture::{Divisors, Plane, Unreadable},
    scan::Scan,
};

/// Headers read before the scan; an honest picture has about ten.
const MOST_SEGMENTS: usize = 64;

/// Reads what stands before the numbers, and tells how many bytes that is.
pub(crate) fn read(jpeg: &[u8]) -> Result<(Scan, usize), Unreadable> {
    let mut rest = jpeg.strip_prefix(&[0xff, 0xd8]).ok_or(Unreadable::Broken)?;
    let mut head = Head::default();
    for _ in 0..MOST_SEGMENTS {
        let [0xff, marker, high, low, after @ ..] = rest else { return Err(Unreadable::Broken) };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let length = length.checked_sub(2).ok_or(Unreadable::Broken)?;
        let (segment, after) = after.split_at_checked(length).ok_or(Unreadable::Broken)?;
        rest = after;
        match marker {
            0xda => return Ok((head.begin_scan(segment)?, jpeg.len() - after.len())),
            0xdb => head.divisors(segment)?,
            0xc0 => head.frame(segment)?,
            0xc4 => head.tables(segment)?,
            0xdd if segment != [0, 0] => return Err(Unreadable::Unsupported),
            // Other ways of coding; and in between what tells of the picture but not how it is
            // read: T.81, table B.1.
            0xc1..=0xcf => return Err(Unreadable::Unsupported),
            0xdd | 0xe0..=0xef | 0xfe => (),
            _ => return Err(Unreadable::Broken),
        }
    }
    Err(Unreadable::Broken)
}

#[derive(Default)]
pub(crate) struct Head {
    divisors: [Option<Divisors>; 4],
    pub(crate) dc: [Option<Decoder>; 4],
    pub(crate) ac: [Option<Decoder>; 4],
    frame: Option<Frame>,
}

pub(crate) struct Frame {
    pub(crate) width: u16,
    pub(crate) height: u16,
    /// Each plane under its name.
    planes: Vec<(u8, Plane)>,
}

impl Head {
    fn divisors(&mut self, mut segment: &[u8]) -> Result<(), Unreadable> {
        while let [kind, rest @ ..] = segment {
            let (table, rest) = rest.split_at_checked(64).ok_or(Unreadable::Broken)?;
            let table = <[u8; 64]>::try_from(table).map_err(|_| Unreadable::Broken)?;
            if kind >> 4 != 0 {
                return Err(Unreadable::Unsupported);
            }
            if table.contains(&0) {
                return Err(Unreadable::Broken);
            }
            *self.divisors.get_mut(usize::from(*kind)).ok_or(Unreadable::Broken)? = Some(table);
            segment = rest;
        }
        Ok(())
    }

    fn tables(&mut self, mut segment: &[u8]) -> Result<(), Unreadable> {
        while let [kind, rest @ ..] = segment {
            let (counts, rest) = rest.split_at_checked(16).ok_or(Unreadable::Broken)?;
            let counts = <[u8; 16]>::try_from(counts).map_err(|_| Unreadable::Broken)?;
            let sum = counts.iter().map(|count| usize::from(*count)).sum();
            let (symbols, rest) = rest.split_at_checked(sum).ok_or(Unreadable::Broken)?;
            let place = usize::from(kind & 15);
            let slot = match kind >> 4 {
                0 => self.dc.get_mut(place),
                1 => self.ac.get_mut(place),
                _ => None,
            };
            *slot.ok_or(Unreadable::Broken)? = Some(Decoder::new(&counts, symbols)?);
            segment = rest;
        }
        Ok(())
    }

    fn frame(&mut self, segment: &[u8]) -> Result<(), Unreadable> {
        let [bits, h1, h0, w1, w0, count, planes @ ..] = segment else {
            return Err(Unreadable::Broken);
        };
        if self.frame.is_some() || planes.len() != 3 * usize::from(*count) {
            return Err(Unreadable::Broken);
        }
        if *bits != 8 || !matches!(count, 1 | 3) {
            return Err(Unreadable::Unsupported);
        }
        let (width, height) = (u16::from_be_bytes([*w1, *w0]), u16::from_be_bytes([*h1, *h0]));
        if [width, height].iter().any(|side| !(1..=LONGEST_SIDE).contains(side)) {
            return Err(Unreadable::Size);
        }
        let alone = *count == 1;
        let planes = planes.chunks_exact(3).map(|plane| {
            let [name, factors, divisor] = *plane else { return Err(Unreadable::Broken) };
            // A plane alone is written block by block, whatever its factors (T.81, A.2.2).
            let (across, down) = if alone { (1, 1) } else { (factors >> 4, factors & 15) };
            if !matches!(across, 1 | 2) || !matches!(down, 1 | 2) {
                return Err(Unreadable::Unsupported);
            }
            Ok((name, Plane { across, down, divisor }))
        });
        let planes = planes.collect::<Result<Vec<_>, _>>()?;
        self.frame = Some(Frame { width, height, planes });
        Ok(())
    }

    fn begin_scan(mut self, segment: &[u8]) -> Result<Scan, Unreadable> {
        let frame = self.frame.take().ok_or(Unreadable::Broken)?;
        let [count, rest @ ..] = segment else { return Err(Unreadable::Broken) };
        let (chosen, last) =
            rest.split_at_checked(2 * usize::from(*count)).ok_or(Unreadable::Broken)?;
        if usize::from(*count) != frame.planes.len() || last != [0, 63, 0] {
            return Err(Unreadable::Unsupported);
        }
        let mut planes = vec![];
        let mut divisors = vec![];
        for ((name, plane), chosen) in frame.planes.iter().zip(chosen.chunks_exact(2)) {
            let [same, tables] = *chosen else { return Err(Unreadable::Broken) };
            let own = self.divisors.get(usize::from(plane.divisor)).copied().flatten();
            let own = own.ok_or(Unreadable::Broken)?;
            if same != *name {
                return Err(Unreadable::Unsupported);
            }
            let divisor = divisors.iter().position(|known| *known == own).unwrap_or_else(|| {
                divisors.push(own);
                divisors.len() - 1
            });
            let divisor = u8::try_from(divisor).map_err(|_| Unreadable::Broken)?;
            planes.push((Plane { divisor, ..*plane }, tables >> 4, tables & 15));
        }
        Scan::new(self, &frame, planes, divisors)
    }
}
