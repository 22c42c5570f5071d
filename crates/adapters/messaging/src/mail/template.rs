//! A team's own template of a mail: Markdown with a few variables and one kind of condition, without
//! HTML.
//!
//! Each variable is replaced by a placeholder character before the Markdown is parsed, and the
//! placeholders by the values only after that, so that no value can be markup.

use std::collections::BTreeMap;

use domain::template::TemplateText;
use minijinja::HtmlEscape;
use ports::notifier::RenderedMail;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, html::push_html};

use super::{
    plain_text::plain_text,
    translations::{MailContext, render_with_content, sandbox},
};

/// The first of the placeholder characters, which templates cannot contain (Unicode, section 23.5,
/// private use).
const FIRST_PLACEHOLDER: char = '\u{F8F0}';
const LINK: &str = "link";
const LINK_TARGETS: &str = "links must go to {{ link }} or to an https:// URL without variables";
const BUTTON_STYLE: &str = "display:inline-block;padding:12px 20px;border-radius:8px;color:#ffffff;\
    text-decoration:none;font-weight:600;background:";

/// Returns all validation errors of a template, for its author.
pub(super) fn validate(wording: &TemplateText, context: &MailContext) -> Vec<String> {
    let mut errors: Vec<String> = [&wording.subject, &wording.body]
        .iter()
        .flat_map(|text| unknown_tags(text, context))
        .collect();
    if !errors.is_empty() {
        return errors;
    }
    // Both outcomes of every condition.
    let nameless = MailContext { name: "", ..*context };
    for context in [context, &nameless] {
        match with_placeholders(&wording.subject, context) {
            Err(error) => errors.push(format!("the subject has a syntax error: {error}")),
            Ok(subject) if subject.trim().is_empty() => {
                errors.push("the subject is empty for some recipients".into());
            }
            Ok(subject) if subject.contains(context.placeholder(LINK)) => {
                errors.push("the subject can't contain the link".into());
            }
            Ok(_) => (),
        }
        match with_placeholders(&wording.body, context) {
            Err(error) => errors.push(format!("the body has a syntax error: {error}")),
            Ok(body) => errors.extend(markup_errors(&body, context)),
        }
    }
    errors.sort();
    errors.dedup();
    errors
}

/// Renders the mail of a valid template.
pub(super) fn render(
    wording: &TemplateText,
    context: &MailContext,
) -> Result<RenderedMail, minijinja::Error> {
    let filled = |text: String| context.fill(&text);
    let subject = filled(with_placeholders(&wording.subject, context)?);
    let body = with_placeholders(&wording.body, context)?;
    let mut html = String::new();
    push_html(&mut html, filled_events(&body, context).into_iter());
    let text = filled(plain_text(Parser::new_ext(&body, Options::empty())));
    // The expiry is always shown, by the template or below it.
    let shows_expiry = body.contains(context.placeholder("expires"));
    render_with_content(wording.language, context, &subject, (&text, html), !shows_expiry)
}

/// Returns an error for each tag that is neither a variable nor a condition on one.
fn unknown_tags(text: &str, context: &MailContext) -> Vec<String> {
    let is_variable =
        |name: &str| context.variables().iter().any(|(variable, _)| *variable == name);
    let names: Vec<_> = context.variables().iter().map(|(name, _)| *name).collect();
    let names = names.join(", ");
    let mut errors = vec![];
    if text.chars().any(|c| ('\u{E000}'..='\u{F8FF}').contains(&c)) {
        errors.push("private use characters aren't supported".into());
    }
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('{') {
        let (close, body) = if let Some(body) = after.strip_prefix('{') {
            ("}}", body)
        } else if let Some(body) = after.strip_prefix('%') {
            ("%}", body)
        } else if after.starts_with('#') {
            errors.push("`{#` isn't supported".into());
            break;
        } else {
            rest = after;
            continue;
        };
        let Some((inner, remaining)) = body.split_once(close) else {
            errors.push(format!("`{close}` is missing"));
            break;
        };
        rest = remaining;
        let inner = inner.trim();
        let condition = inner.strip_prefix("if ").is_some_and(|name| is_variable(name.trim()));
        let is_statement = condition || inner == "else" || inner == "endif";
        if (close == "}}" && !is_variable(inner)) || (close == "%}" && !is_statement) {
            errors.push(format!(
                "`{inner}` isn't supported. Use {{{{ variable }}}} and {{% if variable %}} with \
                 {{% else %}} and {{% endif %}}. Variables: {names}"
            ));
        }
    }
    errors
}

/// Renders a text with a placeholder for each variable that is not empty.
fn with_placeholders(text: &str, context: &MailContext) -> Result<String, minijinja::Error> {
    let placeholder = |name: &str, value: &str| {
        if value.is_empty() { String::new() } else { context.placeholder(name).to_string() }
    };
    let all: BTreeMap<_, _> =
        context.variables().iter().map(|(name, value)| (*name, placeholder(name, value))).collect();
    sandbox().render_str(text, all)
}

