//! The contract of [`ports::notifier::NotificationQueue`].

use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    id::SessionId,
    notification::{
        Channel, Invitation, MAX_NOTIFICATIONS, MIN_NOTIFICATION_INTERVAL, NotificationFailure,
    },
    session::Status,
};
use ports::notifier::{NotificationClaim, NotificationOutcome, ResendOutcome};

use super::{Backend, CLAIMERS, LEASE, ROUNDS, TeamFixture, commit, ended, team_fixture};
use crate::sample::{noon, opening};

async fn invited(backend: &Backend, home: &TeamFixture) -> SessionId {
    let mut opening = opening(home.owner, home.platform);
    opening.session.terms.invitation =
        Some(Invitation { channel: Channel::Email, sender: Some("Lender".into()), template: None });
    let opening = opening.session.opening();
    backend.sessions.insert(&opening, None).await.unwrap();
    opening.session.id
}

async fn claim(backend: &Backend, now: DateTime<Utc>) -> Vec<NotificationClaim> {
    backend.notifications.claim_notifications(now, LEASE, 100, None).await.unwrap()
}

async fn settle(
    backend: &Backend,
    claim: &NotificationClaim,
    outcome: NotificationOutcome,
) -> bool {
    backend.notifications.settle_notification(claim, outcome).await.unwrap()
}

pub async fn enqueues_a_notification_with_an_invited_session(backend: &Backend) {
    let home = team_fixture(backend).await;
    super::inserted(backend, &home).await;
    assert_eq!(claim(backend, noon()).await, [], "the session has no invitation");
    let session = invited(backend, &home).await;
    let claims = claim(backend, noon()).await;
    assert_eq!(
        claims.iter().map(|one| (one.session, one.attempt)).collect::<Vec<_>>(),
        [(session, 1)]
    );
    let read = backend.sessions.find_unscoped(session).await.unwrap().unwrap();
    assert_eq!(read.terms.invitation.unwrap().sender.as_deref(), Some("Lender"));
}

pub async fn leases_a_notification_to_one_claimer(backend: &Backend) {
    let home = team_fixture(backend).await;
    for _ in 0..ROUNDS {
        let session = invited(backend, &home).await;
        let claims = [(); CLAIMERS].map(|()| {
            let queue = backend.notifications.clone();
            tokio::spawn(
                async move { queue.claim_notifications(noon(), LEASE, 2, None).await.unwrap() },
            )
        });
        let mut claimed = vec![];
        for claim in claims {
            claimed.extend(claim.await.unwrap().into_iter().map(|claim| claim.session));
        }
        assert_eq!(claimed, [session]);
    }
}

/// A team with many notifications delays those of another team by one.
pub async fn leases_the_notifications_of_teams_in_turn(backend: &Backend) {
    let busy = team_fixture(backend).await;
    for _ in 0..20 {
        invited(backend, &busy).await;
    }
    let other = team_fixture(backend).await;
    for _ in 0..2 {
        invited(backend, &other).await;
    }
    let claim = async |limit, after| -> Vec<_> {
        let queue = backend.notifications.clone();
        let claims = queue.claim_notifications(noon(), LEASE, limit, after).await.unwrap();
        claims.into_iter().map(|claim| claim.team).collect()
    };
    assert_eq!(claim(1, Some(busy.team)).await, [other.team]);
    assert_eq!(claim(1, Some(other.team)).await, [busy.team]);
    assert_eq!(claim(1, Some(busy.team)).await, [other.team]);
    // The other team has no more notifications, so that the busy one is served again.
    assert_eq!(claim(1, Some(busy.team)).await, [busy.team]);
    let third = team_fixture(backend).await;
    invited(backend, &third).await;
    // Each team gets half of six; what one team does not use goes to the other.
    let mixed = claim(6, Some(busy.team)).await;
    let count = |team| mixed.iter().filter(|one| **one == team).count();
    assert_eq!((count(third.team), count(busy.team), mixed.len()), (1, 5, 6), "{mixed:?}");
    assert_eq!(claim(100, None).await.len(), 13);
}

