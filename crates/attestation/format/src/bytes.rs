//! A reader of untrusted bytes, from front to back.

/// The remaining bytes. Each read consumes the bytes that it returns. After a read that returns
/// `None` the caller must not continue.
#[derive(Clone, Copy)]
pub(crate) struct ByteReader<'a>(pub(crate) &'a [u8]);

impl<'a> ByteReader<'a> {
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u24(&mut self) -> Option<usize> {
        let [high, middle, low] = self.array()?;
        usize::try_from(u32::from_be_bytes([0, high, middle, low])).ok()
    }

    /// Reads a vector with a length of one, two or three bytes (RFC 8446, section 3.4).
    pub(crate) fn vector8(&mut self) -> Option<&'a [u8]> {
        let length = self.u8()?;
        self.take(length.into())
    }

    pub(crate) fn vector16(&mut self) -> Option<Self> {
        let length = self.u16()?;
        self.take(length.into()).map(Self)
    }

    pub(crate) fn vector24(&mut self) -> Option<Self> {
        let length = self.u24()?;
        self.take(length).map(Self)
    }
}
