//! Proposals of names and labels for what an author chooses.

use std::collections::BTreeSet;

use domain::workflow::{PageNode, PageTree};

use crate::{
    columns::{Cells, columns_of, is_cell},
    selectors::is_hashed,
};

const MAX_WORDS: usize = 4;
const MAX_LABEL_CHARS: usize = 60;
/// Rows of headings of a table that are looked at.
const MAX_HEADING_ROWS: usize = 20;
/// Elements that an element names as its labels.
const MAX_LABELS: usize = 4;
/// Elements around one that are looked at for its label.
const MAX_AROUND: usize = 3;
/// What stands before an element in its parent and is looked at for its label.
const MAX_BEFORE: usize = 5;
/// Elements whose texts are not shown.
const NO_TEXTS: &[&str] = &["script", "style", "svg", "template"];
/// Classes of what is there for screen readers alone.
const UNSEEN_CLASSES: &[&str] = &[
    "cdk-visually-hidden",
    "screen-reader-text",
    "screenreader-only",
    "sr-only",
    "visually-hidden",
    "visuallyhidden",
];
/// Elements whose neighbours are other entries rather than labels: rows, entries and cells.
const ENTRIES: &[&str] = &["article", "body", "dd", "dt", "li", "option", "td", "th", "tr"];

/// Returns the label that a page has beside an element; empty if there is none.
#[must_use]
pub fn label_of(page: &PageTree, node: usize) -> String {
    let Some(element) = page.nodes.get(node) else { return String::new() };
    let said = |text: Option<String>| text.filter(|text| !tidy(text).is_empty());
    let attribute = |name: &str| said(element.attributes.get(name).cloned());
    let named = |name: &str| {
        let name = attribute(name).filter(|name| !is_hashed(name));
        name.map(|name| label_of_name(&name))
    };
    let found = said(label_element(page, node))
        .or_else(|| said(labelled_by(page, node)))
        .or_else(|| attribute("aria-label"))
        .or_else(|| term_before(page, node))
        .or_else(|| said(heading_of_column(page, node)))
        .or_else(|| text_before(page, node))
        .or_else(|| attribute("placeholder"))
        .or_else(|| named("name"))
        .or_else(|| named("id"));
    capitalized(&tidy(&found.unwrap_or_default()))
}

/// Returns the text of the `label` of an element, which names it by its `id` or is around it.
fn label_element(page: &PageTree, node: usize) -> Option<String> {
    let id = page.nodes.get(node)?.attributes.get("id");
    let is_label = |index: &usize| has_tag(page, *index, "label");
    let by_id = id.and_then(|id| {
        let names_it = |index: &usize| {
            let label = page.nodes.get(*index).filter(|_| is_label(index));
            label.is_some_and(|label| label.attributes.get("for") == Some(id))
        };
        (0..page.nodes.len()).find(names_it)
    });
    let label = by_id.or_else(|| {
        let parent_of = |index: &usize| page.nodes.get(*index).and_then(|node| node.parent);
        std::iter::successors(parent_of(&node), parent_of).take(MAX_AROUND).find(is_label)
    });
    label.map(|label| text_without(page, label, node))
}

/// Returns the texts within an element, without those within one of its descendants: a list has the
/// texts of its options.
fn text_without(page: &PageTree, scope: usize, without: usize) -> String {
    let inner: BTreeSet<_> = page.descendants(without).map(|(index, _)| index).collect();
    let texts = page.descendants(scope).filter(|(index, _)| !inner.contains(index));
    texts.filter_map(|(_, node)| node.text.as_deref()).collect()
}

/// Returns the texts of the elements that an element names as its labels (WAI-ARIA,
/// `aria-labelledby`).
fn labelled_by(page: &PageTree, node: usize) -> Option<String> {
    let ids = page.nodes.get(node)?.attributes.get("aria-labelledby")?;
    let texts = ids.split_ascii_whitespace().take(MAX_LABELS).filter_map(|id| {
        let has_id = |index: &usize| {
            let other = page.nodes.get(*index);
            other.and_then(|other| other.attributes.get("id")).is_some_and(|own| own == id)
        };
        (0..page.nodes.len()).find(has_id).map(|index| page.text_content(index))
    });
    Some(texts.collect::<Vec<_>>().join(" "))
}

