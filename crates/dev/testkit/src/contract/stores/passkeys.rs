//! The contract of [`ports::passkeys::PasskeyStore`].

use chrono::TimeDelta;
use domain::{
    account::Role,
    id::{PasskeyId, UserId},
    secret::Secret,
};
use ports::{
    account_store::{CodeHash, SecondFactor},
    passkeys::{Credential, MAX_PASSKEYS, StoredPasskey},
};
use uuid::Uuid;

use super::{ROUNDS, hash, members::added, team_fixture};
use crate::{contract::Backend, sample::noon};

fn passkey(user: UserId) -> StoredPasskey {
    let id = Uuid::new_v4();
    StoredPasskey {
        id: PasskeyId::from_uuid(id),
        user,
        name: "Laptop".into(),
        credential: Credential {
            id: id.as_bytes().to_vec(),
            key: vec![1, 2],
            state: vec![0; 7],
            transports: 32,
        },
        created_at: noon(),
        used_at: None,
    }
}

fn codes() -> Vec<CodeHash> {
    vec![CodeHash(hash().0), CodeHash(hash().0)]
}

pub async fn keeps_passkeys_and_their_state(backend: &Backend) {
    let home = team_fixture(backend).await;
    let user = added(backend, home.team, Role::Owner).await;
    let (store, one) = (&backend.passkeys, passkey(user.id));
    assert!(store.add_passkey(&one, Some(&codes())).await.unwrap());
    assert_eq!(store.passkeys(user.id).await.unwrap(), std::slice::from_ref(&one));
    let kept = backend.users.user(user.id).await.unwrap().unwrap();
    assert_eq!((kept.user.has_second_factor, kept.recovery_codes_left), (true, 2));

    let stranger = added(backend, home.team, Role::Viewer).await;
    let taken = StoredPasskey { credential: one.credential.clone(), ..passkey(stranger.id) };
    assert!(
        !store.add_passkey(&taken, Some(&codes())).await.unwrap(),
        "a credential of another member"
    );
    let kept = backend.users.user(stranger.id).await.unwrap().unwrap();
    assert_eq!((kept.user.has_second_factor, kept.recovery_codes_left), (false, 0));
    assert!(
        !store.remove_passkey(stranger.id, one.id).await.unwrap(),
        "a passkey of another member"
    );

    let later = noon() + TimeDelta::hours(1);
    let (old, new) = (one.credential.state.as_slice(), [9; 7].as_slice());
    assert!(store.use_passkey(one.id, (old, new), later).await.unwrap());
    assert!(!store.use_passkey(one.id, (old, new), later).await.unwrap(), "the state has changed");
    let after = &store.passkeys(user.id).await.unwrap()[0];
    assert_eq!((after.used_at, after.credential.state.as_slice()), (Some(later), new));
}

pub async fn deletes_recovery_codes_with_the_last_factor(backend: &Backend) {
    let home = team_fixture(backend).await;
    let user = added(backend, home.team, Role::Owner).await;
    let (store, one, two) = (&backend.passkeys, passkey(user.id), passkey(user.id));
    let left = async || {
        let kept = backend.users.user(user.id).await.unwrap().unwrap();
        (kept.user.has_second_factor, kept.recovery_codes_left)
    };
    assert!(!store.add_passkey(&one, None).await.unwrap(), "the first factor without codes");
    assert!(store.add_passkey(&one, Some(&codes())).await.unwrap());
    assert!(
        !store.add_passkey(&two, Some(&codes())).await.unwrap(),
        "recovery codes a second time"
    );
    assert!(store.add_passkey(&two, None).await.unwrap());
    assert!(store.remove_passkey(user.id, one.id).await.unwrap());
    assert_eq!(left().await, (true, 2));

    let factor = SecondFactor { totp: Secret::new("GEZDGNBV".into()), step: 7, recovery: codes() };
    backend.second_factors.set_second_factor(user.id, Some(&factor)).await.unwrap();
    backend.second_factors.set_second_factor(user.id, None).await.unwrap();
    assert_eq!(left().await, (true, 2), "one passkey remains");
    backend.second_factors.set_second_factor(user.id, Some(&factor)).await.unwrap();
    assert!(store.remove_passkey(user.id, two.id).await.unwrap());
    assert!(!store.remove_passkey(user.id, two.id).await.unwrap());
    assert_eq!(left().await, (true, 2), "one-time codes remain");
    backend.second_factors.set_second_factor(user.id, None).await.unwrap();
    assert_eq!(left().await, (false, 0));
}

pub async fn stores_no_more_than_the_maximum_of_passkeys(backend: &Backend) {
    let home = team_fixture(backend).await;
    for _ in 0..ROUNDS {
        let user = added(backend, home.team, Role::Member).await;
        assert!(backend.passkeys.add_passkey(&passkey(user.id), Some(&codes())).await.unwrap());
        for _ in 2..MAX_PASSKEYS {
            assert!(backend.passkeys.add_passkey(&passkey(user.id), None).await.unwrap());
        }
        let last = [0; 4].map(|_| {
            let store = backend.passkeys.clone();
            tokio::spawn(async move { store.add_passkey(&passkey(user.id), None).await.unwrap() })
        });
        let mut taken = 0;
        for one in last {
            taken += usize::from(one.await.unwrap());
        }
        assert_eq!(
            (taken, backend.passkeys.passkeys(user.id).await.unwrap().len()),
            (1, MAX_PASSKEYS)
        );
    }
}
