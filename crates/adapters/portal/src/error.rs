//! Error pages and redirects.

use std::fmt;

use actix_web::{
    HttpResponse, ResponseError,
    http::{
        StatusCode,
        header::{LOCATION, RETRY_AFTER},
    },
};
use ports::{
    driving::{ForwardError, PortalError},
    refusals::RefusalClass,
};

use crate::{
    account,
    message::{Message, message},
    page::PortalPage,
    reauthentication,
};

/// The time in seconds after which another process answers for one that is about to stop.
const RESTART_SECONDS: u32 = 5;

/// Why a page cannot be shown.
#[derive(Debug)]
pub(crate) enum PageError {
    /// A sign-in is required; the value is the path to return to.
    SignIn(String),
    /// The second factor is required.
    Code,
    /// A second factor has to be set up first.
    SecondFactorRequired,
    /// Re-authentication is required.
    Confirm,
    /// The form does not come from a page of the portal.
    Forged,
    NotFound,
    Refused(PortalError),
    /// The instance that has the user's studios does not answer the request.
    Studio(ForwardError),
}

impl fmt::Display for PageError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text().fmt(out)
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
            Self::SignIn(_) | Self::Code | Self::SecondFactorRequired | Self::Confirm => {
                StatusCode::SEE_OTHER
            }
            Self::Forged => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Refused(error) => status(error),
            Self::Studio(ForwardError::TooLarge) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Studio(ForwardError::Unreadable) => StatusCode::BAD_REQUEST,
            Self::Studio(ForwardError::ResponseTooLarge) => StatusCode::BAD_GATEWAY,
            Self::Studio(
                ForwardError::Ended
                | ForwardError::Unreachable
                | ForwardError::Busy
                | ForwardError::TimedOut,
            ) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn error_response(&self) -> HttpResponse {
        match self {
            Self::SignIn(next) => {
                let query = url::form_urlencoded::Serializer::new(String::new())
                    .append_pair("next", next)
                    .finish();
                redirect(&format!("/portal/sign-in?{query}"))
            }
            Self::Code => redirect("/portal/sign-in/code"),
            Self::SecondFactorRequired => redirect(account::DUTY),
            Self::Confirm => redirect(reauthentication::HERE),
            Self::Forged => {
                let mut response = self.error_page();
                response.extensions_mut().insert(RefusalClass::Form);
                response
            }
            Self::NotFound | Self::Refused(_) | Self::Studio(_) => self.error_page(),
        }
    }
}

impl PageError {
    fn error_page(&self) -> HttpResponse {
        if let Self::Refused(PortalError::Store(error)) = self {
            let error: &dyn std::error::Error = error;
            tracing::error!(error, "a page failed");
        }
        let page = PortalPage::new("failure.html", self.title()).with("text", self.text());
        match self {
            Self::Refused(error) => respond_with_error(page, error),
            Self::Studio(error) => {
                let mut response = page.respond(self.status_code());
                if let Some(seconds) = error.retry_after() {
                    response.headers_mut().insert(RETRY_AFTER, seconds.into());
                }
                response
            }
            Self::SignIn(_)
            | Self::Code
            | Self::SecondFactorRequired
            | Self::Confirm
            | Self::Forged
            | Self::NotFound => page.respond(self.status_code()),
        }
    }
}

impl PageError {
    /// Returns the text of the error's page.
    fn text(&self) -> Message {
        match self {
            Self::SignIn(_) | Self::Code => Message::error("sign in to continue"),
            Self::SecondFactorRequired => {
                Message::error("set up two-factor authentication to continue")
            }
            Self::Confirm => message_of(&PortalError::Unconfirmed),
            Self::Forged => Message::error("this form has expired. Reload the page and try again"),
            Self::NotFound => Message::error("the page doesn't exist or was moved"),
            Self::Refused(error) => message_of(error),
            Self::Studio(error) => message_of_studio(*error),
        }
    }

