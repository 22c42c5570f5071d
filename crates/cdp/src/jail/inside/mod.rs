//! The helper's side: one step after another into the jail, then the browser in our place.

use std::{
    ffi::OsString,
    fs,
    io::{self, IoSlice},
    mem::MaybeUninit,
    net::TcpListener,
    os::{fd::AsFd as _, unix::process::CommandExt as _},
    path::Path,
    process::{Command, ExitCode, Stdio},
};

use nix::{
    mount::{MsFlags, mount},
    sched::{CloneFlags, CpuSet, sched_setaffinity, unshare},
    sys::{
        prctl,
        resource::{Resource, setrlimit},
    },
    unistd::{Gid, Pid, Uid, setgroups, setresgid, setresuid},
};
use rustix::{
    fs::{Mode, OFlags, open},
    net::{
        AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
        SocketType, sendmsg, socket_with,
    },
};

use super::{Order, POLICIES, WAY_OUT};

/// Processes and threads of one browser.
const PROCESSES: u64 = 1024;
const OPEN_FILES: u64 = 4096;
/// Bytes of one file; a profile has none that large.
const FILE: u64 = 512 * 1024 * 1024;

/// Goes into the jail and becomes the program that the arguments name after the order; without one
/// it only tries, and ends.
#[must_use]
pub fn enter(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let order = arguments.next().unwrap_or_default();
    let Ok(order) = serde_json::from_slice::<Order>(order.as_encoded_bytes()) else {
        eprintln!("this is for the service's own use");
        return ExitCode::FAILURE;
    };
    match shut_in(&order).and_then(|()| become_browser(arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err((step, error)) => {
            eprintln!("{step}: {error}");
            ExitCode::FAILURE
        }
    }
}

type Step = Result<(), (&'static str, io::Error)>;

fn at<T, E: Into<io::Error>>(
    step: &'static str,
    done: Result<T, E>,
) -> Result<T, (&'static str, io::Error)> {
    done.map_err(|error| (step, error.into()))
}

fn shut_in(order: &Order) -> Step {
    let apart = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWIPC;
    if let Some(user) = order.user {
        at("mount namespace", unshare(CloneFlags::CLONE_NEWNS))?;
        hide(order)?;
        at("groups", setgroups(&[]))?;
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(user));
        at("group", setresgid(group, group, group))?;
        at("user", setresuid(user, user, user))?;
        // Whoever changes its user may not look at itself any more, and so not map itself.
        at("process attributes", prctl::set_dumpable(true))?;
        namespaces(apart)?;
    } else {
        namespaces(apart | CloneFlags::CLONE_NEWNS)?;
        hide(order)?;
    }
    bound(order)?;
    at("privileges", prctl::set_no_new_privs())?;
    at("loopback interface", loopback_up())?;
    at("way out", hand_out_way_out())
}

/// New namespaces, in which we are who we were outside.
fn namespaces(apart: CloneFlags) -> Step {
    let (user, group) = (Uid::effective(), Gid::effective());
    at("user and network namespaces", unshare(apart))?;
    at("user map", fs::write("/proc/self/setgroups", "deny"))?;
    at("user map", fs::write("/proc/self/uid_map", format!("{user} {user} 1")))?;
    at("group map", fs::write("/proc/self/gid_map", format!("{group} {group} 1")))
}

/// Empties folders that are nobody's business in there, and puts the browser's own back.
fn hide(order: &Order) -> Step {
    let nothing = None::<&Path>;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    at("private mounts", mount(nothing, "/", nothing, private, nothing))?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let own = at("browser's folder", open(&order.folder, flags, Mode::empty()))?;
    if let Some(policies) = &order.policies {
        at("policies", mount(Some(policies), POLICIES, nothing, MsFlags::MS_BIND, nothing))?;
    }
    let careful = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    for folder in order.hidden.iter().filter(|folder| folder.is_dir()) {
        let size = Some("size=64k,nr_inodes=64,mode=755");
        at("empty folder", mount(Some("tmpfs"), folder, Some("tmpfs"), careful, size))?;
    }
    at("browser's folder", fs::create_dir_all(&order.folder))?;
    let own = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&own));
    at(
        "browser's folder",
        mount(Some(own.as_str()), &order.folder, nothing, MsFlags::MS_BIND, nothing),
    )
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

/// Raises `lo`, the only interface of a new network (rtnetlink(7)).
fn loopback_up() -> io::Result<()> {
    const NEW_LINK: u16 = 16;
    const REQUEST_AND_ACKNOWLEDGE: u16 = 1 | 4;
    const UP: u32 = 1;
    // No protocol is the routing protocol, whose number is zero.
    let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    let mut message = vec![];
    message.extend(32_u32.to_ne_bytes());
    message.extend(NEW_LINK.to_ne_bytes());
    message.extend(REQUEST_AND_ACKNOWLEDGE.to_ne_bytes());
    // Sequence and port; family and kind, both open; the interface, which is the first.
    message.extend([0; 12]);
    message.extend(1_i32.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    rustix::io::write(&socket, &message)?;
    let mut answer = [0_u8; 256];
    let length = rustix::io::read(&socket, &mut answer)?;
    // The header of 16 bytes, then the error: 0 or a negative number.
    let error = answer.get(..length).and_then(|answer| answer.get(16..20)?.try_into().ok());
    match error.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(-error)),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn hand_out_way_out() -> io::Result<()> {
    let listener = TcpListener::bind(WAY_OUT)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let sockets = [listener.as_fd()];
    ancillary.push(SendAncillaryMessage::ScmRights(&sockets));
    let to = rustix::stdio::stdin();
    sendmsg(to, &[IoSlice::new(&[1])], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn become_browser(mut arguments: impl Iterator<Item = OsString>) -> Step {
    let Some(program) = arguments.next() else {
        // Chromium shuts its renderers in once more, in the same way.
        let again = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWPID;
        return at("namespaces within namespaces, for Chromium's own sandbox", unshare(again));
    };
    let mut browser = Command::new(program);
    browser.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Err(("the browser", browser.exec()))
}
