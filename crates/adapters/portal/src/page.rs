//! How a page is made: the templates, what every one of them knows, and the headers around it.

use std::{collections::BTreeMap, fmt, sync::LazyLock};

use actix_web::{
    HttpResponse,
    http::{
        StatusCode,
        header::{
            CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_FRAME_OPTIONS,
        },
    },
};
use chrono::{DateTime, Utc};
use domain::account::Permission;
use minijinja::{
    Environment, UndefinedBehavior,
    value::{Serde, Value},
};
use ports::driving::{PortalError, SignedInUser};
use serde::Serialize;
use url::Url;

use crate::{assets, error::answer};

/// Nothing but our own, nowhere but here, and in nobody's frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

macro_rules! templates {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../web/", $name)))),+]
    };
}

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.add_filter("capitalize_first", |text: &str| {
        let mut letters = text.chars();
        let first = letters.next().map(|first| first.to_uppercase().to_string());
        first.unwrap_or_default() + letters.as_str()
    });
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    for (name, text) in templates![
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
        "embedding.html",
        "failure.html",
        "factor.html",
        "forgot.html",
        "forms.html",
        "frame.html",
        "keys.html",
        "members.html",
        "overview.html",
        "receiver.html",
        "receivers.html",
        "passkey.html",
        "recovery.html",
        "secret.html",
        "session.html",
        "sessions.html",
        "sign-in.html",
        "template.html",
        "templates.html",
        "webhook-form.html",
        "webhook.html",
        "webhooks.html",
    ] {
        if let Err(error) = environment.add_template(name, text) {
            tracing::error!(%error, "a template cannot be read");
        }
    }
    environment
});

/// A page to be shown.
pub(crate) struct PortalPage {
    template: &'static str,
    values: BTreeMap<&'static str, Value>,
    /// Where films that it shows come from.
    films: Option<String>,
    /// Whether it shows a mail, in a frame.
    mail: bool,
}

/// Who looks, as templates see them.
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
    pub(crate) fn new(template: &'static str, title: &str) -> Self {
        let values = BTreeMap::from([
            ("title", Value::from(title)),
            ("build", Value::from(assets::build())),
            ("visitor", Value::from(())),
            ("form_token", Value::from("")),
            ("here", Value::from("")),
            ("trouble", Value::from(())),
        ]);
        Self { template, values, films: None, mail: false }
    }

    /// Lets the page show a film from there, which may be a store of its own.
    pub(crate) fn with_film(mut self, link: &str) -> Self {
        let origin = Url::parse(link).map(|url| url.origin().ascii_serialization());
        self.films = origin.ok();
        self
    }

    /// Lets the page show a mail of ours in a frame.
    pub(crate) fn with_mail(mut self) -> Self {
        self.mail = true;
        self
    }

    /// A page for somebody who is signed in; `here` is the place in the menu.
    pub(crate) fn of_team(
        template: &'static str,
        title: &str,
        here: &str,
        visitor: &SignedInUser,
    ) -> Self {
        let shown = ShownSignIn {
            email: &visitor.email,
            role: visitor.role.as_str(),
            team: &visitor.team_name,
            works: visitor.role.may(Permission::Work),
            governs: visitor.role.may(Permission::Govern),
            operates: visitor.role.may(Permission::Operate),
        };
        Self::new(template, title)
            .with("visitor", shown)
            .with("form_token", visitor.form_token.expose())
            .with("here", here)
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Serialize) -> Self {
        self.values.insert(name, Value::from(Serde(value)));
        self
    }

    pub(crate) fn shown(self) -> HttpResponse {
        self.of(StatusCode::OK)
    }

    /// The page, with what was wrong with the form that was sent.
    pub(crate) fn refused(self, error: &PortalError) -> HttpResponse {
        answer(self.with("trouble", error.to_string()), error)
    }

    fn policy(&self) -> String {
        let films = self.films.as_ref().map(|origin| format!("; media-src {origin}"));
        let mail = if self.mail { "; frame-src 'self'" } else { "" };
        format!("{POLICY}{mail}{}", films.unwrap_or_default())
    }

    pub(crate) fn of(self, status: StatusCode) -> HttpResponse {
        let made =
            TEMPLATES.get_template(self.template).and_then(|page| page.render(Serde(&self.values)));
        match made {
            Ok(html) => HttpResponse::build(status)
                .insert_header((CONTENT_TYPE, "text/html; charset=utf-8"))
                .insert_header((CONTENT_SECURITY_POLICY, self.policy()))
                .insert_header((X_FRAME_OPTIONS, "DENY"))
                // Forms say where they come from; nobody else is told.
                .insert_header((REFERRER_POLICY, "same-origin"))
                .insert_header((CACHE_CONTROL, "no-store"))
                .body(html),
            Err(error) => {
                let template = self.template;
                tracing::error!(?error, template, "a page could not be made");
                HttpResponse::InternalServerError().body("this page could not be made")
            }
        }
    }
}

/// A moment as a page shows it, and as machines read it.
#[derive(Serialize)]
pub(crate) struct PageTime {
    iso: String,
    text: String,
}

impl fmt::Display for PageTime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl From<DateTime<Utc>> for PageTime {
    fn from(at: DateTime<Utc>) -> Self {
        Self {
            iso: at.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
            text: at.format("%Y-%m-%d %H:%M UTC").to_string(),
        }
    }
}
