//! The contract of [`ports::account_store::UserStore`], [`ports::account_store::SignInStore`] and
//! [`ports::audit_log::AuditLog`].

use std::sync::Arc;

use chrono::TimeDelta;
use domain::{
    account::{Email, Role},
    audit::Deed,
    id::{SignInId, TeamId, UserId},
    secret::Secret,
};
use ports::account_store::{Change, CodeHash, PasswordHash, SecondFactor, SignIn, User, Whence};
use ring::digest::{SHA256, digest};
use uuid::Uuid;

use super::{Backend, ROUNDS, hash, household};
use crate::sample::noon;

fn user(team: TeamId, role: Role) -> User {
    let id = Uuid::new_v4();
    let email: Email = format!("{}@people.example", id.simple()).parse().unwrap();
    let id = UserId::from_uuid(id);
    User { id, team, email, role, has_password: true, has_second_factor: false, created_at: noon() }
}

pub(super) async fn added(backend: &Backend, team: TeamId, role: Role) -> User {
    let user = user(team, role);
    let password = PasswordHash("$argon2id$…".into());
    assert!(backend.users.add_user(&user, Some(&password), noon()).await.unwrap());
    user
}

fn code() -> CodeHash {
    CodeHash(hash().0)
}

pub(super) async fn signed_in(backend: &Backend, user: &User) -> (SignIn, CodeHash) {
    let (id, token) = (SignInId::from_uuid(Uuid::new_v4()), code());
    let sign_in = SignIn {
        id,
        user: user.id,
        passed: false,
        by_provider: false,
        confirmed_at: None,
        form_token: Secret::new(id.to_string()),
        created_at: noon(),
        seen_at: noon(),
        expires_at: noon() + TimeDelta::minutes(10),
        from: Whence { address: [192, 0, 2, 1].into(), agent: "a browser".into() },
    };
    backend.sign_ins.add_sign_in(&sign_in, &token).await.unwrap();
    (sign_in, token)
}

pub async fn finds_a_person_by_their_address(backend: &Backend) {
    let home = household(backend).await;
    let user = user(home.team, Role::Owner);
    let password = PasswordHash("$argon2id$…".into());
    assert!(backend.users.add_user(&user, Some(&password), noon()).await.unwrap());
    let again = User { id: UserId::from_uuid(Uuid::new_v4()), ..user.clone() };
    assert!(!backend.users.add_user(&again, None, noon()).await.unwrap(), "a taken address");
    let kept = backend.users.user_by_email(&user.email).await.unwrap().unwrap();
    assert_eq!(kept.user, user);
    assert!(kept.password.as_ref() == Some(&password) && kept.totp.is_none());
    assert_eq!(kept.recovery_codes_left, 0);
    let anew = PasswordHash("another".into());
    backend.users.set_password(user.id, &anew).await.unwrap();
    let kept = backend.users.user(user.id).await.unwrap().unwrap();
    assert!(kept.password == Some(anew));
    let nobody = "nobody@people.example".parse().unwrap();
    assert!(backend.users.user_by_email(&nobody).await.unwrap().is_none());
    assert!(backend.users.user(again.id).await.unwrap().is_none());
    assert_eq!(backend.users.users(home.team).await.unwrap(), [user]);
}

pub async fn binds_a_person_to_one_identity(backend: &Backend) {
    let home = household(backend).await;
    for _ in 0..ROUNDS {
        let (one, two) = (Uuid::new_v4().to_string(), Uuid::new_v4().to_string());
        let user = added(backend, home.team, Role::Owner).await;
        let other = added(backend, home.team, Role::Viewer).await;
        assert!(backend.users.user_by_subject(&one).await.unwrap().is_none());
        let tries = [(user.id, &one), (user.id, &two), (other.id, &one)].map(|(id, subject)| {
            let (users, subject) = (backend.users.clone(), subject.clone());
            tokio::spawn(async move { users.bind_subject(id, None, &subject).await.unwrap() })
        });
        let mut bound = vec![];
        for tried in tries {
            bound.push(tried.await.unwrap());
        }
        // The first two are of one person, the first and the last of one name.
        assert!(bound == [true, false, false] || bound == [false, true, true], "{bound:?}");
        let found = backend.users.user_by_subject(&one).await.unwrap();
        let known = found.map(|kept| kept.user.id);
        assert_eq!(known, Some(if bound[0] { user.id } else { other.id }));
        let bind = async |before, subject: &str| {
            backend.users.bind_subject(user.id, before, subject).await.unwrap()
        };
        assert!(!bind(None, "a second name").await);
        let (before, after) = if bound[0] { (&one, &two) } else { (&two, &one) };
        assert_eq!(bind(Some(before), after).await, bound[0], "its own, or another person's");
    }
}

