//! Writes units of a picture as a JPEG of their own.

use crate::{
    bits::Writer,
    huffman::{USUAL, Usual},
    picture::{Area, Divisors, Number, Picture},
};

/// How finely numbers are written, as what the divisors are multiplied with, in sixteenths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fineness(u8);

impl Fineness {
    /// As the picture is: nothing is lost.
    pub const FULL: Self = Self(16);

    /// Coarser the larger it is; below 16 is as 16.
    #[must_use]
    pub const fn coarser(sixteenths: u8) -> Self {
        Self(if sixteenths < 16 { 16 } else { sixteenths })
    }

    /// The means of blocks are kept finer: steps between them are what the eye sees first.
    fn apply(self, divisors: &Divisors) -> Divisors {
        let mut coarse = *divisors;
        for (place, divisor) in coarse.iter_mut().enumerate() {
            let times =
                if place == 0 { u16::midpoint(u16::from(self.0), 16) } else { u16::from(self.0) };
            *divisor = u8::try_from(u16::from(*divisor) * times / 16).unwrap_or(u8::MAX);
        }
        coarse
    }
}

impl Picture {
    /// All that stands before the numbers of an area written with this fineness. The last bytes
    /// but [`Picture::behind_size`] are the height and the width in pixels, big endian, both zero:
    /// whoever puts a picture together writes those of the area there.
    #[must_use]
    pub fn head(&self, fineness: Fineness) -> Vec<u8> {
        let mut head = vec![0xff, 0xd8];
        for (name, divisors) in (0_u8..).zip(&self.divisors) {
            head.extend([0xff, 0xdb, 0, 67, name]);
            head.extend(fineness.apply(divisors));
        }
        for name in 0..u8::try_from(self.planes.len().min(2)).unwrap_or_default() {
            let at = usize::from(name);
            for (class, tables) in [(0x00, &USUAL.dc), (0x10, &USUAL.ac)] {
                if let Some(table) = tables.get(at) {
                    define(&mut head, class | name, table);
                }
            }
        }
        let count = u8::try_from(self.planes.len()).unwrap_or_default();
        head.extend([0xff, 0xda, 0, 6 + 2 * count, count]);
        for name in 1..=count {
            head.extend([name, if name == 1 { 0 } else { 0x11 }]);
        }
        head.extend([0, 63, 0]);
        let frame = self.frame();
        let scan = head.len() - (8 + 2 * usize::from(count));
        head.splice(scan..scan, frame);
        head
    }

    /// How many bytes of the [`Picture::head`] follow the size in it.
    #[must_use]
    pub fn behind_size(&self) -> usize {
        let count = self.planes.len();
        (1 + 3 * count) + (8 + 2 * count)
    }

    fn frame(&self) -> Vec<u8> {
        let count = u8::try_from(self.planes.len()).unwrap_or_default();
        let mut frame = vec![0xff, 0xc0, 0, 8 + 3 * count, 8, 0, 0, 0, 0, count];
        for (name, plane) in (1_u8..).zip(&self.planes) {
            frame.extend([name, plane.across << 4 | plane.down, plane.divisor]);
        }
        frame
    }

    /// The numbers of an area, to stand between [`Picture::head`] and the end marker.
    pub(crate) fn numbers_of(&self, area: Area, fineness: Fineness) -> Vec<u8> {
        let ratios: Vec<_> =
            self.divisors.iter().map(|own| Ratios::new(own, &fineness.apply(own))).collect();
        let blocks: Vec<_> = (0_usize..)
            .zip(&self.planes)
            .filter_map(|(at, plane)| {
                let count = usize::from(plane.across) * usize::from(plane.down);
                let ratios = ratios.get(usize::from(plane.divisor))?;
                let tables = USUAL.dc.get(at.min(1)).zip(USUAL.ac.get(at.min(1)))?;
                Some(std::iter::repeat_n((at, ratios, tables), count))
            })
            .flatten()
            .collect();
        let mut bits = Writer::default();
        let mut means = [0_i16; 3];
        for y in area.y..area.bottom() {
            for x in area.x..area.right() {
                let unit = self.unit_at(x, y).chunk_by(|_, next| next.place != 0);
                for (numbers, (at, ratios, (dc, ac))) in unit.zip(&blocks) {
                    if let Some(mean) = means.get_mut(*at) {
                        write_block(&mut bits, numbers, ratios, dc, ac, mean);
                    }
                }
            }
        }
        bits.finish()
    }