pub async fn leases_a_notification_again_after_its_lease_expires(backend: &Backend) {
    let home = team_fixture(backend).await;
    invited(backend, &home).await;
    let first = claim(backend, noon()).await.remove(0);
    assert_eq!(claim(backend, noon() + LEASE - TimeDelta::microseconds(1)).await, []);
    let second = claim(backend, noon() + LEASE).await.remove(0);
    assert_eq!((second.id, second.attempt), (first.id, 2));
    let sent = NotificationOutcome::Sent { at: noon() };
    assert!(!settle(backend, &first, sent).await, "the claim was lost");
    assert!(settle(backend, &second, sent).await);
    assert!(!settle(backend, &second, sent).await, "already settled");
    assert_eq!(claim(backend, noon() + LEASE * 3).await, []);
}

pub async fn shows_notifications_in_the_timeline(backend: &Backend) {
    let home = team_fixture(backend).await;
    let session = invited(backend, &home).await;
    let first = claim(backend, noon()).await.remove(0);
    let due = noon() + TimeDelta::seconds(15);
    assert!(settle(backend, &first, NotificationOutcome::RetryAt(due)).await);
    assert_eq!(claim(backend, due - TimeDelta::microseconds(1)).await, []);
    let again = claim(backend, due).await.remove(0);
    let why = NotificationFailure::MailboxFull;
    assert!(settle(backend, &again, NotificationOutcome::Failed { at: due, why }).await);
    let later = noon() + MIN_NOTIFICATION_INTERVAL;
    assert_eq!(
        backend.notifications.notify_again(session, later).await.unwrap(),
        ResendOutcome::Queued
    );
    let second = claim(backend, later).await.remove(0);
    assert!(settle(backend, &second, NotificationOutcome::Sent { at: later }).await);
    let lines = backend.partner_sessions.timeline(home.owner, session).await.unwrap().unwrap();
    let entries = lines.iter().map(|line| (line.event.as_str(), line.at, line.detail.as_deref()));
    let expected = [
        ("SessionCreated", noon(), None),
        ("NotificationQueued", noon(), None),
        ("NotificationFailed", due, Some("mailbox_full")),
        ("NotificationQueued", later, None),
        ("NotificationSent", later, None),
    ];
    assert_eq!(entries.collect::<Vec<_>>(), expected);
    assert!(lines.iter().all(|line| line.status == Status::Created));
}

pub async fn limits_how_often_a_link_is_resent(backend: &Backend) {
    let home = team_fixture(backend).await;
    let session = invited(backend, &home).await;
    let queue = &backend.notifications;
    let soon = noon() + MIN_NOTIFICATION_INTERVAL - TimeDelta::microseconds(1);
    let expected = ResendOutcome::NotBefore(noon() + MIN_NOTIFICATION_INTERVAL);
    assert_eq!(queue.notify_again(session, soon).await.unwrap(), expected);
    for number in 1..MAX_NOTIFICATIONS {
        let at = noon() + MIN_NOTIFICATION_INTERVAL * number;
        let asked = [(); CLAIMERS].map(|()| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.notify_again(session, at).await.unwrap() })
        });
        let mut queued = 0;
        for asked in asked {
            queued += usize::from(asked.await.unwrap() == ResendOutcome::Queued);
        }
        assert_eq!(queued, 1, "of concurrent requests");
    }
    let late = noon() + MIN_NOTIFICATION_INTERVAL * (MAX_NOTIFICATIONS + 1);
    assert_eq!(queue.notify_again(session, late).await.unwrap(), ResendOutcome::NoMore);
    let plain = super::inserted(backend, &home).await;
    assert_eq!(queue.notify_again(plain.id, late).await.unwrap(), ResendOutcome::NoMore);
    let over = invited(backend, &home).await;
    let open = backend.sessions.find_unscoped(over).await.unwrap().unwrap();
    commit(backend, &ended(&open)).await;
    assert_eq!(queue.notify_again(over, late).await.unwrap(), ResendOutcome::NoMore);
}
