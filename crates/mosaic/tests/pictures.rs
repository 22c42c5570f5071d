//! Pictures from other people's encoders, cut and put together, and held against another decoder.
#![expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests panic to fail, and their numbers are small"
)]

use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use mosaic::{Area, Canvas, Fineness, Picture, Unreadable, Update};
use proptest::prelude::*;
use zune_jpeg::{JpegDecoder, zune_core::bytestream::ZCursor};

#[test]
fn a_picture_cut_whole_is_the_same_picture() {
    for sampling in SAMPLINGS {
        let jpeg = jpeg(&scene(203, 119, 3), 203, 119, sampling, 75);
        let picture = Picture::read(&jpeg).unwrap();
        let cut = picture.cut(picture.whole(), Fineness::FULL);
        assert_eq!(pixels(&cut), pixels(&jpeg), "{sampling:?}");
        let again = Picture::read(&cut).unwrap();
        assert_eq!(again, picture, "{sampling:?}");
    }
}

#[test]
fn a_grey_picture_is_read_and_cut() {
    let grey: Vec<u8> = (0..100_u32 * 40).map(|at| (at * at % 251) as u8).collect();
    let mut jpeg = vec![];
    Encoder::new(&mut jpeg, 80).encode(&grey, 100, 40, ColorType::Luma).unwrap();
    let picture = Picture::read(&jpeg).unwrap();
    let cut = picture.cut(picture.whole(), Fineness::FULL);
    assert_eq!(pixels(&cut), pixels(&jpeg));
}

#[test]
fn what_is_covered_is_gone_and_the_rest_is_as_it_was() {
    for sampling in SAMPLINGS {
        let jpeg = jpeg(&scene(203, 119, 3), 203, 119, sampling, 75);
        let picture = Picture::read(&jpeg).unwrap();
        let area = picture.covering(40, 30, 50, 20);
        let covered = picture.without(&[area]);
        let cut = covered.cut(covered.whole(), Fineness::FULL);
        assert_eq!(Picture::read(&cut).unwrap(), covered, "{sampling:?}");
        let (before, after) = (pixels(&jpeg), pixels(&cut));
        for y in 0..119_usize {
            for x in 0..203_usize {
                let at = (y * 203 + x) * 3;
                if (40..90).contains(&x) && (30..50).contains(&y) {
                    assert_eq!(after[at..at + 3], [128; 3], "{x}, {y}, {sampling:?}");
                }
            }
        }
        // Far from what was covered, where colours of neighbouring units do not reach.
        assert_eq!(before[..203 * 3 * 8], after[..203 * 3 * 8], "{sampling:?}");
        let nothing = picture.without(&[picture.whole()]);
        assert_eq!(
            nothing.cut(nothing.whole(), Fineness::FULL).len(),
            nothing.without(&[]).cut(nothing.whole(), Fineness::FULL).len()
        );
    }
}

#[test]
fn nothing_is_sent_for_what_is_there_already() {
    let picture = Picture::read(&typed(0)).unwrap();
    let mut canvas = Canvas::default();
    assert!(canvas.update(&picture, Fineness::FULL).unwrap().whole);
    assert_eq!(canvas.update(&picture, Fineness::FULL), None);
    assert_eq!(canvas.settle(&picture), None);
}

#[test]
fn a_letter_typed_costs_a_small_part_of_the_picture() {
    let (before, after) = (typed(5), typed(6));
    let (first, second) = (Picture::read(&before).unwrap(), Picture::read(&after).unwrap());
    let mut canvas = Canvas::default();
    canvas.update(&first, Fineness::FULL).unwrap();
    let update = canvas.update(&second, Fineness::FULL).unwrap();
    assert!(!update.whole);
    assert!(size(&update) * 20 < after.len(), "{} of {} bytes", size(&update), after.len());
}

#[test]
fn what_was_sent_coarse_is_sent_again_once_it_stands_still() {
    let (first, second) = (Picture::read(&typed(5)).unwrap(), Picture::read(&typed(6)).unwrap());
    let mut canvas = Canvas::default();
    let mut screen = Screen::default();
    screen.draw(&first, &canvas.update(&first, Fineness::FULL).unwrap(), Fineness::FULL);
    let coarse = Fineness::coarser(80);
    screen.draw(&second, &canvas.update(&second, coarse).unwrap(), coarse);
    assert_ne!(screen.seen, units(&second), "it is coarse");
    let settled = canvas.settle(&second).unwrap();
    assert!(!settled.whole);
    screen.draw(&second, &settled, Fineness::FULL);
    assert_eq!(screen.seen, units(&second));
    assert_eq!(canvas.settle(&second), None);
}

