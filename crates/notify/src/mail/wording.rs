//! A team's own wording of a mail: Markdown with a few variables and one condition, no HTML of its
//! own.
//!
//! Variables become one character each before the Markdown is read, and what they stand for only
//! after: nothing that a receiver is called can be markup.

use std::collections::BTreeMap;

use domain::template::TemplateText;
use minijinja::HtmlEscape;
use ports::notifier::RenderedMail;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, html::push_html};

use super::{
    read_aloud::read_aloud,
    words::{Facts, around, sandbox},
};

/// The first of the characters that stand for variables; texts cannot have any of them (Unicode,
/// section 23.5, private use).
const FIRST: char = '\u{F8F0}';
const LINK: &str = "link";
const ELSEWHERE: &str = "a link leads to {{ link }}, or to an https:// address without variables";
const MARKUP: &str = "there are paragraphs, headings, lists, emphasis and links in Markdown";
const BUTTON: &str = "display:inline-block;padding:12px 20px;border-radius:8px;color:#ffffff;\
    text-decoration:none;font-weight:600;background:";

/// Everything that is wrong with a wording, for whoever wrote it.
pub(super) fn flaws(wording: &TemplateText, facts: &Facts) -> Vec<String> {
    let mut flaws: Vec<String> = [&wording.subject, &wording.body]
        .iter()
        .flat_map(|text| unknown_tags(text, facts))
        .collect();
    if !flaws.is_empty() {
        return flaws;
    }
    // All that a condition can make of it.
    let nameless = Facts { name: "", ..*facts };
    for facts in [facts, &nameless] {
        match stand_ins(&wording.subject, facts) {
            Err(error) => flaws.push(format!("the subject cannot be read: {error}")),
            Ok(subject) if subject.trim().is_empty() => {
                flaws.push("the subject is empty for some receivers".into());
            }
            Ok(subject) if subject.contains(facts.stand_in(LINK)) => {
                flaws.push("the link does not belong in the subject".into());
            }
            Ok(_) => (),
        }
        match stand_ins(&wording.body, facts) {
            Err(error) => flaws.push(format!("the text cannot be read: {error}")),
            Ok(body) => flaws.extend(markup_flaws(&body, facts)),
        }
    }
    flaws.sort();
    flaws.dedup();
    flaws
}

/// The mail, of a wording without flaws.
pub(super) fn write(
    wording: &TemplateText,
    facts: &Facts,
) -> Result<RenderedMail, minijinja::Error> {
    let filled = |text: String| facts.fill(&text);
    let subject = filled(stand_ins(&wording.subject, facts)?);
    let body = stand_ins(&wording.body, facts)?;
    let mut html = String::new();
    push_html(&mut html, personal(&body, facts).into_iter());
    let text = filled(read_aloud(Parser::new_ext(&body, Options::empty())));
    // When it expires is said in any case.
    let says_when = body.contains(facts.stand_in("expires"));
    around(wording.language, facts, &subject, (&text, html), !says_when)
}

/// Tags that are more than a variable or the condition whether there is one.
fn unknown_tags(text: &str, facts: &Facts) -> Vec<String> {
    let known = |name: &str| facts.all().iter().any(|(known, _)| *known == name);
    let names: Vec<_> = facts.all().iter().map(|(name, _)| *name).collect();
    let names = names.join(", ");
    let mut flaws = vec![];
    if text.chars().any(|c| ('\u{E000}'..='\u{F8FF}').contains(&c)) {
        flaws.push("characters for private use cannot be in it".into());
    }
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('{') {
        let (close, body) = if let Some(body) = after.strip_prefix('{') {
            ("}}", body)
        } else if let Some(body) = after.strip_prefix('%') {
            ("%}", body)
        } else if after.starts_with('#') {
            flaws.push("`{#` is not taken".into());
            break;
        } else {
            rest = after;
            continue;
        };
        let Some((inner, later)) = body.split_once(close) else {
            flaws.push(format!("a `{close}` is missing"));
            break;
        };
        rest = later;
        let inner = inner.trim();
        let condition = inner.strip_prefix("if ").is_some_and(|name| known(name.trim()));
        let word = condition || inner == "else" || inner == "endif";
        if (close == "}}" && !known(inner)) || (close == "%}" && !word) {
            flaws.push(format!(
                "`{inner}` is not known: there are {{{{ variable }}}} and {{% if variable %}} with \
                 {{% else %}} and {{% endif %}}, of {names}"
            ));
        }
    }
    flaws
}

/// A text with a character for each variable that has something to say.
fn stand_ins(text: &str, facts: &Facts) -> Result<String, minijinja::Error> {
    let stand_in = |name: &str, value: &str| {
        if value.is_empty() { String::new() } else { facts.stand_in(name).to_string() }
    };
    let all: BTreeMap<_, _> =
        facts.all().iter().map(|(name, value)| (*name, stand_in(name, value))).collect();
    sandbox().render_str(text, all)
}

