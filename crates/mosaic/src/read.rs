//! Reads a baseline JPEG (T.81, annex B) into its numbers.

use crate::{
    LONGEST_SIDE,
    bits::Reader,
    huffman::Decoder,
    picture::{Divisors, Number, Picture, Plane, Unreadable},
};

/// Headers read before the scan; an honest picture has about ten.
const MOST_SEGMENTS: usize = 64;
/// The largest mean of a block, and the largest other number (T.81, section F.1.2).
const LARGEST_MEAN: i32 = 1023;
const LARGEST_OTHER_BITS: u8 = 10;
const LARGEST_STEP_BITS: u8 = 11;

pub(crate) fn read(jpeg: &[u8]) -> Result<Picture, Unreadable> {
    let mut rest = jpeg.strip_prefix(&[0xff, 0xd8]).ok_or(Unreadable::Broken)?;
    let mut head = Head::default();
    for _ in 0..MOST_SEGMENTS {
        let [0xff, marker, high, low, after @ ..] = rest else { return Err(Unreadable::Broken) };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let length = length.checked_sub(2).ok_or(Unreadable::Broken)?;
        let (segment, after) = after.split_at_checked(length).ok_or(Unreadable::Broken)?;
        rest = after;
        match marker {
            0xda => return head.begin_scan(segment)?.read(after),
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
struct Head {
    divisors: [Option<Divisors>; 4],
    dc: [Option<Decoder>; 4],
    ac: [Option<Decoder>; 4],
    frame: Option<Frame>,
}

struct Frame {
    width: u16,
    height: u16,
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

/// A picture whose numbers are still to be read.
struct Scan {
    picture: Picture,
    /// By block of a unit: the plane, and its two tables.
    blocks: Vec<(usize, usize, usize)>,
    dc: Vec<Decoder>,
    ac: Vec<Decoder>,
}

impl Scan {
    fn new(
        mut head: Head,
        frame: &Frame,
        planes: Vec<(Plane, u8, u8)>,
        divisors: Vec<Divisors>,
    ) -> Result<Self, Unreadable> {
        let (mut blocks, mut dc, mut ac) = (vec![], vec![], vec![]);
        let (mut firsts, mut rests) = ([None; 4], [None; 4]);
        for (at, (plane, first, others)) in planes.iter().enumerate() {
            let first = taken(&mut head.dc, &mut firsts, *first, &mut dc)?;
            let others = taken(&mut head.ac, &mut rests, *others, &mut ac)?;
            let count = usize::from(plane.across) * usize::from(plane.down);
            blocks.extend(std::iter::repeat_n((at, first, others), count));
        }
        let planes: Vec<_> = planes.into_iter().map(|(plane, ..)| plane).collect();
        let side = |of: fn(&Plane) -> u8| planes.iter().map(of).max().unwrap_or(1);
        let unit =
            (8 * u16::from(side(|plane| plane.across)), 8 * u16::from(side(|plane| plane.down)));
        let units = (frame.width.div_ceil(unit.0), frame.height.div_ceil(unit.1));
        let picture = Picture {
            width: frame.width,
            height: frame.height,
            planes,
            divisors,
            unit,
            units,
            numbers: vec![],
            starts: vec![],
            prints: vec![],
        };
        Ok(Self { picture, blocks, dc, ac })
    }

    fn read(self, entropy: &[u8]) -> Result<Picture, Unreadable> {
        let Self { mut picture, blocks, dc, ac } = self;
        let count = usize::from(picture.units.0) * usize::from(picture.units.1);
        picture.starts.reserve_exact(count + 1);
        picture.prints.reserve_exact(count);
        picture.numbers.reserve(count * blocks.len() + entropy.len());
        let mut bits = Reader::new(entropy);
        let mut means = [0_i32; 3];
        picture.starts.push(0);
        for _ in 0..count {
            let from = picture.numbers.len();
            for (plane, first, others) in &blocks {
                let tables = (dc.get(*first), ac.get(*others), means.get_mut(*plane));
                let (Some(dc), Some(ac), Some(mean)) = tables else {
                    return Err(Unreadable::Broken);
                };
                block(&mut bits, dc, ac, mean, &mut picture.numbers)?;
            }
            if bits.overrun() {
                return Err(Unreadable::Broken);
            }
            let unit = picture.numbers.get(from..).unwrap_or_default();
            picture.prints.push(unit.iter().copied().fold(1, fold));
            let end = u32::try_from(picture.numbers.len()).map_err(|_| Unreadable::Size)?;
            picture.starts.push(end);
        }
        Ok(picture)
    }
}

/// Takes a table over once, however many planes use it.
fn taken(
    tables: &mut [Option<Decoder>; 4],
    places: &mut [Option<usize>; 4],
    chosen: u8,
    into: &mut Vec<Decoder>,
) -> Result<usize, Unreadable> {
    let place = places.get_mut(usize::from(chosen)).ok_or(Unreadable::Broken)?;
    if let Some(place) = place {
        return Ok(*place);
    }
    let table = tables.get_mut(usize::from(chosen)).and_then(Option::take);
    into.push(table.ok_or(Unreadable::Broken)?);
    Ok(*place.insert(into.len() - 1))
}

/// One block (T.81, section F.2.2).
#[inline]
fn block(
    bits: &mut Reader<'_>,
    dc: &Decoder,
    ac: &Decoder,
    mean: &mut i32,
    into: &mut Vec<Number>,
) -> Result<(), Unreadable> {
    let step = dc.symbol(bits)?;
    if step > LARGEST_STEP_BITS {
        return Err(Unreadable::Broken);
    }
    *mean += i32::from(bits.signed(u32::from(step)));
    if !(-LARGEST_MEAN - 1..=LARGEST_MEAN).contains(mean) {
        return Err(Unreadable::Broken);
    }
    let value = i16::try_from(*mean).map_err(|_| Unreadable::Broken)?;
    into.push(Number { value, place: 0 });
    let mut place = 0;
    while place < 63 {
        let symbol = ac.symbol(bits)?;
        let (zeros, size) = (symbol >> 4, symbol & 15);
        match (zeros, size) {
            (15, 0) => {
                place += 16;
                continue;
            }
            (0, 0) => break,
            _ if size == 0 || size > LARGEST_OTHER_BITS => return Err(Unreadable::Broken),
            _ => place += zeros + 1,
        }
        if place > 63 {
            return Err(Unreadable::Broken);
        }
        into.push(Number { value: bits.signed(u32::from(size)), place });
    }
    Ok(())
}

#[inline]
pub(crate) fn fold(print: u64, number: Number) -> u64 {
    let number = u64::from(number.place) << 16 | u64::from(number.value.cast_unsigned());
    let mixed = (print ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}
