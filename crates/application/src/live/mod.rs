//! Sessions whose applicant, observer or browser is connected to this process, and the run of their
//! workflow.

mod applicants;
mod attest;
mod devices;
mod fixture;
mod guest;
mod hub;
mod nodes;
mod observer;
mod recorder;
mod redacted_stream;
mod redactor;
mod runner;
mod snapshot;
mod start;
mod viewer;

pub use self::{
    applicants::Applicants,
    devices::SessionDevices,
    fixture::FixtureCapture,
    hub::{RETRY_OFFER, SessionHub},
    observer::Observers,
    runner::{AuthorTools, NO_SHOW_TTL},
    start::SessionStarter,
};
pub(crate) use self::{
    devices::with_code,
    hub::{LiveSession, WaitingSession},
    nodes::nodes,
    recorder::Recorder,
    runner::{WorkflowRunner, run_workflow},
};

#[cfg(test)]
mod tests;
