//! Pages: the templates, their common values, and the headers. They are rendered once the language
//! of their reader is known.

use std::{collections::BTreeMap, sync::LazyLock};

use actix_web::{
    HttpResponse,
    http::{
        StatusCode,
        header::{
            CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_FRAME_OPTIONS,
        },
    },
};
use chrono::{DateTime, Datelike as _, Month, NaiveDate, Utc};
use domain::account::Permission;
use minijinja::{
    Environment, UndefinedBehavior,
    value::{Serde, Value},
};
use ports::driving::{PortalError, SignedInUser};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::{
    assets, documentation,
    error::{message_of, redirect, respond_with_error},
    language::PageLanguage,
    message::{Message, message},
    template_functions::add_functions,
};

/// The content security policy: only own resources, forms only to the portal, and no embedding.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

macro_rules! templates {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../web/", $name)))),+]
    };
}

static TEMPLATES: [(&str, &str); 36] = templates![
    "account.html",
    "approvals.html",
    "audit.html",
    "branding.html",
    "choose.html",
    "code.html",
    "confirm.html",
    "continue.html",
    "deliveries.html",
    "delivery.html",
    "draft.html",
    "embedding.html",
    "failure.html",
    "factor.html",
    "forgot.html",
    "forms.html",
    "frame.html",
    "keys.html",
    "landing.html",
    "members.html",
    "overview.html",
    "receiver.html",
    "receivers.html",
    "passkey.html",
    "platforms.html",
    "recovery.html",
    "secret.html",
    "session.html",
    "sessions.html",
    "sign-in.html",
    "template.html",
    "templates.html",
    "versions.html",
    "webhook-form.html",
    "webhook.html",
    "webhooks.html",
];

static ENGLISH: LazyLock<Environment<'static>> =
    LazyLock::new(|| new_environment(PageLanguage::English));
static GERMAN: LazyLock<Environment<'static>> =
    LazyLock::new(|| new_environment(PageLanguage::German));

/// Returns the templates with the functions that translate into a language.
fn environment(language: PageLanguage) -> &'static Environment<'static> {
    match language {
        PageLanguage::English => &ENGLISH,
        PageLanguage::German => &GERMAN,
    }
}

fn new_environment(language: PageLanguage) -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    add_functions(&mut environment, language);
    for (name, text) in TEMPLATES {
        if let Err(error) = environment.add_template(name, text) {
            tracing::error!(%error, "failed to parse a template");
        }
    }
    environment
}

/// A page to be rendered.
pub(crate) struct PortalPage {
    template: &'static str,
    values: BTreeMap<&'static str, Value>,
    /// The origin of the recordings that the page plays.
    recordings: Option<String>,
    /// Whether the page shows a mail in an iframe.
    mail: bool,
}

/// The signed-in user, as templates see them.
#[derive(Serialize)]
struct ShownSignIn<'a> {
    email: &'a str,
    role: &'a str,
    team: &'a str,
    works: bool,
    governs: bool,
    operates: bool,
}

impl PortalPage {
    pub(crate) fn new(template: &'static str, title: Message) -> Self {
        let languages = PageLanguage::ALL.map(|language| (language.tag(), language.name()));
        let values = BTreeMap::from([
            ("title", Value::from(Serde(title))),
            ("languages_of_pages", Value::from(Serde(languages))),
            ("build", Value::from(assets::build())),
            ("docs", Value::from(documentation::HOME)),
            ("visitor", Value::from(())),
            ("form_token", Value::from("")),
            ("here", Value::from("")),
            ("trouble", Value::from(())),
            ("notice", Value::from(())),
        ]);
        Self { template, values, recordings: None, mail: false }
    }

    /// Permits the page to play a recording from this link, whose origin may be an object store.
    pub(crate) fn with_recording(mut self, link: &str) -> Self {
        let origin = Url::parse(link).map(|url| url.origin().ascii_serialization());
        self.recordings = origin.ok();
        self
    }

    /// Permits the page to show a mail of ours in an iframe.
    pub(crate) fn with_mail(mut self) -> Self {
        self.mail = true;
        self
    }

    /// Returns a page for the signed-in user; `here` is the current menu entry.
    pub(crate) fn of_team(
        template: &'static str,
        title: Message,
        here: &str,
        user: &SignedInUser,
    ) -> Self {
        let into_response = ShownSignIn {
            email: &user.email,
            role: user.role.as_str(),
            team: &user.team_name,
            works: user.role.may(Permission::Edit),
            governs: user.role.may(Permission::ManageTeam),
            operates: user.role.may(Permission::Operate),
        };
        Self::new(template, title)
            .with("visitor", into_response)
            .with("form_token", user.form_token.expose())
            .with("here", here)
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Serialize) -> Self {
        self.values.insert(name, Value::from(Serde(value)));
        self
    }

    /// Adds the notice that a form's redirect names, if there is one.
    pub(crate) fn with_notice(self, query: &NoticeQuery) -> Self {
        self.with("notice", query.text())
    }

    pub(crate) fn into_response(self) -> HttpResponse {
        self.respond(StatusCode::OK)
    }

    /// Renders the page with the error of the submitted form.
    pub(crate) fn refused(self, error: &PortalError) -> HttpResponse {
        respond_with_error(self.with("trouble", message_of(error)), error)
    }

