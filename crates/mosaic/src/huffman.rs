//! Huffman tables of JPEG (T.81, annex C): read from a picture, and the usual ones (annex K) that
//! everything is written with.

use std::sync::LazyLock;

use crate::{bits::Reader, picture::Unreadable};

const LOOK: u32 = 9;

/// What reading a code needs.
pub(crate) struct Decoder {
    /// By the next nine bits: the length of the code and its symbol; length 0 for a longer one.
    short: Box<[(u8, u8)]>,
    /// By length: the first code that is too large for it, as if it had sixteen bits.
    limits: [u32; 17],
    /// By length: what is added to a code to find its symbol.
    offsets: [i32; 17],
    symbols: Vec<u8>,
}

impl Decoder {
    /// A table from the number of codes of each length and the symbols in their order.
    pub(crate) fn new(counts: &[u8; 16], symbols: &[u8]) -> Result<Self, Unreadable> {
        let mut short = vec![(0, 0); 1 << LOOK].into_boxed_slice();
        let (mut limits, mut offsets) = ([0; 17], [0; 17]);
        let (mut code, mut at) = (0_u32, 0_usize);
        for (length, count) in (1_u32..).zip(counts) {
            let slot = usize::try_from(length).unwrap_or_default();
            let first =
                i32::try_from(at).unwrap_or_default() - i32::try_from(code).unwrap_or_default();
            if let Some(offset) = offsets.get_mut(slot) {
                *offset = first;
            }
            for _ in 0..*count {
                let symbol = *symbols.get(at).ok_or(Unreadable::Broken)?;
                if length <= LOOK {
                    let from = usize::try_from(code << (LOOK - length)).unwrap_or_default();
                    let entries = short.get_mut(from..from + (1 << (LOOK - length)));
                    let length = u8::try_from(length).unwrap_or_default();
                    entries.ok_or(Unreadable::Broken)?.fill((length, symbol));
                }
                code += 1;
                at += 1;
            }
            if code > 1 << length {
                return Err(Unreadable::Broken);
            }
            if let Some(limit) = limits.get_mut(slot) {
                *limit = code << (16 - length);
            }
            code <<= 1;
        }
        Ok(Self { short, limits, offsets, symbols: symbols.to_vec() })
    }

    #[inline]
    pub(crate) fn symbol(&self, bits: &mut Reader<'_>) -> Result<u8, Unreadable> {
        let next = bits.peek();
        let (length, symbol) =
            self.short.get(usize::from(next >> (16 - LOOK))).copied().unwrap_or_default();
        if length != 0 {
            bits.skip(u32::from(length));
            return Ok(symbol);
        }
        self.long(next, bits)
    }

    #[cold]
    fn long(&self, next: u16, bits: &mut Reader<'_>) -> Result<u8, Unreadable> {
        let wide = u32::from(next);
        let lengths = (0..=16).zip(self.limits.iter().zip(&self.offsets));
        let lengths = lengths.filter(|(length, _)| *length > LOOK);
        for (length, (limit, offset)) in lengths {
            if wide < *limit {
                bits.skip(length);
                let code = i32::from(next >> (16 - length));
                let at = usize::try_from(code + offset).map_err(|_| Unreadable::Broken)?;
                return self.symbols.get(at).copied().ok_or(Unreadable::Broken);
            }
        }
        Err(Unreadable::Broken)
    }
}

/// One of the usual tables.
pub(crate) struct Usual {
    pub(crate) counts: [u8; 16],
    pub(crate) symbols: &'static [u8],
    /// By symbol: code and length; length 0 where the table has none.
    codes: Box<[(u16, u32); 256]>,
}

impl Usual {
    fn new(counts: [u8; 16], symbols: &'static [u8]) -> Self {
        let mut codes = Box::new([(0, 0); 256]);
        let (mut code, mut left) = (0_u16, symbols.iter());
        for (length, count) in (1_u32..).zip(counts) {
            for symbol in left.by_ref().take(usize::from(count)) {
                if let Some(slot) = codes.get_mut(usize::from(*symbol)) {
                    *slot = (code, length);
                }
                code = code.wrapping_add(1);
            }
            code = code.wrapping_shl(1);
        }
        Self { counts, symbols, codes }
    }

    #[inline]
    pub(crate) fn code(&self, symbol: u8) -> (u16, u32) {
        self.codes.get(usize::from(symbol)).copied().unwrap_or_default()
    }
}

/// The four usual tables: of brightness and of colour, each for the first number of a block (DC)
/// and for the rest (AC).
pub(crate) struct Tables {
    pub(crate) dc: [Usual; 2],
    pub(crate) ac: [Usual; 2],
}

pub(crate) static USUAL: LazyLock<Tables> = LazyLock::new(|| Tables {
    dc: [
        Usual::new([0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0], DC_SYMBOLS),
        Usual::new([0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0], DC_SYMBOLS),
    ],
    ac: [
        Usual::new([0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 0x7d], AC_BRIGHTNESS),
        Usual::new([0, 2, 1, 2, 4, 4, 3, 4, 7, 5, 4, 4, 0, 1, 2, 0x77], AC_COLOUR),
    ],
});

/// T.81, tables K.3 and K.4.
const DC_SYMBOLS: &[u8] = &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];

/// T.81, table K.5.
#[rustfmt::skip]
const AC_BRIGHTNESS: &[u8] = &[
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
const AC_COLOUR: &[u8] = &[
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
