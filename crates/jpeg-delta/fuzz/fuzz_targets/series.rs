//! Images decoded one after another equal those decoded alone.
#![no_main]

use libfuzzer_sys::fuzz_target;
use jpeg_delta::{IncrementalDecoder, JpegImage};

fuzz_target!(|input: (&[u8], Vec<(u16, u8)>)| {
    let (first, changes) = input;
    let mut second = first.to_vec();
    for (index, byte) in changes {
        let index = usize::from(index) % second.len().max(1);
        if let Some(changed) = second.get_mut(index) {
            *changed = byte;
        }
    }
    let mut decoder = IncrementalDecoder::default();
    for jpeg in [first, &second, first] {
        assert_eq!(decoder.decode(jpeg).cloned(), JpegImage::decode(jpeg));
    }
});
