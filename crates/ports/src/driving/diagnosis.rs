//! The diagnosis of a deployment.

use async_trait::async_trait;

use crate::diagnostic::Diagnosis;

/// Examines what the service depends on.
#[async_trait]
pub trait DiagnosisService: Send + Sync {
    /// Examines everything at once, within half a minute. Returns the results in a fixed order; each
    /// subject has at least one.
    async fn diagnose(&self) -> Vec<DiagnosedSubject>;
}

/// What was found about one subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiagnosedSubject {
    pub subject: &'static str,
    pub diagnosis: Diagnosis,
}
