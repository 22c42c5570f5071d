//! `cargo xtask up`: runs the service with its built-in defaults, together with a demo partner.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    net::TcpStream,
    process::Child,
    signal::unix::{SignalKind, signal},
    time::Instant,
};

use crate::{
    Failure,
    command::{cargo, output, root, run},
    packages::{self, BROWSER, FFMPEG},
};

/// The user who signs in to the demo team's portal.
const OWNER: &str = "owner@demo.example";
const START_TIMEOUT: Duration = Duration::from_secs(60);
const END_TIMEOUT: Duration = Duration::from_secs(15);

/// The addresses and folders of everything that runs.
struct DemoSite {
    binaries: PathBuf,
    /// The address of the service; the service prints its own configuration.
    service: String,
    demo: String,
    data: PathBuf,
}

pub(crate) async fn up() -> Result<(), Failure> {
    packages::ensure(&[BROWSER, FFMPEG])?;
    // Not the release build: it takes three times as long to build, and one applicant causes no
    // load.
    run(&mut cargo(&["build", "-p", "app", "-p", "demo"]))?;
    let set =
        |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let site = DemoSite {
        binaries: root().join("target/debug"),
        service: set("AVOUCH_LISTEN", "127.0.0.1:8080"),
        demo: set("DEMO_LISTEN", "127.0.0.1:8090"),
        data: std::path::absolute(set("AVOUCH_DATA_DIR", "./var"))?,
    };
    for address in [&site.service, &site.demo] {
        if TcpStream::connect(address).await.is_ok() {
            let how = "set AVOUCH_LISTEN or DEMO_LISTEN to another address";
            return Err(format!("something listens on {address} already: {how}").into());
        }
    }
    let partner = partner(&site)?;
    let (mut terminate, mut hang_up) =
        (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
    let mut service = start(avouch(&site).arg("serve"))?;
    let mut demo = start(&mut demo(&site, &partner))?;
    let ended = tokio::select! {
        ended = serve(&site, &partner, &mut service, &mut demo) => ended,
        _ = tokio::signal::ctrl_c() => Ok(()),
        _ = terminate.recv() => Ok(()),
        _ = hang_up.recv() => Ok(()),
    };
    end(&mut demo).await;
    end(&mut service).await;
    ended
}

/// Returns when one of the two processes has ended.
async fn serve(
    site: &DemoSite,
    partner: &Value,
    service: &mut Child,
    demo: &mut Child,
) -> Result<(), Failure> {
    let up = async {
        until_listening(&site.service).await?;
        until_listening(&site.demo).await?;
        print_links(site, partner);
        std::future::pending().await
    };
    tokio::select! {
        failed = up => failed,
        status = service.wait() => Err(format!("`avouch serve` ended: {}", status?).into()),
        status = demo.wait() => Err(format!("the demo partner ended: {}", status?).into()),
    }
}

fn print_links(site: &DemoSite, partner: &Value) {
    let (_, port) = site.demo.rsplit_once(':').unwrap_or_default();
    println!();
    println!("  Open this and play the applicant:  http://localhost:{port}");
    println!();
    println!("  Partner API   http://{}/v1", site.service);
    println!("  API key       {}", text(partner, "apiKey"));
    if !text(partner, "password").is_empty() {
        println!("  Portal        http://{}/portal", site.service);
        println!("                {OWNER}, {}", text(partner, "password"));
    }
    println!("  Documentation http://{}/docs/", site.service);
    println!("  Data          {}", site.data.display());
    println!("  Ctrl-C ends it.");
    println!();
}

/// Team, key, webhook and owner of the demo, created at the first start and reused afterwards.
fn partner(site: &DemoSite) -> Result<Value, Failure> {
    let file = site.data.join("demo.json");
    if let Ok(written) = fs::read_to_string(&file) {
        return Ok(serde_json::from_str(&written)?);
    }
    let team = text(&admin(site, &["create-team", "Demo partner"])?, "teamId");
    let key = admin(site, &["create-key", "--team", &team, "--environment", "development"])?;
    let owner = ["create-user", "--team", &team, "--email", OWNER, "--role", "owner"];
    let owner = admin(site, &owner)?;
    let url = format!("http://{}/webhook", site.demo);
    let webhook = admin(site, &["create-webhook", "--team", &team, "--url", &url])?;
    let partner = json!({
        "apiKey": text(&key, "apiKey"),
        "webhookSecret": text(&webhook, "secret"),
        "password": text(&owner, "password"),
    });
    write_private(&file, &partner)?;
    Ok(partner)
}

/// Writes a file that only its owner can read, since it contains keys.
fn write_private(file: &Path, partner: &Value) -> Result<(), Failure> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    file.write_all(partner.to_string().as_bytes())?;
    Ok(())
}

fn admin(site: &DemoSite, arguments: &[&str]) -> Result<Value, Failure> {
    Ok(serde_json::from_str(&output(avouch(site).arg("admin").args(arguments))?)?)
}

fn text(object: &Value, name: &str) -> String {
    object.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn avouch(site: &DemoSite) -> Command {
    let mut command = Command::new(site.binaries.join("avouch"));
    let allowed = match std::env::var("AVOUCH_EGRESS_ALLOW") {
        Ok(own) => format!("{own},{}", site.demo),
        Err(_) => site.demo.clone(),
    };
    if std::env::var_os("AVOUCH_LOG").is_none() {
        // The HTTP server's log lines about its threads are of no use here.
        command.env("AVOUCH_LOG", "info,actix_server=warn");
    }
    // The demo receives its webhooks on this machine, which the egress policy must allow by name.
    command.env("AVOUCH_EGRESS_ALLOW", allowed).env("AVOUCH_DATA_DIR", &site.data);
    command
}

fn demo(site: &DemoSite, partner: &Value) -> Command {
    let mut command = Command::new(site.binaries.join("avouch-demo"));
    command
        .env("DEMO_LISTEN", &site.demo)
        .env("DEMO_SERVICE", format!("http://{}", site.service))
        .env("DEMO_API_KEY", text(partner, "apiKey"))
        .env("DEMO_WEBHOOK_SECRET", text(partner, "webhookSecret"));
    command
}

fn start(command: &mut Command) -> Result<Child, Failure> {
    let command = std::mem::replace(command, Command::new("true"));
    Ok(tokio::process::Command::from(command).kill_on_drop(true).spawn()?)
}

async fn until_listening(address: &str) -> Result<(), Failure> {
    let ends = Instant::now() + START_TIMEOUT;
    while TcpStream::connect(address).await.is_err() {
        if Instant::now() > ends {
            return Err(format!("nothing listens on {address}").into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// Sends SIGTERM, and SIGKILL where the process does not end in time.
async fn end(child: &mut Child) {
    if let Some(pid) = child.id().and_then(|id| i32::try_from(id).ok())
        && let Some(pid) = rustix::process::Pid::from_raw(pid)
    {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
    if tokio::time::timeout(END_TIMEOUT, child.wait()).await.is_err() {
        let _ = child.kill().await;
    }
}
