//! Sessions whose applicant or browser is here: rooms, views, onlookers, and the conductor of a run.

mod applicants;
mod attest;
mod conduct;
mod discreet;
mod guest;
mod nodes;
mod recorder;
mod room;
mod shown;
mod veil;
mod view;
mod watch;

pub use self::{applicants::Applicants, room::Rooms, watch::Watchers};
pub(crate) use self::{
    applicants::with_code,
    conduct::{Conductor, conduct},
    nodes::nodes,
    recorder::Recorder,
    room::Room,
};
