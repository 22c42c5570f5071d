//! Starts one Chromium with a folder of its own, and ends it with all that belongs to it.

use std::{
    ffi::OsString,
    io,
    os::{fd::OwnedFd, unix::process::CommandExt as _},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use command_fds::{CommandFdExt as _, FdMapping};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;
use tokio::{
    net::UnixStream,
    process::Child,
    sync::{Mutex, mpsc},
};

use crate::client::{CallError, Client, Event};

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
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    // Both spellings: each Chromium flavour obeys one of them.
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-features=Translate,MediaRouter,OptimizationHints,AutofillServerCommunication,InterestFeedContentSuggestions",
];

/// How to start a Chromium.
#[derive(Debug, Clone)]
pub struct LaunchOptions {
    /// A name looked up in `PATH`, or a path.
    pub executable: PathBuf,
    /// A folder that is made for this process alone and removed with it.
    pub folder: PathBuf,
    pub flags: Vec<String>,
}

/// A running Chromium.
pub struct Chromium {
    pub client: Client,
    child: Mutex<Child>,
    group: Option<Pid>,
    folder: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("cannot start {executable}: is Chromium installed?")]
    Spawn { executable: String, source: io::Error },
    #[error("cannot prepare the browser's folder")]
    Folder(#[source] io::Error),
    #[error("Chromium started but does not answer")]
    Silent(#[source] CallError),
}

impl Chromium {
    /// Starts a process and waits until it answers.
    pub async fn launch(
        options: &LaunchOptions,
    ) -> Result<(Self, mpsc::Receiver<Event>), LaunchError> {
        let folder = options.folder.clone();
        std::fs::create_dir_all(folder.join("profile")).map_err(LaunchError::Folder)?;
        let pipes = Pipes::new().map_err(LaunchError::Folder)?;
        let executable = resolve(&options.executable);
        let mut command = std::process::Command::new(&executable);
        command
            .args(FLAGS)
            .arg(flag("--user-data-dir=", &folder.join("profile")))
            .args(&options.flags)
            .arg("about:blank")
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "LANG"))
            .env("HOME", &folder)
            .env("TMPDIR", &folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        if rustix::process::geteuid().is_root() {
            command.arg("--no-sandbox");
        }
        let mapped = command.fd_mappings(vec![
            FdMapping { parent_fd: pipes.theirs_in, child_fd: 3 },
            FdMapping { parent_fd: pipes.theirs_out, child_fd: 4 },
        ]);
        if mapped.is_err() {
            return Err(LaunchError::Folder(io::Error::other("file descriptors collide")));
        }
        let child = tokio::process::Command::from(command).kill_on_drop(true).spawn();
        let child = child.map_err(|source| LaunchError::Spawn {
            executable: executable.display().to_string(),
            source,
        })?;
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let (client, events) = Client::over(pipes.ours_in, pipes.ours_out);
        let chromium = Self { client, child: Mutex::new(child), group, folder };
        let version = chromium.client.call(None, "Browser.getVersion", json!({}));
        let answer = tokio::time::timeout(START_PATIENCE, version).await;
        match answer.unwrap_or_else(|_| Err(CallError::TimedOut("Browser.getVersion".into()))) {
            Ok(_) => Ok((chromium, events)),
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