/// Returns the text of what stands before an element or one of its ancestors, if it is a label by what
/// it is: a term, the first cell of a row with two, or a text with a colon.
fn term_before(page: &PageTree, node: usize) -> Option<String> {
    let mut at = node;
    for _ in 0..MAX_AROUND {
        let parent = page.nodes.get(at)?.parent?;
        let siblings: Vec<_> = elements_in(page, parent).collect();
        let mut before = siblings.iter().copied().filter(|index| *index < at);
        let is_value = has_tag(page, at, "dd");
        let label = if is_value {
            before.rfind(|index| has_tag(page, *index, "dt"))
        } else {
            before.next_back()
        };
        if let Some(label) = label {
            let text = page.text_content(label);
            let is_label = if has_tag(page, at, "td") {
                let is_heading = has_tag(page, label, "th");
                let is_pair = siblings.len() == 2 && is_short_text(&text);
                (is_heading || is_pair) && heading_of_column(page, at).is_none()
            } else {
                let labels = ["label", "dt", "th", "strong", "b"];
                is_value || labels.iter().any(|tag| has_tag(page, label, tag))
            };
            if (is_label || ends_with_colon(&text)) && !tidy(&text).is_empty() {
                return Some(text);
            }
        }
        at = parent;
    }
    None
}

/// Returns a short text before an element, or before its parent if that has the text of the element
/// alone.
fn text_before(page: &PageTree, node: usize) -> Option<String> {
    let mut at = node;
    for _ in 0..MAX_AROUND {
        let element = page.nodes.get(at)?;
        let (tag, parent) = (element.tag.as_deref()?, element.parent?);
        if ENTRIES.contains(&tag) {
            return None;
        }
        let earlier = page.nodes.iter().enumerate().take(at);
        let earlier = earlier.filter(|(_, other)| other.parent == Some(parent));
        let before = earlier.rev().take(MAX_BEFORE).find_map(|(index, other)| {
            let text = other.text.clone().unwrap_or_else(|| page.text_content(index));
            (!text.trim().is_empty()).then_some((index, text))
        });
        if let Some((index, text)) = before {
            // A part of a sentence is no label.
            let is_text = page.nodes.get(index).is_some_and(|other| other.tag.is_none());
            let is_label =
                if is_text { ends_with_colon(&text) } else { !is_entry(page, at, index) };
            return Some(text).filter(|text| is_label && is_short_text(text));
        }
        if page.text_content(parent).trim() != page.text_content(at).trim() {
            return None;
        }
        at = parent;
    }
    None
}

/// Returns whether two elements are entries of a list rather than a label and its value: more than two
/// of one parent look the same.
fn is_entry(page: &PageTree, node: usize, other: usize) -> bool {
    let look = |index: usize| {
        let node = page.nodes.get(index)?;
        Some((node.tag.as_deref()?, node.attributes.get("class")))
    };
    let parent = page.nodes.get(node).and_then(|node| node.parent);
    let own = look(node);
    let alike = |index: &usize| look(*index) == own;
    alike(&other)
        && parent.is_some_and(|parent| elements_in(page, parent).filter(alike).count() > 2)
}

fn elements_in(page: &PageTree, parent: usize) -> impl Iterator<Item = usize> {
    let all = page.nodes.iter().enumerate();
    let inside = all.filter(move |(_, node)| node.parent == Some(parent) && node.tag.is_some());
    inside.map(|(index, _)| index)
}

fn has_tag(page: &PageTree, node: usize, tag: &str) -> bool {
    page.nodes.get(node).is_some_and(|node| node.tag.as_deref() == Some(tag))
}

fn ends_with_colon(text: &str) -> bool {
    text.trim_end().ends_with([':', '：'])
}

