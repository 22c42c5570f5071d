//! Starts one Chromium with a folder of its own, and ends it with all its processes and files.

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
    client::{DevToolsClient, DevToolsError, DevToolsEvent},
    devtools_pipes::DevToolsPipes,
    sandbox::{MAX_HELPER_ERROR_BYTES, Sandbox, SandboxError, receive_listener},
};

/// The executable of Debian's package, whose `/usr/bin/chromium` is a script that adds flags.
const DEBIAN_EXECUTABLE: &str = "/usr/lib/chromium/chromium";
/// The time from the start of the process to its first reply.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Attempts to remove a browser's folder, and the delay between them.
const REMOVE_ATTEMPTS: usize = 20;
const REMOVE_INTERVAL: Duration = Duration::from_millis(50);

/// The flags of every browser that we start, here or in a fleet.
pub(crate) const FLAGS: &[&str] = &[
    "--headless=new",
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
    // Each frame is also drawn into the window, where no one sees it: the lowest possible window
    // saves a fifth of the time from a key to its frame. Its width does not make pages narrow, and
    // pages have the size of their emulated viewport.
    "--window-size=1600,1",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    // Both spellings: each Chromium variant obeys one of them.
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    // Chromium's own requests to its vendor: names in `.invalid` are never looked up.
    "--gaia-url=http://none.invalid/",
    "--component-updater=url-source=http://none.invalid/",
    // A page from the back/forward cache does not tell of its frames. The last two are pages for an
    // address bar, with a process of their own.
    "--disable-features=BackForwardCache,NetworkTimeServiceQuerying,Translate,MediaRouter,OptimizationHints,AutofillServerCommunication,InterestFeedContentSuggestions,WebUIOmniboxPopup,WebUIOmniboxAimPopup",
];

/// The options for starting a Chromium.
#[derive(Debug, Clone)]
pub struct LaunchOptions {
    /// A name looked up in `PATH`, or a path. With a sandbox, its installation is run instead.
    pub executable: PathBuf,
    /// A folder that is created for this process alone and removed with it.
    pub folder: PathBuf,
    pub flags: Vec<String>,
    /// Without one the browser runs as the service's user, with the service's network.
    pub sandbox: Option<Sandbox>,
    /// A number that no other running browser has; determines the sandbox's user and cores.
    pub slot: usize,
}

/// A Chromium that has replied to a command.
pub struct Launched {
    pub chromium: Chromium,
    pub events: mpsc::Receiver<DevToolsEvent>,
    /// Its own user agent.
    pub user_agent: String,
    /// The listening socket in its sandbox, on which its proxy is to be served.
    pub proxy_listener: Option<TcpListener>,
}

/// A running Chromium.
pub struct Chromium {
    pub client: DevToolsClient,
    process: BrowserProcess,
}

/// The processes and the files of a Chromium, which end with this value.
pub(crate) struct BrowserProcess {
    child: Mutex<Child>,
    group: Option<Pid>,
    folder: PathBuf,
    /// All processes of the sandbox are killed when this is closed.
    _sandbox_socket: Option<UnixSocket>,
}

/// A Chromium that was started, and the pipes of its DevTools connection.
pub(crate) struct StartedProcess {
    pub(crate) process: BrowserProcess,
    pub(crate) reader: UnixStream,
    pub(crate) writer: UnixStream,
    /// See [`Launched::proxy_listener`].
    pub(crate) proxy_listener: Option<TcpListener>,
}

