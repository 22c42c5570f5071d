//! The contract of [`ports::account_store::UserStore`], [`ports::invitations::InvitationStore`] and
//! [`ports::audit_log::AuditLog`].

use std::sync::Arc;

use chrono::TimeDelta;
use domain::{
    account::{Email, LinkPurpose, Role},
    audit::AuditEvent,
    id::{TeamId, UserId},
    secret::Secret,
};
use ports::account_store::{
    CodeHash, MembershipChange, NewPassword, PasswordHash, SecondFactor, User,
};
use ring::digest::{SHA256, digest};
use uuid::Uuid;

use super::{
    Backend, ROUNDS,
    account_links::link,
    hash,
    sign_ins::{IDLE, signed_in},
    team_fixture,
};
use crate::sample::noon;

fn user(team: TeamId, role: Role) -> User {
    let id = Uuid::new_v4();
    let email: Email = format!("{}@people.example", id.simple()).parse().unwrap();
    let id = UserId::from_uuid(id);
    User { id, team, email, role, has_password: true, has_second_factor: false, created_at: noon() }
}

pub(super) async fn added(backend: &Backend, team: TeamId, role: Role) -> User {
    let user = user(team, role);
    let password = NewPassword::chosen(PasswordHash("$argon2id$…".into()));
    assert!(backend.users.add_user(&user, Some(&password), noon()).await.unwrap());
    user
}

pub(super) fn code() -> CodeHash {
    CodeHash(hash().0)
}

pub async fn finds_a_member_by_address(backend: &Backend) {
    let home = team_fixture(backend).await;
    let user = user(home.team, Role::Owner);
    let password = NewPassword::chosen(PasswordHash("$argon2id$…".into()));
    assert!(backend.users.add_user(&user, Some(&password), noon()).await.unwrap());
    let again = User { id: UserId::from_uuid(Uuid::new_v4()), ..user.clone() };
    assert!(!backend.users.add_user(&again, None, noon()).await.unwrap(), "a taken address");
    let kept = backend.users.user_by_email(&user.email).await.unwrap().unwrap();
    assert_eq!(kept.user, user);
    assert!(kept.password == Some(password.hash) && kept.totp.is_none());
    assert_eq!(kept.recovery_codes_left, 0);
    let newer = NewPassword::chosen(PasswordHash("another".into()));
    backend.users.set_password(user.id, &newer).await.unwrap();
    let kept = backend.users.user(user.id).await.unwrap().unwrap();
    assert!(kept.password == Some(newer.hash) && kept.password_until.is_none());
    let nobody = "nobody@people.example".parse().unwrap();
    assert!(backend.users.user_by_email(&nobody).await.unwrap().is_none());
    assert!(backend.users.user(again.id).await.unwrap().is_none());
    assert_eq!(backend.members.users(home.team).await.unwrap(), [user]);
}

pub async fn keeps_the_expiry_of_a_generated_password(backend: &Backend) {
    let home = team_fixture(backend).await;
    let user = user(home.team, Role::Owner);
    let hash = |text: &str| PasswordHash(text.into());
    let until = async || backend.users.user(user.id).await.unwrap().unwrap().password_until;
    let made = NewPassword::made(hash("made"), noon());
    assert!(backend.users.add_user(&user, Some(&made), noon()).await.unwrap());
    assert_eq!(until().await, Some(noon() + TimeDelta::hours(72)));
    let chosen = NewPassword::chosen(hash("chosen"));
    backend.users.set_password(user.id, &chosen).await.unwrap();
    assert_eq!(until().await, None);
    let later = noon() + TimeDelta::hours(1);
    backend.users.set_password(user.id, &NewPassword::made(hash("newer"), later)).await.unwrap();
    assert_eq!(until().await, Some(later + TimeDelta::hours(72)));
    let reset = link(user.id, LinkPurpose::Reset);
    backend.account_links.enqueue_link(&reset).await.unwrap();
    assert!(backend.account_links.use_link(reset.id, &hash("by link"), noon()).await.unwrap());
    assert_eq!(until().await, None, "chosen by link");
}