/// What a mail cannot have, and a link that leads nowhere or is missing.
fn markup_flaws(body: &str, facts: &Facts) -> Vec<String> {
    let link = facts.stand_in(LINK).to_string();
    let (mut flaws, mut leads) = (vec![], false);
    for event in Parser::new_ext(body, Options::empty()) {
        if let Some(what) = refused(&event) {
            flaws.push(format!("{what} cannot be in a mail: {MARKUP}"));
        }
        if let Event::Start(Tag::Link { dest_url, .. }) = &event {
            let own = **dest_url == *link;
            leads |= own;
            if !own && !is_elsewhere(dest_url, facts) {
                flaws.push(ELSEWHERE.to_owned());
            }
        } else if let Event::Text(text) = &event {
            leads |= text.contains(&link);
        }
    }
    if !leads {
        flaws.push("{{ link }} is missing for some receivers".into());
    }
    flaws
}

fn is_elsewhere(address: &str, facts: &Facts) -> bool {
    let plain = facts.all().iter().all(|(name, _)| !address.contains(facts.stand_in(name)));
    plain
        && address
            .strip_prefix("https://")
            .is_some_and(|rest| !rest.starts_with(['/', '?', '#']) && !rest.is_empty())
}

/// What a part is that mails are not to have.
fn refused(event: &Event<'_>) -> Option<&'static str> {
    if matches!(event, Event::Html(_) | Event::InlineHtml(_) | Event::Start(Tag::HtmlBlock)) {
        return Some("HTML");
    }
    if matches!(event, Event::Rule) {
        return Some("a line across");
    }
    let Event::Start(tag) = event else { return None };
    if matches!(tag, Tag::Image { .. }) {
        Some("a picture")
    } else if matches!(tag, Tag::CodeBlock(_)) {
        Some("a block of code (an indented line is one)")
    } else if matches!(tag, Tag::BlockQuote(_)) {
        Some("a quotation")
    } else {
        None
    }
}

/// The parts of a text, with everything in place of what stood for it.
fn personal<'a>(body: &'a str, facts: &Facts) -> Vec<Event<'a>> {
    let (link, address) = (facts.stand_in(LINK), facts.fill(&facts.stand_in(LINK).to_string()));
    let anchor = |address: &str, style: &str| {
        let style = if style.is_empty() { String::new() } else { format!(" style=\"{style}\"") };
        Event::InlineHtml(format!("<a href=\"{}\"{style}>", HtmlEscape(address)).into())
    };
    let button = format!("{BUTTON}{}", facts.look.colour);
    let (mut parts, mut linked) = (vec![], false);
    for event in Parser::new_ext(body, Options::empty()) {
        if let Event::Start(Tag::Link { dest_url, .. }) = &event {
            linked = true;
            let own = dest_url.chars().eq([link]);
            parts.push(if own { anchor(&address, &button) } else { anchor(dest_url, "") });
        } else if matches!(event, Event::End(TagEnd::Link)) {
            linked = false;
            parts.push(Event::InlineHtml("</a>".into()));
        } else if let Event::Text(text) = &event {
            for (at, piece) in text.split(link).enumerate() {
                if at > 0 {
                    // In a link there is no other.
                    let ends = if linked { "" } else { "</a>" };
                    parts.extend((!linked).then(|| anchor(&address, "")));
                    parts.push(Event::Text(address.clone().into()));
                    parts.push(Event::InlineHtml(ends.into()));
                }
                parts.push(Event::Text(facts.fill(piece).into()));
            }
        } else if let Event::Code(text) = &event {
            parts.push(Event::Code(facts.fill(text).into()));
        } else {
            parts.push(event);
        }
    }
    parts
}

impl Facts<'_> {
    /// Each variable and what it stands for.
    fn all(&self) -> [(&'static str, &str); 6] {
        [
            ("sender", self.sender),
            ("name", self.name),
            ("platform", self.platform),
            (LINK, self.link),
            ("expires", self.expires),
            ("service", super::words::SERVICE),
        ]
    }

    fn stand_in(&self, name: &str) -> char {
        let mut characters = FIRST..='\u{F8FF}';
        let at = self.all().iter().position(|(known, _)| *known == name).unwrap_or(0);
        characters.nth(at).unwrap_or(FIRST)
    }

    fn fill(&self, text: &str) -> String {
        let values: BTreeMap<char, &str> =
            self.all().iter().map(|(name, value)| (self.stand_in(name), *value)).collect();
        let mut filled = String::new();
        for letter in text.chars() {
            match values.get(&letter) {
                Some(value) => filled.push_str(value),
                None => filled.push(letter),
            }
        }
        filled
    }
}

#[cfg(test)]
mod tests;