/// Returns whether a text is short and without digits, as labels are.
fn is_short_text(text: &str) -> bool {
    single_spaced(text).chars().count() <= MAX_LABEL_CHARS
        && text.contains(char::is_alphabetic)
        && !text.contains(char::is_numeric)
}

/// Returns the heading of the column of a table that an element is in: of several rows of headings, the nearest
/// one that has a text there. It is empty if none of them has one.
fn heading_of_column(page: &PageTree, node: usize) -> Option<String> {
    let parent = |node: usize| page.nodes.get(node).and_then(|node| node.parent);
    let mut cell = node;
    while !is_cell(page, cell) {
        if page.is_root(cell) || has_tag(page, cell, "table") {
            return None;
        }
        cell = parent(cell)?;
    }
    let row = parent(cell)?;
    let is_alone = elements_in(page, row).count() == 1;
    let all = Cells::new(page);
    let column = all.column(cell)?;
    let headings = heading_rows(page, row).into_iter().rev().filter_map(|row| {
        let is_over =
            |(_, (first, end)): &(usize, (usize, usize))| (*first..*end).contains(&column);
        let with_columns = elements_in(page, row).filter_map(|heading| {
            let first = all.column(heading)?;
            Some((heading, (first, first.saturating_add(columns_of(page, heading)))))
        });
        let (heading, (first, end)) = with_columns.into_iter().find(is_over)?;
        // What is over all columns is the title of the table.
        let is_only = elements_in(page, row).count() == 1;
        let is_wide = end.saturating_sub(first) > 1;
        let is_title = is_only && (is_wide || (first == 0 && !is_alone));
        (!is_title && is_heading(page, heading)).then_some(heading)
    });
    let mut texts = headings.map(|heading| heading_text(page, heading)).peekable();
    texts.peek()?;
    Some(texts.find(|text| !tidy(text).is_empty()).unwrap_or_default())
}

/// Returns the rows before a row of a table that may have the headings of its columns: those of the head of the
/// table, the first one, and others that have headings alone before the first row with values; at most 20.
fn heading_rows(page: &PageTree, row: usize) -> Vec<usize> {
    let Some(table) = table_around(page, row) else { return vec![] };
    let rows = page.descendants(table).filter(|(_, node)| node.tag.as_deref() == Some("tr"));
    let rows = rows.map(|(index, _)| index).take_while(|other| *other != row);
    let own = rows.filter(|other| table_around(page, *other) == Some(table));
    let mut is_before_values = true;
    let mut found = vec![];
    for other in own {
        // Once there was a row with values, further ones are not searched: a table may have thousands.
        let has_headings_alone = || elements_in(page, other).all(|cell| has_tag(page, cell, "th"));
        is_before_values = is_before_values && has_headings_alone();
        if found.is_empty() || is_before_values || is_in_head(page, other) {
            found.push(other);
        }
        if found.len() == MAX_HEADING_ROWS {
            break;
        }
    }
    found
}

/// Returns the table that a row is in.
fn table_around(page: &PageTree, row: usize) -> Option<usize> {
    let mut at = row;
    while !has_tag(page, at, "table") {
        at = page.nodes.get(at).filter(|_| !page.is_root(at))?.parent?;
    }
    Some(at)
}

fn is_in_head(page: &PageTree, row: usize) -> bool {
    let parent = page.nodes.get(row).and_then(|row| row.parent);
    parent.is_some_and(|parent| has_tag(page, parent, "thead"))
}

/// Returns whether a cell is a heading by what it is, or by its row.
fn is_heading(page: &PageTree, cell: usize) -> bool {
    let row = page.nodes.get(cell).and_then(|cell| cell.parent);
    has_tag(page, cell, "th") || row.is_some_and(|row| is_in_head(page, row))
}

