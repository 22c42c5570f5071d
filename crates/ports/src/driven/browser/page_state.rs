//! All of a page but its picture.

/// What a picture does not show, or does not show well enough to be used.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PageState {
    /// Counts up with each change.
    pub seq: u64,
    /// Fields that can be written in and are in sight, at most [`Scene::MOST_FIELDS`].
    pub fields: Vec<PageField>,
    /// Everything that may hold what was written, at most [`Scene::MOST_COVERS`]: fields that are
    /// locked or out of sight too, and frames within the page. Left, top, width and height in CSS
    /// pixels. Others than the applicant do not see these parts.
    pub redaction_rects: Vec<[f32; 4]>,
    /// The field that has the focus, as its place in `fields`.
    pub focused: Option<u8>,
    pub dialog: Option<Dialog>,
    /// The newest thing that was refused, and how many were.
    pub refused: Option<(RefusedAction, u32)>,
    /// Windows of the browser, the one on top included.
    pub pages: u8,
}

impl PageState {
    pub const MAX_FIELDS: usize = 24;
    pub const MAX_REDACTION_RECTS: usize = 100;
}

/// A field of the page. Never what is in it.
#[derive(Debug, Clone, PartialEq)]
pub struct PageField {
    /// CSS pixels of the page: left, top, width, height.
    pub place: [f32; 4],
    /// `type` as HTML knows it; `textarea` and `editable` for what is no `input`.
    pub kind: String,
    pub input_mode: String,
    pub autocomplete: String,
}

/// A question of the page that stops everything else in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialog {
    /// Another one for each dialog.
    pub id: u32,
    pub kind: DialogKind,
    /// At most a thousand characters.
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DialogKind {
    Alert,
    Confirm,
    Prompt,
    /// The page asks whether it may be left.
    Leave,
}

/// What a page wanted and did not get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusedAction {
    /// A file of the applicant's.
    Upload,
    /// To leave a file with the applicant.
    Download,
    /// To go to a host that is not the platform's.
    Elsewhere,
}
