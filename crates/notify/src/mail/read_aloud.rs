//! Markdown as a mail without markup has it: links with their addresses, lists with their marks.

use pulldown_cmark::{Event, Tag, TagEnd};

/// The text of a document that has nothing but paragraphs, headings, lists, emphasis and links.
pub(super) fn read_aloud<'a>(events: impl Iterator<Item = Event<'a>>) -> String {
    let mut page = Page::default();
    for event in events {
        if let Event::Text(text) | Event::Code(text) = &event {
            page.text.push_str(text);
        } else if matches!(event, Event::SoftBreak | Event::HardBreak) {
            page.text.push('\n');
        } else if let Event::Start(tag) = event {
            page.begin(tag);
        } else if let Event::End(tag) = event {
            page.end(tag);
        }
    }
    page.text.trim().to_owned()
}

#[derive(Default)]
struct Page {
    text: String,
    /// The number of the next item in each list that is open, where it has numbers.
    lists: Vec<Option<u64>>,
    /// Where the text of a link began, and where it leads.
    link: Option<(usize, String)>,
}

impl Page {
    fn begin(&mut self, tag: Tag<'_>) {
        if let Tag::List(first) = tag {
            self.gap(1);
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
            self.gap(if self.lists.is_empty() { 2 } else { 1 });
        } else if matches!(tag, TagEnd::Link) {
            self.end_link();
        } else if matches!(tag, TagEnd::Paragraph | TagEnd::Heading(_)) {
            self.gap(2);
        }
    }

    /// Ends a line, and leaves one empty for each more.
    fn gap(&mut self, breaks: usize) {
        let there = self.text.len() - self.text.trim_end_matches('\n').len();
        if !self.text.is_empty() {
            self.text.push_str(&"\n".repeat(breaks.saturating_sub(there)));
        }
    }

    fn item(&mut self) {
        self.gap(1);
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
        let Some((from, address)) = self.link.take() else { return };
        if self.text.get(from..) != Some(&address) {
            self.text.push_str(": ");
            self.text.push_str(&address);
        }
    }
}