    fn policy(&self) -> String {
        let recordings = self.recordings.as_ref().map(|origin| format!("; media-src {origin}"));
        let mail = if self.mail { "; frame-src 'self'" } else { "" };
        format!("{POLICY}{mail}{}", recordings.unwrap_or_default())
    }

    /// Returns a response without a body, from which [`crate::language::render`] takes the page.
    pub(crate) fn respond(self, status: StatusCode) -> HttpResponse {
        let mut response = HttpResponse::build(status)
            .insert_header((CONTENT_TYPE, "text/html; charset=utf-8"))
            .insert_header((CONTENT_SECURITY_POLICY, self.policy()))
            .insert_header((X_FRAME_OPTIONS, "DENY"))
            // Requests of forms have a `Referer`; other origins get none.
            .insert_header((REFERRER_POLICY, "same-origin"))
            .insert_header((CACHE_CONTROL, "no-store"))
            .finish();
        response.extensions_mut().insert(self);
        response
    }

    /// Renders the page. `return_path` is where its reader comes back to after choosing another
    /// language; without it, no other language is offered.
    pub(crate) fn render(
        self,
        language: PageLanguage,
        return_path: Option<&str>,
    ) -> Result<String, minijinja::Error> {
        let page = self.with("language_of_page", language.tag()).with("return_path", return_path);
        environment(language).get_template(page.template)?.render(Serde(&page.values))
    }
}

/// What a form has done, named in the query of the page that its redirect leads to. Only the texts
/// below are shown, so that a link cannot put words of its own on a page.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct NoticeQuery {
    done: String,
}

impl NoticeQuery {
    fn text(&self) -> Option<Message> {
        let texts = [
            ("branding", message("Branding saved.")),
            ("logo", message("Logo saved.")),
            ("logo-removed", message("Logo removed.")),
            ("recipient", message("Recipient saved.")),
            ("recipient-removed", message("Recipient removed.")),
            ("key-revoked", message("API key revoked.")),
            ("draft-deleted", message("Draft deleted.")),
            ("version-chosen", message("New sessions run the version that you chose.")),
        ];
        let found = texts.into_iter().find(|(name, _)| *name == self.done);
        found.map(|(_, text)| text)
    }
}

/// Redirects to a page that shows a notice.
pub(crate) fn redirect_with_notice(path: &str, done: &str) -> HttpResponse {
    redirect(&format!("{path}?done={done}"))
}

/// A time, formatted for readers and for machines.
#[derive(Serialize)]
pub(crate) struct PageTime {
    iso: String,
    text: Message,
}

impl PageTime {
    pub(crate) fn text(self) -> Message {
        self.text
    }
}

impl From<DateTime<Utc>> for PageTime {
    fn from(at: DateTime<Utc>) -> Self {
        let part = |format| at.format(format).to_string();
        let text = message("{year}-{month}-{day} {time} UTC")
            .with("year", part("%Y"))
            .with("month", part("%m"))
            .with("day", part("%d"))
            .with("time", part("%H:%M:%S"));
        Self { iso: part("%Y-%m-%dT%H:%M:%SZ"), text }
    }
}

/// Formats a date as on the axis of a chart, such as `Jan 31`.
pub(crate) fn short_date(date: NaiveDate) -> Message {
    message("{month} {day}").with("month", short_month(date)).with("day", date.day())
}

/// Formats a date such as `Jan 31, 2026`.
pub(crate) fn long_date(date: NaiveDate) -> Message {
    message("{month} {day}, {year}")
        .with("month", short_month(date))
        .with("day", date.day())
        .with("year", date.format("%Y").to_string())
}

fn short_month(date: NaiveDate) -> Message {
    let month = u8::try_from(date.month()).ok().and_then(|month| Month::try_from(month).ok());
    match month.unwrap_or(Month::January) {
        Month::January => message("Jan"),
        Month::February => message("Feb"),
        Month::March => message("Mar"),
        Month::April => message("Apr"),
        Month::May => message("May"),
        Month::June => message("Jun"),
        Month::July => message("Jul"),
        Month::August => message("Aug"),
        Month::September => message("Sep"),
        Month::October => message("Oct"),
        Month::November => message("Nov"),
        Month::December => message("Dec"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_can_be_parsed_in_every_language() {
        for language in PageLanguage::ALL {
            for (name, _) in TEMPLATES {
                let template = environment(language).get_template(name);
                assert!(template.is_ok(), "{name}: {:?}", template.err());
            }
        }
    }

    #[test]
    fn dates_and_times_have_the_order_of_their_language() {
        let at = DateTime::from_timestamp(1_769_904_000, 0).unwrap_or_default();
        let date = at.date_naive();
        let time = PageTime::from(at);
        assert_eq!(time.iso, "2026-02-01T00:00:00Z");
        for (text, english, german) in [
            (time.text(), "2026-02-01 00:00:00 UTC", "01.02.2026, 00:00:00 UTC"),
            (short_date(date), "Feb 1", "1. Feb."),
            (long_date(date), "Feb 1, 2026", "1. Feb. 2026"),
        ] {
            assert_eq!(text.html(PageLanguage::English), english);
            assert_eq!(text.html(PageLanguage::German), german);
        }
    }
}
