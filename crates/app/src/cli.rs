//! Reads the command line, and runs what it names.

use std::{io::IsTerminal as _, process::ExitCode};

use clap::Parser as _;
use command_line::{
    AdminCommand, AttestCommand, Cli, Command, CommandError, ConfigurationCommand, DoctorArguments,
    DoctorFormat, ReportFormat, WorkflowCommand,
};
use log_format::LineWriter;
use ports::driving::DefinitionService as _;
use tokio::runtime::Runtime;
use tracing_subscriber::{EnvFilter, layer::SubscriberExt as _, util::SubscriberInitExt as _};

use crate::{
    admin::{self, definitions},
    attest_probe,
    browser_hosts::Host,
    check,
    config::Config,
    doctor, migrate,
    service::{Overrides, Service},
    storage::open_store,
    traces::trace_ids,
    workflow_run, workflow_studio,
};

/// The exit code of `workflow run` if the session did not share data.
const NOTHING_SHARED: u8 = 3;
/// The exit code of `workflow run --replay` if a fixture led to another result.
const REPLAY_DIFFERS: u8 = 4;
/// The exit code of `migrate --check` if migrations are pending.
const MIGRATIONS_PENDING: u8 = 5;

/// What a service logs unless the configuration says otherwise.
const SERVICE_LOG: &str = "info";
/// What a command with a service of its own logs unless the configuration says otherwise: its author has
/// nothing to do with the start of that service.
const AUTHORING_LOG: &str = "warn";

/// Reads the command line, carries its command out, and returns the process's exit code.
///
/// # Errors
/// The reason, in one line.
pub fn run() -> Result<ExitCode, CommandError> {
    // The service reports errors with their causes in one line.
    execute(Cli::parse()).map_err(|error| application::error_chain(&*error).into())
}

