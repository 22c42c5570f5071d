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

use super::{Backend, CLAIMERS, Household, LEASE, ROUNDS, commit, ended, household};
use crate::sample::{noon, opening};

async fn invited(backend: &Backend, home: &Household) -> SessionId {
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
    verdict: NotificationOutcome,
) -> bool {
    backend.notifications.settle_notification(claim, verdict).await.unwrap()
}

pub async fn owes_a_link_with_the_session_that_asks_for_it(backend: &Backend) {
    let home = household(backend).await;
    super::inserted(backend, &home).await;
    assert_eq!(claim(backend, noon()).await, [], "nobody asked");
    let session = invited(backend, &home).await;
    let claims = claim(backend, noon()).await;
    assert_eq!(
        claims.iter().map(|one| (one.session, one.attempt)).collect::<Vec<_>>(),
        [(session, 1)]
    );
    let read = backend.sessions.find_unscoped(session).await.unwrap().unwrap();
    assert_eq!(read.terms.invitation.unwrap().sender.as_deref(), Some("Lender"));
}

pub async fn hands_each_link_to_one_of_many(backend: &Backend) {
    let home = household(backend).await;
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

/// One team with many links delays another team's by one.
pub async fn hands_out_links_of_each_team_by_turns(backend: &Backend) {
    let crowd = household(backend).await;
    for _ in 0..20 {
        invited(backend, &crowd).await;
    }
    let other = household(backend).await;
    for _ in 0..2 {
        invited(backend, &other).await;
    }
    let claim = async |limit, after| -> Vec<_> {
        let queue = backend.notifications.clone();
        let claims = queue.claim_notifications(noon(), LEASE, limit, after).await.unwrap();
        claims.into_iter().map(|claim| claim.team).collect()
    };
    assert_eq!(claim(1, Some(crowd.team)).await, [other.team]);
    assert_eq!(claim(1, Some(other.team)).await, [crowd.team]);
    assert_eq!(claim(1, Some(crowd.team)).await, [other.team]);
    // There is nothing more of the other: the crowd's turn again, and again.
    assert_eq!(claim(1, Some(crowd.team)).await, [crowd.team]);
    let third = household(backend).await;
    invited(backend, &third).await;
    // Half of six each, and what one does not need is for the other.
    let mixed = claim(6, Some(crowd.team)).await;
    let count = |team| mixed.iter().filter(|one| **one == team).count();
    assert_eq!((count(third.team), count(crowd.team), mixed.len()), (1, 5, 6), "{mixed:?}");
    assert_eq!(claim(100, None).await.len(), 13);
}

pub async fn hands_a_link_out_again_when_its_lease_is_over(backend: &Backend) {
    let home = household(backend).await;
    invited(backend, &home).await;
    let first = claim(backend, noon()).await.remove(0);
    assert_eq!(claim(backend, noon() + LEASE - TimeDelta::microseconds(1)).await, []);
    let second = claim(backend, noon() + LEASE).await.remove(0);
    assert_eq!((second.id, second.attempt), (first.id, 2));
    let sent = NotificationOutcome::Sent { at: noon() };
    assert!(!settle(backend, &first, sent).await, "it was lost");
    assert!(settle(backend, &second, sent).await);
    assert!(!settle(backend, &second, sent).await, "once");
    assert_eq!(claim(backend, noon() + LEASE * 3).await, []);
}

pub async fn tells_in_the_timeline_what_became_of_links(backend: &Backend) {
    let home = household(backend).await;
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
    let lines = backend.sessions.timeline(home.owner, session).await.unwrap().unwrap();
    let told = lines.iter().map(|line| (line.event.as_str(), line.at, line.detail.as_deref()));
    let expected = [
        ("SessionCreated", noon(), None),
        ("NotificationQueued", noon(), None),
        ("NotificationFailed", due, Some("mailbox_full")),
        ("NotificationQueued", later, None),
        ("NotificationSent", later, None),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
    assert!(lines.iter().all(|line| line.status == Status::Created));
}

pub async fn sends_a_link_again_so_often_and_no_oftener(backend: &Backend) {
    let home = household(backend).await;
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
        assert_eq!(queued, 1, "of many at once");
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
