//! `avouch-attestor`: the independent witness, a program of its own with a key of its own.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

use attestor::{
    Attestor, Clients, Config, EXAMINE, Finding, KeyEntry, KeyState, Monitor, Settings, issuers,
    list_keys, log_key, new_key, now, revoke_key,
};
use chrono::{DateTime, SecondsFormat};
use clap::{Parser, Subcommand};
use logs::LineWriter;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Records a prover's connections to platforms, and attests what was said
#[derive(Debug, Parser)]
#[command(name = "avouch-attestor", version)]
struct Order {
    #[arg(long, env = "AVOUCH_ATTESTOR_CONFIG", default_value = "attestor.toml")]
    config: PathBuf,
    /// Serves everybody who knows the address; without it the configuration must have tokens
    #[arg(long, env = "AVOUCH_ATTESTOR_OPEN_TO_EVERYONE")]
    open_to_everyone: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Makes a key in the configured folder, which follows the others at once
    NewKey {
        /// How long it may sign
        #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u64).range(1..=3650))]
        days: u64,
    },
    /// Revokes a key for good and deletes its secret; publish `issuers` again afterwards
    RevokeKey {
        /// The key's id, or its public key, as `list-keys` prints them
        #[arg(long, value_name = "ID")]
        key: String,
        /// Since when it is not to be believed, by RFC 3339; now where left out
        #[arg(long, value_name = "TIME", value_parser = time)]
        at: Option<u64>,
        /// For those who look after the keys; not published
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Prints the keys of the configured folder: id, state and times
    ListKeys {
        #[arg(long)]
        json: bool,
    },
    /// Prints the public keys, as `avouch-verify --keys` takes them
    Issuers,
    /// Prints the key of the log, as `monitor --key` takes it
    LogKey,
    /// Follows an attestor's log and says whether it was rewritten; needs no configuration.
    ///
    /// Exits with 0 where all is well, 10 where the log was rewritten, 11 where it is older than
    /// before, 12 where its checkpoint is not signed by the key, 13 where it cannot be reached, 14
    /// where the state cannot be used.
    Monitor(Watch),
}

#[derive(Debug, clap::Args)]
struct Watch {
    /// Where the log's `checkpoint` is: an address (https://…) or a folder
    #[arg(long, value_name = "URL_OR_DIR")]
    log: String,
    /// The log's key, as `log-key` prints it
    #[arg(long, value_name = "VKEY")]
    key: String,
    /// The file that remembers what was seen; is made at the first time
    #[arg(long, value_name = "FILE")]
    state: PathBuf,
    /// Goes on, and looks again after so many seconds, until something is wrong
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86400))]
    interval: Option<u64>,
    /// Looks once, which is what is done without an interval
    #[arg(long, conflicts_with = "interval")]
    once: bool,
    /// Goes through all entries and tiles again, also those that were checked before
    #[arg(long)]
    all: bool,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == EXAMINE) {
        return attestor::work();
    }
    let order = Order::parse();
    if let Some(Command::Monitor(watch)) = &order.command {
        return monitor(watch);
    }
    match run(&order) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("avouch-attestor: {error}");
            ExitCode::FAILURE
        }
    }
}

fn monitor(watch: &Watch) -> ExitCode {
    let watched = || -> Result<(), Finding> {
        let Watch { log, key, state, interval, all, .. } = watch;
        let monitor = Monitor::new(log, key, state.clone())?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Finding::State(error.to_string()))?;
        runtime.block_on(monitor.watch(interval.map(Duration::from_secs), *all, |seen| {
            println!("{}", seen.json());
        }))
    };
    match watched() {
        Ok(()) => ExitCode::SUCCESS,
        Err(finding) => {
            eprintln!("avouch-attestor: {finding}");
            ExitCode::from(finding.code())
        }
    }
}

