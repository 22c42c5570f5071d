//! Bits in the entropy-coded part of a JPEG: most significant first, `0xFF` followed by a zero
//! (T.81, section B.1.1.5).

/// Reads bits; past the end it reads zeros, and says so.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    held: u64,
    count: u32,
    /// Bits given out that were not there.
    beyond: u32,
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(rest: &'a [u8]) -> Self {
        Self { rest, held: 0, count: 0, beyond: 0 }
    }

    /// Whether more was read than there was.
    pub(crate) const fn overrun(&self) -> bool {
        self.beyond > 0
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

    fn fill(&mut self) {
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
        }
    }
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
