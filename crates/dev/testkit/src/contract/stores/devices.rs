//! The contract of [`ports::device_store::DeviceStore`].

use std::sync::Arc;

use chrono::TimeDelta;
use domain::{
    binding::{
        DeviceNumber, JoinCode, JoinedBy, MAX_CODE_TRIES, MAX_DEVICES, SHOWN_CODE_TTL, SecretHash,
    },
    id::SessionId,
};
use ports::device_store::{Binding, DeviceStore, RedeemOutcome};
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::{Backend, ROUNDS, inserted, team_fixture};
use crate::sample::noon;

fn secret(number: u8) -> SecretHash {
    SecretHash([number; 32])
}

fn shown(session: SessionId, number: u8) -> JoinCode {
    JoinCode {
        session,
        by: JoinedBy::ShownCode,
        long: secret(number),
        short: Some(secret(number.wrapping_add(1))),
        expires_at: noon() + SHOWN_CODE_TTL,
    }
}

async fn all<T>(tasks: impl Iterator<Item = JoinHandle<T>>) -> Vec<T> {
    let (tasks, mut done) = (tasks.collect::<Vec<_>>(), vec![]);
    for task in tasks {
        done.push(task.await.unwrap());
    }
    done
}

/// A session with its first device, whose secret is 1.
async fn bound(backend: &Backend) -> SessionId {
    let home = team_fixture(backend).await;
    let session = inserted(backend, &home).await.id;
    assert!(backend.devices.bind(session, &secret(1), noon()).await.unwrap());
    session
}

pub async fn binds_a_session_to_one_of_concurrent_devices(backend: &Backend) {
    let home = team_fixture(backend).await;
    let devices = &backend.devices;
    for _ in 0..ROUNDS {
        let session = inserted(backend, &home).await.id;
        assert_eq!(devices.device(session, &secret(1)).await.unwrap(), Binding::Unbound);
        let tries = (1..=8).map(|number| {
            let devices: Arc<dyn DeviceStore> = devices.clone();
            tokio::spawn(async move { devices.bind(session, &secret(number), noon()).await })
        });
        let tries = all(tries).await.into_iter().map(Result::unwrap);
        let first: Vec<_> = (1..=8).zip(tries).filter(|(_, bound)| *bound).collect();
        assert_eq!(first.len(), 1, "{first:?}");
        for number in 1..=8 {
            let its = devices.device(session, &secret(number)).await.unwrap();
            let owner = number == first[0].0;
            let expected = if owner { Binding::Bound(DeviceNumber(1)) } else { Binding::Foreign };
            assert_eq!(its, expected);
        }
    }
    let nowhere = SessionId::from_uuid(Uuid::new_v4());
    assert!(!devices.bind(nowhere, &secret(1), noon()).await.unwrap());
    assert_eq!(devices.device(nowhere, &secret(1)).await.unwrap(), Binding::Unbound);
}

pub async fn admits_one_device_with_each_code(backend: &Backend) {
    let (session, other) = (bound(backend).await, bound(backend).await);
    let devices = &backend.devices;
    let redeem = async |code: u8, device: u8, at| {
        devices.redeem_code(session, &secret(code), &secret(device), at).await.unwrap()
    };
    assert_eq!(redeem(50, 2, noon()).await, RedeemOutcome::Refused, "there is no code");
    devices.offer_code(&shown(session, 50)).await.unwrap();
    devices.offer_code(&shown(other, 70)).await.unwrap();
    assert_eq!(redeem(70, 2, noon()).await, RedeemOutcome::Refused, "of another session");
    let late = noon() + SHOWN_CODE_TTL;
    assert_eq!(redeem(50, 2, late).await, RedeemOutcome::Refused, "expired");
    let joined = RedeemOutcome::Joined(DeviceNumber(2), JoinedBy::ShownCode);
    assert_eq!(redeem(50, 2, noon()).await, joined);
    assert_eq!(redeem(50, 3, noon()).await, RedeemOutcome::Refused, "used");
    assert_eq!(redeem(51, 3, noon()).await, RedeemOutcome::Refused, "used by its long form");
    assert_eq!(devices.device(session, &secret(2)).await.unwrap(), Binding::Bound(DeviceNumber(2)));
    // A newer code voids the earlier one of its kind, but not one of the other kind.
    let sent = JoinCode { by: JoinedBy::SentCode, short: None, ..shown(session, 60) };
    devices.offer_code(&sent).await.unwrap();
    devices.offer_code(&shown(session, 52)).await.unwrap();
    devices.offer_code(&shown(session, 54)).await.unwrap();
    assert_eq!(redeem(53, 3, noon()).await, RedeemOutcome::Refused, "replaced");
    let joined = RedeemOutcome::Joined(DeviceNumber(3), JoinedBy::ShownCode);
    assert_eq!(redeem(55, 3, noon()).await, joined, "the short form");
    let joined = RedeemOutcome::Joined(DeviceNumber(4), JoinedBy::SentCode);
    assert_eq!(redeem(60, 4, noon()).await, joined);
    // Of several devices with the same code, one joins.
    for round in 0..4 {
        devices.offer_code(&shown(session, 100)).await.unwrap();
        let tries = (0..8).map(|number| {
            let (devices, device) = (devices.clone(), secret(150 + 8 * round + number));
            tokio::spawn(async move {
                // Two concurrent calls that add a device may conflict; then the call is repeated.
                loop {
                    let at = noon();
                    let redeemed = devices.redeem_code(session, &secret(100), &device, at).await;
                    if let Ok(redeemed) = redeemed {
                        return redeemed;
                    }
                }
            })
        });
        let joined = all(tries)
            .await
            .into_iter()
            .filter(|redeemed| matches!(redeemed, RedeemOutcome::Joined(..)));
        assert_eq!(joined.count(), 1);
    }
    assert_eq!(devices.delete_expired_codes(noon()).await.unwrap(), 0);
    assert!(devices.delete_expired_codes(late).await.unwrap() >= 1);
}

