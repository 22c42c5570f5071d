//! Examinations of what the service depends on, for an operator whose deployment does not work.

use std::error::Error;

use async_trait::async_trait;

/// Examines something that the service depends on, in the way in which the service uses it.
#[async_trait]
pub trait Diagnostic: Send + Sync {
    /// Returns what is examined: one or two words, different for each diagnostic.
    fn subject(&self) -> &'static str;

    /// Examines it. Nothing that is written for this remains, and no text contains a secret. The
    /// caller ends an examination that takes too long by dropping it.
    async fn examine(&self) -> Vec<Diagnosis>;
}

/// What an examination found at one point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    pub state: DiagnosisState,
    /// What was found, in one line.
    pub detail: String,
    /// What the operator can do about it; `None` if it is as it should be.
    pub advice: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiagnosisState {
    Ok,
    /// It works, but an operator should know.
    Warning,
    Failed,
}

impl DiagnosisState {
    /// Returns the name in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

impl Diagnosis {
    #[must_use]
    pub fn ok(detail: impl Into<String>) -> Self {
        Self { state: DiagnosisState::Ok, detail: detail.into(), advice: None }
    }

    #[must_use]
    pub fn warning(detail: impl Into<String>, advice: impl Into<String>) -> Self {
        let state = DiagnosisState::Warning;
        Self { state, detail: detail.into(), advice: Some(advice.into()) }
    }

    /// Returns a failure with an error and its causes in one line, after what was examined.
    #[must_use]
    pub fn error(place: &str, error: &(dyn Error + 'static), advice: impl Into<String>) -> Self {
        let (mut detail, mut cause) = (format!("{place}: {error}"), error.source());
        while let Some(error) = cause {
            detail = format!("{detail}: {error}");
            cause = error.source();
        }
        Self::failed(detail, advice)
    }

    #[must_use]
    pub fn failed(detail: impl Into<String>, advice: impl Into<String>) -> Self {
        let state = DiagnosisState::Failed;
        Self { state, detail: detail.into(), advice: Some(advice.into()) }
    }
}
