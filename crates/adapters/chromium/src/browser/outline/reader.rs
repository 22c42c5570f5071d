//! Reads an outline from accessibility trees. The trees are those of a hostile page: every text, count
//! and depth is bounded, and the content of fields is passed over.

use std::collections::{HashMap, HashSet};

use ports::browser::{Checked, ControlState, OutlineEntry, OutlineRole, PageOutline};
use serde_json::Value;

use super::accessibility_tree::{FrameTree, TreeNode};

/// Characters of one text. Longer ones than [`PageOutline::MAX_TEXT_CHARS`] become several entries.
const MAX_RUN_CHARS: usize = 2000;
/// Characters of all names and values.
const MAX_OUTLINE_CHARS: usize = 40_000;
/// Names of controls that texts of labels are compared with.
const MAX_CONTROL_NAMES: usize = 200;

/// An entry before it is known whether it repeats the content of a field.
pub(super) struct FoundEntry {
    /// The number of the process that renders it, which its `node` belongs to.
    pub(super) process: usize,
    /// Its name has up to [`MAX_RUN_CHARS`] characters.
    pub(super) entry: OutlineEntry,
    /// Whether the name or the value was cut.
    pub(super) is_cut: bool,
}

/// Returns the entries of a page, and whether there are more. The first tree is that of the main frame.
pub(super) fn read(trees: &[FrameTree]) -> (Vec<FoundEntry>, bool) {
    let mut reader = OutlineReader {
        trees,
        control_names: control_names(trees),
        frames: trees
            .iter()
            .enumerate()
            .filter_map(|(frame, tree)| Some((tree.owner?, frame)))
            .collect(),
        seen: HashSet::new(),
        begun_items: HashSet::new(),
        run: None,
        found: vec![],
        chars: 0,
        is_cut: false,
    };
    reader.read();
    (reader.found, reader.is_cut)
}

/// How a node is read.
enum Reading {
    /// The node is an entry; its descendants say the same.
    Control(OutlineRole),
    /// The node is an entry, and its descendants are read as well.
    Container(OutlineRole),
    /// The node is a text.
    Text,
    /// The node continues the text before it.
    LineBreak,
    /// Only the descendants are read, as parts of the text around them.
    Inline,
    /// Only the descendants are read.
    Block,
    /// Nothing is read.
    Nothing,
}

/// Where a node is.
#[derive(Clone, Copy)]
struct TreePlace<'a> {
    frame: usize,
    /// The nearest ancestor that is not within a line of text.
    block: &'a str,
    /// The nearest item of a list, if there is one.
    item: Option<&'a str>,
    text_role: OutlineRole,
    /// Whether an entry has the texts already.
    is_told: bool,
    is_label: bool,
}

/// Texts that follow one another in one block.
struct TextRun<'a> {
    place: TreePlace<'a>,
    text: String,
}

