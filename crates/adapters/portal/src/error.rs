//! What somebody sees where a page cannot be shown.

use std::fmt;

use actix_web::{
    HttpResponse, ResponseError,
    http::{
        StatusCode,
        header::{LOCATION, RETRY_AFTER},
    },
};
use ports::{driving::PortalError, refusals::RefusalClass};

use crate::{account, page::PortalPage, reauthentication};

/// Why there is no page.
#[derive(Debug)]
pub(crate) enum PageError {
    /// They are to sign in first, and come back here.
    SignIn(String),
    /// They are to show their code first.
    Code,
    /// They are to set up a second factor first.
    Duty,
    /// They are to confirm first who they are.
    Confirm,
    /// What was sent came from no page of ours.
    Forged,
    NotThere,
    Refused(PortalError),
}

impl fmt::Display for PageError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SignIn(_) | Self::Code => out.write_str("sign in first"),
            Self::Duty => out.write_str("set up two-factor authentication first"),
            Self::Confirm => PortalError::Unconfirmed.fmt(out),
            Self::Forged => out.write_str("that form is too old, or was not ours: try again"),
            Self::NotThere => out.write_str("there is no such page"),
            Self::Refused(error) => error.fmt(out),
        }
    }
}

impl From<PortalError> for PageError {
    fn from(error: PortalError) -> Self {
        Self::Refused(error)
    }
}

impl ResponseError for PageError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::SignIn(_) | Self::Code | Self::Duty | Self::Confirm => StatusCode::SEE_OTHER,
            Self::Forged => StatusCode::FORBIDDEN,
            Self::NotThere => StatusCode::NOT_FOUND,
            Self::Refused(error) => status(error),
        }
    }

    fn error_response(&self) -> HttpResponse {
        match self {
            Self::SignIn(back) => {
                let query = url::form_urlencoded::Serializer::new(String::new())
                    .append_pair("next", back)
                    .finish();
                see(&format!("/portal/sign-in?{query}"))
            }
            Self::Code => see("/portal/sign-in/code"),
            Self::Duty => see(account::DUTY),
            Self::Confirm => see(reauthentication::HERE),
            Self::Forged => {
                let mut response = self.shown();
                response.extensions_mut().insert(RefusalClass::Form);
                response
            }
            Self::NotThere | Self::Refused(_) => self.shown(),
        }
    }
}

impl PageError {
    fn shown(&self) -> HttpResponse {
        if let Self::Refused(PortalError::Store(error)) = self {
            let error: &dyn std::error::Error = error;
            tracing::error!(error, "a page failed");
        }
        let internal = matches!(self, Self::Refused(PortalError::Store(_)));
        let text =
            if internal { "that did not work: try again".to_owned() } else { self.to_string() };
        let page = PortalPage::new("failure.html", "Not possible").with("text", text);
        match self {
            Self::Refused(error) => answer(page, error),
            Self::SignIn(_)
            | Self::Code
            | Self::Duty
            | Self::Confirm
            | Self::Forged
            | Self::NotThere => page.of(self.status_code()),
        }
    }
}

/// A page that tells of a refusal, with its status and when to come back.
pub(crate) fn answer(page: PortalPage, error: &PortalError) -> HttpResponse {
    let mut response = page.of(status(error));
    if let PortalError::TooMany { retry_after } = error {
        response.headers_mut().insert(RETRY_AFTER, (*retry_after).into());
    }
    response
}

/// The status that a refusal has, whatever page tells of it.
fn status(error: &PortalError) -> StatusCode {
    match error {
        PortalError::NotFound(_) => StatusCode::NOT_FOUND,
        PortalError::Forbidden | PortalError::Unconfirmed => StatusCode::FORBIDDEN,
        PortalError::TooMany { .. } => StatusCode::TOO_MANY_REQUESTS,
        PortalError::WrongPassword
        | PortalError::PasswordRanOut
        | PortalError::WrongCode
        | PortalError::Password(_)
        | PortalError::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
        PortalError::Store(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Sends a browser on with a GET, whatever it did here.
pub(crate) fn see(path: &str) -> HttpResponse {
    HttpResponse::SeeOther().insert_header((LOCATION, path)).finish()
}

pub(crate) async fn nothing_here() -> Result<HttpResponse, PageError> {
    Err(PageError::NotThere)
}
