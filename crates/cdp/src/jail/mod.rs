//! Shuts a browser in: an ordinary user of its own where we are root, namespaces of its own for
//! users, network, files and messages, and bounds for what it may use.
//!
//! Namespaces can only be entered by a process with one thread, so a helper does it: our own
//! program once more, which becomes the browser when everything is in place. In the browser's
//! network there is nothing but a loopback interface with one listening socket; the helper makes
//! that and hands it out, and what is served on it is the browser's only way out.

mod inside;

use std::{
    fs::{Permissions, set_permissions},
    io::{self, IoSliceMut, Read as _},
    mem::MaybeUninit,
    net::{SocketAddr, TcpListener},
    os::{
        fd::OwnedFd,
        unix::{
            fs::{PermissionsExt as _, chown},
            net::UnixStream,
            process::CommandExt as _,
        },
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg};
use serde::{Deserialize, Serialize};

pub use self::inside::enter;

/// Where the only way out is, seen from inside.
pub(crate) const WAY_OUT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 3128);
/// From the start of the helper to the socket.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes read of what a helper says before it gives up.
pub(crate) const LONGEST_COMPLAINT: u64 = 4096;

/// How browsers are shut in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jail {
    /// A program that calls [`enter`] with all arguments after `arguments`, first thing and with
    /// one thread.
    pub helper: PathBuf,
    pub arguments: Vec<String>,
    /// Folders that are empty inside.
    pub hidden: Vec<PathBuf>,
    /// Extra roots that browsers believe, as [`write_roots`] wrote them; only where the browser's
    /// package has a folder for policies (`/etc/chromium`).
    pub policies: Option<PathBuf>,
    /// Cores that one browser may use at once.
    pub cores: usize,
}

/// Where Debian's Chromium looks for what an administrator orders.
pub(crate) const POLICIES: &str = "/etc/chromium";

/// Writes a folder for [`Jail::policies`]: certificates, DER, that servers' chains may end at.
///
/// # Errors
/// The folder cannot be written.
pub fn write_roots(folder: &Path, roots: &[Vec<u8>]) -> io::Result<()> {
    let managed = folder.join("policies/managed");
    std::fs::create_dir_all(&managed)?;
    let roots: Vec<_> = roots.iter().map(|root| STANDARD.encode(root)).collect();
    let policy = serde_json::json!({ "CACertificates": roots });
    std::fs::write(managed.join("roots.json"), policy.to_string())?;
    // To be read by whoever the browser is.
    for part in [folder, &folder.join("policies"), &managed] {
        set_permissions(part, Permissions::from_mode(0o755))?;
    }
    set_permissions(managed.join("roots.json"), Permissions::from_mode(0o644))
}

/// What the helper is told.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    /// The browser's own folder, the only one it may write to.
    folder: PathBuf,
    hidden: Vec<PathBuf>,
    policies: Option<PathBuf>,
    user: Option<u32>,
    cores: Vec<usize>,
}

/// A browser's seat: which user it is, and which cores it may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seat(pub(crate) usize);

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
    /// Tries it once with a folder and without a browser; says what is missing.
    ///
    /// # Errors
    /// What the kernel, or whoever confines this process, does not allow.
    pub fn check(&self, folder: &Path) -> Result<(), JailError> {
        std::fs::create_dir_all(folder).map_err(JailError::Helper)?;
        let mut command = self.command(folder, Seat(0))?;
        let (ours, theirs) = UnixStream::pair().map_err(JailError::Helper)?;
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut helper = command.spawn().map_err(JailError::Helper)?;
        drop(command);
        let socket = receive(&ours);
        let mut complaint = String::new();
        if let Some(stderr) = helper.stderr.take() {
            let _ = stderr.take(LONGEST_COMPLAINT).read_to_string(&mut complaint);
        }
        let ended = helper.wait().map_err(JailError::Helper)?;
        let _ = std::fs::remove_dir_all(folder);
        if ended.success() && socket.is_ok() {
            return Ok(());
        }
        Err(JailError::Forbidden(complaint.trim().to_owned()))
    }

    /// The helper, to be given the browser's program and arguments.
    pub(crate) fn command(&self, folder: &Path, seat: Seat) -> Result<Command, JailError> {
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
            hidden: self.hidden.clone(),
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

/// The listening socket from inside; waits for it.
pub(crate) fn receive(from: &UnixStream) -> Result<TcpListener, JailError> {
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
    Ok(listener)
}
