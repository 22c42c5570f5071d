//! Teams take turns, and an order that is dropped delays no other.

use std::collections::BTreeMap;

use domain::{api_key::Environment, id::TeamId, secret::Secret, workflow::Attest};
use testkit::{clock::FakeClock, sample};
use tokio::sync::{Semaphore, mpsc};
use uuid::Uuid;

use super::*;

/// An attestor that tells whose turn it is, and ends each when the test lets it.
struct Slow {
    turns: mpsc::UnboundedSender<TeamId>,
    go: Semaphore,
}

#[async_trait]
impl Attestor for Slow {
    async fn attest(
        &self,
        order: AttestationOrder,
        _: OnProgress<'_>,
    ) -> Result<Attested, AttestError> {
        self.turns.send(order.tenant.team).unwrap();
        self.go.acquire().await.unwrap().forget();
        Err(AttestError::None)
    }
}

fn team(number: u128) -> TeamId {
    TeamId::from_u128(number)
}

fn order(number: u128) -> AttestationOrder {
    AttestationOrder {
        session: SessionId::from_uuid(Uuid::new_v4()),
        tenant: Tenant { team: team(number), environment: Environment::Production },
        challenge: vec![],
        url: String::new(),
        plan: Attest {
            request: String::new(),
            platform: 1,
            version: 1,
            headers: BTreeMap::new(),
            modes: vec![],
            fields: BTreeMap::new(),
        },
        cookies: Secret::new(String::new()),
        user_agent: String::new(),
    }
}

fn fair() -> (Arc<FairAttestor>, Arc<Slow>, mpsc::UnboundedReceiver<TeamId>) {
    let (turns, seen) = mpsc::unbounded_channel();
    let slow = Arc::new(Slow { turns, go: Semaphore::new(0) });
    let quotas = Quotas { total: 2, per_team: 2, development: 2, waiting_per_team: 100 };
    let fair = FairAttestor::new(slow.clone(), quotas, Arc::new(FakeClock::at(sample::noon())));
    (Arc::new(fair), slow, seen)
}

fn ask(fair: &Arc<FairAttestor>, number: u128) -> tokio::task::JoinHandle<()> {
    let fair = fair.clone();
    tokio::spawn(async move {
        let _ = fair.attest(order(number), &|_| ()).await;
    })
}

#[tokio::test]
async fn a_team_with_twenty_proofs_delays_another_by_one() {
    let (fair, slow, mut seen) = fair();
    let crowd: Vec<_> = (0..20).map(|_| ask(&fair, 1)).collect();
    assert_eq!([seen.recv().await, seen.recv().await], [Some(team(1)); 2]);
    let other = ask(&fair, 2);
    while fair.queue().of_team(team(2)) == (0, 0) {
        tokio::task::yield_now().await;
    }
    assert!(seen.try_recv().is_err(), "two at once");
    slow.go.add_permits(1);
    assert_eq!(seen.recv().await, Some(team(2)));
    slow.go.add_permits(100);
    for _ in 0..18 {
        assert_eq!(seen.recv().await, Some(team(1)));
    }
    other.await.unwrap();
    for one in crowd {
        one.await.unwrap();
    }
    assert_eq!(fair.queue().of_team(team(1)), (0, 0));
}

#[tokio::test]
async fn an_order_that_is_dropped_gives_back_its_turn_or_its_position() {
    let (fair, _slow, mut seen) = fair();
    let (first, second, waits) = (ask(&fair, 1), ask(&fair, 1), ask(&fair, 1));
    assert_eq!([seen.recv().await, seen.recv().await], [Some(team(1)); 2]);
    let other = ask(&fair, 2);
    while fair.queue().waiting() < 2 {
        tokio::task::yield_now().await;
    }
    waits.abort();
    first.abort();
    assert_eq!(seen.recv().await, Some(team(2)));
    assert_eq!(fair.queue().waiting(), 0);
    second.abort();
    other.abort();
}
