//! Rate limits and attempts, counted in Redis for all processes.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{attempts::Delays, rate::RateWindow};
use ports::{
    attempts::{AttemptLimiter, AttemptTarget},
    rate_limiter::{Charge, RateLimiter, Subject},
};
use redis::{
    RedisError, Script,
    aio::{ConnectionManager, ConnectionManagerConfig},
};

use super::{
    attempts::{self, MemoryAttempts},
    memory::{MemoryLimiter, by_network},
    server::Redis,
};

/// Increments each key once and returns, for each, the count and the remaining milliseconds of its
/// window. A key without an expiry (a lost `PEXPIRE`) gets one.
///
/// Redis stores expiries as times of its machine's clock. Of a window of which more remains than its length,
/// the clock was set back, or the limit was changed: nobody knows when it is over, so a new one begins, as
/// it does when the clock is set forward.
const COUNT: &str = r"
local answer = {}
for i, key in ipairs(KEYS) do
  local used = redis.call('INCR', key)
  local left = redis.call('PTTL', key)
  local window = tonumber(ARGV[i])
  if left < 0 then
    left = window
    redis.call('PEXPIRE', key, ARGV[i])
  elseif left > window then
    used, left = 1, window
    redis.call('SET', key, '1', 'PX', ARGV[i])
  end
  answer[#answer + 1] = used
  answer[#answer + 1] = left
end
return answer
";
/// Counts an attempt and returns 0, or the milliseconds until the next one is allowed. `KEYS` are
/// the count and the marker of a running delay; `ARGV` are the delays. What remains of a delay is at most
/// the longest one, also if the clock of Redis was set back; the attempts before it still count.
const ATTEMPT: &str = r"
local free, first, longest, forgotten = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local left = redis.call('PTTL', KEYS[2])
if left > longest * 1000 then
  left = longest * 1000
  redis.call('PEXPIRE', KEYS[2], string.format('%d', left))
end
if left > 0 then
  return left
end
local count = redis.call('INCR', KEYS[1])
local delay = 0
if count > free then
  delay = math.min(longest, first * 2 ^ math.min(count - free - 1, 30))
  redis.call('SET', KEYS[2], '', 'PX', string.format('%d', delay * 1000))
end
redis.call('PEXPIRE', KEYS[1], string.format('%d', (delay + forgotten) * 1000))
return 0
";
/// Takes back an attempt.
const UNDO_ATTEMPT: &str = r"
if tonumber(redis.call('GET', KEYS[1]) or '0') > 0 then
  redis.call('DECR', KEYS[1])
end
redis.call('DEL', KEYS[2])
return 0
";
/// The timeout of a response, so that a request is not blocked by its rate limit.
const RESPONSE_TIMEOUT: Duration = Duration::from_millis(250);
/// The timeout of a connection; a TLS handshake needs two more round trips.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// While Redis is unavailable, one request per this interval tries it again.
const RETRY_AFTER_FAILURE: TimeDelta = TimeDelta::seconds(1);

/// Windows in Redis, with one script call per request. While Redis is unavailable it counts for
/// this process alone; the change is logged once, and each request is counted in the metrics.
pub struct RedisLimiter {
    connection: ConnectionManager,
    script: Script,
    attempt: Script,
    undo_attempt_script: Script,
    local: MemoryLimiter,
    local_attempts: MemoryAttempts,
    /// Until when Redis is regarded as unavailable, in microseconds since 1970; 0 if it is
    /// available.
    away_until: AtomicI64,
}

impl RedisLimiter {
    /// Creates a limiter for a server. It connects on first use, so an unavailable server is not an
    /// error.
    ///
    /// # Errors
    /// There is no runtime for the connection.
    pub fn open(server: &Redis) -> Result<Self, RedisError> {
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(RESPONSE_TIMEOUT))
            .set_number_of_retries(1);
        let connection = ConnectionManager::new_lazy_with_config(server.client(), config)?;
        Ok(Self {
            connection,
            script: Script::new(COUNT),
            attempt: Script::new(ATTEMPT),
            undo_attempt_script: Script::new(UNDO_ATTEMPT),
            local: MemoryLimiter::default(),
            local_attempts: MemoryAttempts::default(),
            away_until: AtomicI64::new(0),
        })
    }

    async fn shared(
        &self,
        charges: &[Charge],
        now: DateTime<Utc>,
    ) -> Result<Vec<RateWindow>, RedisError> {
        let mut call = self.script.prepare_invoke();
        for charge in charges {
            call.key(key_name(by_network(charge.subject)));
            call.arg(charge.limit.span().num_milliseconds());
        }
        let counted: Vec<(u32, i64)> = call.invoke_async(&mut self.connection.clone()).await?;
        let windows = charges.iter().zip(counted).map(|(charge, (used, left))| RateWindow {
            limit: charge.limit,
            used,
            resets_at: now + TimeDelta::milliseconds(left),
        });
        Ok(windows.collect())
    }

    /// Records whether Redis is available, and logs each change once.
    fn record_availability(&self, now: DateTime<Utc>, failure: Option<&RedisError>) {
        let until = failure.map_or(0, |_| (now + RETRY_AFTER_FAILURE).timestamp_micros());
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

/// The two counters of a key share a hash tag, so that a cluster stores them in one slot.
fn key_name(subject: Subject) -> String {
    match subject {
        Subject::Key(key) => format!("avouch:rate:{{{key}}}:all"),
        Subject::TeamCreation(team) => format!("avouch:rate:{{{team}}}:team-create"),
        Subject::Creation(key) => format!("avouch:rate:{{{key}}}:create"),
        Subject::Address(address) => format!("avouch:rate:{{{address}}}:address"),
        Subject::SignIns(address) => format!("avouch:rate:{{{address}}}:sign-ins"),
        Subject::Recipient(team, hash) => {
            format!("avouch:rate:{{{team}:{:032x}}}:recipient", u128::from_be_bytes(hash))
        }
        Subject::Mails(hash) => {
            format!("avouch:rate:{{{:032x}}}:mails", u128::from_be_bytes(hash))
        }
    }
}

/// Returns the keys of a target's count and delay, in one slot of a cluster.
fn key_names(target: AttemptTarget) -> [String; 2] {
    let hex = |hash: [u8; 16]| format!("{:032x}", u128::from_be_bytes(hash));
    let key_name = match attempts::by_network(target) {
        AttemptTarget::Network(address) => format!("network:{address}"),
        AttemptTarget::AccountFrom(account, address) => format!("from:{}:{address}", hex(account)),
        AttemptTarget::Account(account) => format!("account:{}", hex(account)),
        AttemptTarget::Browser(browser) => format!("browser:{}", hex(browser)),
        AttemptTarget::SignIn(sign_in) => format!("sign-in:{sign_in}"),
    };
    ["count", "wait"].map(|what| format!("avouch:attempts:{{{key_name}}}:{what}"))
}

#[async_trait]
impl AttemptLimiter for RedisLimiter {
    async fn attempt(
        &self,
        target: AttemptTarget,
        delays: Delays,
        now: DateTime<Utc>,
    ) -> Result<(), DateTime<Utc>> {
        if self.away_until.load(Ordering::Relaxed) <= now.timestamp_micros() {
            let mut call = self.attempt.prepare_invoke();
            let [count, wait] = key_names(target);
            call.key(count).key(wait).arg(delays.free).arg(delays.first);
            call.arg(delays.longest).arg(delays.forgotten_after);
            match call.invoke_async::<i64>(&mut self.connection.clone()).await {
                Ok(left) => {
                    self.record_availability(now, None);
                    let next = now + TimeDelta::milliseconds(left);
                    return if left == 0 { Ok(()) } else { Err(next) };
                }
                Err(error) => self.record_availability(now, Some(&error)),
            }
        }
        metrics::counter!("avouch_rate_limit_local_total").increment(1);
        self.local_attempts.attempt(target, delays, now).await
    }

    async fn undo_attempt(&self, target: AttemptTarget, now: DateTime<Utc>) {
        self.local_attempts.undo_attempt(target, now).await;
        if self.away_until.load(Ordering::Relaxed) <= now.timestamp_micros() {
            let mut call = self.undo_attempt_script.prepare_invoke();
            let [count, wait] = key_names(target);
            call.key(count).key(wait);
            if let Err(error) = call.invoke_async::<i64>(&mut self.connection.clone()).await {
                self.record_availability(now, Some(&error));
            }
        }
    }
}

#[async_trait]
impl RateLimiter for RedisLimiter {
    async fn charge(&self, charges: &[Charge], now: DateTime<Utc>) -> Vec<RateWindow> {
        if self.away_until.load(Ordering::Relaxed) <= now.timestamp_micros() {
            match self.shared(charges, now).await {
                Ok(windows) if windows.len() == charges.len() => {
                    self.record_availability(now, None);
                    return windows;
                }
                Ok(_) => (),
                Err(error) => self.record_availability(now, Some(&error)),
            }
        }
        metrics::counter!("avouch_rate_limit_local_total").increment(1);
        self.local.charge(charges, now).await
    }
}
