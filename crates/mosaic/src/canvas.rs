//! What one viewer has on the screen, and what it takes to bring that up to date.

use crate::{
    picture::{Area, Picture, Shape},
    write::Fineness,
};

/// Pieces of one update; each costs the viewer a decoding of its own.
const MOST_TILES: usize = 6;
/// Units that may be sent in vain to save a piece.
const WORTH_A_TILE: u32 = 24;

/// A viewer's canvas, as far as it was sent.
#[derive(Debug, Default)]
pub struct Canvas {
    shape: Option<Shape>,
    /// By unit: what is there, and whether it is coarser than the picture it came from.
    units: Vec<(u64, bool)>,
}

/// What to draw over what is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Update {
    /// Whether nothing of what was there is left.
    pub whole: bool,
    pub tiles: Vec<Tile>,
}

/// A piece of a picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tile {
    /// Pixels.
    pub x: u16,
    pub y: u16,
    pub width: u16,
    pub height: u16,
    /// To stand between the [`Picture::head`] of the same fineness and the end marker.
    pub numbers: Vec<u8>,
}

impl Canvas {
    /// Units of the picture that the viewer does not have.
    #[must_use]
    pub fn stale(&self, picture: &Picture) -> u32 {
        if self.shape.as_ref().is_none_or(|shape| !picture.is_like(shape)) {
            return picture.whole().units();
        }
        let differ =
            self.units.iter().zip(&picture.prints).filter(|((seen, _), print)| seen != *print);
        u32::try_from(differ.count()).unwrap_or(u32::MAX)
    }

    /// Whether the viewer has anything coarser than it was.
    #[must_use]
    pub fn is_coarse(&self) -> bool {
        self.units.iter().any(|(_, coarse)| *coarse)
    }

    /// What has to be drawn for this picture to be seen; `None` where it is seen already.
    pub fn update(&mut self, picture: &Picture, fineness: Fineness) -> Option<Update> {
        let whole = self.shape.as_ref().is_none_or(|shape| !picture.is_like(shape));
        if whole {
            self.shape = Some(picture.shape());
            self.units = vec![(0, false); picture.prints.len()];
        }
        let stale = |canvas: &Self, at, print| {
            whole || canvas.units.get(at).is_none_or(|(seen, _)| *seen != print)
        };
        self.draw(picture, fineness, whole, stale)
    }

    /// What has to be drawn for the viewer to have this picture as it is; `None` where the viewer
    /// has. For when nothing has moved for a moment.
    pub fn settle(&mut self, picture: &Picture) -> Option<Update> {
        if self.shape.as_ref().is_none_or(|shape| !picture.is_like(shape)) {
            return self.update(picture, Fineness::FULL);
        }
        let coarse = |canvas: &Self, at, print| {
            canvas.units.get(at).is_none_or(|(seen, coarse)| *coarse || *seen != print)
        };
        self.draw(picture, Fineness::FULL, false, coarse)
    }

    /// Forgets what the viewer has: the next update is whole.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    fn draw(
        &mut self,
        picture: &Picture,
        fineness: Fineness,
        whole: bool,
        wanted: impl Fn(&Self, usize, u64) -> bool,
    ) -> Option<Update> {
        let areas = if whole { vec![picture.whole()] } else { self.areas(picture, wanted) };
        if areas.is_empty() {
            return None;
        }
        let coarse = fineness > Fineness::FULL;
        let tiles = areas.iter().map(|area| {
            for y in area.y..area.bottom() {
                for x in area.x..area.right() {
                    let print = picture.print(x, y);
                    if let Some(unit) = self.units.get_mut(picture.at(x, y)) {
                        *unit = (print, coarse);
                    }
                }
            }
            let (x, y, width, height) = picture.pixels(*area);
            Tile { x, y, width, height, numbers: picture.numbers_of(*area, fineness) }
        });
        Some(Update { whole, tiles: tiles.collect() })
    }

    /// A few rectangles around all units that are wanted.
    fn areas(&self, picture: &Picture, wanted: impl Fn(&Self, usize, u64) -> bool) -> Vec<Area> {
        let mut areas: Vec<Area> = vec![];
        let (across, down) = picture.units;
        for y in 0..down {
            let mut x = 0;
            while x < across {
                let is = |x| wanted(self, picture.at(x, y), picture.print(x, y));
                if !is(x) {
                    x += 1;
                    continue;
                }
                let end = (x..across).find(|x| !is(*x)).unwrap_or(across);
                join(&mut areas, Area { x, y, width: end - x, height: 1 });
                x = end;
            }
        }
        areas
    }
}

/// Adds an area, joined with others where that wastes little or there are too many.
fn join(areas: &mut Vec<Area>, mut area: Area) {
    loop {
        let waste = |known: &Area| {
            let both = known.units().saturating_add(area.units());
            known.with(area).units().saturating_sub(both)
        };
        let nearest = areas.iter().enumerate().min_by_key(|(_, known)| waste(known));
        let Some((at, known)) = nearest else { break };
        if waste(known) > WORTH_A_TILE && areas.len() < MOST_TILES {
            break;
        }
        area = known.with(area);
        areas.swap_remove(at);
    }
    areas.push(area);
}
