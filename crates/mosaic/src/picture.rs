//! A picture as the numbers it was written with.

use crate::{LONGEST_SIDE, series::Series};

/// Why bytes give no picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("no JPEG, or a broken one")]
    Broken,
    /// Progressive, arithmetic, more than 8 bits, restart intervals, several scans, four colours.
    #[error("a JPEG of a kind that is not read")]
    Unsupported,
    #[error("the picture is empty or longer than {LONGEST_SIDE} pixels")]
    Size,
}

/// A part of a picture, in units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    pub x: u16,
    pub y: u16,
    pub width: u16,
    pub height: u16,
}

impl Area {
    pub(crate) fn right(self) -> u16 {
        self.x.saturating_add(self.width)
    }

    pub(crate) fn bottom(self) -> u16 {
        self.y.saturating_add(self.height)
    }

    #[must_use]
    pub fn units(self) -> u32 {
        u32::from(self.width) * u32::from(self.height)
    }

    /// The smallest area that holds both.
    pub(crate) fn with(self, other: Self) -> Self {
        let (x, y) = (self.x.min(other.x), self.y.min(other.y));
        Self {
            x,
            y,
            width: self.right().max(other.right()) - x,
            height: self.bottom().max(other.bottom()) - y,
        }
    }
}

/// One of the planes a picture is made of: brightness, and two of colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plane {
    /// Blocks of 8 by 8 in a unit, across and down.
    pub(crate) across: u8,
    pub(crate) down: u8,
    /// Which of the picture's divisors it uses.
    pub(crate) divisor: u8,
}

/// What a block's numbers are multiplied with, in the zigzag order that they are written in.
pub(crate) type Divisors = [u8; 64];

/// A number of a block: its place in zigzag order and its value. Zeros are left out, but the
/// first number of each block (its mean, DC) is always there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Number {
    pub(crate) value: i16,
    pub(crate) place: u8,
}

/// A picture, taken apart into units but not into pixels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    pub(crate) width: u16,
    pub(crate) height: u16,
    pub(crate) planes: Vec<Plane>,
    pub(crate) divisors: Vec<Divisors>,
    /// Pixels of a unit.
    pub(crate) unit: (u16, u16),
    /// Units across and down.
    pub(crate) units: (u16, u16),
    pub(crate) numbers: Vec<Number>,
    /// By unit, row by row: where its numbers begin; and one more for where the last one ends.
    pub(crate) starts: Vec<u32>,
    /// By unit: what its numbers come to; equal for equal units.
    pub(crate) prints: Vec<u64>,
}

impl Picture {
    /// Reads a baseline JPEG.
    ///
    /// # Errors
    /// See [`Unreadable`]; whatever the bytes are, this ends within a time that grows with the
    /// size the picture claims, which [`LONGEST_SIDE`] bounds.
    pub fn read(jpeg: &[u8]) -> Result<Self, Unreadable> {
        let mut alone = Series::default();
        alone.read(jpeg)?;
        alone.into_last().ok_or(Unreadable::Broken)
    }

    /// Pixels.
    #[must_use]
    pub const fn width(&self) -> u16 {
        self.width
    }

    /// Pixels.
    #[must_use]
    pub const fn height(&self) -> u16 {
        self.height
    }

    /// All of it.
    #[must_use]
    pub const fn whole(&self) -> Area {
        Area { x: 0, y: 0, width: self.units.0, height: self.units.1 }
    }

    /// The units that hold these pixels, within the picture; an empty area where none does.
    #[must_use]
    pub fn covering(&self, x: u16, y: u16, width: u16, height: u16) -> Area {
        let (x, y) = (x.min(self.width), y.min(self.height));
        let (right, bottom) =
            (x.saturating_add(width).min(self.width), y.saturating_add(height).min(self.height));
        if x >= right || y >= bottom {
            return Area { x: 0, y: 0, width: 0, height: 0 };
        }
        let (left, top) = (x / self.unit.0, y / self.unit.1);
        Area {
            x: left,
            y: top,
            width: right.div_ceil(self.unit.0) - left,
            height: bottom.div_ceil(self.unit.1) - top,
        }
    }

    /// Whether the same unit of both can be told equal, and one be drawn over the other.
    pub(crate) fn is_like(&self, other: &Shape) -> bool {
        self.shape() == *other
    }

    pub(crate) fn shape(&self) -> Shape {
        Shape {
            size: (self.width, self.height),
            planes: self.planes.clone(),
            divisors: self.divisors.clone(),
        }
    }

    pub(crate) fn print(&self, x: u16, y: u16) -> u64 {
        self.prints.get(self.at(x, y)).copied().unwrap_or_default()
    }

    pub(crate) fn at(&self, x: u16, y: u16) -> usize {
        usize::from(y) * usize::from(self.units.0) + usize::from(x)
    }

    /// Forgets its units, but not its shape.
    pub(crate) fn begin(&mut self) {
        self.numbers.clear();
        self.prints.clear();
        self.starts.clear();
        self.starts.push(0);
    }

    /// Makes room for what so many bytes can hold.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        let units = usize::from(self.units.0) * usize::from(self.units.1);
        let blocks = self.planes.iter().map(|plane| usize::from(plane.across * plane.down));
        self.numbers.reserve(units * blocks.sum::<usize>() + bytes);
        self.prints.reserve_exact(units);
        self.starts.reserve_exact(units);
    }

    /// Appends a row of units that another picture of its shape has.
    pub(crate) fn copy_row(&mut self, other: &Self, row: usize) {
        let across = usize::from(self.units.0);
        let (from, to) = (row * across, (row + 1) * across);
        self.prints.extend_from_slice(other.prints.get(from..to).unwrap_or_default());
        let bounds = other.starts.get(from..=to).unwrap_or_default();
        let [first, ends @ ..] = bounds else { return };
        let begin = self.starts.last().copied().unwrap_or_default();
        self.starts.extend(ends.iter().map(|end| begin + (end - first)));
        let index = |start: u32| usize::try_from(start).unwrap_or(usize::MAX);
        let range = index(*first)..bounds.last().copied().map_or(0, index);
        self.numbers.extend_from_slice(other.numbers.get(range).unwrap_or_default());
    }

    /// The numbers of a unit, block after block.
    pub(crate) fn unit_at(&self, x: u16, y: u16) -> &[Number] {
        let at = self.at(x, y);
        let bound = |at| self.starts.get(at).and_then(|start| usize::try_from(*start).ok());
        let range = bound(at).zip(bound(at + 1));
        range.and_then(|(from, to)| self.numbers.get(from..to)).unwrap_or_default()
    }
}

/// What two pictures must share for their units to be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    size: (u16, u16),
    planes: Vec<Plane>,
    divisors: Vec<Divisors>,
}
