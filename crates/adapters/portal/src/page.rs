//! Renders pages: the templates, their common values, and the headers.

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
use serde::{Deserialize, Serialize};
use url::Url;

use crate::{
    assets, documentation,
    error::{redirect, respond_with_error},
};

/// The content security policy: only own resources, forms only to the portal, and no embedding.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

macro_rules! templates {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../web/", $name)))),+]
    };
}

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.add_filter("capitalize_first", capitalize_first);
    environment.add_filter("label", label);
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
        "landing.html",
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
            tracing::error!(%error, "failed to parse a template");
        }
    }
    environment
});

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
    pub(crate) fn new(template: &'static str, title: &str) -> Self {
        let values = BTreeMap::from([
            ("title", Value::from(title)),
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
        title: &str,
        here: &str,
        user: &SignedInUser,
    ) -> Self {
        let into_response = ShownSignIn {
            email: &user.email,
            role: user.role.as_str(),
            team: &user.team_name,
            works: user.role.may(Permission::Work),
            governs: user.role.may(Permission::Govern),
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
        respond_with_error(self.with("trouble", error.to_string()), error)
    }

    fn policy(&self) -> String {
        let recordings = self.recordings.as_ref().map(|origin| format!("; media-src {origin}"));
        let mail = if self.mail { "; frame-src 'self'" } else { "" };
        format!("{POLICY}{mail}{}", recordings.unwrap_or_default())
    }

    pub(crate) fn respond(self, status: StatusCode) -> HttpResponse {
        let rendered =
            TEMPLATES.get_template(self.template).and_then(|page| page.render(Serde(&self.values)));
        match rendered {
            Ok(html) => HttpResponse::build(status)
                .insert_header((CONTENT_TYPE, "text/html; charset=utf-8"))
                .insert_header((CONTENT_SECURITY_POLICY, self.policy()))
                .insert_header((X_FRAME_OPTIONS, "DENY"))
                // Requests of forms have a `Referer`; other origins get none.
                .insert_header((REFERRER_POLICY, "same-origin"))
                .insert_header((CACHE_CONTROL, "no-store"))
                .body(html),
            Err(error) => {
                let template = self.template;
                tracing::error!(?error, template, "failed to render a page");
                HttpResponse::InternalServerError().body("Something went wrong. Try again.")
            }
        }
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
    fn text(&self) -> Option<&'static str> {
        let texts = [
            ("branding", "Branding saved."),
            ("logo", "Logo saved."),
            ("logo-removed", "Logo removed."),
            ("recipient", "Recipient saved."),
            ("recipient-removed", "Recipient removed."),
            ("key-revoked", "API key revoked."),
        ];
        let found = texts.into_iter().find(|(name, _)| *name == self.done);
        found.map(|(_, text)| text)
    }
}

/// Redirects to a page that shows a notice.
pub(crate) fn redirect_with_notice(path: &str, done: &str) -> HttpResponse {
    redirect(&format!("{path}?done={done}"))
}

/// Returns the label of a status, a state, a role or an environment: in sentence case, in place of
/// its name in the API.
pub(crate) fn label(name: &str) -> String {
    match name {
        "PARTIAL_COMPLETE" => "Partially complete".to_owned(),
        "exhausted" => "Failed".to_owned(),
        "off" => "Disabled".to_owned(),
        _ => capitalize_first(&name.replace('_', " ").to_lowercase()),
    }
}

fn capitalize_first(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// A time, formatted for readers and for machines.
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
            text: at.format("%Y-%m-%d %H:%M:%S UTC").to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_api_have_labels_in_sentence_case() {
        for (name, expected) in [
            ("AWAITING_USER", "Awaiting user"),
            ("PARTIAL_COMPLETE", "Partially complete"),
            ("exhausted", "Failed"),
            ("off", "Disabled"),
            ("development", "Development"),
            ("", ""),
        ] {
            assert_eq!(label(name), expected, "{name}");
        }
    }
}
