//! Images of another encoder, cropped and reassembled, and compared by means of another decoder.
#![expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests panic to fail, and their numbers are small"
)]

use jpeg_delta::{Canvas, DecodeError, JpegImage, McuArea, QuantScale, Update};
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use proptest::prelude::*;
use zune_jpeg::{JpegDecoder, zune_core::bytestream::ZCursor};

#[test]
fn cropping_the_full_area_is_lossless() {
    for sampling in SAMPLINGS {
        let jpeg = jpeg(&scene(203, 119, 3), 203, 119, sampling, 75);
        let picture = JpegImage::decode(&jpeg).unwrap();
        let cut = picture.crop(picture.full_area(), QuantScale::UNCHANGED);
        assert_eq!(pixels(&cut), pixels(&jpeg), "{sampling:?}");
        let again = JpegImage::decode(&cut).unwrap();
        assert_eq!(again, picture, "{sampling:?}");
    }
}

#[test]
fn a_greyscale_image_is_decoded_and_cropped() {
    let grey: Vec<u8> = (0..100_u32 * 40).map(|at| (at * at % 251) as u8).collect();
    let mut jpeg = vec![];
    Encoder::new(&mut jpeg, 80).encode(&grey, 100, 40, ColorType::Luma).unwrap();
    let picture = JpegImage::decode(&jpeg).unwrap();
    let cut = picture.crop(picture.full_area(), QuantScale::UNCHANGED);
    assert_eq!(pixels(&cut), pixels(&jpeg));
}

#[test]
fn redaction_removes_the_area_and_changes_nothing_else() {
    for sampling in SAMPLINGS {
        let jpeg = jpeg(&scene(203, 119, 3), 203, 119, sampling, 75);
        let picture = JpegImage::decode(&jpeg).unwrap();
        let area = picture.mcus_covering(40, 30, 50, 20);
        let covered = picture.redacted(&[area]);
        let cut = covered.crop(covered.full_area(), QuantScale::UNCHANGED);
        assert_eq!(JpegImage::decode(&cut).unwrap(), covered, "{sampling:?}");
        let (before, after) = (pixels(&jpeg), pixels(&cut));
        for y in 0..119_usize {
            for x in 0..203_usize {
                let at = (y * 203 + x) * 3;
                if (40..90).contains(&x) && (30..50).contains(&y) {
                    assert_eq!(after[at..at + 3], [128; 3], "{x}, {y}, {sampling:?}");
                }
            }
        }
        // Far from the redacted area, where upsampled chrominance of its MCUs does not reach.
        assert_eq!(before[..203 * 3 * 8], after[..203 * 3 * 8], "{sampling:?}");
        let nothing = picture.redacted(&[picture.full_area()]);
        assert_eq!(
            nothing.crop(nothing.full_area(), QuantScale::UNCHANGED).len(),
            nothing.redacted(&[]).crop(nothing.full_area(), QuantScale::UNCHANGED).len()
        );
    }
}

#[test]
fn an_unchanged_image_needs_no_update() {
    let picture = JpegImage::decode(&typed(0)).unwrap();
    let mut canvas = Canvas::default();
    assert!(canvas.update(&picture, QuantScale::UNCHANGED).unwrap().full);
    assert_eq!(canvas.update(&picture, QuantScale::UNCHANGED), None);
    assert_eq!(canvas.refine(&picture), None);
}

#[test]
fn a_typed_letter_costs_a_small_part_of_the_image() {
    let (before, after) = (typed(5), typed(6));
    let (first, second) = (JpegImage::decode(&before).unwrap(), JpegImage::decode(&after).unwrap());
    let mut canvas = Canvas::default();
    canvas.update(&first, QuantScale::UNCHANGED).unwrap();
    let update = canvas.update(&second, QuantScale::UNCHANGED).unwrap();
    assert!(!update.full);
    assert!(size(&update) * 20 < after.len(), "{} of {} bytes", size(&update), after.len());
}