#[test]
fn coarser_is_smaller_and_alike() {
    let jpeg = typed(30);
    let picture = Picture::read(&jpeg).unwrap();
    let (full, mut last) = (pixels(&jpeg), usize::MAX);
    for sixteenths in [16, 24, 40, 64, 120] {
        let cut = picture.cut(picture.whole(), Fineness::coarser(sixteenths));
        assert!(cut.len() < last, "{sixteenths}/16: {} bytes after {last}", cut.len());
        last = cut.len();
        let differs: u64 =
            pixels(&cut).iter().zip(&full).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
        assert!(differs / full.len() as u64 <= 12, "{sixteenths}/16 is off by {differs}");
    }
}

#[test]
fn another_size_is_drawn_anew() {
    let (small, large) = (scene(64, 64, 1), scene(80, 64, 1));
    let small = Picture::read(&jpeg(&small, 64, 64, SamplingFactor::F_2_2, 75)).unwrap();
    let large = Picture::read(&jpeg(&large, 80, 64, SamplingFactor::F_2_2, 75)).unwrap();
    let mut canvas = Canvas::default();
    canvas.update(&small, Fineness::FULL).unwrap();
    assert!(canvas.update(&large, Fineness::FULL).unwrap().whole);
    canvas.clear();
    assert!(canvas.update(&large, Fineness::FULL).unwrap().whole);
}

#[test]
fn areas_cover_the_pixels_asked_for() {
    let picture = Picture::read(&jpeg(&scene(203, 119, 3), 203, 119, SamplingFactor::F_2_2, 75));
    let picture = picture.unwrap();
    assert_eq!(picture.covering(15, 16, 2, 16), Area { x: 0, y: 1, width: 2, height: 1 });
    assert_eq!(picture.covering(0, 0, 4000, 4000), picture.whole());
    assert_eq!(picture.covering(4000, 4000, 5, 5).width, 0);
}

