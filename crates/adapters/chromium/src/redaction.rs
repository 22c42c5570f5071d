//! Redacts the JPEG images of screencast frames without decoding them to pixels.

use jpeg_delta::{JpegImage, QuantScale};
use ports::browser::{Cover, Frame, FrameRedactor};

/// Redacts by clearing coefficients of the covered blocks.
pub struct JpegRedactor;

/// A field's border, and what is drawn just beside it, belong to the field.
const MARGIN: f32 = 4.0;

impl FrameRedactor for JpegRedactor {
    fn redact(&self, frame: &Frame, areas: &[[f32; 4]]) -> Option<Vec<u8>> {
        let image = JpegImage::decode(&frame.jpeg).ok()?;
        let scale = f32::from(image.width()) / f32::from(frame.viewport.width.max(1));
        let areas = areas.iter().map(|area| {
            let [left, top, width, height] = area.map(|number| number * scale);
            let (right, bottom) = (left + width + MARGIN, top + height + MARGIN);
            let (left, top) = (pixel(left - MARGIN), pixel(top - MARGIN));
            let (width, height) =
                (pixel(right).saturating_sub(left), pixel(bottom).saturating_sub(top));
            image.mcus_covering(left, top, width, height)
        });
        let areas = areas.collect::<Vec<_>>();
        let redacted = image.redacted(&areas);
        Some(redacted.crop(redacted.full_area(), QuantScale::UNCHANGED))
    }

    fn reencode(&self, frame: &Frame, cover: Cover) -> Option<Vec<u8>> {
        let image = JpegImage::decode(&frame.jpeg).ok()?;
        let image = match cover {
            Cover::Nothing => image,
            Cover::Everything => image.redacted(&[image.full_area()]),
        };
        Some(image.crop(image.full_area(), QuantScale::UNCHANGED))
    }
}

/// A coordinate as a whole pixel of the largest image that a JPEG encoder writes for us.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast of a number that was brought into range"
)]
fn pixel(coordinate: f32) -> u16 {
    coordinate.clamp(0.0, 16384.0) as u16
}

#[cfg(test)]
mod tests {
    use ports::browser::Viewport;

    use super::*;

    /// A grey image of 64 by 32 pixels with a dark letter in the middle, by another encoder.
    const LETTER: &[u8] = include_bytes!("redaction/letter.jpg");

    fn frame(viewport: Viewport) -> Frame {
        Frame { seq: 1, jpeg: LETTER.to_vec(), origin: "https://a.test".into(), viewport }
    }

    #[test]
    fn covers_an_area_with_its_margin_at_the_scale_of_the_page() {
        let image = JpegImage::decode(LETTER).unwrap();
        let expected = image.redacted(&[image.mcus_covering(16, 4, 32, 24)]);
        assert_ne!(expected, image);
        let same = frame(Viewport { width: 64, height: 32 });
        let half = frame(Viewport { width: 32, height: 16 });
        for (frame, area) in [(same, [20.0, 8.0, 24.0, 16.0]), (half, [10.0, 4.0, 12.0, 8.0])] {
            let redacted = JpegRedactor.redact(&frame, &[area]).unwrap();
            assert_eq!(JpegImage::decode(&redacted).unwrap(), expected);
        }
    }

    #[test]
    fn an_image_that_cannot_be_decoded_is_not_redacted() {
        let frame = Frame { jpeg: b"GIF89a".to_vec(), ..frame(Viewport { width: 1, height: 1 }) };
        assert_eq!(JpegRedactor.redact(&frame, &[[0.0; 4]]), None);
        assert_eq!(JpegRedactor.reencode(&frame, Cover::Everything), None);
    }
}
