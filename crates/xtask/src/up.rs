//! `cargo xtask up`: the service with its embedded defaults, and a make-believe partner beside it.

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

/// Who signs in to the demo team's portal.
const OWNER: &str = "owner@demo.example";
const START_PATIENCE: Duration = Duration::from_secs(60);
const END_PATIENCE: Duration = Duration::from_secs(15);

/// Where everything is.
struct Place {
    binaries: PathBuf,
    /// The service's address; what it says of itself is its own configuration's.
    service: String,
    demo: String,
    data: PathBuf,
}

pub(crate) async fn up() -> Result<(), Failure> {
    packages::ensure(&[BROWSER, FFMPEG])?;
    // Not the release build: that takes three times as long, and one applicant is no load.
    run(&mut cargo(&["build", "-p", "app", "-p", "demo"]))?;
    let set =
        |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let place = Place {
        binaries: root().join("target/debug"),
        service: set("AVOUCH_LISTEN", "127.0.0.1:8080"),
        demo: set("DEMO_LISTEN", "127.0.0.1:8090"),
        data: std::path::absolute(set("AVOUCH_DATA_DIR", "./var"))?,
    };
    for address in [&place.service, &place.demo] {
        if TcpStream::connect(address).await.is_ok() {
            let how = "set AVOUCH_LISTEN or DEMO_LISTEN to another address";
            return Err(format!("something listens on {address} already: {how}").into());
        }
    }
    let partner = partner(&place)?;
    let (mut terminate, mut hang_up) =
        (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
    let mut service = start(avouch(&place).arg("serve"))?;
    let mut demo = start(&mut demo(&place, &partner))?;
    let ended = tokio::select! {
        ended = serve(&place, &partner, &mut service, &mut demo) => ended,
        _ = tokio::signal::ctrl_c() => Ok(()),
        _ = terminate.recv() => Ok(()),
        _ = hang_up.recv() => Ok(()),
    };
    end(&mut demo).await;
    end(&mut service).await;
    ended
}

/// Comes back when one of the two has ended by itself.
async fn serve(
    place: &Place,
    partner: &Value,
    service: &mut Child,
    demo: &mut Child,
) -> Result<(), Failure> {
    let up = async {
        listening(&place.service).await?;
        listening(&place.demo).await?;
        greet(place, partner);
        std::future::pending().await
    };
    tokio::select! {
        failed = up => failed,
        status = service.wait() => Err(format!("`avouch serve` ended: {}", status?).into()),
        status = demo.wait() => Err(format!("the demo partner ended: {}", status?).into()),
    }
}

fn greet(place: &Place, partner: &Value) {
    let (_, port) = place.demo.rsplit_once(':').unwrap_or_default();
    println!();
    println!("  Open this and play the applicant:  http://localhost:{port}");
    println!();
    println!("  Partner API   http://{}/v1", place.service);
    println!("  API key       {}", text(partner, "apiKey"));
    if !text(partner, "password").is_empty() {
        println!("  Portal        http://{}/portal", place.service);
        println!("                {OWNER}, {}", text(partner, "password"));
    }
    println!("  Data          {}", place.data.display());
    println!("  Ctrl-C ends it.");
    println!();
}

/// Team, key, webhook and owner of the demo; made at the first start and kept for the next.
fn partner(place: &Place) -> Result<Value, Failure> {
    let file = place.data.join("demo.json");
    if let Ok(kept) = fs::read_to_string(&file) {
        return Ok(serde_json::from_str(&kept)?);
    }
    let team = text(&admin(place, &["create-team", "Demo partner"])?, "teamId");
    let key = admin(place, &["create-key", "--team", &team, "--environment", "development"])?;
    let owner = ["create-user", "--team", &team, "--email", OWNER, "--role", "owner"];
    let owner = admin(place, &owner)?;
    let url = format!("http://{}/webhook", place.demo);
    let webhook = admin(place, &["create-webhook", "--team", &team, "--url", &url])?;
    let partner = json!({
        "apiKey": text(&key, "apiKey"),
        "webhookSecret": text(&webhook, "secret"),
        "password": text(&owner, "password"),
    });
    keep(&file, &partner)?;
    Ok(partner)
}

/// Keys are for their owner's eyes alone.
fn keep(file: &Path, partner: &Value) -> Result<(), Failure> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    file.write_all(partner.to_string().as_bytes())?;
    Ok(())
}

fn admin(place: &Place, arguments: &[&str]) -> Result<Value, Failure> {
    Ok(serde_json::from_str(&output(avouch(place).arg("admin").args(arguments))?)?)
}

fn text(object: &Value, name: &str) -> String {
    object.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn avouch(place: &Place) -> Command {
    let mut command = Command::new(place.binaries.join("avouch"));
    let allowed = match std::env::var("AVOUCH_EGRESS_ALLOW") {
        Ok(own) => format!("{own},{}", place.demo),
        Err(_) => place.demo.clone(),
    };
    if std::env::var_os("AVOUCH_LOG").is_none() {
        // What the server says of its threads is of no use to a newcomer.
        command.env("AVOUCH_LOG", "info,actix_server=warn");
    }
    // The demo receives its webhooks on this machine, which must be allowed by name.
    command.env("AVOUCH_EGRESS_ALLOW", allowed).env("AVOUCH_DATA_DIR", &place.data);
    command
}

fn demo(place: &Place, partner: &Value) -> Command {
    let mut command = Command::new(place.binaries.join("avouch-demo"));
    command
        .env("DEMO_LISTEN", &place.demo)
        .env("DEMO_SERVICE", format!("http://{}", place.service))
        .env("DEMO_API_KEY", text(partner, "apiKey"))
        .env("DEMO_WEBHOOK_SECRET", text(partner, "webhookSecret"));
    command
}

fn start(command: &mut Command) -> Result<Child, Failure> {
    let command = std::mem::replace(command, Command::new("true"));
    Ok(tokio::process::Command::from(command).kill_on_drop(true).spawn()?)
}

async fn listening(address: &str) -> Result<(), Failure> {
    let ends = Instant::now() + START_PATIENCE;
    while TcpStream::connect(address).await.is_err() {
        if Instant::now() > ends {
            return Err(format!("nothing listens on {address}").into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// Asks to end, and insists after a while.
async fn end(child: &mut Child) {
    if let Some(pid) = child.id().and_then(|id| i32::try_from(id).ok())
        && let Some(pid) = rustix::process::Pid::from_raw(pid)
    {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
    if tokio::time::timeout(END_PATIENCE, child.wait()).await.is_err() {
        let _ = child.kill().await;
    }
}