struct OutlineReader<'a> {
    trees: &'a [FrameTree],
    control_names: Vec<String>,
    /// The frames by the elements that own them, each with its process.
    frames: HashMap<(usize, i64), usize>,
    seen: HashSet<(usize, &'a str)>,
    /// The items of lists that have an entry.
    begun_items: HashSet<(usize, &'a str)>,
    run: Option<TextRun<'a>>,
    found: Vec<FoundEntry>,
    chars: usize,
    is_cut: bool,
}

impl<'a> OutlineReader<'a> {
    fn read(&mut self) {
        let Some(root) = self.trees.first().and_then(FrameTree::root) else { return };
        let place = TreePlace {
            frame: 0,
            block: &root.node_id,
            item: None,
            text_role: OutlineRole::Text,
            is_told: false,
            is_label: false,
        };
        // Not recursive: a page decides how deep its tree is.
        let mut waiting = vec![(root, place)];
        while let Some((node, place)) = waiting.pop() {
            if self.is_full() {
                self.is_cut = true;
                return;
            }
            if self.seen.insert((place.frame, &node.node_id))
                && let Some(place) = self.enter(node, place)
            {
                let tree = self.trees.get(place.frame);
                let children = tree.into_iter().flat_map(|tree| tree.children(node).rev());
                waiting.extend(children.map(|child| (child, place)));
                waiting.extend(self.frame_of(node, place));
            }
        }
        self.end_run();
    }

    fn is_full(&self) -> bool {
        self.found.len() >= PageOutline::MAX_ENTRIES || self.chars >= MAX_OUTLINE_CHARS
    }

    /// Reads a node, and returns the place of its children; `None` if these are passed over.
    fn enter(&mut self, node: &'a TreeNode, place: TreePlace<'a>) -> Option<TreePlace<'a>> {
        let block = TreePlace { block: &node.node_id, ..place };
        match reading(node) {
            Reading::Nothing => None,
            Reading::Text => {
                self.text(node.name(), place);
                None
            }
            Reading::LineBreak => {
                self.text(" ", place);
                None
            }
            Reading::Inline => Some(place),
            Reading::Block => {
                self.end_run();
                Some(match node.role() {
                    "listitem" if !node.ignored => TreePlace { item: Some(&node.node_id), ..block },
                    "LabelText" => TreePlace { is_label: true, ..block },
                    "alert" if !node.ignored => {
                        TreePlace { text_role: OutlineRole::Alert, item: None, ..block }
                    }
                    _ => block,
                })
            }
            Reading::Container(role) => {
                self.end_run();
                self.control(node, role, place);
                let has_texts = matches!(role, OutlineRole::Heading(_) | OutlineRole::Combobox);
                let is_told = place.is_told || has_texts;
                Some(TreePlace { is_told, ..block })
            }
            Reading::Control(role) => {
                self.end_run();
                self.control(node, role, place);
                None
            }
        }
    }

    /// Returns the root of the frame that an element owns.
    fn frame_of(
        &mut self,
        node: &TreeNode,
        place: TreePlace<'a>,
    ) -> Option<(&'a TreeNode, TreePlace<'a>)> {
        let process = self.trees.get(place.frame)?.process;
        let frame = self.frames.remove(&(process, node.backend_node?))?;
        let root = self.trees.get(frame)?.root()?;
        self.end_run();
        let block: &str = &root.node_id;
        Some((root, TreePlace { frame, block, item: None, text_role: OutlineRole::Text, ..place }))
    }

    /// Adds to the text of the block.
    fn text(&mut self, text: &str, place: TreePlace<'a>) {
        if place.is_told {
            return;
        }
        let is_same = |run: &&mut TextRun<'a>| {
            (run.place.frame, run.place.block) == (place.frame, place.block)
        };
        // What is beyond the bound is cut with it, and seen as cut.
        let text = text.chars().take(MAX_RUN_CHARS + 1);
        if let Some(run) = self.run.as_mut().filter(is_same) {
            if run.text.len() <= 4 * MAX_RUN_CHARS {
                run.text.extend(text);
            }
            return;
        }
        self.end_run();
        self.run = Some(TextRun { place, text: text.collect() });
    }

    /// Ends the text of a block, which becomes an entry.
    fn end_run(&mut self) {
        let Some(TextRun { place, text }) = self.run.take() else { return };
        let (name, is_cut) = one_line(&text, MAX_RUN_CHARS);
        let is_name = |control: &String| control.contains(&name);
        if name.is_empty() || (place.is_label && self.control_names.iter().any(is_name)) {
            return;
        }
        let begins_item =
            place.item.is_some_and(|item| self.begun_items.insert((place.frame, item)));
        let role = if begins_item { OutlineRole::ListItem } else { place.text_role };
        let state = ControlState::default();
        self.add(OutlineEntry { role, name, value: None, node: None, state }, is_cut, place);
    }

    fn control(&mut self, node: &TreeNode, role: OutlineRole, place: TreePlace<'_>) {
        let (name, name_is_cut) = one_line(node.name(), PageOutline::MAX_TEXT_CHARS);
        let value = (role == OutlineRole::Combobox)
            .then(|| one_line(node.value(), PageOutline::MAX_TEXT_CHARS))
            .filter(|(value, _)| !value.is_empty());
        let value_is_cut = value.as_ref().is_some_and(|(_, is_cut)| *is_cut);
        let is_control = match role {
            OutlineRole::Link
            | OutlineRole::Button
            | OutlineRole::Field
            | OutlineRole::Checkbox
            | OutlineRole::Radio
            | OutlineRole::Combobox
            | OutlineRole::ListItem => true,
            OutlineRole::Heading(_)
            | OutlineRole::Text
            | OutlineRole::Image
            | OutlineRole::Alert
            | OutlineRole::Dialog => false,
        };
        let entry = OutlineEntry {
            role,
            name,
            value: value.map(|(value, _)| value),
            node: node.backend_node.filter(|_| is_control).and_then(|node| node.try_into().ok()),
            state: if is_control { state(node, role) } else { ControlState::default() },
        };
        self.add(entry, name_is_cut || value_is_cut, place);
    }

    fn add(&mut self, entry: OutlineEntry, is_cut: bool, place: TreePlace<'_>) {
        let chars = entry.name.chars().count() + entry.value.iter().flat_map(|v| v.chars()).count();
        self.chars += chars;
        let process = self.trees.get(place.frame).map_or(0, |tree| tree.process);
        self.found.push(FoundEntry { process, entry, is_cut });
    }
}

