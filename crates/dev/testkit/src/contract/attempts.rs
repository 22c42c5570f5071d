//! The contract of [`ports::attempts::AttemptLimiter`].

use std::{net::IpAddr, sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use domain::attempts::Delays;
use ports::{
    attempts::{AttemptLimiter, AttemptTarget},
    clock::Clock,
};
use uuid::Uuid;

/// A limiter and its clock.
pub struct Limiter {
    pub limiter: Arc<dyn AttemptLimiter>,
    pub clock: Arc<dyn Clock>,
    pub guard: Box<dyn std::any::Any + Send + Sync>,
}

const DELAYS: Delays = Delays { free: 2, first: 1, longest: 2, forgotten_after: 1 };
const SLOW: Delays = Delays { free: 2, first: 600, longest: 600, forgotten_after: 600 };

impl Limiter {
    async fn attempt(&self, target: AttemptTarget, delays: Delays) -> Result<(), DateTime<Utc>> {
        self.limiter.attempt(target, delays, self.clock.now()).await
    }
}

fn account() -> [u8; 16] {
    *Uuid::new_v4().as_bytes()
}

pub async fn delays_attempts_beyond_the_free_ones(limiter: &Limiter) {
    let target = AttemptTarget::Account(account());
    for _ in 0..3 {
        assert_eq!(limiter.attempt(target, SLOW).await, Ok(()));
    }
    let before = limiter.clock.now();
    let next = limiter.attempt(target, SLOW).await.unwrap_err();
    let wait = next - before;
    assert!(wait > TimeDelta::seconds(590) && wait < TimeDelta::seconds(610), "{wait}");
}

pub async fn allows_an_attempt_after_the_delay_and_forgets_old_ones(limiter: &Limiter) {
    let target = AttemptTarget::Account(account());
    for _ in 0..3 {
        assert_eq!(limiter.attempt(target, DELAYS).await, Ok(()));
    }
    assert!(limiter.attempt(target, DELAYS).await.is_err());
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(limiter.attempt(target, DELAYS).await, Ok(()));
    assert!(limiter.attempt(target, DELAYS).await.is_err(), "delayed again");
    tokio::time::sleep(Duration::from_millis(3200)).await;
    for _ in 0..3 {
        assert_eq!(limiter.attempt(target, DELAYS).await, Ok(()), "forgotten");
    }
}

pub async fn takes_back_a_right_attempt(limiter: &Limiter) {
    let target = AttemptTarget::Account(account());
    for _ in 0..20 {
        assert_eq!(limiter.attempt(target, SLOW).await, Ok(()));
        limiter.limiter.undo_attempt(target, limiter.clock.now()).await;
    }
    for _ in 0..3 {
        assert_eq!(limiter.attempt(target, SLOW).await, Ok(()));
    }
    limiter.limiter.undo_attempt(target, limiter.clock.now()).await;
    assert_eq!(limiter.attempt(target, SLOW).await, Ok(()));
    assert!(limiter.attempt(target, SLOW).await.is_err());
    // Taking back an attempt that was never counted changes nothing.
    let other = AttemptTarget::Account(account());
    limiter.limiter.undo_attempt(other, limiter.clock.now()).await;
    for _ in 0..3 {
        assert_eq!(limiter.attempt(other, SLOW).await, Ok(()));
    }
    assert!(limiter.attempt(other, SLOW).await.is_err());
}

pub async fn counts_each_target_separately(limiter: &Limiter) {
    let account = account();
    let address = |text: &str| text.parse::<IpAddr>().unwrap();
    let here = AttemptTarget::AccountFrom(account, address("2001:db8:1::1"));
    for _ in 0..3 {
        assert_eq!(limiter.attempt(here, SLOW).await, Ok(()));
    }
    let neighbour = AttemptTarget::AccountFrom(account, address("2001:db8:1::2"));
    assert!(limiter.attempt(neighbour, SLOW).await.is_err(), "a /64 network is one target");
    for other in [
        AttemptTarget::AccountFrom(account, address("2001:db8:2::1")),
        AttemptTarget::AccountFrom(*Uuid::new_v4().as_bytes(), address("2001:db8:1::1")),
        AttemptTarget::Account(account),
        AttemptTarget::Browser(account),
    ] {
        assert_eq!(limiter.attempt(other, SLOW).await, Ok(()), "{other:?}");
    }
}

pub async fn limits_concurrent_attempts(limiter: &Limiter) {
    let target = AttemptTarget::Account(account());
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let (limiter, clock) = (limiter.limiter.clone(), limiter.clock.clone());
        tasks.spawn(async move { limiter.attempt(target, SLOW, clock.now()).await.is_ok() });
    }
    let admitted = tasks.join_all().await.into_iter().filter(|admitted| *admitted).count();
    assert_eq!(admitted, 3);
}
