//! The contract of [`ports::rate_limiter::RateLimiter`].

use std::{net::IpAddr, sync::Arc, time::Duration};

use chrono::TimeDelta;
use domain::{id::ApiKeyId, rate::RateLimit};
use ports::{
    clock::Clock,
    rate_limiter::{Charge, RateLimiter, Subject},
};
use uuid::Uuid;

/// A limiter and its clock.
pub struct Limiter {
    pub limiter: Arc<dyn RateLimiter>,
    pub clock: Arc<dyn Clock>,
    pub guard: Box<dyn std::any::Any + Send + Sync>,
}

impl Limiter {
    async fn used(&self, charge: Charge) -> u32 {
        self.limiter.charge(&[charge], self.clock.now()).await[0].used
    }
}

const MINUTE: RateLimit = RateLimit { count: 3, seconds: 60 };

fn key(limit: RateLimit) -> Charge {
    Charge { subject: Subject::Key(ApiKeyId::from_uuid(Uuid::new_v4())), limit }
}

pub async fn counts_all_requests_and_admits_up_to_the_limit(limiter: &Limiter) {
    let charge = key(MINUTE);
    let mut admitted = 0;
    for used in 1..=5 {
        let window = limiter.limiter.charge(&[charge], limiter.clock.now()).await[0];
        assert_eq!((window.used, window.limit), (used, MINUTE));
        admitted += u32::from(window.admits());
    }
    assert_eq!(admitted, MINUTE.count);
}

pub async fn keeps_the_end_of_a_window(limiter: &Limiter) {
    let charge = key(MINUTE);
    // Returns the times before and after the charge, so that the checks hold on a slow machine too.
    let charged = async || {
        let before = limiter.clock.now();
        let resets_at = limiter.limiter.charge(&[charge], before).await[0].resets_at;
        (before, limiter.clock.now(), resets_at)
    };
    let (pause, rounding) = (TimeDelta::milliseconds(300), TimeDelta::milliseconds(2));
    let (before, after, first) = charged().await;
    let (earliest, latest) = (before + MINUTE.span() - rounding, after + MINUTE.span() + rounding);
    assert!((earliest..=latest).contains(&first), "{before} {after} {first}");
    tokio::time::sleep(pause.to_std().unwrap()).await;
    let (again, answered, second) = charged().await;
    assert!(second < after + MINUTE.span() + pause, "moved: {after} {second}");
    assert!(second >= earliest - (answered - again), "cut: {before} {second}");
}

pub async fn starts_a_new_window_after_the_old_one(limiter: &Limiter) {
    let charge = key(RateLimit { count: 1, seconds: 1 });
    assert_eq!(limiter.used(charge).await, 1);
    assert_eq!(limiter.used(charge).await, 2);
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(limiter.used(charge).await, 1);
}

pub async fn counts_each_subject_separately(limiter: &Limiter) {
    let id = ApiKeyId::from_uuid(Uuid::new_v4());
    let address = |text: &str| Subject::Address(text.parse::<IpAddr>().unwrap());
    let random = u32::from_be_bytes(*Uuid::new_v4().as_bytes().first_chunk().unwrap());
    let v4 = Subject::Address(IpAddr::V4(random.into()));
    for subject in [Subject::Key(id), Subject::Creation(id), v4, address("2001:db8:1::1")] {
        assert_eq!(limiter.used(Charge { subject, limit: MINUTE }).await, 1, "{subject:?}");
    }
    let neighbour = Charge { subject: address("2001:db8:1::2"), limit: MINUTE };
    assert_eq!(limiter.used(neighbour).await, 2, "a /64 network is one subject");
}

pub async fn charges_several_subjects_in_one_step(limiter: &Limiter) {
    let id = ApiKeyId::from_uuid(Uuid::new_v4());
    let creation = RateLimit { count: 1, seconds: 60 };
    let charges = [
        Charge { subject: Subject::Key(id), limit: MINUTE },
        Charge { subject: Subject::Creation(id), limit: creation },
    ];
    limiter.used(charges[0]).await;
    let windows = limiter.limiter.charge(&charges, limiter.clock.now()).await;
    let seen: Vec<_> = windows.iter().map(|window| (window.used, window.limit)).collect();
    assert_eq!(seen, [(2, MINUTE), (1, creation)]);
}

pub async fn counts_every_concurrent_request(limiter: &Limiter) {
    let charge = key(RateLimit { count: 100, seconds: 60 });
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let (limiter, clock) = (limiter.limiter.clone(), limiter.clock.clone());
        tasks.spawn(async move {
            let mut admitted = 0;
            for _ in 0..25 {
                admitted += u32::from(limiter.charge(&[charge], clock.now()).await[0].admits());
            }
            admitted
        });
    }
    let admitted: u32 = tasks.join_all().await.into_iter().sum();
    assert_eq!(admitted, 100);
    assert_eq!(limiter.used(charge).await, 401);
}
