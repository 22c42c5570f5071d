//! Any bytes give a picture or a refusal, and what is cut from a picture is one again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mosaic::{Canvas, Fineness, Picture};

fuzz_target!(|bytes: &[u8]| {
    let Ok(picture) = Picture::read(bytes) else { return };
    let cut = picture.cut(picture.whole(), Fineness::FULL);
    assert_eq!(Picture::read(&cut).as_ref(), Ok(&picture));
    let area = picture.covering(8, 8, 40, 40);
    let covered = picture.without(&[area]);
    let cut = covered.cut(covered.whole(), Fineness::FULL);
    assert_eq!(Picture::read(&cut).as_ref(), Ok(&covered));
    let coarse = picture.cut(picture.whole(), Fineness::coarser(bytes.len() as u8));
    let coarse = Picture::read(&coarse).expect("what was written can be read");
    let mut canvas = Canvas::default();
    canvas.update(&coarse, Fineness::FULL);
    canvas.update(&picture, Fineness::coarser(40));
    canvas.settle(&picture);
    assert_eq!(canvas.update(&picture, Fineness::FULL), None);
});
