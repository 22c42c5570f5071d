//! The catalogue of `errorCode`: why a session did not reach its goal, with the texts for partners
//! and applicants.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The party that can resolve the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Category {
    Applicant,
    Platform,
    Service,
    Policy,
}

/// Whether a new session may succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    Worthwhile,
    Pointless,
}

macro_rules! catalogue {
    ($($variant:ident $wire:literal $category:ident $retry:ident $partner:literal $applicant:literal;)+) => {
        /// One entry of the catalogue. Codes are only ever added.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum ErrorCode { $(#[serde(rename = $wire)] $variant,)+ }

        impl ErrorCode {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $wire,)+ }
            }

            /// Returns the entry with this name.
            #[must_use]
            pub fn named(name: &str) -> Option<Self> {
                match name { $($wire => Some(Self::$variant),)+ _ => None }
            }

            #[must_use]
            pub const fn category(self) -> Category {
                match self { $(Self::$variant => Category::$category,)+ }
            }

            #[must_use]
            pub const fn retry(self) -> Retry {
                match self { $(Self::$variant => Retry::$retry,)+ }
            }

            /// Returns the text that the partner reads as `errorMessage`.
            #[must_use]
            pub const fn partner_text(self) -> &'static str {
                match self { $(Self::$variant => $partner,)+ }
            }

            /// Returns the text that the applicant reads on the outcome page.
            #[must_use]
            pub const fn applicant_text(self) -> &'static str {
                match self { $(Self::$variant => $applicant,)+ }
            }
        }
    };
}

catalogue! {
    CredentialsInvalid "CREDENTIALS_INVALID" Applicant Worthwhile
        "The platform refused the applicant's credentials" "The sign-in details were not accepted.";
    MfaFailed "MFA_FAILED" Applicant Worthwhile
        "The platform refused the second factor" "The code or approval was not accepted.";
    MfaTimeout "MFA_TIMEOUT" Applicant Worthwhile
        "The second factor was not given in time" "The code or approval did not come in time.";
    UserInputTimeout "USER_INPUT_TIMEOUT" Applicant Worthwhile
        "The applicant left or gave no input in time" "Your session timed out.";
    CaptchaTimeout "CAPTCHA_TIMEOUT" Applicant Worthwhile
        "The platform's challenge was not solved in time" "The puzzle was not solved in time.";
    AccountLocked "ACCOUNT_LOCKED" Applicant Pointless
        "The platform has locked the account" "This account is locked. Unlock it at the platform.";
    AccountActionRequired "ACCOUNT_ACTION_REQUIRED" Applicant Pointless
        "The platform asks the applicant to act on the account first" "The platform wants you to do something in your account first.";
    AlreadyLoggedInElsewhere "ALREADY_LOGGED_IN_ELSEWHERE" Applicant Worthwhile
        "The platform allows one signed-in place at a time" "You seem to be signed in somewhere else. Please sign out there first.";
    NoData "NO_DATA" Applicant Pointless
        "The account does not hold the required data" "We couldn't find the required information.";
    ConsentDeclined "CONSENT_DECLINED" Applicant Worthwhile
        "The applicant declined to share the data" "You chose not to share. No data was shared.";
    ApplicantCancelled "APPLICANT_CANCELLED" Applicant Worthwhile
        "The applicant cancelled" "You cancelled. No data was shared.";
    SessionExpired "SESSION_EXPIRED" Applicant Worthwhile
        "The session expired before it was finished" "This link has expired.";
    PlatformUnavailable "PLATFORM_UNAVAILABLE" Platform Worthwhile
        "The platform is unavailable" "The platform is not available right now.";
    PlatformRateLimited "PLATFORM_RATE_LIMITED" Platform Worthwhile
        "The platform limits the number of attempts" "The platform asks to try again later.";
    BotDetected "BOT_DETECTED" Platform Worthwhile
        "The platform refused the remote browser" "The platform refused the connection.";
    UnsupportedAuthMethod "UNSUPPORTED_AUTH_METHOD" Platform Pointless
        "The account signs in by a method that cannot be used remotely" "This way to sign in is not supported here.";
    UnexpectedPage "UNEXPECTED_PAGE" Platform Worthwhile
        "The platform showed a page that its definition does not know" "The platform showed something we did not expect.";
    DataIncomplete "DATA_INCOMPLETE" Platform Worthwhile
        "Optional data could not be read" "Some of the data could not be read.";
    BrowserUnavailable "BROWSER_UNAVAILABLE" Service Worthwhile
        "No browser could be started in time" "We could not start. Please try again.";
    BrowserLost "BROWSER_LOST" Service Worthwhile
        "The browser was lost three times" "The connection broke too often. Please try again.";
    ProxyUnavailable "PROXY_UNAVAILABLE" Service Worthwhile
        "No residential exit was available" "We could not reach the platform. Please try again.";
    GeoMismatch "GEO_MISMATCH" Service Worthwhile
        "The exit was not in the requested country" "We could not reach the platform from your country.";
    WorkflowInvalid "WORKFLOW_INVALID" Service Pointless
        "The platform's definition cannot be run" "Something went wrong on our side.";
    WorkflowNotFound "WORKFLOW_NOT_FOUND" Service Pointless
        "The platform has no definition" "Something went wrong on our side.";
    ExtractionFailed "EXTRACTION_FAILED" Service Worthwhile
        "Required data could not be read" "The data could not be read.";
    AttestationFailed "ATTESTATION_FAILED" Service Worthwhile
        "The attestation could not be made" "The data was shared, but could not be verified at the source.";
    InternalError "INTERNAL_ERROR" Service Worthwhile
        "The service failed" "Something went wrong on our side.";
    RequirementsNotMet "REQUIREMENTS_NOT_MET" Policy Pointless
        "The account does not meet the platform definition's requirements" "The account does not meet the requirements.";
    NavigationBlockedLimit "NAVIGATION_BLOCKED_LIMIT" Policy Worthwhile
        "The page tried too often to leave the platform" "The page tried to lead somewhere else.";
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_code_is_found_by_its_name() {
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::named(code.as_str()), Some(*code));
            assert_eq!(json!(code), json!(code.as_str()));
        }
        assert_eq!(ErrorCode::named("NO_SUCH_CODE"), None);
    }

    /// Links to the documentation lead to the heading of a code.
    #[test]
    fn every_code_has_a_section_in_the_documentation() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/site/src/errors.md");
        let page = std::fs::read_to_string(page).unwrap();
        let sections: Vec<_> = page.split("\n### ").collect();
        for code in ErrorCode::ALL {
            let heading = format!("{}\n", code.as_str());
            let found: Vec<_> =
                sections.iter().filter(|section| section.starts_with(&heading)).collect();
            let [section] = found[..] else { panic!("{heading}: {found:?}") };
            assert!(section.contains(code.partner_text()), "{heading}");
            let outlook = match code.retry() {
                Retry::Worthwhile => "**New session:** may succeed.",
                Retry::Pointless => "**New session:** does not help.",
            };
            assert!(section.contains(outlook), "{heading}");
        }
    }
}
