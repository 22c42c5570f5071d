//! Encrypted columns: what is stored, what is refused, and how keys are rotated.
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests panic to fail")]

mod home;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use chrono::TimeDelta;
use diesel::connection::SimpleConnection as _;
use domain::{id::SessionId, session::ProofHash, workflow::AttestMode};
use ports::{
    attestor::{AttestationPackage, AttestationStore as _, Issuer},
    clock::Clock as _,
    contact_store::ContactStore as _,
    encryption::Cipher,
    encryption_maintenance::{EncryptedTable, EncryptionMaintenance as _},
    session_store::{SessionQueries as _, SessionRetention as _, SessionStore as _},
};
use store::{Encryption, Store};
use system::clock::SystemClock;
use system::encryption::XChaChaCipher;
use testkit::sample::noon;

use self::home::{CANARY, Home, Place, REFERENCE, claim, data, sqlite};

const BATCH: u16 = 2;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_an_applicant_is_plaintext() {
    on_both(async |place: Place| {
        let store = place.open(&seal(7)).await;
        let home = Home::make(&store).await;
        home.told(&store).await;
        let stored = place.stored().await;
        assert!(stored.contains("enc1."), "{stored}");
        for plain in [CANARY, REFERENCE] {
            assert!(!stored.contains(plain), "{plain} is in {stored}");
        }
        assert_eq!(home.found(&store).await, [home.session], "by its reference");
        assert_eq!(home.read(&store).await, "canary-7f3a-data");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_was_moved_is_refused() {
    on_both(async |place: Place| {
        let store = place.open(&seal(7)).await;
        let (one, other) = (Home::make(&store).await, Home::make(&store).await);
        let second = one.another(&store).await;
        for home in [&one, &other] {
            home.told(&store).await;
        }
        let (first, stranger) = (one.session, other.session);
        let copy = |from: SessionId, of: &str| {
            format!("(SELECT {of} FROM sessions WHERE id = '{from}') WHERE id = '{first}'")
        };
        let keep =
            place.texts(&format!("SELECT state AS line FROM sessions WHERE id = '{first}'")).await;
        for (case, set) in [
            ("another row", copy(second, "state")),
            ("another column", copy(first, "terms")),
            ("another team", copy(stranger, "state")),
        ] {
            place.execute(&format!("UPDATE sessions SET state = {set}")).await;
            assert!(store.find_unscoped(first).await.is_err(), "{case}");
            let poll = store.with_pipelined_connection().poll(&one.hash, first).await;
            assert!(poll.is_err(), "{case}, polled");
            place
                .execute(&format!("UPDATE sessions SET state = '{}' WHERE id = '{first}'", keep[0]))
                .await;
            assert!(store.find_unscoped(first).await.is_ok());
        }
        let owner = other.owner;
        place.execute(&format!("UPDATE sessions SET owner = '{owner}' WHERE id = '{first}'")).await;
        assert!(store.find(owner, first).await.is_err(), "the row of another team");

        let bodies = "(SELECT max(body) FROM notices)";
        place.execute(&format!("UPDATE notices SET body = {bodies}")).await;
        let later = noon() + TimeDelta::hours(1);
        let claimed = claim(&store, later).await;
        assert_eq!(claimed.len(), 1, "the body that stayed in its place is sent, the other is not");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_from_before_are_read_encrypted_and_then_refused() {
    on_both(async |place: Place| {
        let before = place.open(&seal(7)).await.with_encryption(Encryption::Prepare);
        let home = Home::make(&before).await;
        home.told(&before).await;
        assert!(place.stored().await.contains(CANARY), "as releases before wrote it");

        let store = place.open(&seal(7)).await;
        let strict = store.with_encryption(Encryption::Required);
        assert_eq!(home.read(&store).await, "canary-7f3a-data");
        assert_eq!(home.found(&store).await, [home.session]);
        assert!(strict.find_unscoped(home.session).await.is_err());
        // A row of each table, and one session more with what the webhook is told of it.
        home.another(&before).await;
        assert_eq!(encrypt(&store).await, 7);
        assert_eq!(encrypt(&store).await, 0);
        let stored = place.stored().await;
        assert!(!stored.contains(CANARY) && !stored.contains(REFERENCE), "{stored}");
        for store in [&store, &strict] {
            assert_eq!(home.read(store).await, "canary-7f3a-data");
            assert_eq!(home.found(store).await.len(), 2);
            assert_eq!(store.contacts(home.team).await.unwrap().len(), 1);
        }
        let planted = "UPDATE sessions SET state = '{\"state\":\"created\",\"losses\":0}'";
        place.execute(planted).await;
        assert!(store.find_unscoped(home.session).await.is_ok());
        let refused = strict.find_unscoped(home.session).await.unwrap_err();
        let cause = std::error::Error::source(&refused).unwrap().to_string();
        assert_eq!(cause, "a value that has to be encrypted is not");
        assert_eq!(encrypt(&before).await, 7, "and back again");
        assert!(place.stored().await.contains(CANARY));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_deployments_key_is_rotated_while_polls_run() {
    on_both(async |place: Place| {
        let old = place.open(&seal(7)).await;
        let home = Home::make(&old).await;
        let laned = old.with_pipelined_connection();
        let (stop, id, hash) = (Arc::new(AtomicBool::new(false)), home.session, home.hash.clone());
        let stops = stop.clone();
        let polls = tokio::spawn(async move {
            let mut polls = 0;
            while !stops.load(Ordering::Relaxed) {
                let (_, found) = laned.poll(&hash, id).await.unwrap().unwrap();
                assert_eq!(data(&found.unwrap().0.state), "canary-7f3a-data");
                polls += 1;
            }
            polls
        });
        let before = place.texts("SELECT terms || state AS line FROM sessions ORDER BY id").await;
        let both = place.open(&seal_with(7)).await;
        for rewrapped in [1, 0] {
            let done = both.rewrap_data_keys(None, 10).await.unwrap();
            assert_eq!((done.changed, done.unreadable, done.next), (rewrapped, vec![], None));
        }
        // It decrypted the key before, and goes on; a new process with the old key alone could not.
        let polled_then = home.another(&old).await;
        stop.store(true, Ordering::Relaxed);
        assert!(polls.await.unwrap() > 0);
        let after = place.texts("SELECT terms || state AS line FROM sessions ORDER BY id").await;
        assert!(before.iter().all(|row| after.contains(row)), "no row was written");
        let new = place.open(&seal_with(9)).await;
        assert_eq!(home.read(&new).await, "canary-7f3a-data");
        assert!(new.find_unscoped(polled_then).await.unwrap().is_some());
        let lost = place.open(&seal(7)).await;
        assert!(
            lost.find_unscoped(home.session).await.is_err(),
            "the old key opens nothing any more"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn data_keys_are_replaced_and_destroyed() {
    on_both(async |place: Place| {
        let store = place.open(&seal(7)).await;
        let home = Home::make(&store).await;
        home.told(&store).await;
        let keys = async || {
            place.texts("SELECT 'n' || number AS line FROM data_keys ORDER BY number").await
        };
        let one = keys().await;
        assert_eq!(one.len(), 1);
        assert_eq!(store.replace_data_keys().await.unwrap(), 1);
        let later = SystemClock.now() + TimeDelta::hours(1);
        assert_eq!(store.drop_data_keys(later).await.unwrap(), 0, "rows name it");
        assert_eq!(home.found(&store).await, [home.session], "by the mark of the key before");
        let second = home.another(&store).await;
        assert_eq!(home.found(&store).await.len(), 2, "by both");
        assert_eq!(encrypt(&store).await, 5);
        assert_eq!(
            store.drop_data_keys(SystemClock.now() - TimeDelta::hours(1)).await.unwrap(),
            0,
            "too soon"
        );
        assert_eq!(store.drop_data_keys(later).await.unwrap(), 1);
        let left = keys().await;
        assert!(left.len() == 1 && left != one, "{left:?}");
        let anew = place.open(&seal(7)).await;
        assert_eq!(home.read(&anew).await, "canary-7f3a-data");
        assert!(anew.find_unscoped(second).await.unwrap().is_some());
        assert_eq!(home.found(&anew).await.len(), 2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attestation_of_another_session_is_refused() {
    on_both(async |place: Place| {
        let before = place.open(&seal(7)).await.with_encryption(Encryption::Prepare);
        let home = Home::make(&before).await;
        let (one, other) = (home.begun(&before).await, home.begun(&before).await);
        for (session, byte) in [(one, 1), (other, 2)] {
            let proof = ProofHash::new(&format!("{byte:02x}").repeat(32)).unwrap();
            assert!(before.keep(session, &proof, &package(byte)).await.unwrap());
        }
        let store = place.open(&seal(7)).await;
        let strict = store.with_encryption(Encryption::Required);
        assert_eq!(store.attestation(one).await.unwrap().unwrap().1, package(1));
        assert!(strict.attestation(one).await.is_err(), "sealed for no session");
        for resealed in [2, 0] {
            assert_eq!(store.reencrypt_attestations(None, 10).await.unwrap().changed, resealed);
        }
        assert_eq!(strict.attestation(one).await.unwrap().unwrap().1, package(1));
        place
            .execute(&format!(
                "UPDATE attestations SET package = \
                 (SELECT package FROM attestations WHERE session = '{other}') \
                 WHERE session = '{one}'"
            ))
            .await;
        for store in [&store, &strict] {
            assert!(store.attestation(one).await.is_err());
            assert!(store.attestation(other).await.is_ok());
        }
    })
    .await;
}

fn package(byte: u8) -> AttestationPackage {
    AttestationPackage {
        mode: AttestMode::ZktlsRequest,
        salt: [byte; 32],
        attestation: vec![byte; 100],
        disclosure: vec![byte],
        evidence: None,
        inclusion: None,
        issuer: Issuer { public_key: [byte; 32], valid_from: 1, valid_to: u64::MAX },
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_empties_the_write_ahead_log_of_sqlite() {
    let place = Place::sqlite();
    let store = place.open(&seal(7)).await;
    let home = Home::make(&store).await;
    home.told(&store).await;
    let path = place.url.strip_prefix("sqlite://").unwrap();
    let log = || std::fs::metadata(format!("{path}-wal")).unwrap().len();
    assert!(log() > 0);
    let session = store.find_unscoped(home.session).await.unwrap().unwrap();
    store.commit(&session.erase(noon()).unwrap(), noon()).await.unwrap();
    assert_eq!(log(), 0);

    // Somebody who reads holds it back: it is left, and emptied later.
    let mut reader = sqlite(path);
    reader.batch_execute("BEGIN; SELECT count(*) FROM sessions").unwrap();
    let other = store.find_unscoped(home.another(&store).await).await.unwrap().unwrap();
    store.commit(&other.erase(noon()).unwrap(), noon()).await.unwrap();
    let began = std::time::Instant::now();
    assert!(log() > 0 && !store.truncate_log().await.unwrap());
    assert!(began.elapsed() < std::time::Duration::from_secs(2));
    reader.batch_execute("COMMIT").unwrap();
    assert!(store.truncate_log().await.unwrap());
    assert_eq!(log(), 0);
}

/// SQLite first, since it is the quicker one to fail.
async fn on_both(case: impl AsyncFn(Place)) {
    case(Place::sqlite()).await;
    case(Place::postgres().await).await;
}

const KEY_EIGHT: &str = "8=CAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg=";

/// The cipher that also has key eight.
fn seal_with(byte: u8) -> Arc<dyn Cipher> {
    Arc::new(XChaChaCipher::with(&[byte; 32], &KEY_EIGHT.parse().unwrap()))
}

fn seal(byte: u8) -> Arc<dyn Cipher> {
    Arc::new(XChaChaCipher::new(&[byte; 32]))
}

async fn encrypt(store: &Store) -> usize {
    let mut changed = 0;
    for table in EncryptedTable::ALL {
        let mut after = None;
        loop {
            let done = store.encrypt_rows(table, after, BATCH).await.unwrap();
            assert!(done.unreadable.is_empty(), "{table:?}: {:?}", done.unreadable);
            changed += done.changed;
            after = done.next;
            if after.is_none() {
                break;
            }
        }
    }
    changed
}
