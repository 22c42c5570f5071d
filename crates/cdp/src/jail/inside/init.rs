//! The init process of the browser's PID namespace: sets the sandbox up, starts the browser, reaps
//! orphans, and exits with the browser.

use std::{
    ffi::OsString,
    io::{self, Read as _},
    net::TcpListener,
    path::Path,
    process::{Command, ExitCode, Stdio},
    thread,
};

use nix::{
    errno::Errno,
    sched::{CloneFlags, CpuSet, sched_setaffinity, unshare},
    sys::{
        prctl,
        resource::{Resource, setrlimit},
        signal::Signal,
        wait::{WaitStatus, wait},
    },
    unistd::{Gid, Pid, Uid, close},
};
use rustix::fs::{Access, access};

use super::{
    super::{MissingFeatures, Order, WAY_OUT},
    Step, at, calls, network, paths, privileges, root,
};

/// Processes and threads of one browser.
const PROCESSES: u64 = 1024;
const OPEN_FILES: u64 = 4096;
/// Bytes of one file; a profile has none that large.
const FILE: u64 = 512 * 1024 * 1024;
/// The ends of the DevTools pipes that are the browser's.
const PIPES: [i32; 2] = [3, 4];

/// Returns the browser's exit code.
pub(super) fn run(order: &Order, mut arguments: impl Iterator<Item = OsString>) -> Step<ExitCode> {
    let whole_proc = root::enter(order)?;
    at("loopback interface", network::loopback_up())?;
    let listener = at("way out", TcpListener::bind(WAY_OUT))?;
    bound(order)?;
    if let Some(user) = order.user {
        privileges::switch_user_in_namespace(Uid::from_raw(user), Gid::from_raw(user))?;
    }
    privileges::clear_bounding_set()?;
    privileges::drop_all()?;
    // After the change of users, which clears it. The launcher has one thread, so this fires only
    // when the launcher itself ends.
    at("parent death signal", prctl::set_pdeathsig(Signal::SIGKILL))?;
    // Processes of the sandbox, which are the same user, cannot trace this one.
    at("process attributes", prctl::set_dumpable(false))?;
    let landlock = at("Landlock", paths::restrict(order))?;
    at("filter of system calls", calls::filter())?;
    let missing = MissingFeatures(whole_proc | landlock);
    let hand_out = || at("way out", network::hand_out(&listener, missing));
    let Some(program) = arguments.next() else {
        at("the browser's program", access(&order.installation.program, Access::EXEC_OK))?;
        // Chromium's own sandbox creates these for its renderers.
        let again = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWPID;
        at("namespaces within namespaces, for Chromium's own sandbox", unshare(again))?;
        hand_out()?;
        return Ok(ExitCode::SUCCESS);
    };
    let browser = browser(Path::new(&program), arguments)?;
    hand_out()?;
    drop(listener);
    close_pipes();
    thread::spawn(exit_with_service);
    Ok(reap(browser))
}

/// Closes our copies of the DevTools pipes, so that the service sees the browser close its own.
pub(super) fn close_pipes() {
    for pipe in PIPES {
        let _ = close(pipe);
    }
}

fn bound(order: &Order) -> Step {
    for (resource, most) in [
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_NPROC, PROCESSES),
        (Resource::RLIMIT_NOFILE, OPEN_FILES),
        (Resource::RLIMIT_FSIZE, FILE),
    ] {
        at("limits", setrlimit(resource, most, most))?;
    }
    let mut cores = CpuSet::new();
    for core in &order.cores {
        at("cores", cores.set(*core))?;
    }
    // A set that we may not have any more is as good as none.
    let _ = sched_setaffinity(Pid::from_raw(0), &cores);
    Ok(())
}

fn browser(program: &Path, arguments: impl Iterator<Item = OsString>) -> Step<Pid> {
    let mut browser = Command::new(program);
    browser.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let browser = at("the browser", browser.spawn())?;
    let pid = i32::try_from(browser.id()).map_err(io::Error::other);
    Ok(Pid::from_raw(at("the browser", pid)?))
}

/// The service keeps the other end of standard input open for as long as the browser is to run.
/// This ends a browser that does not end by itself when the service is killed.
fn exit_with_service() {
    // Nothing is ever sent: this returns at the end of the stream.
    let _ = io::stdin().read(&mut [0]);
    std::process::exit(0);
}

/// Reaps orphaned processes until the browser itself has ended.
fn reap(browser: Pid) -> ExitCode {
    loop {
        match wait() {
            Ok(WaitStatus::Exited(pid, code)) if pid == browser => {
                return u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from);
            }
            Ok(WaitStatus::Signaled(pid, ..)) if pid == browser => return ExitCode::FAILURE,
            Ok(_) | Err(Errno::EINTR) => (),
            Err(_) => return ExitCode::FAILURE,
        }
    }
}