fn reading(node: &TreeNode) -> Reading {
    // Editable content that is no field by its role, and documents that are edited as a whole.
    let is_editor = node.is_editable();
    match node.role() {
        "RootWebArea" if is_editor => Reading::Nothing,
        "textbox" | "searchbox" | "spinbutton" | "slider" | "Date" | "DateTime" | "InputTime" => {
            shown(node, Reading::Control(OutlineRole::Field))
        }
        _ if is_editor => shown(node, Reading::Control(OutlineRole::Field)),
        "InlineTextBox" | "ListMarker" | "Video" | "Audio" => Reading::Nothing,
        "StaticText" => shown(node, Reading::Text),
        "LineBreak" => Reading::LineBreak,
        "Abbr" | "code" | "deletion" | "emphasis" | "insertion" | "mark" | "strong"
        | "subscript" | "superscript" | "time" => Reading::Inline,
        _ if node.ignored => Reading::Block,
        "heading" => Reading::Container(OutlineRole::Heading(level(node))),
        "dialog" | "alertdialog" => Reading::Container(OutlineRole::Dialog),
        "link" => Reading::Control(OutlineRole::Link),
        "button" | "ColorWell" | "DisclosureTriangle" | "menuitem" | "tab" => {
            Reading::Control(OutlineRole::Button)
        }
        "checkbox" | "menuitemcheckbox" | "switch" => Reading::Control(OutlineRole::Checkbox),
        "menuitemradio" | "radio" => Reading::Control(OutlineRole::Radio),
        // The options are entries while they are shown.
        "combobox" if node.is("expanded") => Reading::Container(OutlineRole::Combobox),
        "combobox" => Reading::Control(OutlineRole::Combobox),
        "option" => Reading::Control(OutlineRole::ListItem),
        "image" | "img" | "graphics-document" if !node.name().trim().is_empty() => {
            Reading::Control(OutlineRole::Image)
        }
        _ => Reading::Block,
    }
}

/// Passes over what assistive technology is not told about.
fn shown(node: &TreeNode, reading: Reading) -> Reading {
    if node.ignored { Reading::Nothing } else { reading }
}

fn level(node: &TreeNode) -> u8 {
    let level = node.property("level").and_then(Value::as_u64).unwrap_or(1);
    u8::try_from(level.clamp(1, 6)).unwrap_or(1)
}

fn state(node: &TreeNode, role: OutlineRole) -> ControlState {
    let checked = node
        .property("checked")
        .or_else(|| node.property("selected").filter(|_| role == OutlineRole::ListItem));
    let checked = checked.map(|checked| {
        if *checked == true || *checked == "true" {
            Checked::Yes
        } else if *checked == "mixed" {
            Checked::Mixed
        } else {
            Checked::No
        }
    });
    ControlState {
        required: node.is("required"),
        invalid: node.is("invalid"),
        disabled: node.is("disabled"),
        checked,
        expanded: node.property("expanded").map(|_| node.is("expanded")),
        focused: node.is("focused"),
    }
}

/// Returns names of controls, which the labels of these controls repeat.
fn control_names(trees: &[FrameTree]) -> Vec<String> {
    let is_labelled = |node: &&TreeNode| {
        matches!(
            reading(node),
            Reading::Control(
                OutlineRole::Field
                    | OutlineRole::Checkbox
                    | OutlineRole::Radio
                    | OutlineRole::Combobox
            ) | Reading::Container(OutlineRole::Combobox)
        )
    };
    let controls = trees.iter().flat_map(FrameTree::nodes).filter(is_labelled);
    controls
        .take(MAX_CONTROL_NAMES)
        .map(|node| one_line(node.name(), PageOutline::MAX_TEXT_CHARS).0)
        .collect()
}

/// Returns the start of a text as one line, without control characters and bidirectional controls, and
/// whether it has more.
fn one_line(text: &str, max_chars: usize) -> (String, bool) {
    let (mut line, mut chars, mut is_after_space) = (String::new(), 0, true);
    for c in text.chars() {
        if matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        {
            continue;
        }
        let is_space = c.is_whitespace() || c.is_control();
        if is_space && is_after_space {
            continue;
        }
        if chars == max_chars {
            if is_space {
                continue;
            }
            return (line, true);
        }
        line.push(if is_space { ' ' } else { c });
        chars += 1;
        is_after_space = is_space;
    }
    line.truncate(line.trim_end().len());
    (line, false)
}
