//! The trace of workflow runs.

use domain::workflow::TraceEvent;

/// Receives what runs see and decide. It has data of the applicant: a service for applicants has none.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait WorkflowTrace: Send + Sync {
    /// Records an event, in the order of the run. It must not block.
    fn record(&self, event: &TraceEvent);
}
