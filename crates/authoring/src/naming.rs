//! Proposals of names and labels for what an author chooses.

use domain::workflow::PageTree;

const MAX_WORDS: usize = 4;
const MAX_LABEL_CHARS: usize = 60;

/// Returns the label that a page has beside an element; empty if there is none.
#[must_use]
pub fn label_of(page: &PageTree, node: usize) -> String {
    let Some(element) = page.nodes.get(node) else { return String::new() };
    let attribute = |name: &str| element.attributes.get(name).cloned();
    let label_for = attribute("id").and_then(|id| {
        let labels = page.nodes.iter().enumerate().find(|(_, other)| {
            other.tag.as_deref() == Some("label") && other.attributes.get("for") == Some(&id)
        });
        labels.map(|(label, _)| page.text_content(label))
    });
    let found = label_for
        .or_else(|| attribute("aria-label"))
        .or_else(|| label_before(page, node))
        .or_else(|| heading_of_column(page, node))
        .or_else(|| attribute("placeholder"))
        .or_else(|| attribute("name"))
        .or_else(|| attribute("id"))
        .unwrap_or_default();
    tidy(&found)
}

/// Returns the text of what stands before an element or one of its ancestors: a term, or the first cell
/// of a row with two.
fn label_before(page: &PageTree, node: usize) -> Option<String> {
    let mut at = node;
    for _ in 0..3 {
        let element = page.nodes.get(at)?;
        let parent = element.parent?;
        let siblings = page
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, other)| other.parent == Some(parent) && other.tag.is_some());
        let siblings: Vec<_> = siblings.map(|(index, _)| index).collect();
        let before = siblings.iter().take_while(|index| **index < at).last();
        let tag = |index: usize| page.nodes.get(index).and_then(|node| node.tag.as_deref());
        if let Some(before) = before {
            let is_label = match tag(at) {
                Some("dd") => tag(*before) == Some("dt"),
                Some("td") => siblings.len() == 2 && heading_of_column(page, at).is_none(),
                Some(_) => matches!(tag(*before), Some("label" | "dt" | "th" | "strong" | "b")),
                None => false,
            };
            let text = page.text_content(*before);
            if (is_label || text.trim_end().ends_with(':')) && !text.trim().is_empty() {
                return Some(text);
            }
        }
        at = parent;
    }
    None
}

/// Returns the heading of the column of a table that an element is in.
fn heading_of_column(page: &PageTree, node: usize) -> Option<String> {
    let mut at = node;
    let cell = loop {
        let element = page.nodes.get(at)?;
        match element.tag.as_deref() {
            Some("td" | "th") => break at,
            Some("table") | None => return None,
            Some(_) => at = element.parent?,
        }
    };
    let row = page.nodes.get(cell)?.parent?;
    let is_cell = |index: usize| {
        page.nodes.get(index).is_some_and(|node| matches!(node.tag.as_deref(), Some("td" | "th")))
    };
    let cells = |row: usize| {
        let all = page.nodes.iter().enumerate();
        let all = all.filter(move |(index, node)| node.parent == Some(row) && is_cell(*index));
        all.map(|(index, _)| index).collect::<Vec<_>>()
    };
    let column = cells(row).iter().position(|index| *index == cell)?;
    let mut table = row;
    while page.nodes.get(table)?.tag.as_deref() != Some("table") {
        table = page.nodes.get(table)?.parent?;
    }
    let mut rows = page.descendants(table).filter(|(_, node)| node.tag.as_deref() == Some("tr"));
    let (first, _) = rows.next()?;
    let heading = cells(first).get(column).copied()?;
    let is_heading = first != row && page.nodes.get(heading)?.tag.as_deref() == Some("th");
    is_heading.then(|| page.text_content(heading))
}

fn tidy(label: &str) -> String {
    let label = label.split_whitespace().collect::<Vec<_>>().join(" ");
    let label = label.trim_end_matches([':', '*', ' ']);
    label.chars().take(MAX_LABEL_CHARS).collect()
}

/// Returns a name in camel case made of the words of a text, such as `memberSince`.
#[must_use]
pub fn name_of(text: &str) -> String {
    let mut spaced = String::new();
    let mut was_lower = false;
    for c in text.chars() {
        // The words of a name that is in camel case already.
        if was_lower && c.is_uppercase() {
            spaced.push(' ');
        }
        was_lower = c.is_lowercase();
        spaced.push(c);
    }
    let words = spaced.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut name = String::new();
    for (index, word) in words.take(MAX_WORDS).enumerate() {
        let lower = word.to_ascii_lowercase();
        if index == 0 {
            name.push_str(&lower);
        } else {
            let mut letters = lower.chars();
            name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
            name.push_str(letters.as_str());
        }
    }
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) { name } else { "value".to_owned() }
}

/// Returns a label made of a name in camel or snake case, such as `Member since`.
#[must_use]
pub fn label_of_name(name: &str) -> String {
    let mut words = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !words.is_empty() && !words.ends_with(' ') {
            words.push(' ');
        }
        let c = if c == '_' || c == '-' { ' ' } else { c };
        words.extend(c.to_lowercase());
    }
    let mut letters = words.trim().chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
