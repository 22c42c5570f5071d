//! Counts in Redis, for all processes.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::rate::Window;
use ports::rate_limiter::{Charge, RateLimiter, Subject};
use redis::{
    RedisError, Script,
    aio::{ConnectionManager, ConnectionManagerConfig},
};

use super::{
    memory::{MemoryLimiter, widened},
    server::Redis,
};

/// Counts each key once and answers, for each, the count and the milliseconds that are left of
/// its window. A key without an end (a lost `PEXPIRE`) gets one.
const COUNT: &str = r"
local answer = {}
for i, key in ipairs(KEYS) do
  local used = redis.call('INCR', key)
  local left = redis.call('PTTL', key)
  if left < 0 then
    left = tonumber(ARGV[i])
    redis.call('PEXPIRE', key, left)
  end
  answer[#answer + 1] = used
  answer[#answer + 1] = left
end
return answer
";
/// How long an answer is waited for; a request must not hang on its limit.
const PATIENCE: Duration = Duration::from_millis(250);
/// How long a connection is waited for: a handshake of TLS is two ways there and back more.
const CONNECT: Duration = Duration::from_secs(1);
/// While Redis is away it is asked again this often, and not for every request.
const ASK_AGAIN: TimeDelta = TimeDelta::seconds(1);

/// Windows in Redis, one script call for each request. While Redis is away it counts for this
/// process alone, says so in the log once and in the metrics always.
pub struct RedisLimiter {
    connection: ConnectionManager,
    script: Script,
    local: MemoryLimiter,
    /// Until when Redis counts as away, in microseconds since 1970; 0: it is there.
    away_until: AtomicI64,
}

impl RedisLimiter {
    /// A limiter for a server. It is connected to when it is first needed; a server that is away
    /// is no error.
    ///
    /// # Errors
    /// There is no runtime to run the connection on.
    pub fn open(server: &Redis) -> Result<Self, RedisError> {
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(CONNECT))
            .set_response_timeout(Some(PATIENCE))
            .set_number_of_retries(1);
        let connection = ConnectionManager::new_lazy_with_config(server.client(), config)?;
        Ok(Self {
            connection,
            script: Script::new(COUNT),
            local: MemoryLimiter::default(),
            away_until: AtomicI64::new(0),
        })
    }

    async fn shared(
        &self,
        charges: &[Charge],
        now: DateTime<Utc>,
    ) -> Result<Vec<Window>, RedisError> {
        let mut call = self.script.prepare_invoke();
        for charge in charges {
            call.key(name(widened(charge.subject)));
            call.arg(charge.limit.span().num_milliseconds());
        }
        let counted: Vec<(u32, i64)> = call.invoke_async(&mut self.connection.clone()).await?;
        let windows = charges.iter().zip(counted).map(|(charge, (used, left))| Window {
            limit: charge.limit,
            used,
            resets_at: now + TimeDelta::milliseconds(left),
        });
        Ok(windows.collect())
    }

    /// Notes whether Redis is there, and tells of each change once.
    fn note(&self, now: DateTime<Utc>, failure: Option<&RedisError>) {
        let until = failure.map_or(0, |_| (now + ASK_AGAIN).timestamp_micros());
        let was_away = self.away_until.swap(until, Ordering::Relaxed) != 0;
        match failure {
            Some(error) if !was_away => {
                tracing::warn!(%error, "Redis is away: rate limits hold for this process alone");
            }
            None if was_away => tracing::info!("Redis is back: rate limits are shared again"),
            Some(_) | None => (),
        }
    }
}

/// The two counters of a key share a hash tag, so that a cluster keeps them together.
fn name(subject: Subject) -> String {
    match subject {
        Subject::Key(key) => format!("avouch:rate:{{{key}}}:all"),
        Subject::TeamCreation(team) => format!("avouch:rate:{{{team}}}:team-create"),
        Subject::Creation(key) => format!("avouch:rate:{{{key}}}:create"),
        Subject::Address(address) => format!("avouch:rate:{{{address}}}:address"),
        Subject::SignIns(address) => format!("avouch:rate:{{{address}}}:sign-ins"),
        Subject::Account(hash) => {
            format!("avouch:rate:{{{:032x}}}:account", u128::from_be_bytes(hash))
        }
        Subject::Recipient(team, hash) => {
            format!("avouch:rate:{{{team}:{:032x}}}:recipient", u128::from_be_bytes(hash))
        }
        Subject::Mails(hash) => {
            format!("avouch:rate:{{{:032x}}}:mails", u128::from_be_bytes(hash))
        }
    }
}

#[async_trait]
impl RateLimiter for RedisLimiter {
    async fn charge(&self, charges: &[Charge], now: DateTime<Utc>) -> Vec<Window> {
        if self.away_until.load(Ordering::Relaxed) <= now.timestamp_micros() {
            match self.shared(charges, now).await {
                Ok(windows) if windows.len() == charges.len() => {
                    self.note(now, None);
                    return windows;
                }
                Ok(_) => (),
                Err(error) => self.note(now, Some(&error)),
            }
        }
        metrics::counter!("avouch_rate_limit_local_total").increment(1);
        self.local.charge(charges, now).await
    }
}
