//! `avouch-attestor`: the independent attestor, a separate program with its own key.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

use attestor::{
    AllowedClients, AttestorConfig, AttestorServer, EXAMINER_ARGUMENT, KeyEntry, KeyState, Monitor,
    MonitorError, Settings, issuers, list_keys, log_key, new_key, now, revoke_key,
};
use chrono::{DateTime, SecondsFormat};
use clap::{Parser, Subcommand};
use log_format::LineWriter;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Records a prover's connections to platforms and attests their content
#[derive(Debug, Parser)]
#[command(name = "avouch-attestor", version)]
struct AttestorArguments {
    #[arg(long, env = "AVOUCH_ATTESTOR_CONFIG", default_value = "attestor.toml")]
    config: PathBuf,
    /// Serves every client that knows the address; without it the configuration must have tokens
    #[arg(long, env = "AVOUCH_ATTESTOR_OPEN_TO_EVERYONE")]
    open_to_everyone: bool,
    #[command(subcommand)]
    command: Option<AttestorCommand>,
}

#[derive(Debug, Subcommand)]
enum AttestorCommand {
    /// Creates a key in the configured folder, which signs from now on
    NewKey {
        /// Validity period in days
        #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u64).range(1..=3650))]
        days: u64,
    },
    /// Revokes a key permanently and deletes its secret; publish `issuers` again afterwards
    RevokeKey {
        /// The key's id or its public key, as `list-keys` prints them
        #[arg(long, value_name = "ID")]
        key: String,
        /// Time from which the key is not trusted (RFC 3339); now if left out
        #[arg(long, value_name = "TIME", value_parser = parse_time)]
        at: Option<u64>,
        /// Note for the operators of the keys; not published
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
    /// Monitors an attestor's log and reports whether it was rewritten; needs no configuration.
    ///
    /// Exit codes: 0 if the log is consistent, 10 if it was rewritten, 11 if it was rolled back, 12
    /// if its checkpoint is not signed by the key, 13 if it cannot be reached, 14 if the state
    /// cannot be used.
    Monitor(MonitorArguments),
}

#[derive(Debug, clap::Args)]
struct MonitorArguments {
    /// Location of the log's `checkpoint`: an address (https://…) or a folder
    #[arg(long, value_name = "URL_OR_DIR")]
    log: String,
    /// The log's key, as `log-key` prints it
    #[arg(long, value_name = "VKEY")]
    key: String,
    /// File for the last verified state; created by the first check
    #[arg(long, value_name = "FILE")]
    state: PathBuf,
    /// Repeats the check after this many seconds, until it fails
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86400))]
    interval: Option<u64>,
    /// Checks once, which is the default without an interval
    #[arg(long, conflicts_with = "interval")]
    once: bool,
    /// Checks all entries and tiles again, including those that were checked before
    #[arg(long)]
    all: bool,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == EXAMINER_ARGUMENT) {
        return attestor::run_worker();
    }
    let arguments = AttestorArguments::parse();
    if let Some(AttestorCommand::Monitor(arguments)) = &arguments.command {
        return monitor(arguments);
    }
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("avouch-attestor: {error}");
            ExitCode::FAILURE
        }
    }
}

fn monitor(arguments: &MonitorArguments) -> ExitCode {
    let checked = || -> Result<(), MonitorError> {
        let MonitorArguments { log, key, state, interval, all, .. } = arguments;
        let monitor = Monitor::new(log, key, state.clone())?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| MonitorError::State(error.to_string()))?;
        runtime.block_on(monitor.run(interval.map(Duration::from_secs), *all, |verified| {
            println!("{}", verified.json());
        }))
    };
    match checked() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("avouch-attestor: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(arguments: &AttestorArguments) -> Result<(), BoxError> {
    let AttestorConfig { listen, settings } =
        AttestorConfig::load(&arguments.config, std::env::current_exe()?)?;
    match &arguments.command {
        Some(AttestorCommand::NewKey { days }) => {
            println!("{}", new_key(&settings.keys, now(), *days)?.display());
            Ok(())
        }
        Some(AttestorCommand::RevokeKey { key, at, reason }) => {
            let now = now();
            let at = at.unwrap_or(now);
            let entry = revoke_key(&settings.keys, key, at, reason.as_deref(), now)?;
            println!("{}", serde_json::to_string(&entry)?);
            Ok(())
        }
        Some(AttestorCommand::ListKeys { json }) => {
            let keys = list_keys(&settings.keys, now())?;
            if *json {
                println!("{}", serde_json::json!({ "keys": keys }));
            } else {
                for key in &keys {
                    println!("{}", format_key(key));
                }
            }
            Ok(())
        }
        Some(AttestorCommand::LogKey) => {
            println!("{}", log_key(&settings.log, &settings.log_origin)?);
            Ok(())
        }
        // Runs without a configuration: see `main`.
        Some(AttestorCommand::Monitor(_)) => Ok(()),
        Some(AttestorCommand::Issuers) => {
            println!("{}", issuers(&settings.name, &settings.keys)?);
            Ok(())
        }
        None => serve(listen, settings, arguments.open_to_everyone),
    }
}

/// Serves until SIGINT or SIGTERM.
fn serve(
    listen: SocketAddr,
    mut settings: Settings,
    open_to_everyone: bool,
) -> Result<(), BoxError> {
    let filter = std::env::var("AVOUCH_LOG").unwrap_or_else(|_| "info".to_owned());
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_new(filter)?)
        .with_writer(|| LineWriter::new(std::io::stderr(), false))
        .with_ansi(false)
        .init();
    if open_to_everyone {
        if settings.clients != AllowedClients::Tokens(vec![]) {
            return Err("--open-to-everyone contradicts tokens_sha256".into());
        }
        tracing::warn!("serving every client that knows the address");
        settings.clients = AllowedClients::Everyone;
    }
    let attestor = AttestorServer::new(settings)?;
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

/// Formats a key for people: its id, its state and its times.
fn format_key(key: &KeyEntry) -> String {
    let state = match key.state {
        KeyState::Current => "signs now",
        KeyState::Valid => "valid, not used",
        KeyState::NotYetValid => "not valid yet",
        KeyState::Ended => "ended",
        KeyState::Revoked => "revoked",
    };
    let (from, to) = (format_time(key.valid_from), format_time(key.valid_to));
    let revoked =
        key.revoked_at.map(|at| format!(", revoked {}", format_time(at))).unwrap_or_default();
    let reason = key.revocation_reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    format!("{} {state}, valid {from} to {to}{revoked}{reason}", key.key_id)
}

/// Formats a time by RFC 3339, or as the number itself if it is out of the calendar's range.
fn format_time(milliseconds: u64) -> String {
    let time = i64::try_from(milliseconds).ok().and_then(DateTime::from_timestamp_millis);
    let text = time.map(|time| time.to_rfc3339_opts(SecondsFormat::Secs, true));
    text.unwrap_or_else(|| milliseconds.to_string())
}

/// Parses an RFC 3339 time into milliseconds since 1970.
fn parse_time(text: &str) -> Result<u64, String> {
    let time = DateTime::parse_from_rfc3339(text).map_err(|error| error.to_string())?;
    u64::try_from(time.timestamp_millis()).map_err(|_| "it is before 1970".to_owned())
}
