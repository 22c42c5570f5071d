//! What the applicant does on a page.

use super::Viewport;

/// What the applicant does. **Invariant:** no `Debug`: keys and text may be a password.
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
    /// Fingers on the page; with [`TouchKind::Ended`] those that are left.
    Touch {
        kind: TouchKind,
        points: Vec<TouchPoint>,
        modifiers: u8,
    },
    Text(String),
    /// Text of an input method that is not decided yet; it replaces what was undecided before.
    Composing(String),
    /// A value for the field that has the focus, as a picker gives it (HTML, section 2.3.5).
    Fill(String),
    /// An answer to a dialog, with the text for a [`DialogKind::Prompt`].
    Answer {
        dialog: u32,
        accept: bool,
        text: String,
    },
    /// Closes the window on top, if there is another one below.
    ClosePage,
    /// There is this much room for the page now.
    Resize(Viewport),
}

impl Input {
    /// Whether something is written with it.
    #[must_use]
    pub fn is_text_input(&self) -> bool {
        match self {
            Self::Text(_) | Self::Composing(_) | Self::Fill(_) => true,
            // A key that writes is named by what it writes (UI Events, section 4.3.2).
            Self::Key { key, .. } => key.chars().count() == 1,
            Self::Mouse { .. }
            | Self::Wheel { .. }
            | Self::Touch { .. }
            | Self::Answer { .. }
            | Self::ClosePage
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
