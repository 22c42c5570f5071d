//! What a mail says, in ten languages.

use std::{collections::BTreeMap, sync::LazyLock};

use domain::{
    branding::{Brand, BrandName},
    language::Language,
};
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value, context};
use ports::notifier::{Notification, RenderedMail};
use serde::Deserialize;

use super::wording;
use crate::one_line;

/// The service's own name, where a partner gave none.
pub(super) const SERVICE: &str = "Avouch";
/// The logo in the mail itself (RFC 2392).
const ENCLOSED: &str = "cid:logo";
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
    no_more: String,
}

/// What a mail is about.
#[derive(Clone, Copy)]
pub(super) struct Facts<'a> {
    pub(super) sender: &'a str,
    /// Empty where it is not known.
    pub(super) name: &'a str,
    pub(super) platform: &'a str,
    pub(super) link: &'a str,
    pub(super) expires: &'a str,
    /// Where more mails are refused.
    pub(super) choice: &'a str,
    pub(super) look: Look<'a>,
}

/// What it looks like.
#[derive(Clone, Copy)]
pub(super) struct Look<'a> {
    /// Whose mail it is, above it; empty: nobody's.
    pub(super) brand: &'a str,
    /// Where the logo is.
    pub(super) logo: Option<&'a str>,
    /// Of the button.
    pub(super) colour: &'a str,
}

impl Look<'_> {
    pub(super) const OURS: Self = Self { brand: "", logo: None, colour: "#1f4fd8" };
}

/// Who it is from: the partner's customer knows the partner, not us.
pub(crate) fn sender(letter: &Notification) -> &str {
    letter.sender.as_deref().unwrap_or(SERVICE)
}

/// What a short message says, in the receiver's language.
pub(crate) fn message(letter: &Notification) -> Result<String, minijinja::Error> {
    let words = words(Language::of(letter.locale.as_deref()))?;
    let known = context! { sender => sender(letter), platform => &letter.platform };
    let asks = sandbox().render_str(&words.subject, &known)?;
    Ok(format!("{}: {}", one_line(&asks), letter.link))
}

/// Writes a mail in the team's own words, or in ours in the receiver's language.
pub(super) fn write(letter: &Notification) -> Result<RenderedMail, minijinja::Error> {
    let expires = letter.expires_at.format("%Y-%m-%d %H:%M UTC").to_string();
    let colour = letter.brand.colour.map(|colour| colour.to_string());
    let facts = Facts {
        sender: sender(letter),
        name: letter.name.as_deref().unwrap_or_default(),
        platform: &letter.platform,
        link: &letter.link,
        expires: &expires,
        choice: &letter.choice,
        look: look(&letter.brand, colour.as_deref(), letter.brand.logo.as_ref().map(|_| ENCLOSED)),
    };
    match &letter.wording {
        Some(own) => wording::write(own, &facts),
        None => write_ours(Language::of(letter.locale.as_deref()), &facts),
    }
}

/// What mails of a brand look like.
pub(super) fn look<'a>(
    brand: &'a Brand,
    colour: Option<&'a str>,
    logo: Option<&'a str>,
) -> Look<'a> {
    let name = brand.name.as_ref().map(BrandName::as_str).unwrap_or_default();
    Look { brand: name, logo, colour: colour.unwrap_or(Look::OURS.colour) }
}

fn words(language: Language) -> Result<&'static Words, minijinja::Error> {
    let missing = || minijinja::Error::from(minijinja::ErrorKind::TemplateNotFound);
    WORDS.get(language.tag()).ok_or_else(missing)
}

/// Fills the gaps of our own texts.
fn speaker(facts: &Facts<'_>) -> impl Fn(&str) -> Result<String, minijinja::Error> {
    let known = context! {
        sender => facts.sender,
        service => SERVICE,
        name => facts.name,
        platform => facts.platform,
        expires => facts.expires,
    };
    let plain = sandbox();
    move |text| plain.render_str(text, &known)
}