#[test]
fn requantized_mcus_are_refined_when_the_image_stops_changing() {
    let (first, second) =
        (JpegImage::decode(&typed(5)).unwrap(), JpegImage::decode(&typed(6)).unwrap());
    let mut canvas = Canvas::default();
    let mut screen = Screen::default();
    screen.draw(
        &first,
        &canvas.update(&first, QuantScale::UNCHANGED).unwrap(),
        QuantScale::UNCHANGED,
    );
    let coarse = QuantScale::from_sixteenths(80);
    screen.draw(&second, &canvas.update(&second, coarse).unwrap(), coarse);
    assert_ne!(screen.mcus, units(&second), "it is requantized");
    let settled = canvas.refine(&second).unwrap();
    assert!(!settled.full);
    screen.draw(&second, &settled, QuantScale::UNCHANGED);
    assert_eq!(screen.mcus, units(&second));
    assert_eq!(canvas.refine(&second), None);
}

#[test]
fn a_coarser_scale_gives_smaller_and_similar_images() {
    let jpeg = typed(30);
    let picture = JpegImage::decode(&jpeg).unwrap();
    let (full, mut last) = (pixels(&jpeg), usize::MAX);
    for sixteenths in [16, 24, 40, 64, 120] {
        let cut = picture.crop(picture.full_area(), QuantScale::from_sixteenths(sixteenths));
        assert!(cut.len() < last, "{sixteenths}/16: {} bytes after {last}", cut.len());
        last = cut.len();
        let differs: u64 =
            pixels(&cut).iter().zip(&full).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
        assert!(differs / full.len() as u64 <= 12, "{sixteenths}/16 is off by {differs}");
    }
}

#[test]
fn another_size_needs_a_full_update() {
    let (small, large) = (scene(64, 64, 1), scene(80, 64, 1));
    let small = JpegImage::decode(&jpeg(&small, 64, 64, SamplingFactor::F_2_2, 75)).unwrap();
    let large = JpegImage::decode(&jpeg(&large, 80, 64, SamplingFactor::F_2_2, 75)).unwrap();
    let mut canvas = Canvas::default();
    canvas.update(&small, QuantScale::UNCHANGED).unwrap();
    assert!(canvas.update(&large, QuantScale::UNCHANGED).unwrap().full);
    canvas.clear();
    assert!(canvas.update(&large, QuantScale::UNCHANGED).unwrap().full);
}

#[test]
fn areas_cover_the_requested_pixels() {
    let picture =
        JpegImage::decode(&jpeg(&scene(203, 119, 3), 203, 119, SamplingFactor::F_2_2, 75));
    let picture = picture.unwrap();
    assert_eq!(picture.mcus_covering(15, 16, 2, 16), McuArea { x: 0, y: 1, width: 2, height: 1 });
    assert_eq!(picture.mcus_covering(0, 0, 4000, 4000), picture.full_area());
    assert_eq!(picture.mcus_covering(4000, 4000, 5, 5).width, 0);
}