/// Returns the text of a heading that is seen; if there is none, as beside an icon, that which is for screen
/// readers, or a title. An abbreviation has its title.
fn heading_text(page: &PageTree, heading: usize) -> String {
    let mut left_out = BTreeSet::new();
    let mut text = String::new();
    for (index, node) in page.descendants(heading) {
        let is_inside = node.parent.is_some_and(|parent| left_out.contains(&parent));
        if is_inside || is_unseen(node) {
            left_out.insert(index);
            continue;
        }
        match (node.tag.as_deref(), node.attributes.get("title")) {
            (Some("abbr"), Some(title)) if !title.trim().is_empty() => {
                text.push_str(title);
                left_out.insert(index);
            }
            (Some("br"), _) => text.push(' '),
            (Some(_) | None, _) => text.push_str(node.text.as_deref().unwrap_or_default()),
        }
    }
    let is_text = |text: &String| !tidy(text).is_empty();
    let title = || {
        let own = page.nodes.get(heading).into_iter();
        let mut nodes = own.chain(page.descendants(heading).map(|(_, node)| node));
        nodes.find_map(|node| {
            let names = ["abbr", "aria-label", "title", "alt"];
            names.iter().find_map(|name| node.attributes.get(*name)).filter(|text| is_text(text))
        })
    };
    let hidden = || Some(page.text_content(heading)).filter(is_text);
    let seen = Some(text).filter(is_text);
    seen.or_else(hidden).or_else(|| title().cloned()).unwrap_or_default()
}

/// Returns whether an element is for screen readers alone, hides its text, or is an icon whose text is its name.
fn is_unseen(node: &PageNode) -> bool {
    let Some(tag) = node.tag.as_deref() else { return false };
    let has = |name: &str, value: &str| node.attributes.get(name).is_some_and(|own| own == value);
    let classes = node.attributes.get("class").map(String::as_str).unwrap_or_default();
    let is_of_unseen =
        |class: &str| UNSEEN_CLASSES.contains(&class) || class.starts_with("material-");
    !node.visible
        || NO_TEXTS.contains(&tag)
        || has("aria-hidden", "true")
        || classes.split_ascii_whitespace().any(is_of_unseen)
}

fn tidy(label: &str) -> String {
    let label = single_spaced(label);
    let label = label.trim_end_matches([':', '：', '*', ' ']);
    label.chars().take(MAX_LABEL_CHARS).collect()
}

fn single_spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
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
        match without_mark(c) {
            Some(letters) => spaced.push_str(letters),
            None => spaced.push(c),
        }
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

/// Returns what stands for a letter with a mark in a name, which has ASCII letters alone.
const fn without_mark(letter: char) -> Option<&'static str> {
    Some(match letter {
        'ä' | 'Ä' | 'æ' | 'Æ' => "ae",
        'ö' | 'Ö' | 'œ' | 'Œ' => "oe",
        'ü' | 'Ü' => "ue",
        'ß' => "ss",
        'à' | 'á' | 'â' | 'ã' | 'å' | 'ą' | 'À' | 'Á' | 'Â' | 'Ã' | 'Å' | 'Ą' => "a",
        'ç' | 'ć' | 'č' | 'Ç' | 'Ć' | 'Č' => "c",
        'è' | 'é' | 'ê' | 'ë' | 'ę' | 'ě' | 'È' | 'É' | 'Ê' | 'Ë' | 'Ę' | 'Ě' => "e",
        'ğ' | 'Ğ' => "g",
        'ì' | 'í' | 'î' | 'ï' | 'ı' | 'Ì' | 'Í' | 'Î' | 'Ï' | 'İ' => "i",
        'ł' | 'Ł' => "l",
        'ñ' | 'ń' | 'ň' | 'Ñ' | 'Ń' | 'Ň' => "n",
        'ò' | 'ó' | 'ô' | 'õ' | 'ø' | 'Ò' | 'Ó' | 'Ô' | 'Õ' | 'Ø' => "o",
        'ř' | 'Ř' => "r",
        'ś' | 'š' | 'ş' | 'Ś' | 'Š' | 'Ş' => "s",
        'ù' | 'ú' | 'û' | 'ů' | 'Ù' | 'Ú' | 'Û' | 'Ů' => "u",
        'ý' | 'ÿ' | 'Ý' => "y",
        'ź' | 'ż' | 'ž' | 'Ź' | 'Ż' | 'Ž' => "z",
        _ => return None,
    })
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
    capitalized(words.trim())
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
