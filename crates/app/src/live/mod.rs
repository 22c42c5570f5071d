//! Sessions whose applicant or browser is here: rooms, views, onlookers, and the conductor of a run.

mod attest;
mod conduct;
mod discreet;
mod nodes;
mod recorder;
mod room;
mod veil;
mod view;
mod watch;

pub(crate) use self::{
    conduct::{Conductor, conduct},
    nodes::nodes,
    recorder::Recorder,
    room::Rooms,
    view::Applicants,
    watch::Watchers,
};
