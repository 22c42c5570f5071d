//! Decodes the scan of an image, one row of MCUs at a time (T.81, section A.2).

use crate::{
    bits::{BitReader, Position},
    header::{FrameHeader, HeaderTables},
    huffman::HuffmanDecoder,
    image::{Coefficient, Component, DecodeError, JpegImage, QuantTable},
};

/// Bounds of the quantized DC coefficient, of the magnitude category of an AC coefficient, and of
/// that of a DC difference (T.81, section F.1.2).
const MAX_DC: i32 = 1023;
const MAX_AC_BITS: u8 = 10;
const MAX_DC_DIFFERENCE_BITS: u8 = 11;

/// The parameters of a scan, and the image without its coefficients.
pub(crate) struct Scan {
    pub(crate) empty_image: JpegImage,
    /// By block of an MCU: the component, and the indexes of its DC and AC table.
    blocks: Vec<(usize, usize, usize)>,
    dc: Vec<HuffmanDecoder>,
    ac: Vec<HuffmanDecoder>,
}

/// The state of the decoder at the start of a row of MCUs: all that decoding the row depends on
/// besides the bits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowState {
    pub(crate) position: Position,
    /// By component: the DC coefficient of the previous block, to which the next one is coded as a
    /// difference.
    pub(crate) dc_predictors: [i32; 3],
}

impl Scan {
    pub(crate) fn new(
        mut tables: HeaderTables,
        frame: &FrameHeader,
        components: Vec<(Component, u8, u8)>,
        quant_tables: Vec<QuantTable>,
    ) -> Result<Self, DecodeError> {
        let (mut blocks, mut dc, mut ac) = (vec![], vec![], vec![]);
        let (mut dc_indexes, mut ac_indexes) = ([None; 4], [None; 4]);
        for (component, (parameters, dc_table, ac_table)) in components.iter().enumerate() {
            let dc_index = take_table(&mut tables.dc, &mut dc_indexes, *dc_table, &mut dc)?;
            let ac_index = take_table(&mut tables.ac, &mut ac_indexes, *ac_table, &mut ac)?;
            let count = usize::from(parameters.h_sampling) * usize::from(parameters.v_sampling);
            blocks.extend(std::iter::repeat_n((component, dc_index, ac_index), count));
        }
        let components: Vec<_> = components.into_iter().map(|(component, ..)| component).collect();
        let largest = |of: fn(&Component) -> u8| components.iter().map(of).max().unwrap_or(1);
        let mcu_size =
            (8 * u16::from(largest(|c| c.h_sampling)), 8 * u16::from(largest(|c| c.v_sampling)));
        let mcu_grid = (frame.width.div_ceil(mcu_size.0), frame.height.div_ceil(mcu_size.1));
        let empty_image = JpegImage {
            width: frame.width,
            height: frame.height,
            components,
            quant_tables,
            mcu_size,
            mcu_grid,
            coefficients: vec![],
            mcu_offsets: vec![],
            mcu_hashes: vec![],
        };
        Ok(Self { empty_image, blocks, dc, ac })
    }

    /// Decodes the next row of MCUs and appends it to the image.
    pub(crate) fn decode_row(
        &self,
        bits: &mut BitReader<'_>,
        dc_predictors: &mut [i32; 3],
        image: &mut JpegImage,
    ) -> Result<(), DecodeError> {
        for _ in 0..self.empty_image.mcu_grid.0 {
            let from = image.coefficients.len();
            for (component, dc_index, ac_index) in &self.blocks {
                let predictor = dc_predictors.get_mut(*component);
                let tables = (self.dc.get(*dc_index), self.ac.get(*ac_index), predictor);
                let (Some(dc), Some(ac), Some(predictor)) = tables else {
                    return Err(DecodeError::Malformed);
                };
                decode_block(bits, dc, ac, predictor, &mut image.coefficients)?;
            }
            if bits.has_overrun() {
                return Err(DecodeError::Malformed);
            }
            let mcu = image.coefficients.get(from..).unwrap_or_default();
            image.mcu_hashes.push(mcu.iter().copied().fold(1, hash_coefficient));
            let end = u32::try_from(image.coefficients.len()).map_err(|_| DecodeError::Size)?;
            image.mcu_offsets.push(end);
        }
        Ok(())
    }
}

/// Moves a table from the header into the scan, once for all components that use it, and returns
/// its index there.
fn take_table(
    tables: &mut [Option<HuffmanDecoder>; 4],
    indexes: &mut [Option<usize>; 4],
    selector: u8,
    scan_tables: &mut Vec<HuffmanDecoder>,
) -> Result<usize, DecodeError> {
    let index = indexes.get_mut(usize::from(selector)).ok_or(DecodeError::Malformed)?;
    if let Some(index) = index {
        return Ok(*index);
    }
    let table = tables.get_mut(usize::from(selector)).and_then(Option::take);
    scan_tables.push(table.ok_or(DecodeError::Malformed)?);
    Ok(*index.insert(scan_tables.len() - 1))
}

/// Decodes one block (T.81, section F.2.2).
#[inline]
fn decode_block(
    bits: &mut BitReader<'_>,
    dc: &HuffmanDecoder,
    ac: &HuffmanDecoder,
    predictor: &mut i32,
    coefficients: &mut Vec<Coefficient>,
) -> Result<(), DecodeError> {
    let size = dc.symbol(bits)?;
    if size > MAX_DC_DIFFERENCE_BITS {
        return Err(DecodeError::Malformed);
    }
    *predictor += i32::from(bits.signed(u32::from(size)));
    if !(-MAX_DC - 1..=MAX_DC).contains(predictor) {
        return Err(DecodeError::Malformed);
    }
    let value = i16::try_from(*predictor).map_err(|_| DecodeError::Malformed)?;
    coefficients.push(Coefficient { value, index: 0 });
    let mut index = 0;
    while index < 63 {
        let symbol = ac.symbol(bits)?;
        let (run, size) = (symbol >> 4, symbol & 15);
        match (run, size) {
            (15, 0) => {
                index += 16;
                continue;
            }
            (0, 0) => break,
            _ if size == 0 || size > MAX_AC_BITS => return Err(DecodeError::Malformed),
            _ => index += run + 1,
        }
        if index > 63 {
            return Err(DecodeError::Malformed);
        }
        coefficients.push(Coefficient { value: bits.signed(u32::from(size)), index });
    }
    Ok(())
}

/// Adds a coefficient to the hash of an MCU.
#[inline]
pub(crate) fn hash_coefficient(hash: u64, coefficient: Coefficient) -> u64 {
    let bits = u64::from(coefficient.index) << 16 | u64::from(coefficient.value.cast_unsigned());
    let mixed = (hash ^ bits).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}