fn write_ours(language: Language, facts: &Facts<'_>) -> Result<RenderedMail, minijinja::Error> {
    let (words, say) = (words(language)?, speaker(facts));
    let greeting = if facts.name.is_empty() { &words.greeting } else { &words.greeting_by_name };
    render(
        &facts.look,
        &context! {
            language => language.tag(),
            direction => language.direction(),
            subject => say(&words.subject)?,
            content => (),
            greeting => say(greeting)?,
            body => say(&words.body)?,
            button => say(&words.button)?,
            link => facts.link,
            expires => say(&words.expires)?,
            unexpected => say(&words.unexpected)?,
            sent_by => say(&words.sent_by)?,
            no_more => say(&words.no_more)?,
            choice => facts.choice,
        },
    )
}

/// A mail around a content that is text and HTML already: until when its link works, where that is
/// to be said, and who sent it.
pub(super) fn around(
    language: Language,
    facts: &Facts<'_>,
    subject: &str,
    (text, html): (&str, String),
    says_when: bool,
) -> Result<RenderedMail, minijinja::Error> {
    let (words, say) = (words(language)?, speaker(facts));
    render(
        &facts.look,
        &context! {
            language => language.tag(),
            direction => language.direction(),
            subject,
            content => context! { text, html => Value::from_safe_string(html) },
            expires => if says_when { say(&words.expires)? } else { String::new() },
            unexpected => say(&words.unexpected)?,
            sent_by => say(&words.sent_by)?,
            no_more => say(&words.no_more)?,
            choice => facts.choice,
        },
    )
}

/// A mail of these parts, which are plain text.
pub(super) fn render(look: &Look<'_>, parts: &Value) -> Result<RenderedMail, minijinja::Error> {
    let mut plain = sandbox();
    let look = context! { brand => look.brand, logo => look.logo, colour => look.colour };
    let parts = &context! { ..look, ..parts.clone() };
    let text = plain.render_str(include_str!("letter.txt"), parts)?;
    // What people gave is escaped here, and nowhere before.
    plain.set_auto_escape_callback(|_| AutoEscape::Html);
    let html = plain.render_str(include_str!("letter.html"), parts)?;
    let subject = parts.get_attr("subject")?.to_string();
    Ok(RenderedMail { subject, text, html })
}

pub(super) fn sandbox() -> Environment<'static> {
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

    fn letter() -> Notification {
        Notification {
            id: NotificationId::from_uuid(Uuid::nil()),
            channel: Channel::Email,
            address: "ada@example.com".into(),
            name: Some("Ada".into()),
            locale: None,
            sender: Some("Lender & Sons".into()),
            brand: Brand::default(),
            wording: None,
            platform: "Acme".into(),
            link: "https://avouch.example/embed/1?token=a&b".into(),
            choice: "https://avouch.example/unsubscribe/ab?lang=en".into(),
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
        let written = write(&Notification { name, sender, ..letter() }).unwrap();
        assert!(!written.html.contains("<img"), "{}", written.html);
        assert!(written.html.contains("{{ link }}&lt;img"), "{}", written.html);
        assert!(written.subject.starts_with(given));
    }

    #[test]
    fn each_of_ten_languages_says_everything() {
        assert_eq!(WORDS.len(), 10);
        let english = write(&letter()).unwrap();
        for language in Language::ALL.into_iter().filter(|one| *one != Language::ENGLISH) {
            let locale = Some(format!("{}-XX", language.tag().to_uppercase()));
            let written = write(&Notification { locale, ..letter() }).unwrap();
            assert_ne!(written.subject, english.subject, "{language}");
            for known in ["Lender & Sons", "Acme", "Ada", "1970-01-01"] {
                assert!(written.text.contains(known), "{language}: {known}");
            }
            let direction = if language.tag() == "ar" { "rtl" } else { "ltr" };
            let tag = format!("<html lang=\"{language}\" dir=\"{direction}\">");
            assert!(written.html.contains(&tag), "{language}");
        }
        let unknown = Notification { locale: Some("tlh".into()), ..letter() };
        assert_eq!(write(&unknown).unwrap(), english);
        let nameless = write(&Notification { name: None, ..letter() }).unwrap();
        assert!(nameless.text.starts_with("Hello,\n"));
    }
}
