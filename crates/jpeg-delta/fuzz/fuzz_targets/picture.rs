//! Any bytes decode to an image or an error, and a crop of an image is an image.
#![no_main]

use libfuzzer_sys::fuzz_target;
use jpeg_delta::{Canvas, JpegImage, QuantScale};

fuzz_target!(|bytes: &[u8]| {
    let Ok(image) = JpegImage::decode(bytes) else { return };
    let crop = image.crop(image.full_area(), QuantScale::UNCHANGED);
    assert_eq!(JpegImage::decode(&crop).as_ref(), Ok(&image));
    let area = image.mcus_covering(8, 8, 40, 40);
    let redacted = image.redacted(&[area]);
    let crop = redacted.crop(redacted.full_area(), QuantScale::UNCHANGED);
    assert_eq!(JpegImage::decode(&crop).as_ref(), Ok(&redacted));
    let coarse = image.crop(image.full_area(), QuantScale::from_sixteenths(bytes.len() as u8));
    let coarse = JpegImage::decode(&coarse).expect("an encoded image can be decoded");
    let mut canvas = Canvas::default();
    canvas.update(&coarse, QuantScale::UNCHANGED);
    canvas.update(&image, QuantScale::from_sixteenths(40));
    canvas.refine(&image);
    assert_eq!(canvas.update(&image, QuantScale::UNCHANGED), None);
});
