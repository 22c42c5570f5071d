//! `cargo xtask simulate`: simulates a day and prints what it has shown.

use std::process::ExitCode;

use chrono::TimeDelta;
use clap::Parser;
use simulation::{Deployment, Parameters, simulate};

/// Simulates a day of sessions with the queue, the placement and the session's rules of the service.
#[derive(Parser)]
#[command(name = "cargo xtask simulate")]
struct Options {
    /// The expected number of sessions of the day
    #[arg(long, default_value_t = 100_000)]
    sessions: u32,
    /// The same seed and options give the same result
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The number of instances; as many as the busiest hour needs unless it is given
    #[arg(long)]
    instances: Option<usize>,
    /// The browsers of each instance (`AVOUCH_BROWSERS`)
    #[arg(long)]
    slots: Option<usize>,
    /// The regions that the instances are spread over
    #[arg(long, default_value_t = 1)]
    regions: usize,
    /// Crashes of each instance in a day
    #[arg(long)]
    crashes: Option<f64>,
    /// How long a session waits for a browser, in seconds (`AVOUCH_BROWSER_QUEUE_SECONDS`)
    #[arg(long)]
    queue_seconds: Option<i64>,
    /// The sessions of a team that may wait at an instance (`AVOUCH_BROWSER_QUEUE_PER_TEAM`)
    #[arg(long)]
    queue_per_team: Option<usize>,
    /// The browsers of a team at an instance (`AVOUCH_BROWSERS_PER_TEAM`)
    #[arg(long)]
    browsers_per_team: Option<usize>,
    /// Leaves sessions that wait where they have begun to wait
    #[arg(long)]
    no_moves: bool,
    #[arg(long)]
    teams: Option<usize>,
    /// The webhooks of each team
    #[arg(long)]
    webhooks: Option<usize>,
    /// The part of the sessions that are attested, 0 to 1
    #[arg(long)]
    attested: Option<f64>,
    /// The part of the applicants who leave without a word, 0 to 1
    #[arg(long)]
    leave: Option<f64>,
}

impl Options {
    fn parameters(&self) -> Parameters {
        let mut parameters = Parameters::for_sessions(self.sessions);
        parameters.seed = self.seed;
        let sized = &parameters.deployment;
        let slots = self.slots.unwrap_or(sized.quotas.total);
        let needed = sized.instances.saturating_mul(sized.quotas.total).div_ceil(slots.max(1));
        let instances = self.instances.unwrap_or_else(|| needed.max(self.regions));
        let mut deployment = Deployment::with(instances, slots);
        deployment.regions = self.regions;
        deployment.moves_waiting = !self.no_moves;
        let set = |value: &mut f64, given: Option<f64>| *value = given.unwrap_or(*value);
        set(&mut deployment.crashes_per_day, self.crashes);
        if let Some(seconds) = self.queue_seconds {
            deployment.queue_timeout = TimeDelta::seconds(seconds.clamp(0, 86_400));
        }
        let quotas = &mut deployment.quotas;
        quotas.waiting_per_team = self.queue_per_team.unwrap_or(quotas.waiting_per_team);
        quotas.per_team = self.browsers_per_team.unwrap_or(quotas.per_team);
        parameters.deployment = deployment;
        let partners = &mut parameters.partners;
        partners.teams = self.teams.unwrap_or(partners.teams);
        partners.webhooks_per_team = self.webhooks.unwrap_or(partners.webhooks_per_team);
        set(&mut partners.attested, self.attested);
        set(&mut parameters.applicants.leave, self.leave);
        parameters
    }
}

fn main() -> ExitCode {
    let parameters = Options::parse().parameters();
    match simulate(&parameters) {
        Ok(report) => {
            print!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("simulation: {error}");
            ExitCode::FAILURE
        }
    }
}