pub async fn invites_an_address_that_another_member_has(backend: &Backend) {
    let (home, other) = (team_fixture(backend).await, team_fixture(backend).await);
    let there = added(backend, other.team, Role::Owner).await;
    added(backend, other.team, Role::Owner).await;
    let id = UserId::from_uuid(Uuid::new_v4());
    let has_password = false;
    let user = User { id, team: home.team, role: Role::Member, has_password, ..there.clone() };
    assert!(backend.invitations.add_invited(&user, noon()).await.unwrap());
    let again = User { id: UserId::from_uuid(Uuid::new_v4()), ..user.clone() };
    assert!(!backend.invitations.add_invited(&again, noon()).await.unwrap(), "twice");
    let found = async || backend.users.user_by_email(&there.email).await.unwrap().unwrap().user.id;
    assert!(!backend.invitations.claim_address(id).await.unwrap());
    assert_eq!(found().await, there.id);
    assert_eq!(backend.members.users(home.team).await.unwrap(), std::slice::from_ref(&user));
    let made_up = format!("{id}@invited.invalid").parse().unwrap();
    assert!(backend.users.user_by_email(&made_up).await.unwrap().is_none());

    assert_eq!(
        backend.members.remove_user(other.team, there.id).await.unwrap(),
        MembershipChange::Done
    );
    assert!(backend.invitations.claim_address(id).await.unwrap());
    assert_eq!(found().await, id);
    assert!(backend.invitations.claim_address(id).await.unwrap(), "already theirs");
    assert_eq!(backend.members.users(home.team).await.unwrap(), [user]);
}

pub async fn binds_a_member_to_one_subject(backend: &Backend) {
    let home = team_fixture(backend).await;
    for _ in 0..ROUNDS {
        let (one, two) = (Uuid::new_v4().to_string(), Uuid::new_v4().to_string());
        let user = added(backend, home.team, Role::Owner).await;
        let other = added(backend, home.team, Role::Viewer).await;
        assert!(backend.subjects.user_by_subject(&one).await.unwrap().is_none());
        let tries = [(user.id, &one), (user.id, &two), (other.id, &one)].map(|(id, subject)| {
            let (users, subject) = (backend.subjects.clone(), subject.clone());
            tokio::spawn(async move { users.bind_subject(id, None, &subject).await.unwrap() })
        });
        let mut bound = vec![];
        for tried in tries {
            bound.push(tried.await.unwrap());
        }
        // The first two calls are for one member; the first and the last have the same subject.
        assert!(bound == [true, false, false] || bound == [false, true, true], "{bound:?}");
        let found = backend.subjects.user_by_subject(&one).await.unwrap();
        let known = found.map(|kept| kept.user.id);
        assert_eq!(known, Some(if bound[0] { user.id } else { other.id }));
        let bind = async |before, subject: &str| {
            backend.subjects.bind_subject(user.id, before, subject).await.unwrap()
        };
        assert!(!bind(None, "a second name").await);
        let (before, after) = if bound[0] { (&one, &two) } else { (&two, &one) };
        assert_eq!(
            bind(Some(before), after).await,
            bound[0],
            "allowed only if no other member has the subject"
        );
    }
}

pub async fn accepts_each_one_time_code_once(backend: &Backend) {
    let home = team_fixture(backend).await;
    for _ in 0..ROUNDS {
        let user = added(backend, home.team, Role::Member).await;
        let (one, two) = (code(), code());
        let recovery = vec![one.clone(), two.clone()];
        let factor = SecondFactor { totp: Secret::new("GEZDGNBV".into()), step: 7, recovery };
        backend.second_factors.set_second_factor(user.id, Some(&factor)).await.unwrap();
        let kept = backend.users.user(user.id).await.unwrap().unwrap();
        assert_eq!(kept.totp.map(|totp| totp.expose().to_owned()).as_deref(), Some("GEZDGNBV"));
        assert_eq!((kept.user.has_second_factor, kept.recovery_codes_left), (true, 2));
        assert!(
            !backend.second_factors.use_step(user.id, 7).await.unwrap(),
            "the step of the setup code"
        );
        let tries = [0; 4].map(|_| {
            let (users, one) = (backend.second_factors.clone(), one.clone());
            tokio::spawn(async move {
                let stepped = users.use_step(user.id, 8).await.unwrap();
                (stepped, users.use_recovery(user.id, &one).await.unwrap())
            })
        });
        let mut taken = (0, 0);
        for tried in tries {
            let (step, recovery) = tried.await.unwrap();
            taken = (taken.0 + u8::from(step), taken.1 + u8::from(recovery));
        }
        assert_eq!(taken, (1, 1));
        assert!(!backend.second_factors.use_step(user.id, 6).await.unwrap(), "an earlier step");
        let kept = backend.users.user(user.id).await.unwrap().unwrap();
        assert_eq!(kept.recovery_codes_left, 1);
        backend.second_factors.set_second_factor(user.id, None).await.unwrap();
        assert!(!backend.second_factors.use_recovery(user.id, &two).await.unwrap());
        assert!(backend.users.user(user.id).await.unwrap().unwrap().totp.is_none());
    }
}

