//! The applicant's input to a page.

use super::Viewport;

/// An input of the applicant. **Invariant:** no `Debug`: keys and text may be a password.
#[derive(Clone, PartialEq)]
pub enum Input {
    Mouse {
        kind: MouseKind,
        x: f64,
        y: f64,
        button: MouseButton,
        buttons: u8,
        clicks: u8,
        modifiers: u8,
    },
    Wheel {
        x: f64,
        y: f64,
        dx: f64,
        dy: f64,
        modifiers: u8,
    },
    Key {
        down: bool,
        key: String,
        code: String,
        key_code: u16,
        repeat: bool,
        modifiers: u8,
    },
    /// The touch points on the page; with [`TouchKind::Ended`] the remaining ones.
    Touch {
        kind: TouchKind,
        points: Vec<TouchPoint>,
        modifiers: u8,
    },
    Text(String),
    /// Uncommitted text of an input method; it replaces the earlier uncommitted text.
    Composing(String),
    /// A value for the focused field, in the format of a picker (HTML, section 2.3.5).
    Fill(String),
    /// Clicks or touches the middle of the control with this number of the newest
    /// [`PageOutline`](super::PageOutline). Does nothing if there is no such control any more.
    Activate(u32),
    /// An answer to a dialog, with the text for a [`DialogKind::Prompt`](super::DialogKind::Prompt).
    Answer {
        dialog: u32,
        accept: bool,
        text: String,
    },
    /// Closes the topmost window, if there is another one below it.
    ClosePage,
    /// Loads the page again, or tries again a page that could not be loaded.
    Reload,
    /// Goes back to the page before, if there is one.
    Back,
    /// The applicant's viewport has a new size.
    Resize(Viewport),
}

impl Input {
    /// Returns whether the input enters text.
    #[must_use]
    pub fn is_text_input(&self) -> bool {
        match self {
            Self::Text(_) | Self::Composing(_) | Self::Fill(_) => true,
            // The name of a printable key is the character that it enters (UI Events, section
            // 4.3.2).
            Self::Key { key, .. } => key.chars().count() == 1,
            Self::Mouse { .. }
            | Self::Wheel { .. }
            | Self::Touch { .. }
            | Self::Activate(_)
            | Self::Answer { .. }
            | Self::ClosePage
            | Self::Reload
            | Self::Back
            | Self::Resize(_) => false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TouchKind {
    Started,
    Moved,
    Ended,
    Cancelled,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TouchPoint {
    pub id: u8,
    pub x: f64,
    pub y: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MouseKind {
    Moved,
    Pressed,
    Released,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MouseButton {
    None,
    Left,
    Middle,
    Right,
}
