//! The content of a viewer's canvas, and the updates that bring it up to date.

use crate::{
    encode::QuantScale,
    image::{JpegImage, McuArea, ScanLayout},
};

/// Tiles of one update; the viewer decodes each as a JPEG of its own.
const MAX_TILES: usize = 6;
/// Unchanged MCUs that may be sent to save a tile.
const MAX_WASTED_MCUS: u32 = 24;

/// The content of a viewer's canvas, as sent so far.
#[derive(Debug, Default)]
pub struct Canvas {
    layout: Option<ScanLayout>,
    /// By MCU: the hash of what was sent, and whether it was requantized.
    mcus: Vec<(u64, bool)>,
}

/// The tiles to draw over the canvas.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Update {
    /// Whether the update replaces the whole canvas.
    pub full: bool,
    pub tiles: Vec<Tile>,
}

/// A rectangle of an image, in pixels, and its coefficients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tile {
    pub x: u16,
    pub y: u16,
    pub width: u16,
    pub height: u16,
    /// The entropy-coded data between the [`JpegImage::header`] of the same scale and the end
    /// marker.
    pub entropy_coded: Vec<u8>,
}

impl Canvas {
    /// Returns the number of MCUs that differ from those that the viewer has.
    #[must_use]
    pub fn count_stale(&self, image: &JpegImage) -> u32 {
        if self.layout.as_ref().is_none_or(|layout| !image.has_layout(layout)) {
            return image.full_area().mcu_count();
        }
        let pairs = self.mcus.iter().zip(&image.mcu_hashes);
        let stale = pairs.filter(|((sent, _), hash)| sent != *hash);
        u32::try_from(stale.count()).unwrap_or(u32::MAX)
    }

    /// Whether any MCU of the viewer's is requantized.
    #[must_use]
    pub fn is_coarse(&self) -> bool {
        self.mcus.iter().any(|(_, coarse)| *coarse)
    }

    /// Returns the update that makes the viewer show this image; `None` if it already does.
    pub fn update(&mut self, image: &JpegImage, scale: QuantScale) -> Option<Update> {
        let full = self.layout.as_ref().is_none_or(|layout| !image.has_layout(layout));
        if full {
            self.layout = Some(image.layout());
            self.mcus = vec![(0, false); image.mcu_hashes.len()];
        }
        let is_stale = |canvas: &Self, index, hash| {
            full || canvas.mcus.get(index).is_none_or(|(sent, _)| *sent != hash)
        };
        self.emit(image, scale, full, is_stale)
    }

    /// Returns the update that replaces requantized and stale MCUs by those of this image; `None` if
    /// there are none. To be called when the page has not changed for a moment.
    pub fn refine(&mut self, image: &JpegImage) -> Option<Update> {
        if self.layout.as_ref().is_none_or(|layout| !image.has_layout(layout)) {
            return self.update(image, QuantScale::UNCHANGED);
        }
        let is_due = |canvas: &Self, index, hash| {
            canvas.mcus.get(index).is_none_or(|(sent, coarse)| *coarse || *sent != hash)
        };
        self.emit(image, QuantScale::UNCHANGED, false, is_due)
    }

    /// Resets the canvas: the next update is a full one.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Encodes the selected MCUs and marks them as sent.
    fn emit(
        &mut self,
        image: &JpegImage,
        scale: QuantScale,
        full: bool,
        selects: impl Fn(&Self, usize, u64) -> bool,
    ) -> Option<Update> {
        let areas = if full { vec![image.full_area()] } else { self.areas(image, selects) };
        if areas.is_empty() {
            return None;
        }
        let coarse = scale > QuantScale::UNCHANGED;
        let tiles = areas.iter().map(|area| {
            for y in area.y..area.bottom() {
                for x in area.x..area.right() {
                    let hash = image.mcu_hash(x, y);
                    if let Some(mcu) = self.mcus.get_mut(image.mcu_index(x, y)) {
                        *mcu = (hash, coarse);
                    }
                }
            }
            let (x, y, width, height) = image.pixels(*area);
            Tile { x, y, width, height, entropy_coded: image.encode_mcus(*area, scale) }
        });
        Some(Update { full, tiles: tiles.collect() })
    }

    /// Returns at most [`MAX_TILES`] rectangles that contain all selected MCUs.
    fn areas(
        &self,
        image: &JpegImage,
        selects: impl Fn(&Self, usize, u64) -> bool,
    ) -> Vec<McuArea> {
        let mut areas: Vec<McuArea> = vec![];
        let (columns, rows) = image.mcu_grid;
        for y in 0..rows {
            let mut x = 0;
            while x < columns {
                let selected = |x| selects(self, image.mcu_index(x, y), image.mcu_hash(x, y));
                if !selected(x) {
                    x += 1;
                    continue;
                }
                let end = (x..columns).find(|x| !selected(*x)).unwrap_or(columns);
                merge(&mut areas, McuArea { x, y, width: end - x, height: 1 });
                x = end;
            }
        }
        areas
    }
}

/// Adds an area, merged with others if that adds few unchanged MCUs or there are too many areas.
fn merge(areas: &mut Vec<McuArea>, mut area: McuArea) {
    loop {
        let waste = |other: &McuArea| {
            let both = other.mcu_count().saturating_add(area.mcu_count());
            other.union(area).mcu_count().saturating_sub(both)
        };
        let nearest = areas.iter().enumerate().min_by_key(|(_, other)| waste(other));
        let Some((index, other)) = nearest else { break };
        if waste(other) > MAX_WASTED_MCUS && areas.len() < MAX_TILES {
            break;
        }
        area = other.union(area);
        areas.swap_remove(index);
    }
    areas.push(area);
}