#[test]
fn unsupported_codings_are_distinguished_from_malformed_input() {
    let mut progressive = vec![];
    let mut encoder = Encoder::new(&mut progressive, 75);
    encoder.set_progressive(true);
    encoder.encode(&scene(64, 64, 1), 64, 64, ColorType::Rgb).unwrap();
    assert_eq!(JpegImage::decode(&progressive), Err(DecodeError::Unsupported));
    assert_eq!(JpegImage::decode(b"\x89PNG"), Err(DecodeError::Malformed));
    assert_eq!(JpegImage::decode(&[]), Err(DecodeError::Malformed));
    let complete = typed(3);
    assert_eq!(JpegImage::decode(&complete[..complete.len() / 2]), Err(DecodeError::Malformed));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    /// After any sequence of images and scales, the viewer has the last image unchanged.
    #[test]
    fn a_viewer_converges_to_the_last_image(
        seeds in prop::collection::vec((0..4_u32, 0..4_usize), 1..8),
        sampling in prop::sample::select(&SAMPLINGS[..]),
        quality in 20..95_u8,
    ) {
        let (mut canvas, mut screen) = (Canvas::default(), Screen::default());
        let mut last = None;
        for (seed, fineness) in seeds {
            let fineness = [16, 20, 48, 160].map(QuantScale::from_sixteenths)[fineness];
            let picture = JpegImage::decode(&jpeg(&scene(120, 90, seed), 120, 90, sampling, quality));
            let picture = picture.unwrap();
            if let Some(update) = canvas.update(&picture, fineness) {
                screen.draw(&picture, &update, fineness);
            }
            last = Some(picture);
        }
        let last = last.unwrap();
        if let Some(update) = canvas.refine(&last) {
            screen.draw(&last, &update, QuantScale::UNCHANGED);
        }
        prop_assert_eq!(screen.mcus, units(&last));
    }

    #[test]
    fn random_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = JpegImage::decode(&bytes);
    }

    #[test]
    fn a_corrupted_image_is_decoded_or_refused(
        damage in prop::collection::vec((0..4000_usize, any::<u8>()), 1..12),
    ) {
        let mut bytes = jpeg(&scene(120, 90, 2), 120, 90, SamplingFactor::F_2_2, 70);
        for (at, byte) in damage {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        if let Ok(picture) = JpegImage::decode(&bytes) {
            let cut = picture.crop(picture.full_area(), QuantScale::from_sixteenths(30));
            JpegImage::decode(&cut).unwrap();
        }
    }
}

const SAMPLINGS: [SamplingFactor; 4] =
    [SamplingFactor::F_2_2, SamplingFactor::F_1_1, SamplingFactor::F_2_1, SamplingFactor::F_1_2];

/// The MCUs on a viewer's screen, each as a JPEG of its own.
#[derive(Default)]
struct Screen {
    mcus: Vec<Vec<u8>>,
}

impl Screen {
    fn draw(&mut self, picture: &JpegImage, update: &Update, fineness: QuantScale) {
        let across = usize::from(picture.full_area().width);
        if update.full {
            self.mcus = vec![vec![]; across * usize::from(picture.full_area().height)];
        }
        for tile in &update.tiles {
            let mut jpeg = picture.header(fineness);
            let at = jpeg.len() - picture.bytes_after_size() - 4;
            jpeg[at..at + 2].copy_from_slice(&tile.height.to_be_bytes());
            jpeg[at + 2..at + 4].copy_from_slice(&tile.width.to_be_bytes());
            jpeg.extend(&tile.entropy_coded);
            jpeg.extend([0xff, 0xd9]);
            pixels(&jpeg);
            let part = JpegImage::decode(&jpeg).unwrap();
            let place = picture.mcus_covering(tile.x, tile.y, tile.width, tile.height);
            for y in 0..place.height {
                for x in 0..place.width {
                    let unit =
                        part.crop(McuArea { x, y, width: 1, height: 1 }, QuantScale::UNCHANGED);
                    let at = usize::from(place.y + y) * across + usize::from(place.x + x);
                    self.mcus[at] = unit;
                }
            }
        }
    }
}

fn units(picture: &JpegImage) -> Vec<Vec<u8>> {
    let whole = picture.full_area();
    let places = (0..whole.height).flat_map(|y| (0..whole.width).map(move |x| (x, y)));
    places
        .map(|(x, y)| picture.crop(McuArea { x, y, width: 1, height: 1 }, QuantScale::UNCHANGED))
        .collect()
}

fn size(update: &Update) -> usize {
    update.tiles.iter().map(|tile| tile.entropy_coded.len()).sum()
}

/// A form with this many letters typed into its field.
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

/// A colourful image, of which the left half is the same for all seeds.
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