/// Returns an error for unsupported markup, and for a link that is invalid or missing.
fn markup_errors(body: &str, context: &MailContext) -> Vec<String> {
    let link = context.placeholder(LINK).to_string();
    let (mut errors, mut has_link) = (vec![], false);
    for event in Parser::new_ext(body, Options::empty()) {
        if let Some(what) = unsupported(&event) {
            errors.push(format!(
                "{what} isn't supported in emails; use paragraphs, headings, lists, emphasis and links"
            ));
        }
        if let Event::Start(Tag::Link { dest_url, .. }) = &event {
            let is_own = **dest_url == *link;
            has_link |= is_own;
            if !is_own && !is_external_link(dest_url, context) {
                errors.push(LINK_TARGETS.to_owned());
            }
        } else if let Event::Text(text) = &event {
            has_link |= text.contains(&link);
        }
    }
    if !has_link {
        errors.push("{{ link }} is missing for some recipients".into());
    }
    errors
}

fn is_external_link(address: &str, context: &MailContext) -> bool {
    let plain =
        context.variables().iter().all(|(name, _)| !address.contains(context.placeholder(name)));
    plain
        && address
            .strip_prefix("https://")
            .is_some_and(|rest| !rest.starts_with(['/', '?', '#']) && !rest.is_empty())
}

/// Names the markup of an event if it is unsupported.
fn unsupported(event: &Event<'_>) -> Option<&'static str> {
    if matches!(event, Event::Html(_) | Event::InlineHtml(_) | Event::Start(Tag::HtmlBlock)) {
        return Some("HTML");
    }
    if matches!(event, Event::Rule) {
        return Some("a horizontal rule");
    }
    let Event::Start(tag) = event else { return None };
    if matches!(tag, Tag::Image { .. }) {
        Some("an image")
    } else if matches!(tag, Tag::CodeBlock(_)) {
        Some("a code block (or an indented line)")
    } else if matches!(tag, Tag::BlockQuote(_)) {
        Some("a block quote")
    } else {
        None
    }
}

/// Returns the Markdown events of a text, with values in place of the placeholders.
fn filled_events<'a>(body: &'a str, context: &MailContext) -> Vec<Event<'a>> {
    let (link, address) =
        (context.placeholder(LINK), context.fill(&context.placeholder(LINK).to_string()));
    let anchor = |address: &str, style: &str| {
        let style = if style.is_empty() { String::new() } else { format!(" style=\"{style}\"") };
        Event::InlineHtml(format!("<a href=\"{}\"{style}>", HtmlEscape(address)).into())
    };
    let button = format!("{BUTTON_STYLE}{}", context.appearance.colour);
    let (mut events, mut in_link) = (vec![], false);
    for event in Parser::new_ext(body, Options::empty()) {
        if let Event::Start(Tag::Link { dest_url, .. }) = &event {
            in_link = true;
            let is_own = dest_url.chars().eq([link]);
            events.push(if is_own { anchor(&address, &button) } else { anchor(dest_url, "") });
        } else if matches!(event, Event::End(TagEnd::Link)) {
            in_link = false;
            events.push(Event::InlineHtml("</a>".into()));
        } else if let Event::Text(text) = &event {
            for (index, piece) in text.split(link).enumerate() {
                if index > 0 {
                    // Links cannot be nested.
                    let end = if in_link { "" } else { "</a>" };
                    events.extend((!in_link).then(|| anchor(&address, "")));
                    events.push(Event::Text(address.clone().into()));
                    events.push(Event::InlineHtml(end.into()));
                }
                events.push(Event::Text(context.fill(piece).into()));
            }
        } else if let Event::Code(text) = &event {
            events.push(Event::Code(context.fill(text).into()));
        } else {
            events.push(event);
        }
    }
    events
}

impl MailContext<'_> {
    /// Returns each variable and its value.
    fn variables(&self) -> [(&'static str, &str); 6] {
        [
            ("sender", self.sender),
            ("name", self.name),
            ("platform", self.platform),
            (LINK, self.link),
            ("expires", self.expires),
            ("service", super::translations::SERVICE_NAME),
        ]
    }

    /// Returns the placeholder of a variable.
    fn placeholder(&self, name: &str) -> char {
        let mut characters = FIRST_PLACEHOLDER..='\u{F8FF}';
        let index =
            self.variables().iter().position(|(variable, _)| *variable == name).unwrap_or(0);
        characters.nth(index).unwrap_or(FIRST_PLACEHOLDER)
    }

    /// Replaces placeholders by values.
    fn fill(&self, text: &str) -> String {
        let values: BTreeMap<char, &str> =
            self.variables().iter().map(|(name, value)| (self.placeholder(name), *value)).collect();
        let mut filled = String::new();
        for c in text.chars() {
            match values.get(&c) {
                Some(value) => filled.push_str(value),
                None => filled.push(c),
            }
        }
        filled
    }
}

#[cfg(test)]
mod tests;