fn run(order: &Order) -> Result<(), Failure> {
    let Config { listen, settings } = Config::load(&order.config, std::env::current_exe()?)?;
    match &order.command {
        Some(Command::NewKey { days }) => {
            println!("{}", new_key(&settings.keys, now(), *days)?.display());
            Ok(())
        }
        Some(Command::RevokeKey { key, at, reason }) => {
            let now = now();
            let at = at.unwrap_or(now);
            let entry = revoke_key(&settings.keys, key, at, reason.as_deref(), now)?;
            println!("{}", serde_json::to_string(&entry)?);
            Ok(())
        }
        Some(Command::ListKeys { json }) => {
            let keys = list_keys(&settings.keys, now())?;
            if *json {
                println!("{}", serde_json::json!({ "keys": keys }));
            } else {
                for key in &keys {
                    println!("{}", line(key));
                }
            }
            Ok(())
        }
        Some(Command::LogKey) => {
            println!("{}", log_key(&settings.log, &settings.log_origin)?);
            Ok(())
        }
        // Runs without a configuration: see `main`.
        Some(Command::Monitor(_)) => Ok(()),
        Some(Command::Issuers) => {
            println!("{}", issuers(&settings.name, &settings.keys)?);
            Ok(())
        }
        None => serve(listen, settings, order.open_to_everyone),
    }
}

/// Serves until it is told to stop.
fn serve(
    listen: SocketAddr,
    mut settings: Settings,
    open_to_everyone: bool,
) -> Result<(), Failure> {
    let filter = std::env::var("AVOUCH_LOG").unwrap_or_else(|_| "info".to_owned());
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_new(filter)?)
        .with_writer(|| LineWriter::new(std::io::stderr(), false))
        .with_ansi(false)
        .init();
    if open_to_everyone {
        if settings.clients != Clients::Known(vec![]) {
            return Err("--open-to-everyone contradicts tokens_sha256".into());
        }
        tracing::warn!("everybody is served who knows the address");
        settings.clients = Clients::Everyone;
    }
    let attestor = Attestor::new(settings)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let stop = CancellationToken::new();
        let mut terminate = signal(SignalKind::terminate())?;
        let listener = TcpListener::bind(listen).await?;
        tracing::info!("attesting on {}", listener.local_addr()?);
        let serving = tokio::spawn(attestor.serve(listener, stop.clone()));
        tokio::select! {
            _ = tokio::signal::ctrl_c() => (),
            _ = terminate.recv() => (),
        }
        tracing::info!("stopping");
        stop.cancel();
        serving.await?;
        Ok(())
    })
}

/// A key for people: its id, what it is used for, and when.
fn line(key: &KeyEntry) -> String {
    let state = match key.state {
        KeyState::Current => "signs now",
        KeyState::Valid => "valid, not used",
        KeyState::NotYetValid => "not valid yet",
        KeyState::Ended => "ended",
        KeyState::Revoked => "revoked",
    };
    let (from, to) = (date(key.valid_from), date(key.valid_to));
    let revoked = key.revoked_at.map(|at| format!(", revoked {}", date(at))).unwrap_or_default();
    let reason = key.revocation_reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    format!("{} {state}, valid {from} to {to}{revoked}{reason}", key.key_id)
}

/// RFC 3339; the number itself where no calendar has that time.
fn date(milliseconds: u64) -> String {
    let moment = i64::try_from(milliseconds).ok().and_then(DateTime::from_timestamp_millis);
    let text = moment.map(|moment| moment.to_rfc3339_opts(SecondsFormat::Secs, true));
    text.unwrap_or_else(|| milliseconds.to_string())
}

/// Milliseconds since 1970 of a time by RFC 3339.
fn time(text: &str) -> Result<u64, String> {
    let moment = DateTime::parse_from_rfc3339(text).map_err(|error| error.to_string())?;
    u64::try_from(moment.timestamp_millis()).map_err(|_| "it is before 1970".to_owned())
}
