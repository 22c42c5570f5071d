//! Bits of the entropy-coded data of a JPEG: most significant first, with a zero byte stuffed after
//! each `0xFF` (T.81, section B.1.1.5).

/// Reads bits. Past the end it reads zeros and reports an overrun.
#[derive(Clone, Copy)]
pub(crate) struct BitReader<'a> {
    rest: &'a [u8],
    /// The next bits. Those after the first `buffered` ones either are the following bits of the
    /// data or zero.
    buffer: u64,
    buffered: u32,
    /// Bits that have been loaded into the buffer in total.
    filled: u64,
    /// Bits consumed past the end of the data.
    overrun_bits: u32,
}

/// A position in the data, from which a reader can continue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Position {
    /// Bytes that were loaded before this position.
    pub(crate) bytes: usize,
    /// Bits that were consumed before this position.
    pub(crate) bits: u64,
    buffer: u64,
    buffered: u32,
}

impl<'a> BitReader<'a> {
    pub(crate) const fn new(rest: &'a [u8]) -> Self {
        Self { rest, buffer: 0, buffered: 0, filled: 0, overrun_bits: 0 }
    }

    /// Returns a reader that continues from a position of a reader over the same bytes; they need to
    /// be the same up to the position only.
    pub(crate) fn at(all: &'a [u8], position: &Position) -> Self {
        let rest = all.get(position.bytes..).unwrap_or_default();
        let filled = position.bits + u64::from(position.buffered);
        let (buffer, buffered) = (position.buffer, position.buffered);
        Self { rest, buffer, buffered, filled, overrun_bits: 0 }
    }

    /// Returns the current position in `all`, the bytes that the reader was created with.
    pub(crate) fn position(&self, all: &[u8]) -> Position {
        Position {
            bytes: all.len() - self.rest.len(),
            bits: self.filled - u64::from(self.buffered),
            buffer: self.buffer & !u64::MAX.checked_shr(self.buffered).unwrap_or(0),
            buffered: self.buffered,
        }
    }

    /// Whether bits past the end of the data were consumed.
    pub(crate) const fn has_overrun(&self) -> bool {
        self.overrun_bits > 0
    }

    /// Consumes this many bits of both readers, and returns whether all exist and are equal.
    pub(crate) fn matches(&mut self, other: &mut BitReader<'a>, mut bits: u64) -> bool {
        while bits > 0 {
            let step = u32::try_from(bits.min(48)).unwrap_or_default();
            for reader in [&mut *self, &mut *other] {
                if reader.buffered < step {
                    reader.fill();
                }
            }
            if self.buffered < step
                || other.buffered < step
                || (self.buffer ^ other.buffer) >> (64 - step) != 0
            {
                return false;
            }
            self.skip(step);
            other.skip(step);
            bits -= u64::from(step);
        }
        true
    }

    /// Returns the next sixteen bits without consuming them.
    #[inline]
    pub(crate) fn peek(&mut self) -> u16 {
        if self.buffered < 16 {
            self.fill();
        }
        // Of the buffer's upper bits, at least sixteen are valid now.
        u16::try_from(self.buffer >> 48).unwrap_or_default()
    }

    /// Consumes this many bits.
    #[inline]
    pub(crate) fn skip(&mut self, bits: u32) {
        self.buffer <<= bits;
        self.overrun_bits = self.overrun_bits.saturating_add(bits.saturating_sub(self.buffered));
        self.buffered = self.buffered.saturating_sub(bits);
    }

    /// Reads a signed value of this many bits in the form of T.81, section F.1.2.1: the lower half of
    /// the range is negative.
    #[inline]
    pub(crate) fn signed(&mut self, bits: u32) -> i16 {
        if bits == 0 {
            return 0;
        }
        let value = i32::from(self.peek() >> (16 - bits));
        self.skip(bits);
        let value = if value < 1 << (bits - 1) { value + 1 - (1 << bits) } else { value };
        i16::try_from(value).unwrap_or_default()
    }

    #[inline]
    fn fill(&mut self) {
        if let Some(next) = self.rest.first_chunk() {
            let next = u64::from_be_bytes(*next);
            if !has_ff(next) {
                self.buffer |= next >> self.buffered;
                let bytes = (64 - self.buffered) / 8;
                let loaded = usize::try_from(bytes).unwrap_or_default();
                self.rest = self.rest.get(loaded..).unwrap_or_default();
                self.buffered += 8 * bytes;
                self.filled += 8 * u64::from(bytes);
                return;
            }
        }
        self.fill_bytewise();
    }

    fn fill_bytewise(&mut self) {
        while self.buffered <= 56 {
            let byte = match *self.rest {
                [0xff, 0, ref rest @ ..] => {
                    self.rest = rest;
                    0xff
                }
                // A marker ends the scan.
                [0xff, ..] | [] => return,
                [byte, ref rest @ ..] => {
                    self.rest = rest;
                    byte
                }
            };
            self.buffer |= u64::from(byte) << (56 - self.buffered);
            self.buffered += 8;
            self.filled += 8;
        }
    }
}

/// Whether one of the eight bytes is `0xFF`.
const fn has_ff(bytes: u64) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let inverse = !bytes;
    inverse.wrapping_sub(ONES) & bytes & (ONES << 7) != 0
}

/// Writes bits, with byte stuffing.
#[derive(Default)]
pub(crate) struct BitWriter {
    bytes: Vec<u8>,
    buffer: u64,
    buffered: u32,
}

impl BitWriter {
    /// Appends the lowest `length` bits.
    #[inline]
    pub(crate) fn put(&mut self, bits: u16, length: u32) {
        self.buffer = self.buffer << length | u64::from(bits);
        self.buffered += length;
        while self.buffered >= 8 {
            self.buffered -= 8;
            let byte = u8::try_from(self.buffer >> self.buffered & 0xff).unwrap_or_default();
            self.bytes.push(byte);
            if byte == 0xff {
                self.bytes.push(0);
            }
        }
    }

    /// Pads the last byte with ones and returns the bytes (T.81, section F.1.2.3).
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let padding = (8 - self.buffered % 8) % 8;
        self.put((1 << padding) - 1, padding);
        self.bytes
    }
}
