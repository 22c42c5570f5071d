//! The commands of `avouch`: their arguments, and what they print.
//!
//! Results are one JSON object on standard output; the names of its members are a contract with
//! scripts of operators. Errors are one line on standard error. The commands call driving ports.

mod admin;
mod attest;
mod check_report;
mod definition_files;
mod doctor;
mod migrate;
mod replay;
mod workflow;

use std::{error::Error, path::PathBuf};

use clap::{Parser, Subcommand};

pub use self::{
    admin::{AdminCommand, AdminServices},
    attest::{AttestCommand, HeaderArgument, ProbeArguments, ProbeFormat, ProbedMode, read_pem},
    check_report::{CheckReport, CheckRow},
    definition_files::DefinitionFiles,
    doctor::{DoctorArguments, DoctorFormat, DoctorReport},
    migrate::{MigrateArguments, MigrationReport},
    replay::{WrittenFixture, write_fixture},
    workflow::{
        CheckOutput, ReportFormat, WorkflowCommand, read_definition, read_document, with_sign_ins,
    },
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
        /// What this process does, with commas: api (partners, applicants and the portal), browser (runs
        /// browsers; alone, for other instances and without a database), delivery (webhooks, mails and
        /// retention). All by default
        #[arg(long, env = "AVOUCH_ROLE")]
        role: Option<String>,
    },
    /// Applies pending migrations of the database; prints {"applied","newer"}
    Migrate(MigrateArguments),
    /// Manages teams, keys, webhooks and platforms
    #[command(subcommand)]
    Admin(AdminCommand),
    /// Inspects the configuration
    #[command(subcommand, name = "config")]
    Configuration(ConfigurationCommand),
    /// Examines all that the service depends on, as it uses it, and says what to do: database, data folder,
    /// secret key, browser, sandbox, egress, mail, storage, Redis, attestor, addresses. It takes half a
    /// minute at most, and leaves nothing behind. Exits with 0, or with 1 if something failed
    Doctor(DoctorArguments),
    /// For authors of platform definitions
    #[command(subcommand)]
    Workflow(WorkflowCommand),
    /// For those who declare attestations, or run an attestor
    #[command(subcommand)]
    Attest(AttestCommand),
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
