//! Images decoded one after another equal those decoded alone.
#![expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests panic to fail, and their numbers are small"
)]

use jpeg_delta::{DecodeError, IncrementalDecoder, JpegImage};
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use proptest::prelude::*;

/// A change to the page, or to its encoded image.
#[derive(Debug, Clone)]
enum Step {
    Draw { x: u16, y: u16, width: u16, height: u16, colour: u8 },
    Scroll(u16),
    Damage(Vec<(usize, u8)>),
    Truncate(usize),
    Resize(u16, u16),
    Quality(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let draw = (0..120_u16, 0..96_u16, 1..40_u16, 1..40_u16, any::<u8>());
    prop_oneof![
        8 => draw.prop_map(|(x, y, width, height, colour)| Step::Draw { x, y, width, height, colour }),
        1 => (1..20_u16).prop_map(Step::Scroll),
        2 => prop::collection::vec((0..9000_usize, any::<u8>()), 1..4).prop_map(Step::Damage),
        1 => (0..9000_usize).prop_map(Step::Truncate),
        1 => (60..140_u16, 50..110_u16).prop_map(|(width, height)| Step::Resize(width, height)),
        1 => (20..95_u8).prop_map(Step::Quality),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn incremental_decoding_equals_decoding_each_image_alone(
        sampling in prop::sample::select(&[
            SamplingFactor::F_2_2, SamplingFactor::F_1_1, SamplingFactor::F_2_1, SamplingFactor::F_1_2,
        ][..]),
        steps in prop::collection::vec(step(), 1..16),
    ) {
        let mut page = Page::new(120, 96);
        let mut decoder = IncrementalDecoder::default();
        for step in steps {
            let jpeg = page.after(&step, sampling);
            let decoded = decoder.decode(&jpeg).cloned();
            prop_assert_eq!(&decoded, &JpegImage::decode(&jpeg));
            prop_assert_eq!(decoder.last(), decoded.as_ref().ok());
        }
    }
}

#[test]
fn a_truncated_image_is_refused_though_its_rows_are_known() {
    let mut page = Page::new(120, 96);
    let mut decoder = IncrementalDecoder::default();
    let complete = page.after(&Step::Scroll(0), SamplingFactor::F_2_2);
    decoder.decode(&complete).unwrap();
    assert_eq!(decoder.decode(&complete[..complete.len() - 40]), Err(DecodeError::Malformed));
    assert_eq!(decoder.last(), None);
    assert_eq!(decoder.decode(&complete).cloned(), JpegImage::decode(&complete));
}

struct Page {
    width: u16,
    height: u16,
    quality: u8,
    pixels: Vec<[u8; 3]>,
}

impl Page {
    fn new(width: u16, height: u16) -> Self {
        let pixel = |at: u32| {
            let noise = at.wrapping_mul(2_654_435_761) >> 28;
            [(at / 120) as u8, if noise > 9 { 10 } else { 230 }, (at % 120) as u8]
        };
        let pixels = (0..u32::from(width) * u32::from(height)).map(pixel).collect();
        Self { width, height, quality: 75, pixels }
    }

    fn after(&mut self, step: &Step, sampling: SamplingFactor) -> Vec<u8> {
        match *step {
            Step::Draw { x, y, width, height, colour } => {
                for y in y..(y + height).min(self.height) {
                    for x in x..(x + width).min(self.width) {
                        let at = usize::from(y) * usize::from(self.width) + usize::from(x);
                        self.pixels[at] = [colour, (x * 7) as u8, (y * 5) as u8 ^ colour];
                    }
                }
            }
            Step::Scroll(rows) => {
                let rows = usize::from(rows.min(self.height)) * usize::from(self.width);
                self.pixels.rotate_left(rows);
            }
            Step::Resize(width, height) => {
                *self = Self { quality: self.quality, ..Self::new(width, height) };
            }
            Step::Quality(quality) => self.quality = quality,
            Step::Damage(_) | Step::Truncate(_) => (),
        }
        let mut jpeg = vec![];
        let mut encoder = Encoder::new(&mut jpeg, self.quality);
        encoder.set_sampling_factor(sampling);
        let pixels = self.pixels.as_flattened();
        encoder.encode(pixels, self.width, self.height, ColorType::Rgb).unwrap();
        match step {
            Step::Damage(bytes) => {
                for (at, byte) in bytes {
                    let at = at % jpeg.len();
                    jpeg[at] = *byte;
                }
            }
            Step::Truncate(at) => jpeg.truncate(at % jpeg.len()),
            Step::Draw { .. } | Step::Scroll(_) | Step::Resize(..) | Step::Quality(_) => (),
        }
        jpeg
    }
}
