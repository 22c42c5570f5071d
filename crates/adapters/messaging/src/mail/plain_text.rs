//! Markdown as plain text, for the text part of a mail: links with their addresses, lists with their
//! markers.

use pulldown_cmark::{Event, Tag, TagEnd};

/// Renders a document that contains only paragraphs, headings, lists, emphasis and links.
pub(super) fn plain_text<'a>(events: impl Iterator<Item = Event<'a>>) -> String {
    let mut output = PlainText::default();
    for event in events {
        if let Event::Text(text) | Event::Code(text) = &event {
            output.text.push_str(text);
        } else if matches!(event, Event::SoftBreak | Event::HardBreak) {
            output.text.push('\n');
        } else if let Event::Start(tag) = event {
            output.start(tag);
        } else if let Event::End(tag) = event {
            output.end(tag);
        }
    }
    output.text.trim().to_owned()
}

#[derive(Default)]
struct PlainText {
    text: String,
    /// By open list: the number of the next item, if the list is numbered.
    lists: Vec<Option<u64>>,
    /// The start of the text of the open link, and its address.
    link: Option<(usize, String)>,
}

impl PlainText {
    fn start(&mut self, tag: Tag<'_>) {
        if let Tag::List(first) = tag {
            self.line_break(1);
            self.lists.push(first);
        } else if matches!(tag, Tag::Item) {
            self.item();
        } else if let Tag::Link { dest_url, .. } = tag {
            self.link = Some((self.text.len(), dest_url.into_string()));
        }
    }

    fn end(&mut self, tag: TagEnd) {
        if matches!(tag, TagEnd::List(_)) {
            self.lists.pop();
            self.line_break(if self.lists.is_empty() { 2 } else { 1 });
        } else if matches!(tag, TagEnd::Link) {
            self.end_link();
        } else if matches!(tag, TagEnd::Paragraph | TagEnd::Heading(_)) {
            self.line_break(2);
        }
    }

    /// Ensures that the text ends with this many line breaks, unless it is empty.
    fn line_break(&mut self, count: usize) {
        let existing = self.text.len() - self.text.trim_end_matches('\n').len();
        if !self.text.is_empty() {
            self.text.push_str(&"\n".repeat(count.saturating_sub(existing)));
        }
    }

    fn item(&mut self) {
        self.line_break(1);
        let depth = self.lists.len().saturating_sub(1);
        self.text.push_str(&"  ".repeat(depth));
        match self.lists.last_mut() {
            Some(Some(number)) => {
                self.text.push_str(&number.to_string());
                self.text.push_str(". ");
                *number += 1;
            }
            Some(None) | None => self.text.push_str("- "),
        }
    }

    fn end_link(&mut self) {
        let Some((start, address)) = self.link.take() else { return };
        if self.text.get(start..) != Some(&address) {
            self.text.push_str(": ");
            self.text.push_str(&address);
        }
    }
}
