//! The helper: sets the sandbox up and runs the browser in it.
//!
//! It consists of two processes. The launcher, which the service starts, creates the namespaces and
//! waits; it stays outside of the PID namespace, which only children enter (`pid_namespaces(7)`).
//! The init process of that namespace builds the file system, drops all privileges, starts the
//! browser, reaps orphans and exits with the browser. When it exits, the kernel kills every other
//! process of the namespace.

mod init;
mod landlock_rules;
mod network;
mod privileges;
mod root;
mod syscalls;

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

use super::SandboxConfig;

/// The result of a step of the setup; the error has the name of the step that failed.
type Step<T = ()> = Result<T, (&'static str, io::Error)>;

/// Adds the name of the step to an error.
fn step<T, E: Into<io::Error>>(step: &'static str, done: Result<T, E>) -> Step<T> {
    done.map_err(|error| (step, error.into()))
}

/// Sets the sandbox up as the first argument configures it, runs the program of the other arguments
/// in it, and returns its exit code. Without a program, only sets the sandbox up, and returns success
/// if that worked.
#[must_use]
pub fn enter(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let json = arguments.next().unwrap_or_default();
    let Ok(config) = serde_json::from_slice::<SandboxConfig>(json.as_encoded_bytes()) else {
        eprintln!("this command is for the service's own use");
        return ExitCode::FAILURE;
    };
    // The service never starts the helper as the first process of a namespace; the launcher does.
    let is_init = getpid().as_raw() == 1;
    let ended = if is_init { init::run(&config, arguments) } else { launch(&config, arguments) };
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
fn launch(config: &SandboxConfig, mut arguments: impl Iterator<Item = OsString>) -> Step<ExitCode> {
    let namespaces = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWCGROUP;
    if config.user.is_some() {
        step("namespaces, as root (is CAP_SYS_ADMIN there?)", unshare(namespaces))?;
    } else {
        privileges::user_namespace(namespaces)?;
        privileges::raise_ambient()?;
    }
    step("host name", sethostname("localhost"))?;
    let mut init = Command::new("/proc/self/exe");
    let mut init = step("init process", init.args(env::args_os().skip(1)).spawn())?;
    if arguments.next().is_some() {
        init::close_pipes();
    }
    if let Some(user) = config.user {
        privileges::switch_user(Uid::from_raw(user), Gid::from_raw(user))?;
    }
    privileges::drop_all()?;
    step("filter of system calls", syscalls::install_filter())?;
    let ended = step("init process", init.wait())?;
    Ok(ended
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}
