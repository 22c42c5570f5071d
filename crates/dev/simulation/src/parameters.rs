//! What is simulated: the load, the deployment, and how applicants and endpoints behave.
//!
//! The defaults of behaviour are assumptions, not measurements: replace them by those of your own
//! applicants, which `avouch_sessions_closed_total` and the timelines of sessions show.

use chrono::TimeDelta;
use domain::{fairness::Quotas, webhook::Webhook, worker_region::WorkerRegion};

use crate::{
    numbers::{ceiling, float},
    random::LogNormal,
};

/// How long an opened session holds slots with the default parameters, in seconds, all its attempts
/// together: the mean that a simulation of them has shown. The default deployment is sized by it.
const HOLD_SECONDS: f64 = 140.0;
/// The part of the slots that is in use in the busiest hour, by which the default deployment is sized.
const UTILISATION: f64 = 0.7;

/// All parameters of a simulated day.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// The same seed and parameters give the same result.
    pub seed: u64,
    /// The expected number of sessions that are created in the day; the number itself is random.
    pub sessions: u32,
    /// How the sessions are spread over the hours of the day; only their ratios matter. Within an hour
    /// they come as a Poisson process.
    pub hourly_shares: [f64; 24],
    pub deployment: Deployment,
    pub partners: Partners,
    pub applicants: Applicants,
    pub browsers: Browsers,
    pub endpoints: Endpoints,
    /// How often the queues are looked into, for Little's law.
    pub look_interval: TimeDelta,
    /// The bytes of one session in so many are counted.
    pub sessions_per_byte_sample: u64,
}

/// The instances.
#[derive(Debug, Clone, PartialEq)]
pub struct Deployment {
    pub instances: usize,
    /// Regions that the instances are spread over, in turn: 1 to 5.
    pub regions: usize,
    /// The limits of each instance; `total` is the number of its slots (`AVOUCH_BROWSERS`).
    pub quotas: Quotas,
    /// How long a session waits for a browser (`AVOUCH_BROWSER_QUEUE_SECONDS`).
    pub queue_timeout: TimeDelta,
    /// Whether sessions that wait are moved to instances that have a browser free.
    pub moves_waiting: bool,
    /// Crashes of each instance in a day.
    pub crashes_per_day: f64,
    /// How long an instance is down after a crash.
    pub restart: TimeDelta,
    /// How long a closed session keeps its data (`AVOUCH_RETENTION_DAYS`).
    pub retention: TimeDelta,
}

/// The partners.
#[derive(Debug, Clone, PartialEq)]
pub struct Partners {
    /// The share of the n-th team is proportional to 1/n (Zipf's law).
    pub teams: usize,
    pub webhooks_per_team: usize,
    /// The part of the sessions that are of development keys.
    pub development: f64,
    /// The part of the sessions whose link the service sends.
    pub invited: f64,
    /// The part of the sessions that are attested.
    pub attested: f64,
    /// The part of the sessions that the partner ends.
    pub terminated: f64,
    /// The part of the sessions that are created with an idempotency key.
    pub idempotent: f64,
    /// The lifetime of a session that nobody opens (`expiresInHours`).
    pub expires_in: TimeDelta,
}

/// The behaviour of applicants.
#[derive(Debug, Clone, PartialEq)]
pub struct Applicants {
    /// The part of the links that nobody opens.
    pub never_open: f64,
    /// From the creation of the session to the opening of its link.
    pub opening: LogNormal,
    /// How long an applicant waits for a browser at most, on average; then they leave the page.
    pub patience_seconds: f64,
    pub sign_in: LogNormal,
    /// The part of the sign-ins with a second factor.
    pub challenged: f64,
    pub challenge: LogNormal,
    pub consent: LogNormal,
    /// The parts of the attempts that end in these ways.
    pub leave: f64,
    pub cancel: f64,
    pub decline: f64,
    pub fail: f64,
    /// The part of the failures after which another attempt is pointless.
    pub pointless: f64,
    /// How long an applicant thinks about another attempt, and how many make one or decline it. The
    /// others leave.
    pub thinking: LogNormal,
    pub retry: f64,
    pub decline_retry: f64,
    /// The part of the applicants that wait at the page when their instance has crashed.
    pub stay_after_crash: f64,
}

