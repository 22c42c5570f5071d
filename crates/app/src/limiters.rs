//! The counters of requests and sign-in attempts: in this process, or in Redis for all processes.

use std::sync::Arc;

use limits::{MemoryAttempts, MemoryLimiter, RedisLimiter};
use ports::{attempts::AttemptLimiter, rate_limiter::RateLimiter};

use crate::{
    config::Config,
    storage::{StartupError, error_chain},
};

/// Of requests, and of attempts to sign in.
pub(crate) type Limiters = (Arc<dyn RateLimiter>, Arc<dyn AttemptLimiter>);

pub(crate) fn limiters(config: &Config) -> Result<Limiters, StartupError> {
    let Some(server) = &config.redis else {
        let own: Limiters =
            (Arc::new(MemoryLimiter::default()), Arc::new(MemoryAttempts::default()));
        return Ok(own);
    };
    let shared = Arc::new(RedisLimiter::open(server).map_err(error_chain)?);
    let shared: Limiters = (shared.clone(), shared);
    Ok(shared)
}
