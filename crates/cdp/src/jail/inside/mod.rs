//! The helper: sets the sandbox up and runs the browser in it.
//!
//! It consists of two processes. The launcher, which the service starts, creates the namespaces and
//! waits; it stays outside of the PID namespace, which only children enter (`pid_namespaces(7)`).
//! The init process of that namespace builds the file system, drops all privileges, starts the
//! browser, reaps orphans and exits with the browser. When it exits, the kernel kills every other
//! process of the namespace.

mod calls;
mod init;
mod network;
mod paths;
mod privileges;
mod root;

use std::{
    env,
    ffi::OsString,
    io::{self, Write as _},
    process::{Command, ExitCode},
};

use nix::{
    sched::{CloneFlags, unshare},
    unistd::{Gid, Uid, getpid, sethostname},
};

use super::Order;

/// The error has the name of the step that failed.
type Step<T = ()> = Result<T, (&'static str, io::Error)>;

fn at<T, E: Into<io::Error>>(step: &'static str, done: Result<T, E>) -> Step<T> {
    done.map_err(|error| (step, error.into()))
}

/// Runs the program that the arguments name after the order in the sandbox, and exits as it does.
/// Without a program it only sets the sandbox up, and exits with success if that worked.
#[must_use]
pub fn enter(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let order = arguments.next().unwrap_or_default();
    let Ok(order) = serde_json::from_slice::<Order>(order.as_encoded_bytes()) else {
        eprintln!("this is for the service's own use");
        return ExitCode::FAILURE;
    };
    // The service never starts the helper as the first process of a namespace; the launcher does.
    let inside = getpid().as_raw() == 1;
    let ended = if inside { init::run(&order, arguments) } else { launch(&order, arguments) };
    match ended {
        Ok(code) => code,
        Err((step, error)) => {
            // The reader may be gone, and `eprintln!` would panic.
            let _ = writeln!(io::stderr(), "{step}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The launcher: creates the namespaces, starts the init process in them, and waits for it.
fn launch(order: &Order, mut arguments: impl Iterator<Item = OsString>) -> Step<ExitCode> {
    let apart = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWCGROUP;
    if order.user.is_some() {
        at("namespaces, as root (is CAP_SYS_ADMIN there?)", unshare(apart))?;
    } else {
        privileges::user_namespace(apart)?;
        privileges::raise_ambient()?;
    }
    at("host name", sethostname("localhost"))?;
    let mut init = Command::new("/proc/self/exe");
    let mut init = at("init process", init.args(env::args_os().skip(1)).spawn())?;
    if arguments.next().is_some() {
        init::close_pipes();
    }
    if let Some(user) = order.user {
        privileges::switch_user(Uid::from_raw(user), Gid::from_raw(user))?;
    }
    privileges::drop_all()?;
    at("filter of system calls", calls::filter())?;
    let ended = at("init process", init.wait())?;
    Ok(ended
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}
