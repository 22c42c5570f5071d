//! The browser's sandbox: an unprivileged user of its own where we are root, a root file system
//! that contains only what it needs (an allow-list), namespaces, no capabilities, seccomp, Landlock
//! and resource limits.
//!
//! Only a process with one thread can create a user namespace, so a helper does it: our own program
//! started again. It starts the init process of the browser's PID namespace, and that starts the
//! browser once everything is set up. The browser's network namespace has a loopback interface with
//! one listening socket, and nothing else. The helper creates the socket and passes it to the
//! service; the proxy that the service runs on it is the browser's only connection to a network.

mod inside;
mod installation;
mod roots;

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

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg};
use serde::{Deserialize, Serialize};

pub use self::{
    inside::enter,
    installation::{Installation, InstallationError},
    roots::write_roots,
};

/// Where the only way out is, seen from inside.
pub(crate) const WAY_OUT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 3128);
/// From the start of the helper to the socket.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes read of what a helper says before it gives up.
pub(crate) const LONGEST_COMPLAINT: u64 = 4096;

/// How browsers are sandboxed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jail {
    /// A program that calls [`enter`] with all arguments after `arguments`, first thing and with
    /// one thread.
    pub helper: PathBuf,
    pub arguments: Vec<String>,
    /// The browser, and the files of this machine that it may read.
    pub installation: Installation,
    /// Additional root certificates for browsers, as [`write_roots`] wrote them. They replace the
    /// machine's own managed policies.
    pub policies: Option<PathBuf>,
    /// Cores that one browser may use at once.
    pub cores: usize,
}

/// What the helper is told.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
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
    const WHOLE_PROC: u8 = 4;
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
            Self::WHOLE_PROC,
            "procfs has no subset=pid (before Linux 5.8): a browser can read system-wide files in \
             /proc, such as meminfo and modules",
        ),
    ];

    /// One sentence for each missing feature and its consequence, without a full stop.
    pub fn descriptions(self) -> impl Iterator<Item = &'static str> {
        Self::ALL.into_iter().filter(move |(bit, _)| self.0 & bit != 0).map(|(_, told)| told)
    }
}

/// A browser's seat: which user it is, and which cores it may use.
#[derive(Debug, Clone, Copy)]
struct Seat(usize);

impl Seat {
    /// Sixty-four users that no distribution gives to anyone (systemd, "Users, Groups, UIDs and
    /// GIDs", 2024: 60514…60577 is unused). Only root can be somebody else.
    fn user(self) -> Option<u32> {
        let offset = u32::try_from(self.0 % 64).unwrap_or_default();
        rustix::process::geteuid().is_root().then_some(60_514 + offset)
    }

    fn cores(self, wanted: usize) -> Vec<usize> {
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        (0..wanted.clamp(1, all)).map(|core| (self.0 * wanted + core) % all).collect()
    }
}

/// Why a jail cannot be.
#[derive(Debug, thiserror::Error)]
pub enum JailError {
    #[error("the jail's helper cannot be started")]
    Helper(#[source] io::Error),
    #[error("{0}")]
    Forbidden(String),
    #[error("the jail's helper did not answer")]
    Silent,
}

impl Jail {
    /// Sets the sandbox up once without a browser, in a folder that is created and removed. Returns
    /// the optional features that the kernel lacks.
    ///
    /// # Errors
    /// The kernel, or the container's policy, refuses a step that the sandbox needs.
    pub fn check(&self, folder: &Path) -> Result<MissingFeatures, JailError> {
        std::fs::create_dir_all(folder).map_err(JailError::Helper)?;
        let mut command = self.command(folder, 0)?;
        let (ours, theirs) = UnixStream::pair().map_err(JailError::Helper)?;
        command.env_clear().stdin(OwnedFd::from(theirs));
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut helper = command.spawn().map_err(JailError::Helper)?;
        drop(command);
        let received = receive(&ours);
        let mut complaint = String::new();
        if let Some(stderr) = helper.stderr.take() {
            let _ = stderr.take(LONGEST_COMPLAINT).read_to_string(&mut complaint);
        }
        let ended = helper.wait().map_err(JailError::Helper)?;
        let _ = std::fs::remove_dir_all(folder);
        match received {
            Ok((_, missing)) if ended.success() => Ok(missing),
            Ok(_) | Err(_) => Err(JailError::Forbidden(complaint.trim().to_owned())),
        }
    }

    /// One line for the log: the browser's program, its library folders and its user.
    #[must_use]
    pub fn summary(&self) -> String {
        let user = if Seat(0).user().is_some() { "another user" } else { "the service's user" };
        format!("{}, as {user}", self.installation)
    }

    /// The browser's program, to be passed to the helper.
    pub(crate) fn program(&self) -> &Path {
        &self.installation.program
    }

    /// The command of the helper. The caller appends the browser's program and arguments, and sets a
    /// UNIX socket as standard input: the helper sends the listening socket through it, and all
    /// processes of the sandbox are killed when the other end is closed. `seat` is a number that no
    /// other running browser has.
    ///
    /// # Errors
    /// The owner of the folder cannot be changed to the browser's user.
    pub fn command(&self, folder: &Path, seat: usize) -> Result<Command, JailError> {
        let seat = Seat(seat);
        let user = seat.user();
        if let Some(user) = user {
            for part in [folder, &folder.join("profile")] {
                match chown(part, Some(user), Some(user)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(JailError::Helper(error));
                    }
                    Ok(()) | Err(_) => (),
                }
            }
        }
        let order = Order {
            folder: folder.to_owned(),
            installation: self.installation.clone(),
            policies: self.policies.clone(),
            user,
            cores: seat.cores(self.cores),
        };
        let order = serde_json::to_string(&order).map_err(|e| JailError::Helper(e.into()))?;
        let mut command = Command::new(&self.helper);
        command.args(&self.arguments).arg(order).current_dir("/").process_group(0);
        Ok(command)
    }
}

/// Waits for the listening socket from the sandbox, and for the features that are missing there.
pub(crate) fn receive(from: &UnixStream) -> Result<(TcpListener, MissingFeatures), JailError> {
    from.set_read_timeout(Some(PATIENCE)).map_err(JailError::Helper)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut parts = [IoSliceMut::new(&mut byte)];
    let message = recvmsg(from, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC);
    let message = message.map_err(|error| JailError::Helper(error.into()))?;
    if message.bytes == 0 || message.flags.contains(ReturnFlags::CTRUNC) {
        return Err(JailError::Silent);
    }
    let sockets = ancillary.drain().filter_map(|message| {
        if let RecvAncillaryMessage::ScmRights(mut sockets) = message {
            sockets.next()
        } else {
            None
        }
    });
    let socket = sockets.last().ok_or(JailError::Silent)?;
    let listener = TcpListener::from(socket);
    listener.set_nonblocking(true).map_err(JailError::Helper)?;
    Ok((listener, MissingFeatures(byte[0])))
}
