//! What a mail says, in ten languages.

use std::{collections::BTreeMap, sync::LazyLock};

use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value, context};
use ports::notifier::Letter;
use serde::Deserialize;

/// The service's own name, where a partner gave none.
pub(super) const SERVICE: &str = "Avouch";
const FALLBACK: &str = "en";
/// Those that are written from right to left.
const LEFTWARD: &[&str] = &["ar"];
/// More than any template of ours takes.
const FUEL: u64 = 10_000;

static WORDS: LazyLock<BTreeMap<String, Words>> =
    LazyLock::new(|| serde_json::from_str(include_str!("words.json")).unwrap_or_default());

/// One language; each text is a template of its own.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Words {
    subject: String,
    greeting: String,
    greeting_by_name: String,
    body: String,
    button: String,
    expires: String,
    unexpected: String,
    sent_by: String,
}

/// A mail as it is read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) subject: String,
    pub(super) text: String,
    pub(super) html: String,
}

/// Who it is from: the partner's customer knows the partner, not us.
pub(super) fn sender(letter: &Letter) -> &str {
    letter.sender.as_deref().unwrap_or(SERVICE)
}

/// Writes a mail in the receiver's language, or in English.
pub(super) fn write(letter: &Letter) -> Result<Written, minijinja::Error> {
    let asked = letter.locale.as_deref().unwrap_or(FALLBACK).to_ascii_lowercase();
    let asked = asked.split('-').next().unwrap_or(FALLBACK);
    let language = if WORDS.contains_key(asked) { asked } else { FALLBACK };
    let missing = || minijinja::Error::from(minijinja::ErrorKind::TemplateNotFound);
    let words = WORDS.get(language).ok_or_else(missing)?;

    let plain = sandbox();
    let known = context! {
        sender => sender(letter),
        service => SERVICE,
        name => &letter.name,
        platform => &letter.platform,
        expires => letter.expires_at.format("%Y-%m-%d %H:%M UTC").to_string(),
    };
    let say = |text: &str| plain.render_str(text, &known);
    let greeting = if letter.name.is_some() { &words.greeting_by_name } else { &words.greeting };
    render(&context! {
        language,
        direction => if LEFTWARD.contains(&language) { "rtl" } else { "ltr" },
        subject => say(&words.subject)?,
        greeting => say(greeting)?,
        body => say(&words.body)?,
        button => say(&words.button)?,
        link => &letter.link,
        expires => say(&words.expires)?,
        unexpected => say(&words.unexpected)?,
        sent_by => say(&words.sent_by)?,
    })
}

/// A mail of these parts, which are plain text.
pub(super) fn render(parts: &Value) -> Result<Written, minijinja::Error> {
    let mut plain = sandbox();
    let text = plain.render_str(include_str!("letter.txt"), parts)?;
    // What people gave is escaped here, and nowhere before.
    plain.set_auto_escape_callback(|_| AutoEscape::Html);
    let html = plain.render_str(include_str!("letter.html"), parts)?;
    let subject = parts.get_attr("subject")?.to_string();
    Ok(Written { subject, text, html })
}

fn sandbox() -> Environment<'static> {
    let mut plain = Environment::empty();
    plain.set_undefined_behavior(UndefinedBehavior::Strict);
    plain.set_fuel(Some(FUEL));
    plain
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use domain::{id::NotificationId, notification::Channel};
    use uuid::Uuid;

    use super::*;

    fn letter() -> Letter {
        Letter {
            id: NotificationId::from_uuid(Uuid::nil()),
            channel: Channel::Email,
            address: "ada@example.com".into(),
            name: Some("Ada".into()),
            locale: None,
            sender: Some("Lender & Sons".into()),
            platform: "Acme".into(),
            link: "https://avouch.example/embed/1?token=a&b".into(),
            expires_at: DateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_mail_has_its_link_in_both_parts() {
        let written = write(&letter()).unwrap();
        assert_eq!(written.subject, "Lender & Sons asks you to confirm your Acme account");
        assert!(written.text.contains("\nhttps://avouch.example/embed/1?token=a&b\n"));
        assert!(written.text.contains("until 1970-01-01 00:00 UTC"));
        let link = "href=\"https:&#x2f;&#x2f;avouch.example&#x2f;embed&#x2f;1?token=a&amp;b\"";
        assert_eq!(written.html.matches(link).count(), 2, "{}", written.html);
    }

    #[test]
    fn what_partners_give_is_text_and_no_markup() {
        let given = "{{ link }}<img src=x onerror=alert(1)>\"'";
        let (name, sender) = (Some(given.to_owned()), Some(given.to_owned()));
        let written = write(&Letter { name, sender, ..letter() }).unwrap();
        assert!(!written.html.contains("<img"), "{}", written.html);
        assert!(written.html.contains("{{ link }}&lt;img"), "{}", written.html);
        assert!(written.subject.starts_with(given));
    }

    #[test]
    fn each_of_ten_languages_says_everything() {
        assert_eq!(WORDS.len(), 10);
        let english = write(&letter()).unwrap();
        for language in WORDS.keys().filter(|language| *language != FALLBACK) {
            let locale = Some(format!("{}-XX", language.to_uppercase()));
            let written = write(&Letter { locale, ..letter() }).unwrap();
            assert_ne!(written.subject, english.subject, "{language}");
            for known in ["Lender & Sons", "Acme", "Ada", "1970-01-01"] {
                assert!(written.text.contains(known), "{language}: {known}");
            }
            let direction = if language == "ar" { "rtl" } else { "ltr" };
            let tag = format!("<html lang=\"{language}\" dir=\"{direction}\">");
            assert!(written.html.contains(&tag), "{language}");
        }
        let unknown = Letter { locale: Some("tlh".into()), ..letter() };
        assert_eq!(write(&unknown).unwrap(), english);
        let nameless = write(&Letter { name: None, ..letter() }).unwrap();
        assert!(nameless.text.starts_with("Hello,\n"));
    }
}
