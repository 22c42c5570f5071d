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
    super::{MissingFeatures, PROXY_ADDRESS, SandboxConfig},
    Step, landlock_rules, network, privileges, root, step, syscalls,
};

/// Processes and threads of a browser's user. Instances on one machine give their browsers the same users,
/// and Chromium ends where it cannot start a thread: a page with frames of 70 sites needs several hundred.
const MAX_PROCESSES: u64 = 2048;
/// Open files of one process.
const MAX_OPEN_FILES: u64 = 4096;
/// Bytes of one file; the files of a profile are smaller.
const MAX_FILE_BYTES: u64 = 512 * 1024 * 1024;
/// The browser's ends of the DevTools pipes.
const DEVTOOLS_FDS: [i32; 2] = [3, 4];

/// Sets the sandbox up, runs the browser, and returns its exit code.
pub(super) fn run(
    config: &SandboxConfig,
    mut arguments: impl Iterator<Item = OsString>,
) -> Step<ExitCode> {
    let missing_proc = root::enter(config)?;
    step("loopback interface", network::loopback_up())?;
    let listener = step("proxy socket", TcpListener::bind(PROXY_ADDRESS))?;
    set_limits(config)?;
    if let Some(user) = config.user {
        privileges::switch_user_in_namespace(Uid::from_raw(user), Gid::from_raw(user))?;
    }
    privileges::clear_bounding_set()?;
    privileges::drop_all()?;
    // After the change of users, which clears it. The launcher has one thread, so this fires only
    // when the launcher itself ends.
    step("parent death signal", prctl::set_pdeathsig(Signal::SIGKILL))?;
    // Processes of the sandbox, which are the same user, cannot trace this one.
    step("process attributes", prctl::set_dumpable(false))?;
    let landlock = step("Landlock", landlock_rules::restrict(config))?;
    step("filter of system calls", syscalls::install_filter())?;
    let missing = MissingFeatures(missing_proc | landlock);
    let send_listener = || step("proxy socket", network::send_listener(&listener, missing));
    let Some(program) = arguments.next() else {
        step("the browser's program", access(&config.installation.program, Access::EXEC_OK))?;
        // Chromium's own sandbox creates these for its renderers.
        let nested =
            CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWPID;
        step("namespaces within namespaces, for Chromium's own sandbox", unshare(nested))?;
        send_listener()?;
        return Ok(ExitCode::SUCCESS);
    };
    let browser = start_browser(Path::new(&program), arguments)?;
    send_listener()?;
    drop(listener);
    close_pipes();
    thread::spawn(exit_with_service);
    Ok(reap(browser))
}

/// Closes our copies of the DevTools pipes, so that the service sees the browser close its own.
pub(super) fn close_pipes() {
    for pipe in DEVTOOLS_FDS {
        let _ = close(pipe);
    }
}

/// Sets the resource limits, and the cores.
fn set_limits(config: &SandboxConfig) -> Step {
    for (resource, limit) in [
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_NPROC, MAX_PROCESSES),
        (Resource::RLIMIT_NOFILE, MAX_OPEN_FILES),
        (Resource::RLIMIT_FSIZE, MAX_FILE_BYTES),
    ] {
        step("limits", setrlimit(resource, limit, limit))?;
    }
    let mut cores = CpuSet::new();
    for core in &config.cores {
        step("cores", cores.set(*core))?;
    }
    // Not fatal: the cores may not be available to the service any more.
    let _ = sched_setaffinity(Pid::from_raw(0), &cores);
    Ok(())
}

fn start_browser(program: &Path, arguments: impl Iterator<Item = OsString>) -> Step<Pid> {
    let mut browser = Command::new(program);
    browser.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let browser = step("the browser", browser.spawn())?;
    let pid = i32::try_from(browser.id()).map_err(io::Error::other);
    Ok(Pid::from_raw(step("the browser", pid)?))
}

/// Exits when the service closes the other end of standard input, which it keeps open for the lifetime
/// of the browser. This ends a browser that does not exit by itself when the service is killed.
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
