//! The commands of `avouch`: their arguments, and what they print.
//!
//! Results are one JSON object on standard output; the names of its members are a contract with
//! scripts of operators. Errors are one line on standard error. The commands call driving ports.

mod admin;
mod check_report;
mod definition_files;
mod replay;
mod workflow;

use std::{error::Error, path::PathBuf};

use clap::{Parser, Subcommand};

pub use self::{
    admin::{AdminCommand, AdminServices},
    check_report::{CheckReport, CheckRow},
    definition_files::DefinitionFiles,
    replay::write_fixture,
    workflow::{CheckOutput, ReportFormat, WorkflowCommand, read_definition, read_document},
};

/// Why a command was not carried out.
pub type CommandError = Box<dyn Error + Send + Sync>;

/// Verifies that an applicant owns an account.
#[derive(Debug, Parser)]
#[command(name = "avouch", version)]
pub struct Cli {
    /// A TOML file; each of its keys is also an environment variable, which takes precedence
    #[arg(long, global = true, env = "AVOUCH_CONFIG")]
    pub config: Option<PathBuf>,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs the service
    Serve {
        /// The region whose sessions' browsers this process runs
        #[arg(long, env = "AVOUCH_REGION")]
        region: Option<String>,
    },
    /// Manages teams, keys, webhooks and platforms
    #[command(subcommand)]
    Admin(AdminCommand),
    /// Inspects the configuration
    #[command(subcommand, name = "config")]
    Configuration(ConfigurationCommand),
    /// For authors of platform definitions
    #[command(subcommand)]
    Workflow(WorkflowCommand),
}

#[derive(Debug, Subcommand)]
pub enum ConfigurationCommand {
    /// Prints everything that is wrong with the configuration, and whether database, Redis, mail
    /// server and storage respond; changes nothing. Exits with 0 or 1
    Check,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }
}
