//! Sessions whose applicant or browser is here: rooms, views, onlookers, and the conductor of a run.

mod applicants;
mod attest;
mod guest;
mod hub;
mod nodes;
mod observer;
mod recorder;
mod redacted_stream;
mod redactor;
mod runner;
mod snapshot;
mod viewer;

pub use self::{applicants::Applicants, hub::SessionHub, observer::Observers};
pub(crate) use self::{
    applicants::with_code,
    hub::LiveSession,
    nodes::nodes,
    recorder::Recorder,
    runner::{WorkflowRunner, run_workflow},
};
