//! The contract of [`ports::account_store::SignInStore`].

use chrono::TimeDelta;
use domain::{account::Role, id::SignInId, secret::Secret};
use ports::account_store::{CodeHash, RequestOrigin, SignIn, User};
use uuid::Uuid;

use super::{
    Backend,
    members::{added, code},
    team_fixture,
};
use crate::sample::noon;

/// An idle timeout that no test reaches.
pub(super) const IDLE: TimeDelta = TimeDelta::hours(13);

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
        from: RequestOrigin { address: [192, 0, 2, 1].into(), agent: "a browser".into() },
    };
    backend.sign_ins.add_sign_in(&sign_in, &token).await.unwrap();
    (sign_in, token)
}

pub async fn finds_a_sign_in_until_it_ends(backend: &Backend) {
    let home = team_fixture(backend).await;
    let user = added(backend, home.team, Role::Viewer).await;
    let (sign_in, token) = signed_in(backend, &user).await;
    let find =
        async |token: &CodeHash, now| backend.sign_ins.sign_in(token, IDLE, now).await.unwrap();
    let (found, kept, team) = find(&token, noon()).await.unwrap();
    assert!(found == sign_in && kept.user == user && team.name == "Lender");
    assert!(!team.needs_second_factor);
    assert!(find(&code(), noon()).await.is_none());
    assert!(find(&token, sign_in.expires_at).await.is_none(), "expired");
    let later = noon() + TimeDelta::minutes(5);
    find(&token, later).await.unwrap();
    let all = backend.sign_ins.sign_ins(user.id, IDLE, later).await.unwrap();
    assert!(all.len() == 1 && all[0].seen_at == later);

    let (fresh, until) = (code(), noon() + TimeDelta::hours(12));
    assert!(backend.sign_ins.mark_second_factor_verified(&token, &fresh, until).await.unwrap());
    assert!(!backend.sign_ins.mark_second_factor_verified(&token, &code(), until).await.unwrap());
    assert!(find(&token, noon()).await.is_none(), "the earlier token");
    assert!(find(&fresh, noon() + TimeDelta::hours(11)).await.unwrap().0.passed);

    let (other, others) = signed_in(backend, &user).await;
    let stranger = added(backend, home.team, Role::Owner).await;
    assert!(!backend.sign_ins.end_sign_in(stranger.id, other.id).await.unwrap());
    let ended = backend.sign_ins.end_other_sign_ins(user.id, Some(sign_in.id)).await.unwrap();
    assert!(ended == 1 && find(&others, noon()).await.is_none());
    assert!(backend.sign_ins.end_sign_in(user.id, sign_in.id).await.unwrap());
    assert!(find(&fresh, noon()).await.is_none());
    signed_in(backend, &user).await;
    assert_eq!(backend.sign_ins.delete_expired_sign_ins(noon()).await.unwrap(), 0);
    let forgotten = backend.sign_ins.delete_expired_sign_ins(noon() + TimeDelta::hours(1)).await;
    assert_eq!(forgotten.unwrap(), 1);
}

pub async fn ends_idle_sign_ins_only(backend: &Backend) {
    let home = team_fixture(backend).await;
    let user = added(backend, home.team, Role::Viewer).await;
    let (_, first) = signed_in(backend, &user).await;
    let (token, until) = (code(), noon() + TimeDelta::hours(12));
    assert!(backend.sign_ins.mark_second_factor_verified(&first, &token, until).await.unwrap());
    let (idle, minute) = (TimeDelta::minutes(60), TimeDelta::minutes(1));
    let find = async |now| backend.sign_ins.sign_in(&token, idle, now).await.unwrap().is_some();
    let mut now = noon();
    for _ in 0..3 {
        now += idle - minute;
        assert!(find(now).await, "used within the hour");
    }
    let listed = async |now| backend.sign_ins.sign_ins(user.id, idle, now).await.unwrap().len();
    assert_eq!((listed(now).await, listed(now + idle).await), (1, 0));
    assert!(!find(now + idle).await, "idle for an hour");
}

pub async fn returns_whether_a_team_requires_a_second_factor(backend: &Backend) {
    let (home, other) = (team_fixture(backend).await, team_fixture(backend).await);
    let user = added(backend, home.team, Role::Viewer).await;
    let (_, token) = signed_in(backend, &user).await;
    for required in [true, false] {
        backend.members.require_second_factor(home.team, required).await.unwrap();
        let found = backend.sign_ins.sign_in(&token, IDLE, noon()).await.unwrap().unwrap().2;
        assert_eq!(found.needs_second_factor, required);
        let says = async |team| backend.members.requires_second_factor(team).await.unwrap();
        assert_eq!((says(home.team).await, says(other.team).await), (required, false));
    }
}

pub async fn replaces_the_token_with_a_reauthentication(backend: &Backend) {
    let home = team_fixture(backend).await;
    let user = added(backend, home.team, Role::Member).await;
    let (sign_in, token) = signed_in(backend, &user).await;
    let later = noon() + TimeDelta::minutes(3);
    let confirm = async |old: &CodeHash, new: &CodeHash| {
        backend.sign_ins.confirm_sign_in(old, new, later).await.unwrap()
    };
    assert!(!confirm(&token, &code()).await, "the second factor is not verified yet");
    let passed = code();
    let until = noon() + TimeDelta::hours(12);
    assert!(backend.sign_ins.mark_second_factor_verified(&token, &passed, until).await.unwrap());
    let (fresh, other) = (code(), code());
    assert!(confirm(&passed, &fresh).await);
    assert!(!confirm(&passed, &other).await, "the earlier token");
    assert!(backend.sign_ins.sign_in(&passed, IDLE, later).await.unwrap().is_none());
    let (found, ..) = backend.sign_ins.sign_in(&fresh, IDLE, later).await.unwrap().unwrap();
    assert_eq!((found.id, found.confirmed_at), (sign_in.id, Some(later)));
}

pub async fn keeps_one_form_of_a_sign_in_and_returns_it_once(backend: &Backend) {
    let home = team_fixture(backend).await;
    let user = added(backend, home.team, Role::Member).await;
    let ((one, _), (other, _)) = (signed_in(backend, &user).await, signed_in(backend, &user).await);
    let held = async |id| backend.held_forms.held_form(id).await.unwrap();
    assert_eq!(held(one.id).await, None);
    for form in [b"first", b"later"] {
        backend.held_forms.hold_form(one.id, form).await.unwrap();
        assert_eq!(held(one.id).await.as_deref(), Some(form.as_slice()));
    }
    assert_eq!(held(other.id).await, None);
    let taken = [(); 4].map(|()| {
        let forms = backend.held_forms.clone();
        tokio::spawn(async move { forms.drop_form(one.id, b"later").await.unwrap() })
    });
    let mut times = 0;
    for taken in taken {
        times += u8::from(taken.await.unwrap());
    }
    assert_eq!(times, 1);
    assert!(!backend.held_forms.drop_form(one.id, b"first").await.unwrap());
    assert_eq!(held(one.id).await, None);
}
