//! JPEG frames of a page reduced to the MCUs that changed, without decoding them to pixels.
//!
//! The scan of a baseline JPEG (ITU-T T.81) is a sequence of MCUs (minimum coded units) of 8 or 16
//! pixels a side, each a few blocks of quantized DCT coefficients. This crate decodes the
//! coefficients, compares them MCU by MCU with those that a viewer has, and encodes the MCUs that
//! differ as JPEGs of their own: unchanged MCUs cost nothing, changed ones lose nothing, and no
//! transform is computed. For a slow viewer the same coefficients are requantized more coarsely.
//!
//! **Invariant:** no other crate of ours, no input or output, no `unsafe`. The input may be any
//! bytes: decoding returns a [`JpegImage`] or a [`DecodeError`], within the bounds below.

mod bits;
mod canvas;
mod encode;
mod header;
mod huffman;
mod image;
mod incremental;
mod redact;
mod scan;

pub use self::{
    canvas::{Canvas, Tile, Update},
    encode::QuantScale,
    image::{DecodeError, JpegImage, McuArea},
    incremental::IncrementalDecoder,
};

/// The largest width and height that are decoded.
pub const MAX_SIDE_PIXELS: u16 = 4096;