pub async fn removes_a_member_with_their_sign_ins(backend: &Backend) {
    let (home, other) = (team_fixture(backend).await, team_fixture(backend).await);
    added(backend, home.team, Role::Owner).await;
    let user = added(backend, home.team, Role::Member).await;
    let (_, token) = signed_in(backend, &user).await;
    let removed = backend.members.remove_user(other.team, user.id).await.unwrap();
    assert_eq!(removed, MembershipChange::Nobody, "of another team");
    assert_eq!(
        backend.members.remove_user(home.team, user.id).await.unwrap(),
        MembershipChange::Done
    );
    assert!(backend.sign_ins.sign_in(&token, IDLE, noon()).await.unwrap().is_none());
    assert!(backend.users.user(user.id).await.unwrap().is_none());
    let gone = backend.members.set_role(home.team, user.id, Role::Owner).await.unwrap();
    assert_eq!(gone, MembershipChange::Nobody);
}

/// Two owners leave concurrently: one is removed, and one becomes a viewer.
pub async fn leaves_no_team_without_an_owner(backend: &Backend) {
    for _ in 0..ROUNDS {
        let home = team_fixture(backend).await;
        let one = added(backend, home.team, Role::Owner).await;
        let two = added(backend, home.team, Role::Operator).await;
        let (users, team) = (backend.members.clone(), home.team);
        let goes = tokio::spawn(async move { users.remove_user(team, one.id).await.unwrap() });
        let users = backend.members.clone();
        let steps_down =
            tokio::spawn(async move { users.set_role(team, two.id, Role::Viewer).await.unwrap() });
        let both = [goes.await.unwrap(), steps_down.await.unwrap()];
        assert!(
            both.contains(&MembershipChange::Done) && both.contains(&MembershipChange::Last),
            "{both:?}"
        );
    }
    let home = team_fixture(backend).await;
    let one = added(backend, home.team, Role::Owner).await;
    let invited = user(home.team, Role::Owner);
    assert!(backend.users.add_user(&invited, None, noon()).await.unwrap());
    let left = backend.members.remove_user(home.team, one.id).await.unwrap();
    assert_eq!(left, MembershipChange::Last, "an invited member cannot sign in yet");
}

pub async fn chains_the_audit_entries(backend: &Backend) {
    let (home, other) = (team_fixture(backend).await, team_fixture(backend).await);
    let event = |number: u8| {
        let event = AuditEvent::new(noon(), "ada@people.example", "key.make", &number.to_string());
        if number.is_multiple_of(2) { event } else { event.from([192, 0, 2, number].into()) }
    };
    let notes: Vec<_> = (0..24)
        .map(|number| {
            let (audit, event): (Arc<_>, _) = (backend.audit.clone(), event(number));
            tokio::spawn(async move { audit.note(home.team, &event).await.unwrap() })
        })
        .collect();
    for note in notes {
        note.await.unwrap();
    }
    backend.audit.note(other.team, &event(99)).await.unwrap();
    let mut entries = backend.audit.entries(home.team, None, 100).await.unwrap();
    entries.reverse();
    let mut before = [0; 32];
    for (entry, number) in entries.iter().zip(1..) {
        assert_eq!(entry.number, number);
        let text = entry.event.text(home.team, number);
        let expected = digest(&SHA256, &[&before, text.as_bytes()].concat());
        assert_eq!(entry.hash, expected.as_ref(), "entry {number}");
        before = entry.hash;
    }
    assert_eq!(entries.len(), 24);
    let mut subjects: Vec<u8> =
        entries.iter().map(|entry| entry.event.subject.parse().unwrap()).collect();
    subjects.sort_unstable();
    assert_eq!(subjects, (0..24).collect::<Vec<_>>());
    let page = backend.audit.entries(home.team, Some(10), 4).await.unwrap();
    assert_eq!(page.iter().map(|entry| entry.number).collect::<Vec<_>>(), [9, 8, 7, 6]);
    assert_eq!(backend.audit.entries(other.team, None, 100).await.unwrap().len(), 1);
}
