//! Reads the QR code of the embed page, as a phone's camera does.

use std::collections::HashSet;

use rqrr::PreparedImage;

/// Decodes a QR code from the path that the page draws for its modules.
#[must_use]
pub fn scanned(drawn: &str) -> String {
    const PIXELS: usize = 4;
    let dark: HashSet<(usize, usize)> = drawn
        .split_terminator("h1v1h-1z")
        .map(|module| module.trim_start_matches('M').split_once(' ').expect("a place"))
        .map(|(x, y)| (number(x), number(y)))
        .collect();
    let size = dark.iter().map(|(x, _)| x + 1).max().expect("modules");
    let width = (size + 8) * PIXELS;
    let mut image = PreparedImage::prepare_from_bitmap(width, width, |x, y| {
        let module = ((x / PIXELS).checked_sub(4), (y / PIXELS).checked_sub(4));
        matches!(module, (Some(x), Some(y)) if dark.contains(&(x, y)))
    });
    image.detect_grids().first().expect("a QR code").decode().expect("text").1
}

fn number(text: &str) -> usize {
    text.parse().expect("a number")
}
