//! A JPEG image as its quantized DCT coefficients.

use crate::{MAX_SIDE_PIXELS, incremental::IncrementalDecoder};

/// The reason why an image cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("the bytes are not a JPEG, or a malformed one")]
    Malformed,
    /// Progressive or arithmetic coding, more than 8 bits per sample, restart intervals, several
    /// scans, or four components.
    #[error("the JPEG uses an unsupported coding")]
    Unsupported,
    #[error("the image is empty or has a side of more than {MAX_SIDE_PIXELS} pixels")]
    Size,
}

/// A rectangle of an image, in MCUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct McuArea {
    pub x: u16,
    pub y: u16,
    pub width: u16,
    pub height: u16,
}

impl McuArea {
    pub(crate) fn right(self) -> u16 {
        self.x.saturating_add(self.width)
    }

    pub(crate) fn bottom(self) -> u16 {
        self.y.saturating_add(self.height)
    }

    #[must_use]
    pub fn mcu_count(self) -> u32 {
        u32::from(self.width) * u32::from(self.height)
    }

    /// Returns the smallest area that contains both.
    pub(crate) fn union(self, other: Self) -> Self {
        let (x, y) = (self.x.min(other.x), self.y.min(other.y));
        Self {
            x,
            y,
            width: self.right().max(other.right()) - x,
            height: self.bottom().max(other.bottom()) - y,
        }
    }
}

/// One component of an image: luminance, or one of two chrominance components.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Component {
    /// The sampling factors: blocks of 8 by 8 samples in an MCU, horizontally and vertically.
    pub(crate) h_sampling: u8,
    pub(crate) v_sampling: u8,
    /// The index of its quantization table in [`JpegImage::quant_tables`].
    pub(crate) quant_table: u8,
}

/// A quantization table, in zigzag order.
pub(crate) type QuantTable = [u8; 64];

/// A quantized coefficient of a block and its index in zigzag order. Zeros are left out, except for
/// the DC coefficient of a block (index 0), which is always present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Coefficient {
    pub(crate) value: i16,
    pub(crate) index: u8,
}

/// A JPEG image, decoded to coefficients but not to pixels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JpegImage {
    pub(crate) width: u16,
    pub(crate) height: u16,
    pub(crate) components: Vec<Component>,
    pub(crate) quant_tables: Vec<QuantTable>,
    /// Pixels of an MCU, across and down.
    pub(crate) mcu_size: (u16, u16),
    /// MCUs across and down.
    pub(crate) mcu_grid: (u16, u16),
    pub(crate) coefficients: Vec<Coefficient>,
    /// By MCU, row by row: the index of its first coefficient; and in addition the end of the last
    /// one.
    pub(crate) mcu_offsets: Vec<u32>,
    /// By MCU: a hash of its coefficients; equal for equal MCUs.
    pub(crate) mcu_hashes: Vec<u64>,
}

impl JpegImage {
    /// Decodes a baseline JPEG.
    ///
    /// # Errors
    /// See [`DecodeError`]. For any input the time grows with the size that the image declares,
    /// which [`MAX_SIDE_PIXELS`] bounds.
    pub fn decode(jpeg: &[u8]) -> Result<Self, DecodeError> {
        let mut decoder = IncrementalDecoder::default();
        decoder.decode(jpeg)?;
        decoder.into_last().ok_or(DecodeError::Malformed)
    }

    /// Returns the width in pixels.
    #[must_use]
    pub const fn width(&self) -> u16 {
        self.width
    }

    /// Returns the height in pixels.
    #[must_use]
    pub const fn height(&self) -> u16 {
        self.height
    }

    /// Returns the area of the whole image.
    #[must_use]
    pub const fn full_area(&self) -> McuArea {
        McuArea { x: 0, y: 0, width: self.mcu_grid.0, height: self.mcu_grid.1 }
    }