fn execute(cli: Cli) -> Result<ExitCode, CommandError> {
    let (region, role) = match &cli.command {
        Command::Serve { region, role } => (region.clone(), role.clone()),
        Command::Migrate(_)
        | Command::Admin(_)
        | Command::Configuration(_)
        | Command::Doctor(_)
        | Command::Workflow(_)
        | Command::Attest(_) => (None, None),
    };
    let environment = |name: &str| match name {
        "AVOUCH_REGION" => region.clone(),
        "AVOUCH_ROLE" => role.clone(),
        name => std::env::var(name).ok(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let file = cli.config.as_deref();
    if let Command::Configuration(ConfigurationCommand::Check) = cli.command {
        let (config, faults) = Config::read(file, environment);
        runtime.block_on(check_configuration(&config, &faults))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Command::Doctor(DoctorArguments { format }) = cli.command {
        let (config, faults) = Config::read(file, environment);
        let default = if is_terminal() { DoctorFormat::Text } else { DoctorFormat::Json };
        let format = format.unwrap_or(default);
        let report = runtime.block_on(doctor::examine(&config, &faults, variables(), format))?;
        println!("{}", report.text);
        // An examination that did not end in time is not waited for.
        runtime.shutdown_background();
        return Ok(if report.passed { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let config = Config::load(file, environment)?;
    match cli.command {
        Command::Configuration(ConfigurationCommand::Check) | Command::Doctor(_) => (),
        Command::Serve { .. } => {
            start_log(&config, SERVICE_LOG)?;
            if config.roles.is_browser_host() {
                runtime.block_on(serve_browsers(&config))?;
            } else {
                runtime.block_on(serve(&config))?;
            }
        }
        Command::Migrate(arguments) => {
            start_log(&config, SERVICE_LOG)?;
            let report = runtime.block_on(migrate::migrate(&config, arguments))?;
            println!("{}", report.to_json());
            if report.is_behind() {
                return Ok(ExitCode::from(MIGRATIONS_PENDING));
            }
        }
        Command::Admin(command) => {
            println!("{}", runtime.block_on(administer(&config, command))?);
        }
        Command::Workflow(command) => return workflow(config, command, &runtime),
        Command::Attest(AttestCommand::Probe(probe)) => {
            return Ok(runtime.block_on(attest_probe::probe(&config, probe)));
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn administer(config: &Config, command: AdminCommand) -> Result<String, CommandError> {
    let services = admin::services(config, open_store(config).await?).await?;
    Ok(command.run(&services).await?.to_string())
}

fn workflow(
    config: Config,
    command: WorkflowCommand,
    runtime: &Runtime,
) -> Result<ExitCode, CommandError> {
    match command {
        WorkflowCommand::Check { file, format, strict } => {
            let default = if is_terminal() { ReportFormat::Text } else { ReportFormat::Json };
            let format = format.unwrap_or(default);
            let output = WorkflowCommand::check(&definitions(), &file, format, strict)?;
            println!("{}", output.text);
            if !output.passed {
                return Ok(ExitCode::FAILURE);
            }
        }
        WorkflowCommand::Schema => println!("{}", definitions().schema()),
        WorkflowCommand::Reference => print!("{}", definitions().reference()),
        WorkflowCommand::Descriptor { file } => {
            println!("{}", WorkflowCommand::descriptor(&definitions(), &file)?);
        }
        WorkflowCommand::Run { file, replay, .. } if !replay.is_empty() => {
            let report = WorkflowCommand::replay(&definitions(), &file, &replay)?;
            println!("{}", report.text);
            if !report.passed {
                return Ok(ExitCode::from(REPLAY_DIFFERS));
            }
        }
        WorkflowCommand::Studio { file, login_url, name } => {
            start_log(&config, AUTHORING_LOG)?;
            let document = workflow_studio::document(&file, login_url.as_deref(), name.as_deref())?;
            runtime.block_on(workflow_studio::studio(config, &file, document))?;
        }
        WorkflowCommand::Run { file, watch: true, .. } => {
            start_log(&config, AUTHORING_LOG)?;
            runtime.block_on(workflow_run::watch(config, &file))?;
        }
        WorkflowCommand::Run { file, record, .. } => {
            start_log(&config, AUTHORING_LOG)?;
            let end = runtime.block_on(workflow_run::run(config, &file, record.as_deref()))?;
            println!("{}", end.payload);
            if !end.has_data() {
                return Ok(ExitCode::from(NOTHING_SHARED));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// Returns the names of the environment's variables.
fn variables() -> impl Iterator<Item = String> {
    std::env::vars_os().filter_map(|(name, _)| name.into_string().ok())
}

/// Prints the report; errors in it are an error of the command.
async fn check_configuration(config: &Config, faults: &[String]) -> Result<(), CommandError> {
    let report = Box::pin(check::check(config, faults, variables())).await;
    print!("{report}");
    let count = report.error_count();
    if count == 0 {
        return Ok(());
    }
    let errors = if count == 1 { "error" } else { "errors" };
    Err(format!(
        "the configuration has {count} {errors}: see the table, and docs/operators-guide.md"
    )
    .into())
}

async fn serve(config: &Config) -> Result<(), CommandError> {
    use tokio::signal::unix::{SignalKind, signal};
    system::process::prepare_to_serve()?;
    let mut terminate = signal(SignalKind::terminate())?;
    let service = Service::start(config, Overrides::default()).await?;
    tokio::select! {
        _ = tokio::signal::ctrl_c() => (),
        _ = terminate.recv() => {
            let seconds = config.drain.as_secs();
            tracing::info!(seconds, "draining: the process stops once its sessions have ended");
            tokio::select! {
                () = service.drain(config.drain_min, config.drain) => (),
                _ = tokio::signal::ctrl_c() => (),
                _ = terminate.recv() => (),
            }
        }
    }
    tracing::info!("stopping");
    service.stop().await;
    Ok(())
}

/// Runs browsers for instances.
async fn serve_browsers(config: &Config) -> Result<(), CommandError> {
    use tokio::signal::unix::{SignalKind, signal};
    system::process::prepare_to_serve()?;
    let mut terminate = signal(SignalKind::terminate())?;
    let host = Host::start(config)?;
    tokio::select! {
        _ = tokio::signal::ctrl_c() => (),
        _ = terminate.recv() => {
            let seconds = config.drain.as_secs();
            tracing::info!(seconds, "draining: the process stops once its browsers have ended");
            tokio::select! {
                () = host.drain() => (),
                () = tokio::time::sleep(config.drain) => (),
                _ = tokio::signal::ctrl_c() => (),
                _ = terminate.recv() => (),
            }
        }
    }
    tracing::info!("stopping");
    host.stop().await;
    Ok(())
}

/// Writes a log on standard error. `default` is what is logged if the configuration does not say it.
fn start_log(config: &Config, default: &str) -> Result<(), CommandError> {
    let filter = EnvFilter::try_new(config.log.as_deref().unwrap_or(default))
        .map_err(|error| format!("log is no filter of the tracing form: {error}"))?
        // This crate logs the parameters of each statement, which include contacts and hashes.
        .add_directive("tokio_postgres=info".parse()?);
    let colours = std::io::stderr().is_terminal();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours);
    let ids = trace_ids(config);
    if config.log_json {
        let log = log.with_writer(std::io::stderr).json();
        let log = log.map_event_format(|format| ids.json(format));
        log.finish().with(ids).init();
    } else {
        let log = log.with_writer(move || LineWriter::new(std::io::stderr(), colours));
        let log = log.map_event_format(|format| ids.text(format.with_ansi(colours)));
        log.finish().with(ids).init();
    }
    Ok(())
}
