//! Parses the header of a baseline JPEG: the marker segments before the entropy-coded data (T.81,
//! annex B).

use crate::{
    MAX_SIDE_PIXELS,
    huffman::HuffmanDecoder,
    image::{Component, DecodeError, QuantTable},
    scan::Scan,
};

/// Marker segments read before the scan; encoders write about ten.
const MAX_SEGMENTS: usize = 64;

/// Parses the header, and returns the scan's parameters and the length of the header in bytes.
pub(crate) fn read_header(jpeg: &[u8]) -> Result<(Scan, usize), DecodeError> {
    let mut rest = jpeg.strip_prefix(&[0xff, 0xd8]).ok_or(DecodeError::Malformed)?;
    let mut tables = HeaderTables::default();
    for _ in 0..MAX_SEGMENTS {
        let [0xff, marker, high, low, after @ ..] = rest else {
            return Err(DecodeError::Malformed);
        };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let length = length.checked_sub(2).ok_or(DecodeError::Malformed)?;
        let (segment, after) = after.split_at_checked(length).ok_or(DecodeError::Malformed)?;
        rest = after;
        match marker {
            0xda => return Ok((tables.read_scan_header(segment)?, jpeg.len() - after.len())),
            0xdb => tables.define_quant_tables(segment)?,
            0xc0 => tables.read_frame_header(segment)?,
            0xc4 => tables.define_huffman_tables(segment)?,
            0xdd if segment != [0, 0] => return Err(DecodeError::Unsupported),
            // Other coding processes are unsupported; application data and comments do not affect
            // the decoding (T.81, table B.1).
            0xc1..=0xcf => return Err(DecodeError::Unsupported),
            0xdd | 0xe0..=0xef | 0xfe => (),
            _ => return Err(DecodeError::Malformed),
        }
    }
    Err(DecodeError::Malformed)
}

#[derive(Default)]
pub(crate) struct HeaderTables {
    quant_tables: [Option<QuantTable>; 4],
    pub(crate) dc: [Option<HuffmanDecoder>; 4],
    pub(crate) ac: [Option<HuffmanDecoder>; 4],
    frame: Option<FrameHeader>,
}

pub(crate) struct FrameHeader {
    pub(crate) width: u16,
    pub(crate) height: u16,
    /// Each component with its identifier.
    components: Vec<(u8, Component)>,
}

impl HeaderTables {
    fn define_quant_tables(&mut self, mut segment: &[u8]) -> Result<(), DecodeError> {
        while let [destination, rest @ ..] = segment {
            let (table, rest) = rest.split_at_checked(64).ok_or(DecodeError::Malformed)?;
            let table = <[u8; 64]>::try_from(table).map_err(|_| DecodeError::Malformed)?;
            if destination >> 4 != 0 {
                return Err(DecodeError::Unsupported);
            }
            if table.contains(&0) {
                return Err(DecodeError::Malformed);
            }
            *self
                .quant_tables
                .get_mut(usize::from(*destination))
                .ok_or(DecodeError::Malformed)? = Some(table);
            segment = rest;
        }
        Ok(())
    }

    fn define_huffman_tables(&mut self, mut segment: &[u8]) -> Result<(), DecodeError> {
        while let [destination, rest @ ..] = segment {
            let (counts, rest) = rest.split_at_checked(16).ok_or(DecodeError::Malformed)?;
            let counts = <[u8; 16]>::try_from(counts).map_err(|_| DecodeError::Malformed)?;
            let total = counts.iter().map(|count| usize::from(*count)).sum();
            let (symbols, rest) = rest.split_at_checked(total).ok_or(DecodeError::Malformed)?;
            let index = usize::from(destination & 15);
            let table = match destination >> 4 {
                0 => self.dc.get_mut(index),
                1 => self.ac.get_mut(index),
                _ => None,
            };
            *table.ok_or(DecodeError::Malformed)? = Some(HuffmanDecoder::new(&counts, symbols)?);
            segment = rest;
        }
        Ok(())
    }

    fn read_frame_header(&mut self, segment: &[u8]) -> Result<(), DecodeError> {
        let [precision, h1, h0, w1, w0, count, components @ ..] = segment else {
            return Err(DecodeError::Malformed);
        };
        if self.frame.is_some() || components.len() != 3 * usize::from(*count) {
            return Err(DecodeError::Malformed);
        }
        if *precision != 8 || !matches!(count, 1 | 3) {
            return Err(DecodeError::Unsupported);
        }
        let (width, height) = (u16::from_be_bytes([*w1, *w0]), u16::from_be_bytes([*h1, *h0]));
        if [width, height].iter().any(|side| !(1..=MAX_SIDE_PIXELS).contains(side)) {
            return Err(DecodeError::Size);
        }
        let single = *count == 1;
        let components = components.chunks_exact(3).map(|component| {
            let [id, factors, quant_table] = *component else { return Err(DecodeError::Malformed) };
            // A single component is coded block by block, for any sampling factors (T.81, A.2.2).
            let (h_sampling, v_sampling) =
                if single { (1, 1) } else { (factors >> 4, factors & 15) };
            if !matches!(h_sampling, 1 | 2) || !matches!(v_sampling, 1 | 2) {
                return Err(DecodeError::Unsupported);
            }
            Ok((id, Component { h_sampling, v_sampling, quant_table }))
        });
        let components = components.collect::<Result<Vec<_>, _>>()?;
        self.frame = Some(FrameHeader { width, height, components });
        Ok(())
    }

    fn read_scan_header(mut self, segment: &[u8]) -> Result<Scan, DecodeError> {
        let frame = self.frame.take().ok_or(DecodeError::Malformed)?;
        let [count, rest @ ..] = segment else { return Err(DecodeError::Malformed) };
        let (selectors, parameters) =
            rest.split_at_checked(2 * usize::from(*count)).ok_or(DecodeError::Malformed)?;
        if usize::from(*count) != frame.components.len() || parameters != [0, 63, 0] {
            return Err(DecodeError::Unsupported);
        }
        let mut components = vec![];
        let mut quant_tables = vec![];
        for ((id, component), selector) in frame.components.iter().zip(selectors.chunks_exact(2)) {
            let [selected, tables] = *selector else { return Err(DecodeError::Malformed) };
            let table = self.quant_tables.get(usize::from(component.quant_table));
            let table = table.copied().flatten().ok_or(DecodeError::Malformed)?;
            if selected != *id {
                return Err(DecodeError::Unsupported);
            }
            let quant_table =
                quant_tables.iter().position(|known| *known == table).unwrap_or_else(|| {
                    quant_tables.push(table);
                    quant_tables.len() - 1
                });
            let quant_table = u8::try_from(quant_table).map_err(|_| DecodeError::Malformed)?;
            components.push((Component { quant_table, ..*component }, tables >> 4, tables & 15));
        }
        Scan::new(self, &frame, components, quant_tables)
    }
}
