//! `cargo xtask try-image`: the service in a container without an engine, with the packages, the user
//! and the seccomp profile of `deploy/image`.

mod bundle;
mod container;

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

use self::container::{Container, Process};
use crate::{
    Failure,
    command::{free_port, root, run},
    packages::{self, CONTAINER},
};

/// A build without optimisation needs half a minute.
const START_TIMEOUT: Duration = Duration::from_secs(180);
const BROWSER_TIMEOUT: Duration = Duration::from_secs(60);
const STOP_TIMEOUT: Duration = Duration::from_secs(60);
const REAP_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// The filters of a renderer: the container's, that of our sandbox, and Chromium's own.
const FILTERS_OF_RENDERER: u32 = 3;

/// Makes the root file system, starts the service in it, and checks what the image promises.
pub(crate) fn try_image(program: &Path) -> Result<(), Failure> {
    packages::ensure(&[CONTAINER])?;
    let dockerfile = fs::read_to_string(root().join("deploy/image/Dockerfile"))?;
    let files = root_file_system(&bundle::suite(&dockerfile)?, &bundle::packages(&dockerfile)?)?;
    let installed = files.join("usr/bin/avouch");
    run(Command::new("install").arg("--mode=0755").arg(program).arg(installed))?;
    let port = free_port()?;
    let seccomp = fs::read_to_string(root().join("deploy/image/seccomp.json"))?;
    let config = bundle::config(&files, &serde_json::from_str(&seccomp)?, port);
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("config.json"), config.to_string())?;
    let mut container = Container::start(folder.path())?;
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    until("the service is ready", START_TIMEOUT, || {
        container.check_running()?;
        Ok(is_ready(address).then_some(()))
    })?;
    println!("ok: the service is ready, with a read-only root file system");
    let renderer = until("a browser was started in advance", BROWSER_TIMEOUT, || {
        container.check_running()?;
        container.renderer()
    })?;
    check_renderer(&renderer)?;
    println!("ok: {} filters of system calls are active in a renderer", renderer.filters);
    if container.execute(&["touch", "/usr/written"])? {
        return Err("the root file system can be written to".into());
    }
    let recording = "ffmpeg -v error -f lavfi -i testsrc -t 1 -c:v libx264 -f mp4 -y /tmp/x.mp4";
    if !container.execute(&recording.split(' ').collect::<Vec<_>>())? {
        return Err("no recording can be encoded".into());
    }
    println!("ok: recordings can be encoded");
    container.end_browsers()?;
    until("another browser has taken its place", BROWSER_TIMEOUT, || {
        let other = container.renderer()?;
        Ok(other.filter(|other| other.id != renderer.id))
    })?;
    until("processes of ended browsers are reaped", REAP_TIMEOUT, || {
        Ok(container.has_reaped()?.then_some(()))
    })?;
    println!("ok: processes of ended browsers are reaped");
    container.terminate()?;
    until("the service has stopped", STOP_TIMEOUT, || container.has_stopped())?;
    println!("ok: the service stopped on SIGTERM");
    Ok(())
}

/// Makes the root file system from Debian's packages, unless the last one had the same.
fn root_file_system(suite: &str, packages: &[String]) -> Result<PathBuf, Failure> {
    let folder = root().join("target/image");
    let (files, stamp) = (folder.join("rootfs"), folder.join("packages"));
    let include = packages.join(",");
    let wanted = format!("{suite} {include}\n");
    if fs::read_to_string(&stamp).is_ok_and(|made| made == wanted) {
        return Ok(files);
    }
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let mut make = Command::new("mmdebstrap");
    make.args(["--variant=minbase", "--mode=root", "--quiet"]).arg(format!("--include={include}"));
    run(make.arg(suite).arg(&files))?;
    // As in the Dockerfile.
    let setuid = ["-xdev", "-perm", "/6000", "-type", "f", "-exec", "chmod", "a-s", "{}", "+"];
    run(Command::new("find").arg(&files).args(setuid))?;
    fs::create_dir(files.join("var/lib/avouch"))?;
    fs::write(stamp, wanted)?;
    Ok(files)
}

/// Returns whether `/readyz` answers with 200.
fn is_ready(address: SocketAddr) -> bool {
    let answer = || {
        let mut socket = TcpStream::connect_timeout(&address, POLL_INTERVAL)?;
        socket.set_read_timeout(Some(Duration::from_secs(3)))?;
        socket.write_all(b"GET /readyz HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut start = [0; 12];
        socket.read_exact(&mut start)?;
        Ok::<_, std::io::Error>(start)
    };
    answer().is_ok_and(|start| start.ends_with(b" 200"))
}

/// Checks that a renderer runs as the unprivileged user, without capabilities, in three filters.
fn check_renderer(renderer: &Process) -> Result<(), Failure> {
    let Process { user, filters, has_capabilities, may_gain_privileges, .. } = renderer;
    let user_is_right = *user == bundle::USER;
    if !user_is_right || *has_capabilities || *may_gain_privileges {
        return Err(format!("a renderer runs with other privileges: {renderer:?}").into());
    }
    if *filters < FILTERS_OF_RENDERER {
        return Err(format!("a renderer has only {filters} filters of system calls").into());
    }
    Ok(())
}

/// Polls until there is a value; an error after a time limit.
fn until<T>(
    what: &str,
    within: Duration,
    mut ask: impl FnMut() -> Result<Option<T>, Failure>,
) -> Result<T, Failure> {
    let ends = Instant::now() + within;
    loop {
        if let Some(value) = ask()? {
            return Ok(value);
        }
        if Instant::now() >= ends {
            return Err(format!("waited {} s until {what}", within.as_secs()).into());
        }
        sleep(POLL_INTERVAL);
    }
}
