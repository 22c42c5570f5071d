//! The contract of [`ports::account_links::AccountLinkStore`].

use chrono::TimeDelta;
use domain::{
    account::{LinkPurpose, Role},
    id::{AccountLinkId, UserId},
    notification::NotificationFailure,
};
use ports::{
    account_links::{AccountLink, MailClaim, Mailed},
    account_store::{NewPassword, PasswordHash},
    notifier::NotificationOutcome,
};
use uuid::Uuid;

use super::{
    Backend, ROUNDS, members,
    sign_ins::{IDLE, signed_in},
    team_fixture,
};
use crate::sample::noon;

const LEASE: TimeDelta = TimeDelta::seconds(150);

pub(super) fn link(user: UserId, purpose: LinkPurpose) -> AccountLink {
    AccountLink {
        id: AccountLinkId::from_uuid(Uuid::new_v4()),
        user,
        purpose,
        created_at: noon(),
        expires_at: noon() + purpose.ttl(),
    }
}

async fn claimed(backend: &Backend, minutes: i64) -> Vec<MailClaim> {
    let now = noon() + TimeDelta::minutes(minutes);
    backend.account_links.claim_mails(now, LEASE, 10).await.unwrap()
}

pub async fn sets_a_password_once_with_a_link(backend: &Backend) {
    let links = &backend.account_links;
    let home = team_fixture(backend).await;
    for _ in 0..ROUNDS {
        let user = members::added(backend, home.team, Role::Member).await;
        let (_, token) = signed_in(backend, &user).await;
        let (old, new) =
            (link(user.id, LinkPurpose::Invitation), link(user.id, LinkPurpose::Reset));
        links.enqueue_link(&old).await.unwrap();
        links.enqueue_link(&new).await.unwrap();
        assert!(links.link(old.id, noon()).await.unwrap().is_none(), "replaced by a newer link");
        let (found, kept) = links.link(new.id, noon()).await.unwrap().unwrap();
        assert_eq!((found, kept.user), (new, user.clone()));
        assert!(links.link(new.id, new.expires_at).await.unwrap().is_none(), "expired");
        let chosen = ["one", "two"].map(|text| PasswordHash(text.into()));
        assert!(!links.use_link(new.id, &chosen[0], new.expires_at).await.unwrap());
        let both = chosen.clone().map(|password| {
            let links = links.clone();
            tokio::spawn(async move { links.use_link(new.id, &password, noon()).await.unwrap() })
        });
        let [one, two] = both;
        let won = [one.await.unwrap(), two.await.unwrap()];
        assert_ne!(won[0], won[1], "one of two calls");
        let kept = backend.users.user(user.id).await.unwrap().unwrap();
        let winner = if won[0] { &chosen[0] } else { &chosen[1] };
        assert!(kept.password.as_ref() == Some(winner));
        let found = backend.sign_ins.sign_in(&token, IDLE, noon()).await.unwrap();
        assert!(found.is_none(), "the sign-in has ended");
    }
}

pub async fn voids_links_when_a_password_is_changed(backend: &Backend) {
    let links = &backend.account_links;
    let home = team_fixture(backend).await;
    let user = members::added(backend, home.team, Role::Member).await;
    let other = members::added(backend, home.team, Role::Member).await;
    let (reset, untouched) =
        (link(user.id, LinkPurpose::Reset), link(other.id, LinkPurpose::Reset));
    for link in [&reset, &untouched] {
        links.enqueue_link(link).await.unwrap();
    }
    let new = NewPassword::chosen(PasswordHash("new".into()));
    backend.users.set_password(user.id, &new).await.unwrap();
    assert!(links.link(reset.id, noon()).await.unwrap().is_none());
    assert!(!links.use_link(reset.id, &PasswordHash("thief".into()), noon()).await.unwrap());
    let kept = backend.users.user(user.id).await.unwrap().unwrap();
    assert!(kept.password == Some(PasswordHash("new".into())));
    assert!(links.link(untouched.id, noon()).await.unwrap().is_some(), "of another member");
}

pub async fn leases_a_mail_to_one_claimer(backend: &Backend) {
    let links = &backend.account_links;
    let (home, other) = (team_fixture(backend).await, team_fixture(backend).await);
    let user = members::added(backend, home.team, Role::Member).await;
    let pending = link(user.id, LinkPurpose::Invitation);
    links.enqueue_link(&pending).await.unwrap();
    let first = claimed(backend, 0).await.remove(0);
    assert_eq!((first.link, first.attempt), (pending, 1));
    assert_eq!((&first.email, first.team.as_str()), (&user.email, "Lender"));
    assert!(claimed(backend, 1).await.is_empty(), "leased");
    let second = claimed(backend, 3).await.remove(0);
    assert_eq!(second.attempt, 2, "the lease has expired");
    let sent = NotificationOutcome::Sent { at: noon() };
    assert!(!links.settle_mail(&first, sent).await.unwrap(), "the claim was lost");
    let state = async || links.links(home.team).await.unwrap().remove(0);
    assert_eq!(state().await, (pending, Mailed::Queued));
    let later = NotificationOutcome::RetryAt(noon() + TimeDelta::minutes(10));
    assert!(links.settle_mail(&second, later).await.unwrap());
    assert!(claimed(backend, 9).await.is_empty());
    let third = claimed(backend, 10).await.remove(0);
    let why = NotificationFailure::UnknownReceiver;
    let failed = NotificationOutcome::Failed { at: noon(), why };
    assert!(links.settle_mail(&third, failed).await.unwrap());
    assert_eq!(state().await.1, Mailed::Failed(why.as_str().to_owned()));
    assert!(claimed(backend, 1000).await.is_empty());
    assert!(links.links(other.team).await.unwrap().is_empty(), "of another team");

    let again = link(user.id, LinkPurpose::Invitation);
    links.enqueue_link(&again).await.unwrap();
    let claim = claimed(backend, 0).await.remove(0);
    assert!(links.settle_mail(&claim, sent).await.unwrap());
    assert_eq!(state().await, (again, Mailed::Sent));
    assert_eq!(
        links.delete_expired_links(again.expires_at - TimeDelta::seconds(1)).await.unwrap(),
        0
    );
    assert_eq!(links.delete_expired_links(again.expires_at).await.unwrap(), 1);
    let late = link(user.id, LinkPurpose::Reset);
    links.enqueue_link(&late).await.unwrap();
    assert!(claimed(backend, 31).await.is_empty(), "a mail with an expired link is not sent");
    backend.members.remove_user(home.team, user.id).await.unwrap();
}
