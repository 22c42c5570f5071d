//! Encodes areas of an image as JPEGs of their own.

use crate::{
    bits::BitWriter,
    huffman::{STANDARD_TABLES, StandardTable},
    image::{Coefficient, JpegImage, McuArea, QuantTable},
};

/// The factor by which quantization tables are multiplied, in sixteenths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct QuantScale(u8);

impl QuantScale {
    /// The original quantization tables: the encoding is lossless.
    pub const UNCHANGED: Self = Self(16);

    /// Returns a scale; larger values are coarser, and values below 16 count as 16.
    #[must_use]
    pub const fn from_sixteenths(sixteenths: u8) -> Self {
        Self(if sixteenths < 16 { 16 } else { sixteenths })
    }

    /// Scales a quantization table. The DC coefficients are scaled by less, because steps between
    /// the means of blocks are the most visible artefact.
    fn apply(self, table: &QuantTable) -> QuantTable {
        let mut scaled = *table;
        for (index, value) in scaled.iter_mut().enumerate() {
            let factor =
                if index == 0 { u16::midpoint(u16::from(self.0), 16) } else { u16::from(self.0) };
            *value = u8::try_from(u16::from(*value) * factor / 16).unwrap_or(u8::MAX);
        }
        scaled
    }
}

impl JpegImage {
    /// Returns the header of an area that is encoded with this scale: everything before the
    /// entropy-coded data. The four bytes before the last [`JpegImage::bytes_after_size`] are the
    /// height and the width in pixels, big endian, both zero: the code that assembles a JPEG writes
    /// those of the area there.
    #[must_use]
    pub fn header(&self, scale: QuantScale) -> Vec<u8> {
        let mut header = vec![0xff, 0xd8];
        for (id, table) in (0_u8..).zip(&self.quant_tables) {
            header.extend([0xff, 0xdb, 0, 67, id]);
            header.extend(scale.apply(table));
        }
        for id in 0..u8::try_from(self.components.len().min(2)).unwrap_or_default() {
            let index = usize::from(id);
            for (class, tables) in [(0x00, &STANDARD_TABLES.dc), (0x10, &STANDARD_TABLES.ac)] {
                if let Some(table) = tables.get(index) {
                    define_huffman_table(&mut header, class | id, table);
                }
            }
        }
        let count = u8::try_from(self.components.len()).unwrap_or_default();
        header.extend([0xff, 0xda, 0, 6 + 2 * count, count]);
        for id in 1..=count {
            header.extend([id, if id == 1 { 0 } else { 0x11 }]);
        }
        header.extend([0, 63, 0]);
        let frame = self.frame_header();
        let scan = header.len() - (8 + 2 * usize::from(count));
        header.splice(scan..scan, frame);
        header
    }

    /// Returns the number of bytes of the [`JpegImage::header`] after the height and the width.
    #[must_use]
    pub fn bytes_after_size(&self) -> usize {
        let count = self.components.len();
        (1 + 3 * count) + (8 + 2 * count)
    }

    fn frame_header(&self) -> Vec<u8> {
        let count = u8::try_from(self.components.len()).unwrap_or_default();
        let mut frame = vec![0xff, 0xc0, 0, 8 + 3 * count, 8, 0, 0, 0, 0, count];
        for (id, component) in (1_u8..).zip(&self.components) {
            let sampling = component.h_sampling << 4 | component.v_sampling;
            frame.extend([id, sampling, component.quant_table]);
        }
        frame
    }

    /// Returns the entropy-coded data of an area, between [`JpegImage::header`] and the end marker.
    pub(crate) fn encode_mcus(&self, area: McuArea, scale: QuantScale) -> Vec<u8> {
        let tables = self.quant_tables.iter();
        let requantizers: Vec<_> =
            tables.map(|table| Requantizer::new(table, &scale.apply(table))).collect();
        let blocks: Vec<_> = (0_usize..)
            .zip(&self.components)
            .filter_map(|(index, component)| {
                let count = usize::from(component.h_sampling) * usize::from(component.v_sampling);
                let requantizer = requantizers.get(usize::from(component.quant_table))?;
                let (dc, ac) = (&STANDARD_TABLES.dc, &STANDARD_TABLES.ac);
                let tables = dc.get(index.min(1)).zip(ac.get(index.min(1)))?;
                Some(std::iter::repeat_n((index, requantizer, tables), count))
            })
            .flatten()
            .collect();
        let mut bits = BitWriter::default();
        let mut dc_predictors = [0_i16; 3];
        for y in area.y..area.bottom() {
            for x in area.x..area.right() {
                let mcu = self.mcu_coefficients(x, y).chunk_by(|_, next| next.index != 0);
                for (coefficients, (index, requantizer, (dc, ac))) in mcu.zip(&blocks) {
                    if let Some(predictor) = dc_predictors.get_mut(*index) {
                        write_block(&mut bits, coefficients, requantizer, dc, ac, predictor);
                    }
                }
            }
        }
        bits.finish()
    }

