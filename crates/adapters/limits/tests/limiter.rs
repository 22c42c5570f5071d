//! The contract of the rate limiters: in memory, and in a Redis server of the test.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

use std::{
    future::{Ready, ready},
    sync::Arc,
    time::{Duration, Instant},
};

use domain::{id::ApiKeyId, rate::RateLimit};
use limits::{MemoryAttempts, MemoryLimiter, Redis, RedisLimiter, RedisTls};
use ports::{
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
