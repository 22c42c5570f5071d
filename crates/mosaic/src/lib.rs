//! Pictures of a page cut down to what changed, without ever making pixels of them.
//!
//! A baseline JPEG (ITU-T T.81) is a row of units of 8 or 16 pixels a side, each written as small
//! numbers. We read those numbers, compare unit by unit with what a viewer has, and write the units
//! that differ as JPEGs of their own: what has not changed costs nothing, what has loses nothing,
//! and no transform is computed. A viewer that is slow gets the same numbers divided once more.
//!
//! **Invariant:** no other crate of ours, no input or output, no `unsafe`. What is read may be
//! anything: it gives a [`Picture`] or an [`Unreadable`], within the bounds below.

mod bits;
mod canvas;
mod cover;
mod huffman;
mod picture;
mod read;
mod scan;
mod series;
mod write;

pub use self::{
    canvas::{Canvas, Tile, Update},
    picture::{Area, Picture, Unreadable},
    series::Series,
    write::Fineness,
};

/// Pictures wider or higher than this are refused.
pub const LONGEST_SIDE: u16 = 4096;