/// The behaviour of browsers and platforms.
#[derive(Debug, Clone, PartialEq)]
pub struct Browsers {
    pub start: LogNormal,
    pub start_failure: f64,
    pub page_load: LogNormal,
    pub extraction: LogNormal,
    pub incomplete: f64,
    pub attestation: LogNormal,
    pub attestation_refused: f64,
    /// How long the slot of a browser that is released stays occupied.
    pub stop: LogNormal,
}

/// The behaviour of webhook endpoints.
#[derive(Debug, Clone, PartialEq)]
pub struct Endpoints {
    pub answer: LogNormal,
    /// The part of the calls that fail although the endpoint is up.
    pub call_failure: f64,
    pub outages_per_day: f64,
    pub outage_seconds: f64,
    /// The part of the outages in which calls time out; in the others they are refused at once.
    pub hanging: f64,
    /// The part of the endpoints that never answer.
    pub dead: f64,
    /// Calls to one endpoint at once, of all instances together. The adaptive limit of the dispatcher is
    /// not simulated.
    pub calls_at_once: u32,
    pub timeout: TimeDelta,
    pub retries: u8,
}

/// Parameters that cannot be simulated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidParameters(pub &'static str);

impl std::fmt::Display for InvalidParameters {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.0)
    }
}

impl std::error::Error for InvalidParameters {}

/// A day with a low at night and its highest hours at noon and in the evening.
pub const DAILY_CURVE: [f64; 24] = [
    1.6, 1.1, 0.8, 0.7, 0.8, 1.2, 2.2, 3.6, 4.8, 5.6, 6.0, 6.2, 6.4, 6.0, 5.7, 5.6, 5.6, 5.7, 6.0,
    6.2, 6.0, 5.2, 4.0, 3.0,
];

impl Parameters {
    /// Returns the default parameters for a number of sessions, with as many instances of 64 slots (16
    /// where one of them suffices) as the busiest hour needs.
    #[must_use]
    pub fn for_sessions(sessions: u32) -> Self {
        Self {
            seed: 1,
            sessions,
            hourly_shares: DAILY_CURVE,
            deployment: Deployment::for_sessions(sessions),
            partners: Partners {
                teams: 200,
                webhooks_per_team: 1,
                development: 0.02,
                invited: 0.3,
                attested: 0.2,
                terminated: 0.005,
                idempotent: 1.0,
                expires_in: TimeDelta::hours(168),
            },
            applicants: Applicants::default(),
            browsers: Browsers::default(),
            endpoints: Endpoints::default(),
            look_interval: TimeDelta::seconds(60),
            sessions_per_byte_sample: 64,
        }
    }

    /// Returns the number of slots that the busiest hour needs.
    fn slots_for(sessions: u32) -> u64 {
        let all: f64 = DAILY_CURVE.iter().sum();
        let busiest = DAILY_CURVE.iter().copied().fold(0.0, f64::max) / all;
        let opened = 1.0 - Applicants::default().never_open;
        let each_second = f64::from(sessions) * opened * busiest / 3600.0;
        // A Poisson process varies; three deviations are added.
        let busy = each_second * HOLD_SECONDS;
        ceiling(3.0_f64.mul_add(busy.sqrt(), busy / UTILISATION)).max(1)
    }

