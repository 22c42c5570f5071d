//! Decodes consecutive frames, of which most rows do not change.
//!
//! The coefficients of a row of MCUs depend on its bits and on the DC predictors at its start, and
//! on nothing else. A row with the same bits as in the previous frame, at any bit offset, is
//! therefore copied from there instead of being decoded.

use crate::{
    bits::BitReader,
    header,
    image::{DecodeError, JpegImage},
    scan::{RowState, Scan},
};

/// Decodes one frame after another, and of each only the rows that changed.
#[derive(Default)]
pub struct IncrementalDecoder {
    last: Option<DecodedImage>,
    /// The image before the last one, whose memory is reused for the next one.
    spare: Option<JpegImage>,
}

struct DecodedImage {
    jpeg: Vec<u8>,
    scan: Scan,
    /// Bytes before the entropy-coded data.
    header_len: usize,
    image: JpegImage,
    /// By row of MCUs; and in addition the state at the end of the last one.
    rows: Vec<RowState>,
}

impl IncrementalDecoder {
    /// Decodes a baseline JPEG. The result is that of [`JpegImage::decode`] for any previous frames.
    ///
    /// # Errors
    /// As [`JpegImage::decode`]; the next frame is then decoded in full.
    pub fn decode(&mut self, jpeg: &[u8]) -> Result<&JpegImage, DecodeError> {
        let last = self.last.take();
        let next = match last {
            Some(last) if jpeg == last.jpeg => last,
            Some(last) if jpeg.get(..last.header_len) == last.jpeg.get(..last.header_len) => {
                self.decode_after(last, jpeg)?
            }
            _ => {
                self.spare = None;
                decode_full(jpeg)?
            }
        };
        Ok(&self.last.insert(next).image)
    }

    /// Returns the image decoded last, unless that failed.
    #[must_use]
    pub fn last(&self) -> Option<&JpegImage> {
        self.last.as_ref().map(|last| &last.image)
    }

    /// Returns the image decoded last and drops the rest.
    pub(crate) fn into_last(self) -> Option<JpegImage> {
        self.last.map(|last| last.image)
    }

    /// Decodes a frame with the same header as the last one.
    fn decode_after(
        &mut self,
        last: DecodedImage,
        jpeg: &[u8],
    ) -> Result<DecodedImage, DecodeError> {
        let DecodedImage { jpeg: last_jpeg, scan, header_len, image: last_image, rows: last_rows } =
            last;
        let (scan_data, last_data) = (tail(jpeg, header_len), tail(&last_jpeg, header_len));
        let common_len = common_prefix(scan_data, last_data);
        let mut image = self.spare.take().unwrap_or_else(|| scan.empty_image.clone());
        image.clear_mcus();
        image.reserve(scan_data.len());
        let mut rows = Vec::with_capacity(last_rows.len());
        let mut bits = BitReader::new(scan_data);
        let mut dc_predictors = [0; 3];
        let pairs = last_rows.iter().zip(last_rows.iter().skip(1));
        for (row, (start, end)) in (0..).zip(pairs) {
            rows.push(RowState { position: bits.position(scan_data), dc_predictors });
            let same = if end.position.bytes <= common_len {
                // No byte differs so far, so the reader continues at the same position.
                bits = BitReader::at(scan_data, &end.position);
                true
            } else {
                let length = end.position.bits - start.position.bits;
                let mut ahead = bits;
                let same = dc_predictors == start.dc_predictors
                    && ahead.matches(&mut BitReader::at(last_data, &start.position), length);
                if same {
                    bits = ahead;
                }
                same
            };
            if same {
                dc_predictors = end.dc_predictors;
                image.copy_row(&last_image, row);
            } else {
                scan.decode_row(&mut bits, &mut dc_predictors, &mut image)?;
            }
        }
        rows.push(RowState { position: bits.position(scan_data), dc_predictors });
        self.spare = Some(last_image);
        let mut bytes = last_jpeg;
        bytes.clear();
        bytes.extend_from_slice(jpeg);
        Ok(DecodedImage { jpeg: bytes, scan, header_len, image, rows })
    }
}

fn decode_full(jpeg: &[u8]) -> Result<DecodedImage, DecodeError> {
    let (scan, header_len) = header::read_header(jpeg)?;
    let scan_data = tail(jpeg, header_len);
    let mut image = scan.empty_image.clone();
    image.clear_mcus();
    image.reserve(scan_data.len());
    let mut rows = vec![];
    let mut bits = BitReader::new(scan_data);
    let mut dc_predictors = [0; 3];
    for _ in 0..image.mcu_grid.1 {
        rows.push(RowState { position: bits.position(scan_data), dc_predictors });
        scan.decode_row(&mut bits, &mut dc_predictors, &mut image)?;
    }
    rows.push(RowState { position: bits.position(scan_data), dc_predictors });
    Ok(DecodedImage { jpeg: jpeg.to_vec(), scan, header_len, image, rows })
}

fn tail(bytes: &[u8], from: usize) -> &[u8] {
    bytes.get(from..).unwrap_or_default()
}

/// Returns the length of the common prefix.
fn common_prefix(one: &[u8], other: &[u8]) -> usize {
    const CHUNK: usize = 64;
    let chunks = one.chunks_exact(CHUNK).zip(other.chunks_exact(CHUNK));
    let equal = CHUNK * chunks.take_while(|(one, other)| one == other).count();
    let rest = tail(one, equal).iter().zip(tail(other, equal));
    equal + rest.take_while(|(one, other)| one == other).count()
}
