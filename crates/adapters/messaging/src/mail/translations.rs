//! The texts of notifications in ten languages, and the rendering of mails.

use std::{collections::BTreeMap, sync::LazyLock};

use domain::{
    branding::{Brand, BrandName},
    language::Language,
};
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value, context};
use ports::notifier::{Notification, RenderedMail};
use serde::Deserialize;

use super::template;
use crate::one_line;

/// The service's name, used if a partner has set no sender.
pub(super) const SERVICE_NAME: &str = "Avouch";
/// The URL of the logo that is attached to the mail (RFC 2392).
const LOGO_CONTENT_ID: &str = "cid:logo";
/// The bound on the work of rendering a template, which our own templates do not reach.
const TEMPLATE_FUEL: u64 = 10_000;

static TRANSLATIONS: LazyLock<BTreeMap<String, Translation>> =
    LazyLock::new(|| serde_json::from_str(include_str!("translations.json")).unwrap_or_default());

/// The texts of one language, each a template.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Translation {
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

/// The values of a mail's variables.
#[derive(Clone, Copy)]
pub(super) struct MailContext<'a> {
    pub(super) sender: &'a str,
    /// Empty if unknown.
    pub(super) name: &'a str,
    pub(super) platform: &'a str,
    pub(super) link: &'a str,
    pub(super) expires: &'a str,
    /// The URL to unsubscribe.
    pub(super) choice: &'a str,
    pub(super) appearance: Appearance<'a>,
}

/// The appearance of a mail.
#[derive(Clone, Copy)]
pub(super) struct Appearance<'a> {
    /// The name of the brand above the mail; empty if there is none.
    pub(super) brand: &'a str,
    /// The URL of the logo.
    pub(super) logo: Option<&'a str>,
    /// The colour of the button.
    pub(super) colour: &'a str,
}

impl Appearance<'_> {
    pub(super) const DEFAULT: Self = Self { brand: "", logo: None, colour: "#1f4fd8" };
}

/// Returns the sender's name: that of the partner, whom the applicant knows, or else the service's.
pub(crate) fn sender(letter: &Notification) -> &str {
    letter.sender.as_deref().unwrap_or(SERVICE_NAME)
}

/// Renders a short message in the recipient's language.
pub(crate) fn message(letter: &Notification) -> Result<String, minijinja::Error> {
    let translation = translation(Language::of(letter.locale.as_deref()))?;
    let values = context! { sender => sender(letter), platform => &letter.platform };
    let subject = sandbox().render_str(&translation.subject, &values)?;
    Ok(format!("{}: {}", one_line(&subject), letter.link))
}

/// Renders a mail by the team's own template, or by the default one in the recipient's language.
pub(super) fn render_notification(letter: &Notification) -> Result<RenderedMail, minijinja::Error> {
    let expires = letter.expires_at.format("%Y-%m-%d %H:%M UTC").to_string();
    let colour = letter.brand.colour.map(|colour| colour.to_string());
    let context = MailContext {
        sender: sender(letter),
        name: letter.name.as_deref().unwrap_or_default(),
        platform: &letter.platform,
        link: &letter.link,
        expires: &expires,
        choice: &letter.choice,
        appearance: appearance(
            &letter.brand,
            colour.as_deref(),
            letter.brand.logo.as_ref().map(|_| LOGO_CONTENT_ID),
        ),
    };
    match &letter.wording {
        Some(own) => template::render(own, &context),
        None => render_default(Language::of(letter.locale.as_deref()), &context),
    }
}

/// Returns the appearance of a brand's mails.
pub(super) fn appearance<'a>(
    brand: &'a Brand,
    colour: Option<&'a str>,
    logo: Option<&'a str>,
) -> Appearance<'a> {
    let name = brand.name.as_ref().map(BrandName::as_str).unwrap_or_default();
    Appearance { brand: name, logo, colour: colour.unwrap_or(Appearance::DEFAULT.colour) }
}

fn translation(language: Language) -> Result<&'static Translation, minijinja::Error> {
    let missing = || minijinja::Error::from(minijinja::ErrorKind::TemplateNotFound);
    TRANSLATIONS.get(language.tag()).ok_or_else(missing)
}

/// Returns a function that fills the variables of the default texts.
fn filler(context: &MailContext<'_>) -> impl Fn(&str) -> Result<String, minijinja::Error> {
    let values = context! {
        sender => context.sender,
        service => SERVICE_NAME,
        name => context.name,
        platform => context.platform,
        expires => context.expires,
    };
    let environment = sandbox();
    move |text| environment.render_str(text, &values)
}

