//! Bits in the entropy-coded part of a JPEG: most significant first, `0xFF` followed by a zero
//! (T.81, section B.1.1.5).

/// Reads bits; past the end it reads zeros, and says so.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    /// The next bits; what follows the counted ones is either what comes next or zero.
    held: u64,
    count: u32,
    /// Bits that were ever held.
    filled: u64,
    /// Bits given out that were not there.
    beyond: u32,
}

/// A place among the bits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    /// Bytes that were looked at before it.
    pub(crate) bytes: usize,
    /// Bits that were taken before it.
    pub(crate) bits: u64,
    held: u64,
    count: u32,
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(rest: &'a [u8]) -> Self {
        Self { rest, held: 0, count: 0, filled: 0, beyond: 0 }
    }

    /// A reader that goes on from a mark among the same bytes, up to the mark at least.
    pub(crate) fn at(all: &'a [u8], mark: &Mark) -> Self {
        let rest = all.get(mark.bytes..).unwrap_or_default();
        let filled = mark.bits + u64::from(mark.count);
        Self { rest, held: mark.held, count: mark.count, filled, beyond: 0 }
    }

    /// Where it stands among all bytes that it began with.
    pub(crate) fn mark(&self, all: &[u8]) -> Mark {
        Mark {
            bytes: all.len() - self.rest.len(),
            bits: self.filled - u64::from(self.count),
            held: self.held & !u64::MAX.checked_shr(self.count).unwrap_or(0),
            count: self.count,
        }
    }

    /// Whether more was read than there was.
    pub(crate) const fn overrun(&self) -> bool {
        self.beyond > 0
    }

    /// Takes so many bits of both; whether all were there and the same.
    pub(crate) fn same(&mut self, other: &mut Reader<'a>, mut bits: u64) -> bool {
        while bits > 0 {
            let step = u32::try_from(bits.min(48)).unwrap_or_default();
            for reader in [&mut *self, &mut *other] {
                if reader.count < step {
                    reader.fill();
                }
            }
            if self.count < step
                || other.count < step
                || (self.held ^ other.held) >> (64 - step) != 0
            {
                return false;
            }
            self.skip(step);
            other.skip(step);
            bits -= u64::from(step);
        }
        true
    }

    /// The next sixteen bits, without taking them.
    #[inline]
    pub(crate) fn peek(&mut self) -> u16 {
        if self.count < 16 {
            self.fill();
        }
        // The upper bits of what is held, of which there are at least sixteen now.
        u16::try_from(self.held >> 48).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn skip(&mut self, bits: u32) {
        self.held <<= bits;
        self.beyond = self.beyond.saturating_add(bits.saturating_sub(self.count));
        self.count = self.count.saturating_sub(bits);
    }

    /// A number of so many bits in the form of T.81, section F.1.2.1: the lower half of the range
    /// is negative.
    #[inline]
    pub(crate) fn signed(&mut self, bits: u32) -> i16 {
        if bits == 0 {
            return 0;
        }
        let number = i32::from(self.peek() >> (16 - bits));
        self.skip(bits);
        let number = if number < 1 << (bits - 1) { number + 1 - (1 << bits) } else { number };
        i16::try_from(number).unwrap_or_default()
    }

    #[inline]
    fn fill(&mut self) {
        if let Some(next) = self.rest.first_chunk() {
            let next = u64::from_be_bytes(*next);
            if !has_ff(next) {
                self.held |= next >> self.count;
                let bytes = (64 - self.count) / 8;
                let taken = usize::try_from(bytes).unwrap_or_default();
                self.rest = self.rest.get(taken..).unwrap_or_default();
                self.count += 8 * bytes;
                self.filled += 8 * u64::from(bytes);
                return;
            }
        }
        self.fill_slowly();
    }

    fn fill_slowly(&mut self) {
        while self.count <= 56 {
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
            self.held |= u64::from(byte) << (56 - self.count);
            self.count += 8;
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

/// Writes bits.
#[derive(Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
    held: u64,
    count: u32,
}

impl Writer {
    #[inline]
    pub(crate) fn put(&mut self, bits: u16, length: u32) {
        self.held = self.held << length | u64::from(bits);
        self.count += length;
        while self.count >= 8 {
            self.count -= 8;
            let byte = u8::try_from(self.held >> self.count & 0xff).unwrap_or_default();
            self.bytes.push(byte);
            if byte == 0xff {
                self.bytes.push(0);
            }
        }
    }

    /// Fills the last byte up with ones (T.81, section F.1.2.3).
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let missing = (8 - self.count % 8) % 8;
        self.put((1 << missing) - 1, missing);
        self.bytes
    }
}