pub async fn counts_concurrent_wrong_short_codes(backend: &Backend) {
    let session = bound(backend).await;
    let devices = &backend.devices;
    for round in 0..4 {
        devices.offer_code(&shown(session, 100)).await.unwrap();
        // Wrong guesses.
        let tries = (0..10).map(|guess| {
            let devices = devices.clone();
            let (guess, mine) = (secret(200 + guess), secret(2 + round));
            tokio::spawn(async move {
                devices.redeem_code(session, &guess, &mine, noon()).await.unwrap()
            })
        });
        for redeemed in all(tries).await {
            assert_eq!(redeemed, RedeemOutcome::Refused);
        }
        let right = devices.redeem_code(session, &secret(101), &secret(9), noon()).await.unwrap();
        assert_eq!(right, RedeemOutcome::Refused, "{MAX_CODE_TRIES} wrong ones were tried");
    }
    let long = devices.redeem_code(session, &secret(100), &secret(9), noon()).await.unwrap();
    assert_eq!(long, RedeemOutcome::Joined(DeviceNumber(2), JoinedBy::ShownCode));
    devices.offer_code(&shown(session, 110)).await.unwrap();
    for _ in 1..MAX_CODE_TRIES {
        devices.redeem_code(session, &secret(250), &secret(10), noon()).await.unwrap();
    }
    let last = devices.redeem_code(session, &secret(111), &secret(10), noon()).await.unwrap();
    assert_eq!(last, RedeemOutcome::Joined(DeviceNumber(3), JoinedBy::ShownCode));
}

pub async fn admits_no_more_than_the_maximum_of_devices(backend: &Backend) {
    let session = bound(backend).await;
    let devices = &backend.devices;
    assert_eq!(
        devices.approve(session, &secret(1), noon()).await.unwrap(),
        Some(DeviceNumber(1)),
        "already a device of the session"
    );
    for number in 2..=MAX_DEVICES {
        let device = secret(u8::try_from(number).unwrap());
        let added = devices.approve(session, &device, noon()).await.unwrap();
        assert_eq!(added, Some(DeviceNumber(number)));
    }
    assert_eq!(devices.approve(session, &secret(100), noon()).await.unwrap(), None);
    devices.offer_code(&shown(session, 50)).await.unwrap();
    let full = devices.redeem_code(session, &secret(50), &secret(101), noon()).await.unwrap();
    assert_eq!(full, RedeemOutcome::Full);
    let home = team_fixture(backend).await;
    let unbound = inserted(backend, &home).await.id;
    assert_eq!(devices.approve(unbound, &secret(1), noon()).await.unwrap(), None);
}

pub async fn shows_joins_and_consents_of_devices_in_the_timeline(backend: &Backend) {
    let home = team_fixture(backend).await;
    let session = inserted(backend, &home).await.id;
    let devices = &backend.devices;
    devices.bind(session, &secret(1), noon()).await.unwrap();
    let later = noon() + TimeDelta::minutes(1);
    devices.offer_code(&shown(session, 50)).await.unwrap();
    devices.redeem_code(session, &secret(50), &secret(2), later).await.unwrap();
    let last = later + TimeDelta::minutes(1);
    devices.record_consent(session, DeviceNumber(2), true, last).await.unwrap();
    let timeline = backend.partner_sessions.timeline(home.owner, session).await.unwrap().unwrap();
    let lines: Vec<_> = timeline
        .iter()
        .filter_map(|entry| Some((entry.at, entry.event.as_str(), entry.detail.as_deref()?)))
        .collect();
    let expected = [
        (noon(), "DeviceJoined", "device 1, start"),
        (later, "DeviceJoined", "device 2, shown_code"),
        (last, "ConsentGiven", "device 2"),
    ];
    assert_eq!(lines, expected);
}