fn render_default(
    language: Language,
    context: &MailContext<'_>,
) -> Result<RenderedMail, minijinja::Error> {
    let (translation, fill) = (translation(language)?, filler(context));
    let greeting =
        if context.name.is_empty() { &translation.greeting } else { &translation.greeting_by_name };
    render(
        &context.appearance,
        &context! {
            language => language.tag(),
            direction => language.direction(),
            subject => fill(&translation.subject)?,
            content => (),
            greeting => fill(greeting)?,
            body => fill(&translation.body)?,
            button => fill(&translation.button)?,
            link => context.link,
            expires => fill(&translation.expires)?,
            unexpected => fill(&translation.unexpected)?,
            sent_by => fill(&translation.sent_by)?,
            no_more => fill(&translation.no_more)?,
            choice => context.choice,
        },
    )
}

/// Renders a mail around content that is already text and HTML, with its sender and, if requested, the
/// expiry of its link.
pub(super) fn render_with_content(
    language: Language,
    context: &MailContext<'_>,
    subject: &str,
    (text, html): (&str, String),
    with_expiry: bool,
) -> Result<RenderedMail, minijinja::Error> {
    let (translation, fill) = (translation(language)?, filler(context));
    render(
        &context.appearance,
        &context! {
            language => language.tag(),
            direction => language.direction(),
            subject,
            content => context! { text, html => Value::from_safe_string(html) },
            expires => if with_expiry { fill(&translation.expires)? } else { String::new() },
            unexpected => fill(&translation.unexpected)?,
            sent_by => fill(&translation.sent_by)?,
            no_more => fill(&translation.no_more)?,
            choice => context.choice,
        },
    )
}

/// Renders a mail from these parts, which are plain text.
pub(super) fn render(
    appearance: &Appearance<'_>,
    parts: &Value,
) -> Result<RenderedMail, minijinja::Error> {
    let mut environment = sandbox();
    let look = context! { brand => appearance.brand, logo => appearance.logo, colour => appearance.colour };
    let parts = &context! { ..look, ..parts.clone() };
    let text = environment.render_str(include_str!("mail.txt"), parts)?;
    // Values are escaped here, and not before.
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    let html = environment.render_str(include_str!("mail.html"), parts)?;
    let subject = parts.get_attr("subject")?.to_string();
    Ok(RenderedMail { subject, text, html })
}

/// Returns a template environment without filters and functions, strict on undefined variables.
pub(super) fn sandbox() -> Environment<'static> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(TEMPLATE_FUEL));
    environment
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
    fn a_mail_contains_its_link_in_both_parts() {
        let mail = render_notification(&letter()).unwrap();
        assert_eq!(mail.subject, "Lender & Sons asks you to confirm your Acme account");
        assert!(mail.text.contains("\nhttps://avouch.example/embed/1?token=a&b\n"));
        assert!(mail.text.contains("until 1970-01-01 00:00 UTC"));
        let link = "href=\"https:&#x2f;&#x2f;avouch.example&#x2f;embed&#x2f;1?token=a&amp;b\"";
        assert_eq!(mail.html.matches(link).count(), 2, "{}", mail.html);
    }

    #[test]
    fn values_of_partners_are_escaped() {
        let given = "{{ link }}<img src=x onerror=alert(1)>\"'";
        let (name, sender) = (Some(given.to_owned()), Some(given.to_owned()));
        let mail = render_notification(&Notification { name, sender, ..letter() }).unwrap();
        assert!(!mail.html.contains("<img"), "{}", mail.html);
        assert!(mail.html.contains("{{ link }}&lt;img"), "{}", mail.html);
        assert!(mail.subject.starts_with(given));
    }

    #[test]
    fn every_language_has_all_texts() {
        assert_eq!(TRANSLATIONS.len(), 10);
        let english = render_notification(&letter()).unwrap();
        for language in Language::ALL.into_iter().filter(|language| *language != Language::ENGLISH)
        {
            let locale = Some(format!("{}-XX", language.tag().to_uppercase()));
            let mail = render_notification(&Notification { locale, ..letter() }).unwrap();
            assert_ne!(mail.subject, english.subject, "{language}");
            for known in ["Lender & Sons", "Acme", "Ada", "1970-01-01"] {
                assert!(mail.text.contains(known), "{language}: {known}");
            }
            let direction = if language.tag() == "ar" { "rtl" } else { "ltr" };
            let tag = format!("<html lang=\"{language}\" dir=\"{direction}\">");
            assert!(mail.html.contains(&tag), "{language}");
        }
        let unknown = Notification { locale: Some("tlh".into()), ..letter() };
        assert_eq!(render_notification(&unknown).unwrap(), english);
        let nameless = render_notification(&Notification { name: None, ..letter() }).unwrap();
        assert!(nameless.text.starts_with("Hello,\n"));
    }
}
