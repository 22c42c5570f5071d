//! Redacting screencast frames for everyone but the applicant.

use super::Frame;

/// How much of a frame is covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cover {
    Nothing,
    Everything,
}

/// Rewrites the JPEG images of screencast frames.
pub trait FrameRedactor: Send + Sync {
    /// Returns the frame's image with these areas covered: each left, top, width and height in CSS
    /// pixels of the page. `None`: the image is of a kind that cannot be redacted.
    fn redact(&self, frame: &Frame, areas: &[[f32; 4]]) -> Option<Vec<u8>>;

    /// Returns the frame's image encoded anew, so that bytes of the page's browser go no further.
    /// `None`: the image cannot be decoded.
    fn reencode(&self, frame: &Frame, cover: Cover) -> Option<Vec<u8>>;
}
