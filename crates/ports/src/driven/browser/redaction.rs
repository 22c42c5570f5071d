//! The redaction of screencast frames for all viewers other than the applicant.

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
    /// pixels of the page. `None` if the image is of a kind that cannot be redacted.
    fn redact(&self, frame: &Frame, areas: &[[f32; 4]]) -> Option<Vec<u8>>;

    /// Re-encodes the frame's image, so that no bytes of the remote browser are passed on. `None` if
    /// the image cannot be decoded.
    fn reencode(&self, frame: &Frame, cover: Cover) -> Option<Vec<u8>>;
}