    /// The area as a JPEG that stands alone.
    #[must_use]
    pub fn cut(&self, area: Area, fineness: Fineness) -> Vec<u8> {
        let mut jpeg = self.head(fineness);
        let at = jpeg.len() - self.behind_size() - 4;
        let (_, _, width, height) = self.pixels(area);
        let size = height.to_be_bytes().into_iter().chain(width.to_be_bytes());
        for (byte, value) in jpeg.iter_mut().skip(at).zip(size) {
            *byte = value;
        }
        jpeg.extend(self.numbers_of(area, fineness));
        jpeg.extend([0xff, 0xd9]);
        jpeg
    }

    /// Where an area is in pixels: left, top, width, height.
    pub(crate) fn pixels(&self, area: Area) -> (u16, u16, u16, u16) {
        let (across, down) = self.unit;
        let (left, top) = (area.x * across, area.y * down);
        let width = (area.width * across).min(self.width.saturating_sub(left));
        (left, top, width, (area.height * down).min(self.height.saturating_sub(top)))
    }
}

fn define(head: &mut Vec<u8>, name: u8, table: &Usual) {
    let length = u16::try_from(19 + table.symbols.len()).unwrap_or_default();
    head.extend([0xff, 0xc4]);
    head.extend(length.to_be_bytes());
    head.push(name);
    head.extend(table.counts);
    head.extend(table.symbols);
}

/// Brings numbers from one set of divisors to a coarser one.
struct Ratios {
    pairs: Option<Vec<(i32, i32)>>,
}

impl Ratios {
    fn new(from: &Divisors, to: &Divisors) -> Self {
        let pairs = || from.iter().zip(to).map(|(f, t)| (i32::from(*f), i32::from(*t))).collect();
        Self { pairs: (from != to).then(pairs) }
    }

    #[inline]
    fn apply(&self, number: Number) -> i16 {
        let Some(pairs) = &self.pairs else { return number.value };
        let (from, to) = pairs.get(usize::from(number.place)).copied().unwrap_or((1, 1));
        let scaled = i32::from(number.value) * from;
        let half = if scaled < 0 { -to / 2 } else { to / 2 };
        i16::try_from((scaled + half) / to).unwrap_or_default()
    }
}

/// One block (T.81, section F.1.2).
#[inline]
fn write_block(
    bits: &mut Writer,
    numbers: &[Number],
    ratios: &Ratios,
    dc: &Usual,
    ac: &Usual,
    mean: &mut i16,
) {
    let Some((first, others)) = numbers.split_first() else { return };
    let value = ratios.apply(*first);
    let step = value - *mean;
    *mean = value;
    let size = size_of(step);
    put(bits, dc.code(size), step, u32::from(size));
    let mut last = 0;
    for number in others {
        let value = ratios.apply(*number);
        if value == 0 {
            continue;
        }
        let mut zeros = number.place - last - 1;
        while zeros > 15 {
            let (code, length) = ac.code(0xf0);
            bits.put(code, length);
            zeros -= 16;
        }
        let size = size_of(value);
        put(bits, ac.code(zeros << 4 | size), value, u32::from(size));
        last = number.place;
    }
    if last < 63 {
        let (code, length) = ac.code(0);
        bits.put(code, length);
    }
}

/// How many bits a number is written with.
#[inline]
fn size_of(value: i16) -> u8 {
    u8::try_from(16 - value.unsigned_abs().leading_zeros()).unwrap_or_default()
}

#[inline]
fn put(bits: &mut Writer, (code, length): (u16, u32), value: i16, size: u32) {
    bits.put(code, length);
    let value = if value < 0 { value - 1 } else { value };
    bits.put(value.cast_unsigned() & ((1 << size) - 1), size);
}
