//! The browser's sandbox: an unprivileged user of its own if the service runs as root, a root file
//! system that contains only what it needs (an allow-list), namespaces, no capabilities, seccomp, Landlock
//! and resource limits.
//!
//! Only a process with one thread can create a user namespace, so a helper does it: our own program
//! started again. It starts the init process of the browser's PID namespace, and that starts the
//! browser once everything is set up. The browser's network namespace has a loopback interface with
//! one listening socket, and nothing else. The helper creates the socket and passes it to the
//! service; the proxy that the service runs on it is the browser's only connection to a network.

mod helper;
mod installation;
mod root_certificates;

use std::{
    io::{self, IoSliceMut, Read as _},
    mem::MaybeUninit,
    net::{SocketAddr, TcpListener},
    os::{
        fd::OwnedFd,
        unix::{fs::chown, net::UnixStream, process::CommandExt as _},
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use rustix::{
    net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg},
    process::{Pid, Signal, kill_process_group},
};
use serde::{Deserialize, Serialize};

pub use self::{
    helper::enter,
    installation::{Installation, InstallationError},
    root_certificates::write_root_certificates,
};

/// The address of the proxy inside the sandbox, the browser's only egress.
pub(crate) const PROXY_ADDRESS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 3128);
/// The time from the start of the helper until it sends the socket.
const HELPER_TIMEOUT: Duration = Duration::from_secs(30);
/// The time in which a helper that sent nothing may still write why, before it is killed.
const HELPER_END_DELAY: Duration = Duration::from_millis(200);
/// Bytes read of the error of a helper that failed.
pub(crate) const MAX_HELPER_ERROR_BYTES: u64 = 4096;

/// How browsers are sandboxed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// A program that calls [`enter`] with all arguments after `arguments`, first thing and with
    /// one thread.
    pub helper: PathBuf,
    pub arguments: Vec<String>,
    /// The browser, and the files of this machine that it may read.
    pub installation: Installation,
    /// Additional root certificates for browsers, as `write_root_certificates` wrote them. They replace the
    /// machine's own managed policies.
    pub policies: Option<PathBuf>,
    /// Cores that one browser may use at once.
    pub cores: usize,
}

/// The configuration that is passed to the helper, as JSON.
#[derive(Debug, Serialize, Deserialize)]
struct SandboxConfig {
    /// The browser's own folder, the only one on disk that it may write to.
    folder: PathBuf,
    installation: Installation,
    policies: Option<PathBuf>,
    user: Option<u32>,
    cores: Vec<usize>,
}

/// Kernel features that add to the sandbox and that this kernel lacks. The sandbox works without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MissingFeatures(u8);

impl MissingFeatures {
    const NO_LANDLOCK: u8 = 1;
    const OLD_LANDLOCK: u8 = 2;
    const FULL_PROC: u8 = 4;
    const ALL: [(u8, &'static str); 3] = [
        (
            Self::NO_LANDLOCK,
            "Landlock is not available (not compiled in, or not in the kernel's lsm= list): the \
             mount namespace alone limits which files a browser can access",
        ),
        (
            Self::OLD_LANDLOCK,
            "Landlock is older than version 6 (Linux 6.12): it limits files, while signals, \
             abstract sockets and TCP ports are limited by namespaces alone",
        ),
        (
            Self::FULL_PROC,
            "procfs has no subset=pid (before Linux 5.8): a browser can read system-wide files in \
             /proc, such as meminfo and modules",
        ),
    ];

    /// One sentence for each missing feature and its consequence, without a full stop.
    pub fn descriptions(self) -> impl Iterator<Item = &'static str> {
        Self::ALL
            .into_iter()
            .filter(move |(bit, _)| self.0 & bit != 0)
            .map(|(_, description)| description)
    }
}

/// The index of a browser's slot, which determines its user and its cores.
#[derive(Debug, Clone, Copy)]
struct SlotIndex(usize);

impl SlotIndex {
    /// Returns one of sixty-four users that no distribution assigns (systemd, "Users, Groups, UIDs and
    /// GIDs", 2024: 60514…60577 is unused); `None` unless the service is root, which alone can change
    /// users.
    fn user(self) -> Option<u32> {
        let offset = u32::try_from(self.0 % 64).unwrap_or_default();
        rustix::process::geteuid().is_root().then_some(60_514 + offset)
    }

    /// Returns this many cores of the machine, spread over the slots.
    fn cores(self, wanted: usize) -> Vec<usize> {
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        (0..wanted.clamp(1, all)).map(|core| (self.0 * wanted + core) % all).collect()
    }
}

/// What an operator can do about a step that was refused, by the beginning of the helper's error.
const HINTS: &[(&str, &str)] = &[
    (
        "namespaces, as root",
        "give the container CAP_SYS_ADMIN, or run the service as an ordinary user",
    ),
    (
        "user namespace",
        "allow unprivileged user namespaces (in a container, with its seccomp profile; on Ubuntu, \
         kernel.apparmor_restrict_unprivileged_userns=0)",
    ),
    (
        "a new /proc",
        "the container masks parts of /proc, and the kernel then refuses a new procfs: start it \
         with --security-opt systempaths=unconfined (Docker), unmask=ALL (Podman) or procMount: \
         Unmasked (Kubernetes)",
    ),
    ("filter of system calls", "the kernel needs CONFIG_SECCOMP_FILTER"),
];
const OTHER_HINT: &str =
    "allow unshare, clone, mount, umount2 and pivot_root in the container's seccomp profile";

