//! What a partner can do about each error code, for the pages and documents that partners read.

use crate::error_code::ErrorCode;

/// Returns what a partner can do after a session has ended with this code, as sentences.
#[must_use]
pub const fn remedy(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::CredentialsInvalid => {
            "Ask the applicant to check their sign-in details, then create a new session."
        }
        ErrorCode::MfaFailed | ErrorCode::MfaTimeout => {
            "Ask the applicant to have their phone or authenticator app ready, then create a new \
             session."
        }
        ErrorCode::UserInputTimeout | ErrorCode::CaptchaTimeout => {
            "Create a new session and ask the applicant to finish it without a long break."
        }
        ErrorCode::AccountLocked => {
            "The applicant has to unlock the account at the platform. Create a new session \
             afterwards."
        }
        ErrorCode::AccountActionRequired => {
            "The applicant has to sign in to the platform directly and complete what it asks for. \
             Create a new session afterwards."
        }
        ErrorCode::AlreadyLoggedInElsewhere => {
            "Ask the applicant to sign out of the platform on other devices, then create a new \
             session."
        }
        ErrorCode::NoData => {
            "Check that the applicant used the right account. Use another platform or another \
             method of verification if they did."
        }
        ErrorCode::ConsentDeclined => {
            "Explain to the applicant which data you need and why. Create a new session if they \
             agree."
        }
        ErrorCode::ApplicantCancelled => "Create a new session if the applicant wants to continue.",
        ErrorCode::SessionExpired => {
            "Create a new session, and send its link when the applicant is ready. You can set a \
             longer expiration."
        }
        ErrorCode::PlatformUnavailable => {
            "Wait until the platform is available again, then create a new session."
        }
        ErrorCode::PlatformRateLimited | ErrorCode::BotDetected => {
            "Wait at least an hour before you create a new session for this applicant."
        }
        ErrorCode::UnsupportedAuthMethod => {
            "Ask the applicant whether the account has another way to sign in, such as a password. \
             Otherwise use another platform."
        }
        ErrorCode::UnexpectedPage | ErrorCode::ExtractionFailed => {
            "Create a new session. If it fails again, the platform's site may have changed: contact \
             support with the session ID."
        }
        ErrorCode::DataIncomplete => {
            "Use the data that was shared. Create a new session if you need the missing fields."
        }
        ErrorCode::BrowserUnavailable => {
            "Create a new session later, or ask for a higher limit of concurrent browsers."
        }
        ErrorCode::BrowserLost | ErrorCode::InternalError => {
            "Create a new session. If it fails again, contact support with the session ID."
        }
        ErrorCode::ProxyUnavailable | ErrorCode::GeoMismatch => {
            "Check the country of the session's location, then create a new session later."
        }
        ErrorCode::WorkflowInvalid | ErrorCode::WorkflowNotFound => {
            "New sessions for this platform will fail too. Contact support."
        }
        ErrorCode::AttestationFailed => {
            "Create a new session if you need the attestation. The shared data itself is valid."
        }
        ErrorCode::RequirementsNotMet => {
            "The account doesn't qualify. A new session for the same account has the same result."
        }
        ErrorCode::NavigationBlockedLimit => {
            "Ask the applicant to stay on the platform's pages, then create a new session."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_remedy_is_whole_sentences() {
        for code in ErrorCode::ALL {
            let text = remedy(*code);
            let starts = text.starts_with(|first: char| first.is_ascii_uppercase());
            assert!(starts && text.ends_with('.') && !text.contains("  "), "{text}");
        }
    }
}