    /// Returns the MCUs that contain these pixels, clipped to the image; an empty area if there are
    /// none.
    #[must_use]
    pub fn mcus_covering(&self, x: u16, y: u16, width: u16, height: u16) -> McuArea {
        let (x, y) = (x.min(self.width), y.min(self.height));
        let (right, bottom) =
            (x.saturating_add(width).min(self.width), y.saturating_add(height).min(self.height));
        if x >= right || y >= bottom {
            return McuArea { x: 0, y: 0, width: 0, height: 0 };
        }
        let (left, top) = (x / self.mcu_size.0, y / self.mcu_size.1);
        McuArea {
            x: left,
            y: top,
            width: right.div_ceil(self.mcu_size.0) - left,
            height: bottom.div_ceil(self.mcu_size.1) - top,
        }
    }

    /// Whether MCUs of both can be compared, and one drawn over the other.
    pub(crate) fn has_layout(&self, other: &ScanLayout) -> bool {
        self.layout() == *other
    }

    pub(crate) fn layout(&self) -> ScanLayout {
        ScanLayout {
            size: (self.width, self.height),
            components: self.components.clone(),
            quant_tables: self.quant_tables.clone(),
        }
    }

    pub(crate) fn mcu_hash(&self, x: u16, y: u16) -> u64 {
        self.mcu_hashes.get(self.mcu_index(x, y)).copied().unwrap_or_default()
    }

    pub(crate) fn mcu_index(&self, x: u16, y: u16) -> usize {
        usize::from(y) * usize::from(self.mcu_grid.0) + usize::from(x)
    }

    /// Removes all MCUs and keeps the layout.
    pub(crate) fn clear_mcus(&mut self) {
        self.coefficients.clear();
        self.mcu_hashes.clear();
        self.mcu_offsets.clear();
        self.mcu_offsets.push(0);
    }

    /// Reserves capacity for the coefficients that this many entropy-coded bytes can contain.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        let mcus = usize::from(self.mcu_grid.0) * usize::from(self.mcu_grid.1);
        let blocks = self.components.iter().map(|c| usize::from(c.h_sampling * c.v_sampling));
        self.coefficients.reserve(mcus * blocks.sum::<usize>() + bytes);
        self.mcu_hashes.reserve_exact(mcus);
        self.mcu_offsets.reserve_exact(mcus);
    }

    /// Appends a row of MCUs of another image with the same layout.
    pub(crate) fn copy_row(&mut self, other: &Self, row: usize) {
        let columns = usize::from(self.mcu_grid.0);
        let (from, to) = (row * columns, (row + 1) * columns);
        self.mcu_hashes.extend_from_slice(other.mcu_hashes.get(from..to).unwrap_or_default());
        let bounds = other.mcu_offsets.get(from..=to).unwrap_or_default();
        let [first, ends @ ..] = bounds else { return };
        let base = self.mcu_offsets.last().copied().unwrap_or_default();
        self.mcu_offsets.extend(ends.iter().map(|end| base + (end - first)));
        let index = |start: u32| usize::try_from(start).unwrap_or(usize::MAX);
        let range = index(*first)..bounds.last().copied().map_or(0, index);
        self.coefficients.extend_from_slice(other.coefficients.get(range).unwrap_or_default());
    }

    /// Returns the coefficients of an MCU, block after block.
    pub(crate) fn mcu_coefficients(&self, x: u16, y: u16) -> &[Coefficient] {
        let at = self.mcu_index(x, y);
        let bound = |at| self.mcu_offsets.get(at).and_then(|start| usize::try_from(*start).ok());
        let range = bound(at).zip(bound(at + 1));
        range.and_then(|(from, to)| self.coefficients.get(from..to)).unwrap_or_default()
    }
}

/// The properties that two images must share for their MCUs to be comparable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScanLayout {
    size: (u16, u16),
    components: Vec<Component>,
    quant_tables: Vec<QuantTable>,
}
