//! The page state: fields, focus, dialogs and redaction rectangles.

/// The state of a page, which a frame does not show or does not show precisely enough.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PageState {
    /// The sequence number, which increases with each change.
    pub seq: u64,
    /// The visible, editable fields, at most [`PageState::MAX_FIELDS`].
    pub fields: Vec<PageField>,
    /// The areas that may show entered text, at most [`PageState::MAX_REDACTION_RECTS`]: fields,
    /// including disabled and invisible ones, and frames within the page. Each is left, top, width
    /// and height in CSS pixels. They are painted over in every frame that is not for the applicant.
    pub redaction_rects: Vec<[f32; 4]>,
    /// The focused field, as its index in `fields`.
    pub focused: Option<u8>,
    pub dialog: Option<Dialog>,
    /// The last refused action, and the number of refused actions.
    pub refused: Option<(RefusedAction, u32)>,
    /// How often the page tried to lead to a host that is not the platform's.
    pub refused_navigations: u32,
    /// A number that is another one after each navigation of the topmost page, also within its
    /// document, and while another window is the topmost one.
    pub navigation: u64,
    /// The number of the browser's windows, the topmost one included.
    pub pages: u8,
    /// Whether the page could not be loaded, so that the browser shows an error of its own.
    pub unreachable: bool,
}

impl PageState {
    pub const MAX_FIELDS: usize = 24;
    pub const MAX_REDACTION_RECTS: usize = 100;
}

/// A field of the page, without its content.
#[derive(Debug, Clone, PartialEq)]
pub struct PageField {
    /// Left, top, width and height, in CSS pixels of the page.
    pub place: [f32; 4],
    /// The `type` of an HTML `input`; `textarea` or `editable` for other elements.
    pub kind: String,
    pub input_mode: String,
    pub autocomplete: String,
    /// The accessible name, at most [`PageField::MAX_LABEL_CHARS`] characters; empty if there is none, or
    /// if it repeats the field's content.
    pub label: String,
    /// Why the page refuses the content, with the same bounds; empty unless the page marks the field as
    /// invalid.
    pub error: String,
}

impl PageField {
    pub const MAX_LABEL_CHARS: usize = 120;
}

/// A modal JavaScript dialog, which blocks the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialog {
    /// The number of the dialog, different for each one.
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
    /// The page asks whether to leave it (`beforeunload`).
    Leave,
}

/// An action of a page that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusedAction {
    /// Uploading a file of the applicant.
    Upload,
    /// Downloading a file.
    Download,
    /// Navigating to a host that is not the platform's.
    Elsewhere,
}
