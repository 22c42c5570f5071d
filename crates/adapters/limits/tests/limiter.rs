//! The contract of the rate limiters: in memory, and in a Redis server of the test.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

use std::{
    future::{Ready, ready},
    sync::Arc,
    time::{Duration, Instant},
};

use chrono::TimeDelta;
use domain::{attempts::Delays, id::ApiKeyId, rate::RateLimit};
use limits::{MemoryAttempts, MemoryLimiter, Redis, RedisLimiter, RedisTls};
use ports::{
    attempts::{AttemptLimiter as _, AttemptTarget},
    clock::Clock as _,
    rate_limiter::{Charge, RateLimiter as _, Subject},
};
use system::clock::SystemClock;
use testkit::{
    contract::{attempts, rate_limiter::Limiter},
    redis::RedisServer,
};

mod memory {
    testkit::rate_limiter_contract!(super::memory());
}

mod redis {
    testkit::rate_limiter_contract!(super::redis());
}

mod attempts_in_memory {
    testkit::attempts_contract!(super::attempts_in_memory());
}

mod attempts_in_redis {
    testkit::attempts_contract!(super::attempts_in_redis());
}

fn attempts_in_memory() -> Ready<attempts::Limiter> {
    let limiter = Arc::new(MemoryAttempts::default());
    ready(attempts::Limiter { limiter, clock: Arc::new(SystemClock), guard: Box::new(()) })
}

fn attempts_in_redis() -> Ready<attempts::Limiter> {
    let server = RedisServer::start();
    let redis = Redis::new(&server.url(), RedisTls::default()).unwrap();
    let limiter = Arc::new(RedisLimiter::open(&redis).unwrap());
    ready(attempts::Limiter { limiter, clock: Arc::new(SystemClock), guard: Box::new(server) })
}

fn memory() -> Ready<Limiter> {
    let limiter = Arc::new(MemoryLimiter::default());
    ready(Limiter { limiter, clock: Arc::new(SystemClock), guard: Box::new(()) })
}

fn redis() -> Ready<Limiter> {
    let server = RedisServer::start();
    let limiter = Arc::new(open(&server));
    ready(Limiter { limiter, clock: Arc::new(SystemClock), guard: Box::new(server) })
}

fn open(server: &RedisServer) -> RedisLimiter {
    RedisLimiter::open(&Redis::new(&server.url(), RedisTls::default()).unwrap()).unwrap()
}

/// Redis stores expiries as times, so that a window becomes longer by the hour by which its clock is set
/// back.
#[tokio::test]
async fn a_window_does_not_become_longer_when_the_clock_of_redis_is_set_back() {
    let server = RedisServer::start();
    let limiter = open(&server);
    let subject = Subject::Key(ApiKeyId::from_uuid(uuid::Uuid::new_v4()));
    let charge = Charge { subject, limit: RateLimit { count: 3, seconds: 60 } };
    for _ in 0..4 {
        limiter.charge(&[charge], SystemClock.now()).await;
    }
    set_back(&server).await;
    let now = SystemClock.now();
    let windows = limiter.charge(&[charge], now).await;
    let left = windows[0].resets_at - now;
    assert!(left > TimeDelta::zero() && left <= TimeDelta::seconds(60), "{left}");
    assert_eq!(windows[0].used, 1, "a new window begins");
    let windows = limiter.charge(&[charge], SystemClock.now()).await;
    assert_eq!(windows[0].used, 2, "and is counted");
}

#[tokio::test]
async fn a_delay_does_not_become_longer_when_the_clock_of_redis_is_set_back() {
    let server = RedisServer::start();
    let limiter = open(&server);
    let target = AttemptTarget::Account([7; 16]);
    let delays = Delays { free: 1, first: 1, longest: 2, forgotten_after: 60 };
    for _ in 0..2 {
        assert_eq!(limiter.attempt(target, delays, SystemClock.now()).await, Ok(()));
    }
    set_back(&server).await;
    let now = SystemClock.now();
    let next = limiter.attempt(target, delays, now).await.unwrap_err();
    assert!(next <= now + TimeDelta::seconds(2), "{}", next - now);
    let ends = Instant::now() + Duration::from_secs(20);
    while limiter.attempt(target, delays, SystemClock.now()).await.is_err() {
        assert!(Instant::now() < ends, "the delay does not end");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Has an hour remain of each key, as after its clock was set back.
async fn set_back(server: &RedisServer) {
    let client = ::redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut all = ::redis::cmd("KEYS");
    let keys: Vec<String> = all.arg("avouch:*").query_async(&mut connection).await.unwrap();
    assert!(!keys.is_empty(), "nothing is counted");
    for key in keys {
        let mut expire = ::redis::cmd("PEXPIRE");
        let expire = expire.arg(key).arg(3_600_000);
        assert_eq!(expire.query_async::<i64>(&mut connection).await.unwrap(), 1);
    }
}

/// While Redis is unavailable requests are counted in the process without delay; afterwards in
/// Redis again.
#[tokio::test]
async fn a_redis_that_goes_away_stops_nothing() {
    let mut server = RedisServer::start();
    let [one, two] = [(); 2].map(|()| open(&server));
    let subject = Subject::Key(ApiKeyId::from_uuid(uuid::Uuid::new_v4()));
    let charge = Charge { subject, limit: RateLimit { count: 1000, seconds: 60 } };
    let used =
        async |limiter: &RedisLimiter| limiter.charge(&[charge], SystemClock.now()).await[0].used;
    assert_eq!((used(&one).await, used(&two).await), (1, 2), "counted together");

    server.stop();
    let began = Instant::now();
    for expected in 1..=50 {
        assert_eq!(used(&one).await, expected, "counted here");
    }
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());

    server.run();
    // The server starts empty, so its count is lower than the one in the process.
    let ends = Instant::now() + Duration::from_secs(20);
    while used(&one).await > 50 {
        assert!(Instant::now() < ends, "Redis is not found again");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let here = used(&one).await;
    while used(&two).await <= here {
        assert!(Instant::now() < ends, "they do not count together again");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
