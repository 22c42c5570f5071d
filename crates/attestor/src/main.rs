//! `avouch-attestor`: the independent witness, a program of its own with a key of its own.

use std::{path::PathBuf, process::ExitCode};

use attestor::{Attestor, Clients, Config, EXAMINE, issuers, new_key, now};
use clap::{Parser, Subcommand};
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
    /// Prints the public keys, as `avouch-verify --keys` takes them
    Issuers,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == EXAMINE) {
        return attestor::work();
    }
    let order = Order::parse();
    match run(&order) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("avouch-attestor: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(order: &Order) -> Result<(), Failure> {
    let Config { listen, mut settings } = Config::load(&order.config, std::env::current_exe()?)?;
    match order.command {
        Some(Command::NewKey { days }) => {
            println!("{}", new_key(&settings.keys, now(), days)?.display());
            Ok(())
        }
        Some(Command::Issuers) => {
            println!("{}", issuers(&settings.name, &settings.keys)?);
            Ok(())
        }
        None => {
            let filter = std::env::var("AVOUCH_LOG").unwrap_or_else(|_| "info".to_owned());
            tracing_subscriber::fmt()
                .with_env_filter(EnvFilter::try_new(filter)?)
                .with_writer(std::io::stderr)
                .with_ansi(false)
                .init();
            if order.open_to_everyone {
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
    }
}
