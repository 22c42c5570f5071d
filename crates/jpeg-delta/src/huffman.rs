//! Huffman tables of JPEG (T.81, annex C): those of an image for decoding, and the standard ones
//! (annex K) for encoding.

use std::sync::LazyLock;

use crate::{bits::BitReader, image::DecodeError};

/// Bits of the longest code in the lookup table.
const LOOKUP_BITS: u32 = 9;

/// The decoding tables for one Huffman table.
pub(crate) struct HuffmanDecoder {
    /// By the next nine bits: the length of the code and its symbol; length 0 for a longer code.
    lookup: Box<[(u8, u8)]>,
    /// By length: the first code that is too large for this length, shifted to sixteen bits.
    limits: [u32; 17],
    /// By length: the offset from a code to the index of its symbol.
    offsets: [i32; 17],
    symbols: Vec<u8>,
}

impl HuffmanDecoder {
    /// Builds a decoder from the number of codes of each length and the symbols in code order.
    pub(crate) fn new(counts: &[u8; 16], symbols: &[u8]) -> Result<Self, DecodeError> {
        let mut lookup = vec![(0, 0); 1 << LOOKUP_BITS].into_boxed_slice();
        let (mut limits, mut offsets) = ([0; 17], [0; 17]);
        let (mut code, mut index) = (0_u32, 0_usize);
        for (length, count) in (1_u32..).zip(counts) {
            let length_index = usize::try_from(length).unwrap_or_default();
            let difference =
                i32::try_from(index).unwrap_or_default() - i32::try_from(code).unwrap_or_default();
            if let Some(offset) = offsets.get_mut(length_index) {
                *offset = difference;
            }
            for _ in 0..*count {
                let symbol = *symbols.get(index).ok_or(DecodeError::Malformed)?;
                if length <= LOOKUP_BITS {
                    let from = usize::try_from(code << (LOOKUP_BITS - length)).unwrap_or_default();
                    let entries = lookup.get_mut(from..from + (1 << (LOOKUP_BITS - length)));
                    let length = u8::try_from(length).unwrap_or_default();
                    entries.ok_or(DecodeError::Malformed)?.fill((length, symbol));
                }
                code += 1;
                index += 1;
            }
            if code > 1 << length {
                return Err(DecodeError::Malformed);
            }
            if let Some(limit) = limits.get_mut(length_index) {
                *limit = code << (16 - length);
            }
            code <<= 1;
        }
        Ok(Self { lookup, limits, offsets, symbols: symbols.to_vec() })
    }

    /// Decodes the next symbol.
    #[inline]
    pub(crate) fn symbol(&self, bits: &mut BitReader<'_>) -> Result<u8, DecodeError> {
        let next = bits.peek();
        let (length, symbol) =
            self.lookup.get(usize::from(next >> (16 - LOOKUP_BITS))).copied().unwrap_or_default();
        if length != 0 {
            bits.skip(u32::from(length));
            return Ok(symbol);
        }
        self.decode_long(next, bits)
    }

    #[cold]
    fn decode_long(&self, next: u16, bits: &mut BitReader<'_>) -> Result<u8, DecodeError> {
        let code16 = u32::from(next);
        let lengths = (0..=16).zip(self.limits.iter().zip(&self.offsets));
        let lengths = lengths.filter(|(length, _)| *length > LOOKUP_BITS);
        for (length, (limit, offset)) in lengths {
            if code16 < *limit {
                bits.skip(length);
                let code = i32::from(next >> (16 - length));
                let index = usize::try_from(code + offset).map_err(|_| DecodeError::Malformed)?;
                return self.symbols.get(index).copied().ok_or(DecodeError::Malformed);
            }
        }
        Err(DecodeError::Malformed)
    }
}

/// One of the standard tables, for encoding.
pub(crate) struct StandardTable {
    pub(crate) counts: [u8; 16],
    pub(crate) symbols: &'static [u8],
    /// By symbol: its code and the length of it; length 0 for a symbol without a code.
    codes: Box<[(u16, u32); 256]>,
}

impl StandardTable {
    fn new(counts: [u8; 16], symbols: &'static [u8]) -> Self {
        let mut codes = Box::new([(0, 0); 256]);
        let (mut code, mut remaining) = (0_u16, symbols.iter());
        for (length, count) in (1_u32..).zip(counts) {
            for symbol in remaining.by_ref().take(usize::from(count)) {
                if let Some(entry) = codes.get_mut(usize::from(*symbol)) {
                    *entry = (code, length);
                }
                code = code.wrapping_add(1);
            }
            code = code.wrapping_shl(1);
        }
        Self { counts, symbols, codes }
    }

    /// Returns the code of a symbol and its length in bits.
    #[inline]
    pub(crate) fn code(&self, symbol: u8) -> (u16, u32) {
        self.codes.get(usize::from(symbol)).copied().unwrap_or_default()
    }
}

/// The four standard tables: DC and AC, each for luminance and for chrominance.
pub(crate) struct StandardTables {
    pub(crate) dc: [StandardTable; 2],
    pub(crate) ac: [StandardTable; 2],
}

pub(crate) static STANDARD_TABLES: LazyLock<StandardTables> = LazyLock::new(|| StandardTables {
    dc: [
        StandardTable::new([0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0], DC_SYMBOLS),
        StandardTable::new([0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0], DC_SYMBOLS),
    ],
    ac: [
        StandardTable::new([0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 0x7d], AC_LUMINANCE),
        StandardTable::new([0, 2, 1, 2, 4, 4, 3, 4, 7, 5, 4, 4, 0, 1, 2, 0x77], AC_CHROMINANCE),
    ],
});

/// T.81, tables K.3 and K.4.
const DC_SYMBOLS: &[u8] = &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];

/// T.81, table K.5.
#[rustfmt::skip]
const AC_LUMINANCE: &[u8] = &[
    0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51, 0x61, 0x07,
    0x22, 0x71, 0x14, 0x32, 0x81, 0x91, 0xa1, 0x08, 0x23, 0x42, 0xb1, 0xc1, 0x15, 0x52, 0xd1, 0xf0,
    0x24, 0x33, 0x62, 0x72, 0x82, 0x09, 0x0a, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x25, 0x26, 0x27, 0x28,
    0x29, 0x2a, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49,
    0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69,
    0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89,
    0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7,
    0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3, 0xc4, 0xc5,
    0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe1, 0xe2,
    0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8,
    0xf9, 0xfa,
];

/// T.81, table K.6.
#[rustfmt::skip]
const AC_CHROMINANCE: &[u8] = &[
    0x00, 0x01, 0x02, 0x03, 0x11, 0x04, 0x05, 0x21, 0x31, 0x06, 0x12, 0x41, 0x51, 0x07, 0x61, 0x71,
    0x13, 0x22, 0x32, 0x81, 0x08, 0x14, 0x42, 0x91, 0xa1, 0xb1, 0xc1, 0x09, 0x23, 0x33, 0x52, 0xf0,
    0x15, 0x62, 0x72, 0xd1, 0x0a, 0x16, 0x24, 0x34, 0xe1, 0x25, 0xf1, 0x17, 0x18, 0x19, 0x1a, 0x26,
    0x27, 0x28, 0x29, 0x2a, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48,
    0x49, 0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68,
    0x69, 0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87,
    0x88, 0x89, 0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3, 0xa4, 0xa5,
    0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3,
    0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda,
    0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8,
    0xf9, 0xfa,
];