#[test]
fn kinds_that_are_not_read_are_told_apart_from_rubbish() {
    let mut progressive = vec![];
    let mut encoder = Encoder::new(&mut progressive, 75);
    encoder.set_progressive(true);
    encoder.encode(&scene(64, 64, 1), 64, 64, ColorType::Rgb).unwrap();
    assert_eq!(Picture::read(&progressive), Err(Unreadable::Unsupported));
    assert_eq!(Picture::read(b"\x89PNG"), Err(Unreadable::Broken));
    assert_eq!(Picture::read(&[]), Err(Unreadable::Broken));
    let whole = typed(3);
    assert_eq!(Picture::read(&whole[..whole.len() / 2]), Err(Unreadable::Broken));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever comes in whatever order: what the viewer has is what was there.
    #[test]
    fn a_screen_follows_the_page(
        seeds in prop::collection::vec((0..4_u32, 0..4_usize), 1..8),
        sampling in prop::sample::select(&SAMPLINGS[..]),
        quality in 20..95_u8,
    ) {
        let (mut canvas, mut screen) = (Canvas::default(), Screen::default());
        let mut last = None;
        for (seed, fineness) in seeds {
            let fineness = [16, 20, 48, 160].map(Fineness::coarser)[fineness];
            let picture = Picture::read(&jpeg(&scene(120, 90, seed), 120, 90, sampling, quality));
            let picture = picture.unwrap();
            if let Some(update) = canvas.update(&picture, fineness) {
                screen.draw(&picture, &update, fineness);
            }
            last = Some(picture);
        }
        let last = last.unwrap();
        if let Some(update) = canvas.settle(&last) {
            screen.draw(&last, &update, Fineness::FULL);
        }
        prop_assert_eq!(screen.seen, units(&last));
    }

    #[test]
    fn random_bytes_are_refused_in_peace(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = Picture::read(&bytes);
    }

    #[test]
    fn a_damaged_picture_is_read_or_refused_in_peace(
        damage in prop::collection::vec((0..4000_usize, any::<u8>()), 1..12),
    ) {
        let mut bytes = jpeg(&scene(120, 90, 2), 120, 90, SamplingFactor::F_2_2, 70);
        for (at, byte) in damage {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        if let Ok(picture) = Picture::read(&bytes) {
            let cut = picture.cut(picture.whole(), Fineness::coarser(30));
            Picture::read(&cut).unwrap();
        }
    }
}

const SAMPLINGS: [SamplingFactor; 4] =
    [SamplingFactor::F_2_2, SamplingFactor::F_1_1, SamplingFactor::F_2_1, SamplingFactor::F_1_2];

/// What a viewer sees, unit by unit, each as the picture that it would be alone.
#[derive(Default)]
struct Screen {
    seen: Vec<Vec<u8>>,
}

impl Screen {
    fn draw(&mut self, picture: &Picture, update: &Update, fineness: Fineness) {
        let across = usize::from(picture.whole().width);
        if update.whole {
            self.seen = vec![vec![]; across * usize::from(picture.whole().height)];
        }
        for tile in &update.tiles {
            let mut jpeg = picture.head(fineness);
            let at = jpeg.len() - picture.behind_size() - 4;
            jpeg[at..at + 2].copy_from_slice(&tile.height.to_be_bytes());
            jpeg[at + 2..at + 4].copy_from_slice(&tile.width.to_be_bytes());
            jpeg.extend(&tile.numbers);
            jpeg.extend([0xff, 0xd9]);
            pixels(&jpeg);
            let part = Picture::read(&jpeg).unwrap();
            let place = picture.covering(tile.x, tile.y, tile.width, tile.height);
            for y in 0..place.height {
                for x in 0..place.width {
                    let unit = part.cut(Area { x, y, width: 1, height: 1 }, Fineness::FULL);
                    let at = usize::from(place.y + y) * across + usize::from(place.x + x);
                    self.seen[at] = unit;
                }
            }
        }
    }
}

fn units(picture: &Picture) -> Vec<Vec<u8>> {
    let whole = picture.whole();
    let places = (0..whole.height).flat_map(|y| (0..whole.width).map(move |x| (x, y)));
    places.map(|(x, y)| picture.cut(Area { x, y, width: 1, height: 1 }, Fineness::FULL)).collect()
}

fn size(update: &Update) -> usize {
    update.tiles.iter().map(|tile| tile.numbers.len()).sum()
}

/// A form with so many letters typed into its field.
fn typed(letters: u32) -> Vec<u8> {
    let (width, height) = (640_u32, 400_u32);
    let ink = |x: u32, y: u32| {
        let page = 200 + x * 40 / width + y * 15 / height;
        let letter = (300..312).contains(&y) && x >= 100 && x < 100 + letters * 9 && x % 9 < 5;
        let label = (250..262).contains(&y) && (100..300).contains(&x) && (x * 7 + y * 3) % 11 < 5;
        if letter || label { 20 } else { page as u8 }
    };
    let rgb: Vec<_> = (0..height)
        .flat_map(|y| (0..width).flat_map(move |x| [ink(x, y), ink(x, y), ink(x, y) / 2 + 60]))
        .collect();
    jpeg(&rgb, 640, 400, SamplingFactor::F_2_2, 80)
}

/// Some colours, partly the same for all seeds.
fn scene(width: u32, height: u32, seed: u32) -> Vec<u8> {
    let colour = |x: u32, y: u32| {
        let seed = if x > width / 2 { seed } else { 0 };
        let text = (x * 13 + y * 7 + seed * 31).wrapping_mul(2_654_435_761) >> 28;
        let base = (x * 255 / width) as u8;
        [base, base.wrapping_add((y / 3) as u8), if text > 9 { 10 } else { 230 }]
    };
    (0..height).flat_map(|y| (0..width).flat_map(move |x| colour(x, y))).collect()
}

fn jpeg(rgb: &[u8], width: u16, height: u16, sampling: SamplingFactor, quality: u8) -> Vec<u8> {
    let mut bytes = vec![];
    let mut encoder = Encoder::new(&mut bytes, quality);
    encoder.set_sampling_factor(sampling);
    encoder.encode(rgb, width, height, ColorType::Rgb).unwrap();
    bytes
}

fn pixels(jpeg: &[u8]) -> Vec<u8> {
    JpegDecoder::new(ZCursor::new(jpeg)).decode().unwrap()
}
