//! Limits and protection of this process.

use std::io;

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
};

/// Prepares this process to serve: only root may read its memory, which a browser of the same user
/// could read otherwise; and it may open as many files as the system allows, since each call to a
/// webhook endpoint is an open file, and most systems allow 1024 at first.
///
/// # Errors
/// The system refuses it.
pub fn prepare_to_serve() -> io::Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let files = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files })?;
    Ok(())
}
