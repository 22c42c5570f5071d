//! Texts of pages, which are translated when their page is rendered: the handlers that compose them
//! do not know the language of the reader.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use minijinja::HtmlEscape;
use serde::{Deserialize, Serialize};

use crate::{
    language::PageLanguage,
    translations::{Piece, capitalize_first, pieces},
};

/// A text of a page, with its values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Message {
    /// In English, with `{name}` for each value. It is the key of its translations.
    text: Cow<'static, str>,
    values: BTreeMap<Cow<'static, str>, MessageValue>,
    is_error: bool,
}

/// A value of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum MessageValue {
    Number(u64),
    /// A text that is the same in every language.
    Text(String),
    Message(Message),
}

/// A text that a template passes on: the key of a translation, or a message.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Text {
    Key(String),
    Message(Message),
}

/// Returns a message with this English text.
pub(crate) const fn message(text: &'static str) -> Message {
    Message { text: Cow::Borrowed(text), values: BTreeMap::new(), is_error: false }
}

impl Message {
    /// Returns an error for the reader. Its text is complete and in English: errors are composed
    /// where they are found, with their values, and translated by comparison with known texts.
    pub(crate) fn error(text: impl Into<Cow<'static, str>>) -> Self {
        Self { text: text.into(), values: BTreeMap::new(), is_error: true }
    }

    /// Adds the value of a `{name}` of the text.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<MessageValue>) -> Self {
        self.values.insert(Cow::Borrowed(name), value.into());
        self
    }

    /// Returns the text as HTML in a language.
    pub(crate) fn html(&self, language: PageLanguage) -> String {
        if self.is_error {
            return error_html(&self.text, language, str::to_owned);
        }
        text_html(&self.text, language, |name| Some(self.values.get(name)?.html(language)))
    }

    /// Returns the text as HTML in a language, with a capital letter at its beginning.
    pub(crate) fn sentence_html(&self, language: PageLanguage) -> String {
        if self.is_error {
            return error_html(&self.text, language, capitalize_first);
        }
        capitalize_first(&self.html(language))
    }
}

impl fmt::Display for Message {
    /// Writes the English text.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_error {
            return out.write_str(&self.text);
        }
        for piece in pieces(&self.text) {
            match piece {
                Piece::Literal(literal) => out.write_str(literal)?,
                Piece::Placeholder(name) => match self.values.get(name) {
                    Some(MessageValue::Number(number)) => number.fmt(out)?,
                    Some(MessageValue::Text(text)) => out.write_str(text)?,
                    Some(MessageValue::Message(inner)) => inner.fmt(out)?,
                    None => write!(out, "{{{name}}}")?,
                },
            }
        }
        Ok(())
    }
}

impl MessageValue {
    fn html(&self, language: PageLanguage) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => HtmlEscape(text).to_string(),
            Self::Message(message) => message.html(language),
        }
    }
}

impl From<u64> for MessageValue {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<usize> for MessageValue {
    fn from(number: usize) -> Self {
        Self::Number(u64::try_from(number).unwrap_or(u64::MAX))
    }
}

impl From<u32> for MessageValue {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<String> for MessageValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Message> for MessageValue {
    fn from(message: Message) -> Self {
        Self::Message(message)
    }
}

/// Returns the translation of a text as HTML. Texts contain no markup, while values may be markup
/// that the templates have made: `value` returns them as HTML.
pub(crate) fn text_html(
    text: &str,
    language: PageLanguage,
    value: impl Fn(&str) -> Option<String>,
) -> String {
    let translated = language.translations().and_then(|known| known.text(text)).unwrap_or(text);
    let html = pieces(translated).into_iter().map(|piece| match piece {
        Piece::Literal(literal) => escape(literal),
        Piece::Placeholder(name) => value(name).unwrap_or_else(|| format!("{{{name}}}")),
    });
    html.collect()
}

/// Returns the translation of an error as HTML; without one, the English text, marked as such.
pub(crate) fn error_html(
    text: &str,
    language: PageLanguage,
    finish: impl Fn(&str) -> String,
) -> String {
    let Some(known) = language.translations() else {
        return HtmlEscape(&finish(text)).to_string();
    };
    match known.error(text) {
        Some(translated) => HtmlEscape(&finish(&translated)).to_string(),
        None => format!("<span lang=\"en\">{}</span>", HtmlEscape(&finish(text))),
    }
}

/// Escapes a text of the portal, which may be in an element or in a quoted attribute. Apostrophes
/// and slashes stay readable in the source of the page.
fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LANGUAGES: [PageLanguage; 2] = PageLanguage::ALL;

    #[test]
    fn values_are_escaped_and_texts_are_translated() {
        let name = MessageValue::Text("<b>\"'&".to_owned());
        let inner = Message { text: "{count} days".into(), ..message("") }.with("count", 7_u64);
        let outer = Message { text: "{name}: {count}".into(), ..message("") };
        let outer = outer.with("name", inner).with("count", name);
        let html = LANGUAGES.map(|language| outer.html(language));
        let escaped = "&lt;b&gt;&quot;&#x27;&amp;";
        assert_eq!(html, [format!("7 days: {escaped}"), format!("7 Tage: {escaped}")]);
        assert_eq!(outer.to_string(), "7 days: <b>\"'&");
        let odd = Message { text: "no <such> text of \"ours\" & {none}".into(), ..message("") };
        let expected = "no &lt;such&gt; text of &quot;ours&quot; &amp; {none}";
        assert_eq!(LANGUAGES.map(|language| odd.html(language)), [expected; 2]);
    }

    #[test]
    fn an_error_without_a_translation_is_marked_as_english() {
        let known = Message::error("incorrect email or password");
        let html = LANGUAGES.map(|language| known.sentence_html(language));
        assert_eq!(
            html,
            ["Incorrect email or password", "E-Mail-Adresse oder Passwort ist falsch"]
        );
        let other = Message::error("nobody's <text>");
        let html = LANGUAGES.map(|language| other.sentence_html(language));
        let escaped = "Nobody&#x27;s &lt;text&gt;";
        assert_eq!(html, [escaped.to_owned(), format!("<span lang=\"en\">{escaped}</span>")]);
    }
}
