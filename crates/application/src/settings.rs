//! What an operator sets for the use cases.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use domain::{rate::RateLimit, worker_region::WorkerRegion};

/// The public addresses of a deployment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Addresses {
    /// The base URL of everything without an address of its own; without a trailing slash.
    pub public: String,
    /// The base URLs of the processes that run the browsers of a region.
    pub regions: BTreeMap<WorkerRegion, String>,
    /// The region of this process.
    pub own: Option<WorkerRegion>,
}

impl Addresses {
    /// Returns the base URL that serves sessions of this region.
    #[must_use]
    pub fn of(&self, region: WorkerRegion) -> &str {
        self.regions.get(&region).unwrap_or(&self.public)
    }

    /// Returns whether instances of a region, or of none, serve the links of sessions of another one. In a
    /// deployment without such addresses no instance is meant for some regions.
    #[must_use]
    pub fn is_home(&self, instance: Option<WorkerRegion>, session: WorkerRegion) -> bool {
        let there = instance.map_or(self.public.as_str(), |region| self.of(region));
        !self.regions.is_empty() && there == self.of(session)
    }

    /// Returns the base URL that serves sessions of this region, unless this process does.
    #[must_use]
    pub fn elsewhere(&self, region: WorkerRegion) -> Option<&str> {
        let here = self.own.map_or(self.public.as_str(), |own| self.of(own));
        Some(self.of(region)).filter(|there| *there != here)
    }
}

/// The rules for sign-ins to the portal.
#[derive(Debug, Clone, Copy)]
pub struct SignInPolicy {
    /// A sign-in ends after this time without a request.
    pub idle: TimeDelta,
    /// A sign-in ends this long after it began, whatever happens in it.
    pub absolute: TimeDelta,
    /// Whether operators need a second factor, whatever their team requires.
    pub operators_need_second_factor: bool,
}

/// Rate limits of the partner API; `None` means no limit.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    pub requests: Option<RateLimit>,
    pub creations: Option<RateLimit>,
    /// For all of a team's keys together.
    pub team_creations: Option<RateLimit>,
    /// For links that a team sends to one address or number.
    pub recipient: Option<RateLimit>,
}
