//! The page outline: the texts and the controls of a page as a list, for applicants who cannot see
//! its frames.

/// The outline of a page, in the order of its document. It never has what was entered into the page:
/// no content of a text field, and no text that repeats one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageOutline {
    /// At most [`PageOutline::MAX_ENTRIES`].
    pub entries: Vec<OutlineEntry>,
    /// Whether the page has more than that.
    pub is_cut: bool,
}

impl PageOutline {
    pub const MAX_ENTRIES: usize = 500;
    /// Characters of a name or a value.
    pub const MAX_TEXT_CHARS: usize = 200;
}

/// One entry of a page outline: a text or a control.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutlineEntry {
    pub role: OutlineRole,
    /// One line of at most [`PageOutline::MAX_TEXT_CHARS`] characters, without control characters and
    /// bidirectional controls.
    pub name: String,
    /// What was chosen in a [`OutlineRole::Combobox`], with the bounds of `name`; `None` for all others.
    pub value: Option<String>,
    /// The number by which [`Input::Activate`](super::Input::Activate) names the control; `None` for
    /// what cannot be activated.
    pub node: Option<u32>,
    pub state: ControlState,
}

/// The roles that the outline tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutlineRole {
    /// A heading with its level, 1 to 6.
    Heading(u8),
    Text,
    Link,
    Button,
    /// A field whose content is entered.
    Field,
    Checkbox,
    Radio,
    /// A list of which one option is shown.
    Combobox,
    Image,
    Alert,
    Dialog,
    ListItem,
}

/// The states of a control.
#[expect(clippy::struct_excessive_bools, reason = "the states are independent of one another")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ControlState {
    pub required: bool,
    /// Whether the page does not accept the content.
    pub invalid: bool,
    pub disabled: bool,
    /// `None` for what cannot be checked or selected.
    pub checked: Option<Checked>,
    /// `None` for what cannot be expanded.
    pub expanded: Option<bool>,
    /// Whether it has the keyboard focus.
    pub focused: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checked {
    Yes,
    No,
    Mixed,
}