pub async fn takes_each_one_time_code_once(backend: &Backend) {
    let home = household(backend).await;
    for _ in 0..ROUNDS {
        let user = added(backend, home.team, Role::Member).await;
        let (one, two) = (code(), code());
        let recovery = vec![one.clone(), two.clone()];
        let factor = SecondFactor { totp: Secret::new("GEZDGNBV".into()), step: 7, recovery };
        backend.users.set_second_factor(user.id, Some(&factor)).await.unwrap();
        let kept = backend.users.user(user.id).await.unwrap().unwrap();
        assert_eq!(kept.totp.map(|totp| totp.expose().to_owned()).as_deref(), Some("GEZDGNBV"));
        assert_eq!((kept.user.has_second_factor, kept.recovery_codes_left), (true, 2));
        assert!(!backend.users.use_step(user.id, 7).await.unwrap(), "the one that proved it");
        let tries = [0; 4].map(|_| {
            let (users, one) = (backend.users.clone(), one.clone());
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
        assert!(!backend.users.use_step(user.id, 6).await.unwrap(), "an older one");
        let kept = backend.users.user(user.id).await.unwrap().unwrap();
        assert_eq!(kept.recovery_codes_left, 1);
        backend.users.set_second_factor(user.id, None).await.unwrap();
        assert!(!backend.users.use_recovery(user.id, &two).await.unwrap());
        assert!(backend.users.user(user.id).await.unwrap().unwrap().totp.is_none());
    }
}

pub async fn knows_who_is_signed_in_until_they_are_not(backend: &Backend) {
    let home = household(backend).await;
    let user = added(backend, home.team, Role::Viewer).await;
    let (sign_in, token) = signed_in(backend, &user).await;
    let find = async |token: &CodeHash, now| backend.sign_ins.sign_in(token, now).await.unwrap();
    let (found, kept, team) = find(&token, noon()).await.unwrap();
    assert!(found == sign_in && kept.user == user && team == "Lender");
    assert!(find(&code(), noon()).await.is_none());
    assert!(find(&token, sign_in.expires_at).await.is_none(), "it ran out");
    let later = noon() + TimeDelta::minutes(5);
    find(&token, later).await.unwrap();
    let all = backend.sign_ins.sign_ins(user.id, later).await.unwrap();
    assert!(all.len() == 1 && all[0].seen_at == later);

    let (fresh, until) = (code(), noon() + TimeDelta::hours(12));
    assert!(backend.sign_ins.pass_sign_in(&token, &fresh, until).await.unwrap());
    assert!(!backend.sign_ins.pass_sign_in(&token, &code(), until).await.unwrap());
    assert!(find(&token, noon()).await.is_none(), "the token before");
    assert!(find(&fresh, noon() + TimeDelta::hours(11)).await.unwrap().0.passed);

    let (other, others) = signed_in(backend, &user).await;
    let stranger = added(backend, home.team, Role::Owner).await;
    assert!(!backend.sign_ins.end_sign_in(stranger.id, other.id).await.unwrap());
    let ended = backend.sign_ins.end_other_sign_ins(user.id, Some(sign_in.id)).await.unwrap();
    assert!(ended == 1 && find(&others, noon()).await.is_none());
    assert!(backend.sign_ins.end_sign_in(user.id, sign_in.id).await.unwrap());
    assert!(find(&fresh, noon()).await.is_none());
    signed_in(backend, &user).await;
    assert_eq!(backend.sign_ins.forget_sign_ins(noon()).await.unwrap(), 0);
    let forgotten = backend.sign_ins.forget_sign_ins(noon() + TimeDelta::hours(1)).await;
    assert_eq!(forgotten.unwrap(), 1);
}

pub async fn confirms_a_sign_in_with_another_token(backend: &Backend) {
    let home = household(backend).await;
    let user = added(backend, home.team, Role::Member).await;
    let (sign_in, token) = signed_in(backend, &user).await;
    let later = noon() + TimeDelta::minutes(3);
    let confirm = async |old: &CodeHash, new: &CodeHash| {
        backend.sign_ins.confirm_sign_in(old, new, later).await.unwrap()
    };
    assert!(!confirm(&token, &code()).await, "nobody is signed in by it yet");
    let passed = code();
    let until = noon() + TimeDelta::hours(12);
    assert!(backend.sign_ins.pass_sign_in(&token, &passed, until).await.unwrap());
    let (fresh, other) = (code(), code());
    assert!(confirm(&passed, &fresh).await);
    assert!(!confirm(&passed, &other).await, "the token before");
    assert!(backend.sign_ins.sign_in(&passed, later).await.unwrap().is_none());
    let (found, ..) = backend.sign_ins.sign_in(&fresh, later).await.unwrap().unwrap();
    assert_eq!((found.id, found.confirmed_at), (sign_in.id, Some(later)));
}

pub async fn keeps_one_form_of_a_sign_in_and_gives_it_out_once(backend: &Backend) {
    let home = household(backend).await;
    let user = added(backend, home.team, Role::Member).await;
    let ((one, _), (other, _)) = (signed_in(backend, &user).await, signed_in(backend, &user).await);
    let held = async |id| backend.sign_ins.held_form(id).await.unwrap();
    assert_eq!(held(one.id).await, None);
    for form in [b"first", b"later"] {
        backend.sign_ins.hold_form(one.id, form).await.unwrap();
        assert_eq!(held(one.id).await.as_deref(), Some(form.as_slice()));
    }
    assert_eq!(held(other.id).await, None);
    let taken = [(); 4].map(|()| {
        let sign_ins = backend.sign_ins.clone();
        tokio::spawn(async move { sign_ins.drop_form(one.id, b"later").await.unwrap() })
    });
    let mut times = 0;
    for taken in taken {
        times += u8::from(taken.await.unwrap());
    }
    assert_eq!(times, 1);
    assert!(!backend.sign_ins.drop_form(one.id, b"first").await.unwrap());
    assert_eq!(held(one.id).await, None);
}

pub async fn takes_somebody_out_with_what_they_are_signed_in_with(backend: &Backend) {
    let (home, other) = (household(backend).await, household(backend).await);
    added(backend, home.team, Role::Owner).await;
    let user = added(backend, home.team, Role::Member).await;
    let (_, token) = signed_in(backend, &user).await;
    let removed = backend.users.remove_user(other.team, user.id).await.unwrap();
    assert_eq!(removed, Change::Nobody, "another team's");
    assert_eq!(backend.users.remove_user(home.team, user.id).await.unwrap(), Change::Done);
    assert!(backend.sign_ins.sign_in(&token, noon()).await.unwrap().is_none());
    assert!(backend.users.user(user.id).await.unwrap().is_none());
    let gone = backend.users.set_role(home.team, user.id, Role::Owner).await.unwrap();
    assert_eq!(gone, Change::Nobody);
}

/// Two owners leave at once, one by going and one by becoming a viewer.
pub async fn leaves_nobody_without_an_owner(backend: &Backend) {
    for _ in 0..ROUNDS {
        let home = household(backend).await;
        let one = added(backend, home.team, Role::Owner).await;
        let two = added(backend, home.team, Role::Operator).await;
        let (users, team) = (backend.users.clone(), home.team);
        let goes = tokio::spawn(async move { users.remove_user(team, one.id).await.unwrap() });
        let users = backend.users.clone();
        let steps_down =
            tokio::spawn(async move { users.set_role(team, two.id, Role::Viewer).await.unwrap() });
        let both = [goes.await.unwrap(), steps_down.await.unwrap()];
        assert!(both.contains(&Change::Done) && both.contains(&Change::Last), "{both:?}");
    }
    let home = household(backend).await;
    let one = added(backend, home.team, Role::Owner).await;
    let invited = user(home.team, Role::Owner);
    assert!(backend.users.add_user(&invited, None, noon()).await.unwrap());
    let left = backend.users.remove_user(home.team, one.id).await.unwrap();
    assert_eq!(left, Change::Last, "who was invited cannot sign in yet");
}

pub async fn writes_down_what_was_done_in_a_chain(backend: &Backend) {
    let (home, other) = (household(backend).await, household(backend).await);
    let deed = |number: u8| {
        let deed = Deed::new(noon(), "ada@people.example", "key.make", &number.to_string());
        if number.is_multiple_of(2) { deed } else { deed.from([192, 0, 2, number].into()) }
    };
    let notes: Vec<_> = (0..24)
        .map(|number| {
            let (audit, deed): (Arc<_>, _) = (backend.audit.clone(), deed(number));
            tokio::spawn(async move { audit.note(home.team, &deed).await.unwrap() })
        })
        .collect();
    for note in notes {
        note.await.unwrap();
    }
    backend.audit.note(other.team, &deed(99)).await.unwrap();
    let mut entries = backend.audit.entries(home.team, None, 100).await.unwrap();
    entries.reverse();
    let mut before = [0; 32];
    for (entry, number) in entries.iter().zip(1..) {
        assert_eq!(entry.number, number);
        let text = entry.deed.text(home.team, number);
        let expected = digest(&SHA256, &[&before, text.as_bytes()].concat());
        assert_eq!(entry.hash, expected.as_ref(), "entry {number}");
        before = entry.hash;
    }
    assert_eq!(entries.len(), 24);
    let mut subjects: Vec<u8> =
        entries.iter().map(|entry| entry.deed.subject.parse().unwrap()).collect();
    subjects.sort_unstable();
    assert_eq!(subjects, (0..24).collect::<Vec<_>>());
    let page = backend.audit.entries(home.team, Some(10), 4).await.unwrap();
    assert_eq!(page.iter().map(|entry| entry.number).collect::<Vec<_>>(), [9, 8, 7, 6]);
    assert_eq!(backend.audit.entries(other.team, None, 100).await.unwrap().len(), 1);
}
