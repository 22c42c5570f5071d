//! The numbers of a picture, row of units by row of units (T.81, section A.2).

use crate::{
    bits::{Mark, Reader},
    huffman::Decoder,
    picture::{Divisors, Number, Picture, Plane, Unreadable},
    read::{Frame, Head},
};

/// The largest mean of a block, and the largest other number (T.81, section F.1.2).
const LARGEST_MEAN: i32 = 1023;
const LARGEST_OTHER_BITS: u8 = 10;
const LARGEST_STEP_BITS: u8 = 11;

/// How the numbers of a picture are written, and the picture, still without them.
pub(crate) struct Scan {
    pub(crate) blank: Picture,
    /// By block of a unit: the plane, and its two tables.
    blocks: Vec<(usize, usize, usize)>,
    dc: Vec<Decoder>,
    ac: Vec<Decoder>,
}

/// Where a row of units begins, and all that reading it depends on besides the bits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowStart {
    pub(crate) mark: Mark,
    /// By plane: the mean that the next one is told as a difference to.
    pub(crate) means: [i32; 3],
}

impl Scan {
    pub(crate) fn new(
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
        let blank = Picture {
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
        Ok(Self { blank, blocks, dc, ac })
    }

    /// Reads the numbers of one row of units.
    pub(crate) fn row(
        &self,
        bits: &mut Reader<'_>,
        means: &mut [i32; 3],
        picture: &mut Picture,
    ) -> Result<(), Unreadable> {
        for _ in 0..self.blank.units.0 {
            let from = picture.numbers.len();
            for (plane, first, others) in &self.blocks {
                let tables = (self.dc.get(*first), self.ac.get(*others), means.get_mut(*plane));
                let (Some(dc), Some(ac), Some(mean)) = tables else {
                    return Err(Unreadable::Broken);
                };
                block(bits, dc, ac, mean, &mut picture.numbers)?;
            }
            if bits.overrun() {
                return Err(Unreadable::Broken);
            }
            let unit = picture.numbers.get(from..).unwrap_or_default();
            picture.prints.push(unit.iter().copied().fold(1, fold));
            let end = u32::try_from(picture.numbers.len()).map_err(|_| Unreadable::Size)?;
            picture.starts.push(end);
        }
        Ok(())
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