/// The reason why a sandbox cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("failed to start the sandbox's helper")]
    Helper(#[source] io::Error),
    #[error("{0}")]
    Forbidden(String),
    #[error("the sandbox's helper did not respond")]
    NotResponding,
}

impl SandboxError {
    /// Returns what an operator can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        let error = self.to_string();
        let hint = HINTS.iter().find(|(step, _)| error.starts_with(step));
        hint.map_or(OTHER_HINT, |(_, hint)| hint)
    }
}

impl Sandbox {
    /// Sets the sandbox up once without a browser, in a folder that is created and removed. Returns
    /// the optional features that the kernel lacks.
    ///
    /// # Errors
    /// The kernel, or the container's policy, refuses a step that the sandbox needs.
    pub fn check(&self, folder: &Path) -> Result<MissingFeatures, SandboxError> {
        std::fs::create_dir_all(folder).map_err(SandboxError::Helper)?;
        let mut command = self.command(folder, 0)?;
        let (socket, helper_socket) = UnixStream::pair().map_err(SandboxError::Helper)?;
        command.env_clear().stdin(OwnedFd::from(helper_socket));
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut helper = command.spawn().map_err(SandboxError::Helper)?;
        drop(command);
        let received = receive_listener(&socket);
        if received.is_err() {
            // A helper that hangs is not waited for: its processes hold the pipe of its errors.
            drop(socket);
            std::thread::sleep(HELPER_END_DELAY);
            let _ = kill_process_group(Pid::from_child(&helper), Signal::KILL);
        }
        let mut helper_error = String::new();
        if let Some(stderr) = helper.stderr.take() {
            let _ = stderr.take(MAX_HELPER_ERROR_BYTES).read_to_string(&mut helper_error);
        }
        let ended = helper.wait().map_err(SandboxError::Helper)?;
        let _ = std::fs::remove_dir_all(folder);
        match received {
            Ok((_, missing)) if ended.success() => Ok(missing),
            Err(error) if helper_error.trim().is_empty() => Err(error),
            Ok(_) if helper_error.trim().is_empty() => {
                Err(SandboxError::Forbidden(format!("the sandbox's helper ended with {ended}")))
            }
            Ok(_) | Err(_) => Err(SandboxError::Forbidden(helper_error.trim().to_owned())),
        }
    }

    /// One line for the log: the browser's program, its library folders and its user.
    #[must_use]
    pub fn summary(&self) -> String {
        let user =
            if SlotIndex(0).user().is_some() { "another user" } else { "the service's user" };
        format!("{}, as {user}", self.installation)
    }

    /// The browser's program, to be passed to the helper.
    pub(crate) fn program(&self) -> &Path {
        &self.installation.program
    }

    /// The command of the helper. The caller appends the browser's program and arguments, and sets a
    /// UNIX socket as standard input: the helper sends the listening socket through it, and all
    /// processes of the sandbox are killed when the other end is closed. `slot` is a number that no
    /// other running browser has.
    ///
    /// # Errors
    /// The owner of the folder cannot be changed to the browser's user.
    pub fn command(&self, folder: &Path, slot: usize) -> Result<Command, SandboxError> {
        let slot = SlotIndex(slot);
        let user = slot.user();
        if let Some(user) = user {
            for part in [folder, &folder.join("profile")] {
                match chown(part, Some(user), Some(user)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(SandboxError::Helper(error));
                    }
                    Ok(()) | Err(_) => (),
                }
            }
        }
        let config = SandboxConfig {
            folder: folder.to_owned(),
            installation: self.installation.clone(),
            policies: self.policies.clone(),
            user,
            cores: slot.cores(self.cores),
        };
        let config = serde_json::to_string(&config).map_err(|e| SandboxError::Helper(e.into()))?;
        let mut command = Command::new(&self.helper);
        command.args(&self.arguments).arg(config).current_dir("/").process_group(0);
        Ok(command)
    }
}

/// Waits for the listening socket from the sandbox, and for the features that are missing there.
pub(crate) fn receive_listener(
    socket: &UnixStream,
) -> Result<(TcpListener, MissingFeatures), SandboxError> {
    socket.set_read_timeout(Some(HELPER_TIMEOUT)).map_err(SandboxError::Helper)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut parts = [IoSliceMut::new(&mut byte)];
    let message = recvmsg(socket, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC);
    let message = message.map_err(|error| SandboxError::Helper(error.into()))?;
    if message.bytes == 0 || message.flags.contains(ReturnFlags::CTRUNC) {
        return Err(SandboxError::NotResponding);
    }
    let sockets = ancillary.drain().filter_map(|message| {
        if let RecvAncillaryMessage::ScmRights(mut sockets) = message {
            sockets.next()
        } else {
            None
        }
    });
    let listener = sockets.last().ok_or(SandboxError::NotResponding)?;
    let listener = TcpListener::from(listener);
    listener.set_nonblocking(true).map_err(SandboxError::Helper)?;
    Ok((listener, MissingFeatures(byte[0])))
}
