//! Starts one Chromium with a folder of its own, and ends it with all that belongs to it.

use std::{
    ffi::OsString,
    io,
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream as UnixSocket, process::CommandExt as _},
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use command_fds::{CommandFdExt as _, FdMapping};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tokio::{
    io::AsyncReadExt as _,
    net::{TcpListener, UnixStream},
    process::{Child, ChildStderr},
    sync::{Mutex, mpsc},
};

use crate::{
    client::{CallError, Client, Event},
    jail::{Jail, JailError, LONGEST_COMPLAINT, receive},
};

/// What Debian's package installs; its `/usr/bin/chromium` is a script that adds flags.
const BEHIND_THE_SCRIPT: &str = "/usr/lib/chromium/chromium";
/// From the start of the process to its first answer.
const START_PATIENCE: Duration = Duration::from_secs(30);

const FLAGS: &[&str] = &[
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--disable-domain-reliability",
    "--disable-client-side-phishing-detection",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--no-pings",
    "--metrics-recording-only",
    "--mute-audio",
    "--hide-scrollbars",
    "--disable-dev-shm-usage",
    "--password-store=basic",
    "--disable-gpu",
    // Each picture is drawn into the window as well, where nobody sees it: a window as low as they
    // come takes a fifth of the time from a key to its picture away. Nor does it tell a page that
    // it is narrow. Pages have the size they are told.
    "--window-size=1600,1",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    // Both spellings: each Chromium flavour obeys one of them.
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    // What Chromium asks of its makers for itself: no such name is ever asked of anybody.
    "--gaia-url=http://none.invalid/",
    "--component-updater=url-source=http://none.invalid/",
    // The last two are pages for an address bar, with a process of their own.
    "--disable-features=NetworkTimeServiceQuerying,Translate,MediaRouter,OptimizationHints,AutofillServerCommunication,InterestFeedContentSuggestions,WebUIOmniboxPopup,WebUIOmniboxAimPopup",
];

/// How to start a Chromium.
#[derive(Debug, Clone)]
pub struct LaunchOptions {
    /// A name looked up in `PATH`, or a path; in a jail it is the jail's installation that is run.
    pub executable: PathBuf,
    /// A folder that is made for this process alone and removed with it.
    pub folder: PathBuf,
    pub flags: Vec<String>,
    /// Without one the browser runs as we do, with our network.
    pub jail: Option<Jail>,
    /// A number that no other running browser has.
    pub seat: usize,
}

/// A Chromium that answers.
pub struct Launched {
    pub chromium: Chromium,
    pub events: mpsc::Receiver<Event>,
    /// Who it says it is.
    pub agent: String,
    /// The way out of its jail, to be served.
    pub way_out: Option<TcpListener>,
}

/// A running Chromium.
pub struct Chromium {
    pub client: Client,
    child: Mutex<Child>,
    group: Option<Pid>,
    folder: PathBuf,
    /// All processes of the sandbox are killed when this is closed.
    _inside: Option<UnixSocket>,
}

