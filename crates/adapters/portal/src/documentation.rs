//! Where pages of the portal lead in the documentation, which the same host serves.

use domain::error_code::ErrorCode;
use serde::Serialize;

/// The start page of the documentation.
pub(crate) const HOME: &str = "/docs/";
/// The page that describes each error code under its name in lower case.
const ERRORS: &str = "/docs/errors.html";

/// An error code, and where the documentation describes it.
#[derive(Serialize)]
pub(crate) struct ErrorLink {
    code: String,
    link: Option<String>,
}

impl From<String> for ErrorLink {
    fn from(code: String) -> Self {
        let link = of_error(&code);
        Self { code, link }
    }
}

/// Returns where the documentation describes an error code of a session; `None` for a text that is
/// no code of the catalogue.
fn of_error(code: &str) -> Option<String> {
    let code = ErrorCode::named(code)?;
    Some(format!("{ERRORS}#{}", code.as_str().to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_code_leads_to_its_section() {
        let link = of_error("ACCOUNT_LOCKED");
        assert_eq!(link.as_deref(), Some("/docs/errors.html#account_locked"));
        assert_eq!(of_error("\"><script>"), None);
    }
}