    /// Returns the title of the error's page.
    fn title(&self) -> Message {
        match self {
            Self::NotFound | Self::Refused(PortalError::NotFound(_)) => message("Page not found"),
            Self::Refused(PortalError::InvalidLink) => message("Link expired"),
            Self::Forged => message("Form expired"),
            Self::Refused(PortalError::Forbidden) => message("Access denied"),
            Self::Refused(PortalError::TooMany { .. }) => message("Too many attempts"),
            Self::SignIn(_)
            | Self::Code
            | Self::SecondFactorRequired
            | Self::Confirm
            | Self::Studio(_)
            | Self::Refused(
                PortalError::Unconfirmed
                | PortalError::WrongPassword
                | PortalError::PasswordRanOut
                | PortalError::WrongCode
                | PortalError::Password(_)
                | PortalError::Invalid(_)
                | PortalError::Restarting
                | PortalError::Store(_),
            ) => message("Something went wrong"),
        }
    }
}

/// Returns the text of an error for the reader of a page, who is told nothing of the store.
pub(crate) fn message_of(error: &PortalError) -> Message {
    let is_internal = matches!(error, PortalError::Store(_));
    if is_internal {
        Message::error("something went wrong on our side. Try again")
    } else {
        Message::error(error.to_string())
    }
}

/// Returns the text for an author whose request another instance has not answered.
fn message_of_studio(error: ForwardError) -> Message {
    match error {
        ForwardError::TooLarge => Message::error("the form is too large"),
        ForwardError::Unreadable => Message::error("this took too long. Try again"),
        ForwardError::ResponseTooLarge => {
            Message::error("something went wrong on our side. Try again")
        }
        ForwardError::Ended
        | ForwardError::Unreachable
        | ForwardError::Busy
        | ForwardError::TimedOut => {
            let text = "the studio can't be reached at the moment. Try again in a few seconds";
            Message::error(text)
        }
    }
}

/// Renders a page with an error, with its status and `Retry-After`.
pub(crate) fn respond_with_error(page: PortalPage, error: &PortalError) -> HttpResponse {
    let mut response = page.respond(status(error));
    if let PortalError::TooMany { retry_after } = error {
        response.headers_mut().insert(RETRY_AFTER, (*retry_after).into());
    }
    if matches!(error, PortalError::Restarting) {
        response.headers_mut().insert(RETRY_AFTER, RESTART_SECONDS.into());
    }
    response
}

/// Returns the status of an error.
fn status(error: &PortalError) -> StatusCode {
    match error {
        PortalError::NotFound(_) | PortalError::InvalidLink => StatusCode::NOT_FOUND,
        PortalError::Forbidden | PortalError::Unconfirmed => StatusCode::FORBIDDEN,
        PortalError::TooMany { .. } => StatusCode::TOO_MANY_REQUESTS,
        PortalError::WrongPassword
        | PortalError::PasswordRanOut
        | PortalError::WrongCode
        | PortalError::Password(_)
        | PortalError::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
        PortalError::Restarting => StatusCode::SERVICE_UNAVAILABLE,
        PortalError::Store(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Redirects with a GET, whatever the method of the request.
pub(crate) fn redirect(path: &str) -> HttpResponse {
    HttpResponse::SeeOther().insert_header((LOCATION, path)).finish()
}

pub(crate) async fn not_found() -> Result<HttpResponse, PageError> {
    Err(PageError::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_author_is_told_what_is_wrong_with_a_request_that_is_not_forwarded() {
        let away = "the studio can't be reached at the moment. Try again in a few seconds";
        for (error, status, text) in [
            (ForwardError::TooLarge, 413, "the form is too large"),
            (ForwardError::Unreadable, 400, "this took too long. Try again"),
            (ForwardError::ResponseTooLarge, 502, "something went wrong on our side. Try again"),
            (ForwardError::Busy, 503, away),
            (ForwardError::Unreachable, 503, away),
            (ForwardError::TimedOut, 503, away),
        ] {
            let page = PageError::Studio(error);
            assert_eq!((page.status_code().as_u16(), page.to_string().as_str()), (status, text));
        }
    }
}