#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("cannot start {executable}: is Chromium installed?")]
    Spawn { executable: String, source: io::Error },
    #[error("cannot prepare the browser's folder")]
    Folder(#[source] io::Error),
    #[error("Chromium started but does not answer")]
    Silent(#[source] CallError),
    #[error("the browser's sandbox cannot be set up")]
    Jail(#[from] JailError),
}

impl Chromium {
    /// Starts a process and waits until it answers.
    pub async fn launch(options: &LaunchOptions) -> Result<Launched, LaunchError> {
        let folder = options.folder.clone();
        std::fs::create_dir_all(folder.join("profile")).map_err(LaunchError::Folder)?;
        let pipes = Pipes::new().map_err(LaunchError::Folder)?;
        let executable = resolve(&options.executable);
        let (mut command, way_out) = prepare(options, &executable)?;
        let mapped = command.fd_mappings(vec![
            FdMapping { parent_fd: pipes.theirs_in, child_fd: 3 },
            FdMapping { parent_fd: pipes.theirs_out, child_fd: 4 },
        ]);
        if mapped.is_err() {
            return Err(LaunchError::Folder(io::Error::other("file descriptors collide")));
        }
        let child = tokio::process::Command::from(command).kill_on_drop(true).spawn();
        let mut child = child.map_err(|source| LaunchError::Spawn {
            executable: executable.display().to_string(),
            source,
        })?;
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let complaints = child.stderr.take();
        let (client, events) = Client::over(pipes.ours_in, pipes.ours_out);
        let inside = way_out.as_ref().map(UnixSocket::try_clone).transpose();
        let inside = inside.map_err(LaunchError::Folder)?;
        let chromium = Self { client, child: Mutex::new(child), group, folder, _inside: inside };
        let way_out = match way_out {
            None => None,
            Some(socket) => match received(socket).await {
                Ok(listener) => Some(listener),
                Err(error) => {
                    chromium.end().await;
                    return Err(complained(complaints).await.unwrap_or(error).into());
                }
            },
        };
        let version = chromium.client.call(None, "Browser.getVersion", json!({}));
        let answer = tokio::time::timeout(START_PATIENCE, version).await;
        match answer.unwrap_or_else(|_| Err(CallError::TimedOut("Browser.getVersion".into()))) {
            Ok(version) => {
                let agent = version.get("userAgent").and_then(Value::as_str).unwrap_or_default();
                Ok(Launched { chromium, events, agent: agent.to_owned(), way_out })
            }
            Err(error) => {
                chromium.end().await;
                Err(LaunchError::Silent(error))
            }
        }
    }

    /// The process at the root of this Chromium's tree.
    #[must_use]
    pub fn pid(&self) -> Option<i32> {
        self.group.map(|group| group.as_raw_nonzero().get())
    }

    /// Kills every process and removes every file. Once more does no harm.
    pub async fn end(&self) {
        let mut child = self.child.lock().await;
        self.kill_group();
        if let Err(error) = child.wait().await {
            tracing::warn!(%error, "a Chromium could not be waited for");
        }
        remove(&self.folder).await;
    }

    fn kill_group(&self) {
        if let Some(group) = self.group {
            // Gone already is as good.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        self.kill_group();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The command that starts the browser, and where its way out will come from if it is shut in.
fn prepare(
    options: &LaunchOptions,
    executable: &Path,
) -> Result<(Command, Option<UnixSocket>), LaunchError> {
    let folder = &options.folder;
    let (mut command, socket) = if let Some(jail) = &options.jail {
        let mut command = jail.command(folder, options.seat)?;
        let (ours, theirs) = UnixSocket::pair().map_err(LaunchError::Folder)?;
        command.stdin(OwnedFd::from(theirs)).stderr(Stdio::piped()).arg(jail.program());
        (command, Some(ours))
    } else {
        let mut command = Command::new(executable);
        command.stdin(Stdio::null()).stderr(Stdio::null()).process_group(0);
        (command, None)
    };
    command
        .args(FLAGS)
        .arg(flag("--user-data-dir=", &folder.join("profile")))
        .args(&options.flags)
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "LANG"))
        .env("HOME", folder)
        .env("TMPDIR", folder)
        .stdout(Stdio::null());
    if options.jail.is_none() && rustix::process::geteuid().is_root() {
        command.arg("--no-sandbox");
    }
    command.arg("about:blank");
    Ok((command, socket))
}

async fn received(socket: UnixSocket) -> Result<TcpListener, JailError> {
    let listener = tokio::task::spawn_blocking(move || receive(&socket)).await;
    let (listener, _) = listener.map_err(|error| JailError::Helper(error.into()))??;
    TcpListener::from_std(listener).map_err(JailError::Helper)
}

/// What a helper that gave up said.
async fn complained(from: Option<ChildStderr>) -> Option<JailError> {
    let mut text = String::new();
    from?.take(LONGEST_COMPLAINT).read_to_string(&mut text).await.ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| JailError::Forbidden(text.to_owned()))
}

/// Helpers that have not died yet may still write: try until the folder is gone.
async fn remove(folder: &Path) {
    for _ in 0..20 {
        match std::fs::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            _ => return,
        }
    }
    tracing::warn!("a browser's folder could not be removed");
}

fn flag(name: &str, path: &Path) -> OsString {
    let mut flag = OsString::from(name);
    flag.push(path);
    flag
}

fn resolve(executable: &Path) -> PathBuf {
    let script =
        executable == Path::new("chromium") || executable == Path::new("/usr/bin/chromium");
    if script && Path::new(BEHIND_THE_SCRIPT).exists() {
        return BEHIND_THE_SCRIPT.into();
    }
    executable.to_owned()
}

/// Two pipes, each as its two ends. Sockets rather than pipes, since tokio reads both alike.
struct Pipes {
    theirs_in: OwnedFd,
    theirs_out: OwnedFd,
    ours_in: UnixStream,
    ours_out: UnixStream,
}

impl Pipes {
    fn new() -> io::Result<Self> {
        let (theirs_in, ours_out) = std::os::unix::net::UnixStream::pair()?;
        let (theirs_out, ours_in) = std::os::unix::net::UnixStream::pair()?;
        ours_in.set_nonblocking(true)?;
        ours_out.set_nonblocking(true)?;
        Ok(Self {
            theirs_in: theirs_in.into(),
            theirs_out: theirs_out.into(),
            ours_in: UnixStream::from_std(ours_in)?,
            ours_out: UnixStream::from_std(ours_out)?,
        })
    }
}
