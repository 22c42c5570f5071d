//! Sessions whose applicant or browser is here: rooms, views, and the conductor of a run.

mod conduct;
mod room;
mod view;

pub(crate) use self::{
    conduct::{Conductor, conduct},
    room::Rooms,
    view::Applicants,
};
