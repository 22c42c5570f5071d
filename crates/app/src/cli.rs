//! The commands of `avouch`.

use std::{io::IsTerminal as _, path::PathBuf};

use clap::{Parser, Subcommand};
use log_format::LineWriter;
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
};
use serde_json::json;
use tracing_subscriber::EnvFilter;

use crate::{
    admin::{Admin, read_definition},
    check,
    config::Config,
    service::{Overrides, Service},
    workflow_run,
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Proves that an applicant owns an account.
#[derive(Debug, Parser)]
#[command(name = "avouch", version)]
struct Cli {
    /// A TOML file; each of its keys is also an environment variable, which wins
    #[arg(long, global = true, env = "AVOUCH_CONFIG")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Runs the service
    Serve {
        /// The region whose sessions' browsers this process runs
        #[arg(long, env = "AVOUCH_REGION")]
        region: Option<String>,
    },
    /// Manages teams, keys, webhooks and platforms
    #[command(subcommand)]
    Admin(Admin),
    /// Looks at the configuration
    #[command(subcommand, name = "config")]
    Configuration(Configuration),
    /// For authors of platform definitions
    #[command(subcommand)]
    Workflow(Workflow),
}

#[derive(Debug, Subcommand)]
enum Configuration {
    /// Says all that is wrong with it, and whether database, Redis, mail server and storage answer;
    /// changes nothing. Exits with 0 or 1
    Check,
}

#[derive(Debug, Subcommand)]
enum Workflow {
    /// Checks a definition; prints its flaws
    Check { file: PathBuf },
    /// Prints what an attestor has to allow for a definition
    Descriptor { file: PathBuf },
    /// Runs a definition once in a real browser: prints a link to play the applicant on stderr, and
    /// what came of it as JSON
    Run { file: PathBuf },
}

/// Reads the command line and does what it says.
///
/// # Errors
/// One line that says what was wrong.
pub fn run() -> Result<(), Failure> {
    let cli = Cli::parse();
    let region = match &cli.command {
        CliCommand::Serve { region } => region.clone(),
        CliCommand::Admin(_) | CliCommand::Configuration(_) | CliCommand::Workflow(_) => None,
    };
    let environment = |name: &str| match name {
        "AVOUCH_REGION" => region.clone(),
        name => std::env::var(name).ok(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if let CliCommand::Configuration(Configuration::Check) = cli.command {
        let (config, faults) = Config::read(cli.config.as_deref(), environment);
        return runtime.block_on(check_configuration(&config, &faults));
    }
    let config = Config::load(cli.config.as_deref(), environment)?;
    match cli.command {
        CliCommand::Configuration(Configuration::Check) => Ok(()),
        CliCommand::Serve { .. } => {
            start_log(&config)?;
            runtime.block_on(serve(&config))
        }
        CliCommand::Admin(command) => {
            println!("{}", runtime.block_on(command.run(&config))?);
            Ok(())
        }
        CliCommand::Workflow(Workflow::Run { file }) => {
            start_log(&config)?;
            let result = runtime.block_on(workflow_run::run(config, &file))?;
            println!("{result}");
            Ok(())
        }
        CliCommand::Workflow(Workflow::Descriptor { file }) => {
            let definition = read_definition(&file)?;
            let descriptor = prover::descriptor(&definition);
            let descriptor = descriptor.ok_or("the definition has no plan for attestations")?;
            println!("{}", serde_json::to_string_pretty(&descriptor)?);
            Ok(())
        }
        CliCommand::Workflow(Workflow::Check { file }) => {
            let definition = read_definition(&file)?;
            let (platform, version) = (definition.platform, definition.version);
            println!("{}", json!({ "platform": platform, "version": version, "flaws": [] }));
            Ok(())
        }
    }
}

/// Prints a table; what is wrong makes it an error.
async fn check_configuration(config: &Config, faults: &[String]) -> Result<(), Failure> {
    let variables = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let (table, wrong) = check::check(config, faults, variables).await;
    print!("{table}");
    if wrong == 0 {
        return Ok(());
    }
    let errors = if wrong == 1 { "error" } else { "errors" };
    Err(format!(
        "the configuration has {wrong} {errors}: see the table, and docs/operators-guide.md"
    )
    .into())
}

async fn serve(config: &Config) -> Result<(), Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    // Nobody but root looks into our memory, not even a browser that is the same user.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    // A call to a receiver is a file: 1024, which most systems give at first, would not do.
    let files = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files })?;
    let mut terminate = signal(SignalKind::terminate())?;
    let service = Service::start(config, Overrides::default()).await?;
    tokio::select! {
        _ = tokio::signal::ctrl_c() => (),
        _ = terminate.recv() => (),
    }
    tracing::info!("stopping");
    service.stop().await;
    Ok(())
}

fn start_log(config: &Config) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(&config.log)
        .map_err(|error| format!("log is no filter of the tracing form: {error}"))?
        // It tells the parameters of each statement, contacts and hashes among them.
        .add_directive("tokio_postgres=info".parse()?);
    let colours = std::io::stderr().is_terminal();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours);
    if config.log_json {
        log.with_writer(std::io::stderr).json().init();
    } else {
        log.with_writer(move || LineWriter::new(std::io::stderr(), colours)).init();
    }
    Ok(())
}
