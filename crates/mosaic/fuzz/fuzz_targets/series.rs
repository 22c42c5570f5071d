//! Pictures that follow one another are read as each alone would be.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mosaic::{Picture, Series};

fuzz_target!(|input: (&[u8], Vec<(u16, u8)>)| {
    let (first, changes) = input;
    let mut second = first.to_vec();
    for (at, byte) in changes {
        let at = usize::from(at) % second.len().max(1);
        if let Some(place) = second.get_mut(at) {
            *place = byte;
        }
    }
    let mut series = Series::default();
    for jpeg in [first, &second, first] {
        assert_eq!(series.read(jpeg).cloned(), Picture::read(jpeg));
    }
});