#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("failed to start {executable}: is Chromium installed?")]
    Spawn { executable: String, source: io::Error },
    #[error("failed to prepare the browser's folder")]
    Folder(#[source] io::Error),
    #[error("Chromium started but does not reply")]
    NotResponding(#[source] DevToolsError),
    #[error("failed to set up the browser's sandbox")]
    Sandbox(#[from] SandboxError),
}

impl Chromium {
    /// Starts a process and waits for its first reply.
    pub async fn launch(options: &LaunchOptions) -> Result<Launched, LaunchError> {
        let StartedProcess { process, reader, writer, proxy_listener } =
            BrowserProcess::start(options).await?;
        let (client, events) = DevToolsClient::from_pipes(reader, writer);
        let chromium = Self { client, process };
        match first_reply(&chromium.client).await {
            Ok(user_agent) => Ok(Launched { chromium, events, user_agent, proxy_listener }),
            Err(error) => {
                chromium.end().await;
                Err(LaunchError::NotResponding(error))
            }
        }
    }

    /// Returns the id of the process at the root of this Chromium's tree, and of its group.
    #[must_use]
    pub fn pid(&self) -> Option<i32> {
        self.process.pid()
    }

    /// Kills every process and removes every file. Idempotent.
    pub async fn end(&self) {
        self.process.end().await;
    }
}

/// Waits until a Chromium replies, and returns its own user agent.
pub(crate) async fn first_reply(client: &DevToolsClient) -> Result<String, DevToolsError> {
    let version = client.call(None, "Browser.getVersion", json!({}));
    let reply = tokio::time::timeout(START_TIMEOUT, version).await;
    let version =
        reply.unwrap_or_else(|_| Err(DevToolsError::TimedOut("Browser.getVersion".into())))?;
    Ok(version.get("userAgent").and_then(Value::as_str).unwrap_or_default().to_owned())
}

impl BrowserProcess {
    /// Starts a process. It has not replied to anything yet.
    pub(crate) async fn start(options: &LaunchOptions) -> Result<StartedProcess, LaunchError> {
        let folder = options.folder.clone();
        std::fs::create_dir_all(folder.join("profile")).map_err(LaunchError::Folder)?;
        let pipes = DevToolsPipes::new().map_err(LaunchError::Folder)?;
        let executable = resolve_executable(&options.executable);
        let (mut command, helper_socket) = build_command(options, &executable)?;
        let mapped = command.fd_mappings(vec![
            FdMapping { parent_fd: pipes.child_reader, child_fd: 3 },
            FdMapping { parent_fd: pipes.child_writer, child_fd: 4 },
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
        let stderr = child.stderr.take();
        let sandbox_socket = helper_socket.as_ref().map(UnixSocket::try_clone).transpose();
        let sandbox_socket = sandbox_socket.map_err(LaunchError::Folder)?;
        let process =
            Self { child: Mutex::new(child), group, folder, _sandbox_socket: sandbox_socket };
        let proxy_listener = match helper_socket {
            None => None,
            Some(socket) => match listener_from_helper(socket).await {
                Ok(listener) => Some(listener),
                Err(error) => {
                    process.end().await;
                    return Err(read_helper_error(stderr).await.unwrap_or(error).into());
                }
            },
        };
        let DevToolsPipes { reader, writer, .. } = pipes;
        Ok(StartedProcess { process, reader, writer, proxy_listener })
    }

    /// See [`Chromium::pid`].
    pub(crate) fn pid(&self) -> Option<i32> {
        self.group.map(|group| group.as_raw_nonzero().get())
    }

    /// See [`Chromium::end`].
    pub(crate) async fn end(&self) {
        let mut child = self.child.lock().await;
        self.kill_group();
        if let Err(error) = child.wait().await {
            tracing::warn!(%error, "failed to wait until a Chromium exited; its folder is removed anyway");
        }
        remove_folder(&self.folder).await;
    }

    /// Kills every process; their files stay.
    pub(crate) fn kill_group(&self) {
        if let Some(group) = self.group {
            // A group that does not exist any more needs no signal.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for BrowserProcess {
    fn drop(&mut self) {
        self.kill_group();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Returns the command that starts the browser and, with a sandbox, the socket by which its helper
/// sends the proxy's listener.
fn build_command(
    options: &LaunchOptions,
    executable: &Path,
) -> Result<(Command, Option<UnixSocket>), LaunchError> {
    let folder = &options.folder;
    let (mut command, socket) = if let Some(sandbox) = &options.sandbox {
        let mut command = sandbox.command(folder, options.slot)?;
        let (socket, helper_socket) = UnixSocket::pair().map_err(LaunchError::Folder)?;
        command.stdin(OwnedFd::from(helper_socket)).stderr(Stdio::piped()).arg(sandbox.program());
        (command, Some(socket))
    } else {
        let mut command = Command::new(executable);
        command.stdin(Stdio::null()).stderr(Stdio::null()).process_group(0);
        (command, None)
    };
    command
        .args(FLAGS)
        .arg("--remote-debugging-pipe")
        .arg(flag("--user-data-dir=", &folder.join("profile")))
        .args(&options.flags)
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "LANG"))
        .env("HOME", folder)
        .env("TMPDIR", folder)
        .stdout(Stdio::null());
    if options.sandbox.is_none() && rustix::process::geteuid().is_root() {
        command.arg("--no-sandbox");
    }
    command.arg("about:blank");
    Ok((command, socket))
}

async fn listener_from_helper(socket: UnixSocket) -> Result<TcpListener, SandboxError> {
    let listener = tokio::task::spawn_blocking(move || receive_listener(&socket)).await;
    let (listener, _) = listener.map_err(|error| SandboxError::Helper(error.into()))??;
    TcpListener::from_std(listener).map_err(SandboxError::Helper)
}

/// Returns the error that a failed helper wrote.
async fn read_helper_error(stderr: Option<ChildStderr>) -> Option<SandboxError> {
    let mut text = String::new();
    stderr?.take(MAX_HELPER_ERROR_BYTES).read_to_string(&mut text).await.ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| SandboxError::Forbidden(text.to_owned()))
}

/// Removes a folder, with retries, because processes that have not exited yet may still write to it.
async fn remove_folder(folder: &Path) {
    for _ in 0..REMOVE_ATTEMPTS {
        match std::fs::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tokio::time::sleep(REMOVE_INTERVAL).await;
            }
            _ => return,
        }
    }
    tracing::warn!("failed to remove a browser's folder; it stays");
}

fn flag(name: &str, path: &Path) -> OsString {
    let mut flag = OsString::from(name);
    flag.push(path);
    flag
}

fn resolve_executable(executable: &Path) -> PathBuf {
    let script =
        executable == Path::new("chromium") || executable == Path::new("/usr/bin/chromium");
    if script && Path::new(DEBIAN_EXECUTABLE).exists() {
        return DEBIAN_EXECUTABLE.into();
    }
    executable.to_owned()
}