    /// Checks what the simulation relies on.
    ///
    /// # Errors
    /// There is no session, no instance or no slot, more regions than instances, or a curve without load.
    pub fn check(&self) -> Result<(), InvalidParameters> {
        let Deployment { instances, regions, quotas, .. } = &self.deployment;
        let shares = self.hourly_shares;
        let wrong = [
            (self.sessions == 0, "there must be a session"),
            (*instances == 0 || quotas.total == 0, "there must be an instance with a slot"),
            (*regions == 0 || regions > instances, "each region needs an instance"),
            (*regions > WorkerRegion::ALL.len(), "there are five regions"),
            (self.partners.teams == 0, "there must be a team"),
            (self.sessions_per_byte_sample == 0, "a sample is one session in 1 or more"),
            (self.look_interval <= TimeDelta::zero(), "the look interval must be positive"),
            (shares.iter().any(|share| *share < 0.0), "an hourly share must not be negative"),
            (shares.iter().sum::<f64>() <= 0.0, "an hour must have a share"),
        ];
        wrong
            .iter()
            .find(|(is_wrong, _)| *is_wrong)
            .map_or(Ok(()), |(_, why)| Err(InvalidParameters(why)))
    }
}

impl Deployment {
    fn for_sessions(sessions: u32) -> Self {
        let needed = Parameters::slots_for(sessions);
        let slots: u64 = if needed <= 16 { 16 } else { 64 };
        let instances = usize::try_from(needed.div_ceil(slots)).unwrap_or(usize::MAX);
        Self::with(instances, usize::try_from(slots).unwrap_or(16))
    }

    /// Returns a deployment with the service's default quotas.
    #[must_use]
    pub fn with(instances: usize, slots: usize) -> Self {
        let development = slots.saturating_sub(slots / 4);
        Self {
            instances,
            regions: 1,
            quotas: Quotas { total: slots, per_team: slots, development, waiting_per_team: 100 },
            queue_timeout: TimeDelta::seconds(300),
            moves_waiting: true,
            crashes_per_day: 0.05,
            restart: TimeDelta::seconds(30),
            retention: TimeDelta::days(30),
        }
    }

    /// Returns the number of slots of all instances.
    #[must_use]
    pub fn slots(&self) -> f64 {
        let count = |number: usize| float(u64::try_from(number).unwrap_or(u64::MAX));
        count(self.instances) * count(self.quotas.total)
    }
}

impl Default for Applicants {
    fn default() -> Self {
        let times = |median_seconds, sigma| LogNormal { median_seconds, sigma };
        Self {
            never_open: 0.15,
            opening: times(120.0, 1.5),
            patience_seconds: 180.0,
            sign_in: times(40.0, 0.7),
            challenged: 0.5,
            challenge: times(25.0, 0.6),
            consent: times(8.0, 0.7),
            leave: 0.08,
            cancel: 0.03,
            decline: 0.02,
            fail: 0.1,
            pointless: 0.2,
            thinking: times(8.0, 0.6),
            retry: 0.6,
            decline_retry: 0.2,
            stay_after_crash: 0.9,
        }
    }
}

impl Default for Browsers {
    fn default() -> Self {
        let times = |median_seconds, sigma| LogNormal { median_seconds, sigma };
        Self {
            start: times(1.0, 0.4),
            start_failure: 0.002,
            page_load: times(2.0, 0.5),
            extraction: times(6.0, 0.6),
            incomplete: 0.02,
            attestation: times(12.0, 0.4),
            attestation_refused: 0.01,
            stop: times(0.3, 0.4),
        }
    }
}

impl Default for Endpoints {
    fn default() -> Self {
        Self {
            answer: LogNormal { median_seconds: 0.12, sigma: 0.6 },
            call_failure: 0.01,
            outages_per_day: 0.5,
            outage_seconds: 600.0,
            hanging: 0.5,
            dead: 0.005,
            calls_at_once: 128,
            timeout: TimeDelta::from_std(Webhook::DEFAULT_TIMEOUT).unwrap_or_default(),
            retries: Webhook::DEFAULT_RETRIES,
        }
    }
}