    /// Returns the area as a complete JPEG.
    #[must_use]
    pub fn crop(&self, area: McuArea, scale: QuantScale) -> Vec<u8> {
        let mut jpeg = self.header(scale);
        let size_offset = jpeg.len() - self.bytes_after_size() - 4;
        let (_, _, width, height) = self.pixels(area);
        let size = height.to_be_bytes().into_iter().chain(width.to_be_bytes());
        for (byte, value) in jpeg.iter_mut().skip(size_offset).zip(size) {
            *byte = value;
        }
        jpeg.extend(self.encode_mcus(area, scale));
        jpeg.extend([0xff, 0xd9]);
        jpeg
    }

    /// Returns the area in pixels: left, top, width, height.
    pub(crate) fn pixels(&self, area: McuArea) -> (u16, u16, u16, u16) {
        let (mcu_width, mcu_height) = self.mcu_size;
        let (left, top) = (area.x * mcu_width, area.y * mcu_height);
        let width = (area.width * mcu_width).min(self.width.saturating_sub(left));
        (left, top, width, (area.height * mcu_height).min(self.height.saturating_sub(top)))
    }
}

fn define_huffman_table(header: &mut Vec<u8>, destination: u8, table: &StandardTable) {
    let length = u16::try_from(19 + table.symbols.len()).unwrap_or_default();
    header.extend([0xff, 0xc4]);
    header.extend(length.to_be_bytes());
    header.push(destination);
    header.extend(table.counts);
    header.extend(table.symbols);
}

/// Converts coefficients from one quantization table to a coarser one.
struct Requantizer {
    /// By index: the old and the new quantizer step; `None` if the tables are equal.
    pairs: Option<Vec<(i32, i32)>>,
}

impl Requantizer {
    fn new(from: &QuantTable, to: &QuantTable) -> Self {
        let pairs = || from.iter().zip(to).map(|(f, t)| (i32::from(*f), i32::from(*t))).collect();
        Self { pairs: (from != to).then(pairs) }
    }

    #[inline]
    fn apply(&self, coefficient: Coefficient) -> i16 {
        let Some(pairs) = &self.pairs else { return coefficient.value };
        let (from, to) = pairs.get(usize::from(coefficient.index)).copied().unwrap_or((1, 1));
        let scaled = i32::from(coefficient.value) * from;
        let half = if scaled < 0 { -to / 2 } else { to / 2 };
        i16::try_from((scaled + half) / to).unwrap_or_default()
    }
}

/// Encodes one block (T.81, section F.1.2).
#[inline]
fn write_block(
    bits: &mut BitWriter,
    coefficients: &[Coefficient],
    requantizer: &Requantizer,
    dc: &StandardTable,
    ac: &StandardTable,
    predictor: &mut i16,
) {
    let Some((first, others)) = coefficients.split_first() else { return };
    let value = requantizer.apply(*first);
    let difference = value - *predictor;
    *predictor = value;
    let size = magnitude_bits(difference);
    write_coefficient(bits, dc.code(size), difference, u32::from(size));
    let mut last = 0;
    for coefficient in others {
        let value = requantizer.apply(*coefficient);
        if value == 0 {
            continue;
        }
        let mut run = coefficient.index - last - 1;
        while run > 15 {
            let (code, length) = ac.code(0xf0);
            bits.put(code, length);
            run -= 16;
        }
        let size = magnitude_bits(value);
        write_coefficient(bits, ac.code(run << 4 | size), value, u32::from(size));
        last = coefficient.index;
    }
    if last < 63 {
        let (code, length) = ac.code(0);
        bits.put(code, length);
    }
}

/// Returns the magnitude category of a coefficient: the number of its bits (T.81, table F.1).
#[inline]
fn magnitude_bits(value: i16) -> u8 {
    u8::try_from(16 - value.unsigned_abs().leading_zeros()).unwrap_or_default()
}

#[inline]
fn write_coefficient(bits: &mut BitWriter, (code, length): (u16, u32), value: i16, size: u32) {
    bits.put(code, length);
    let value = if value < 0 { value - 1 } else { value };
    bits.put(value.cast_unsigned() & ((1 << size) - 1), size);
}
