//! Tests of key rotation, revocation and malformed key files.

use std::{
    fs::{OpenOptions, Permissions},
    io::Write as _,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
};

use super::{files::parse_key, *};

#[test]
fn one_key_follows_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let first = new_key(folder.path(), 1000, 2).unwrap();
    new_key(folder.path(), 1000 + DAY_MILLIS, 1).unwrap();
    let keys = read_keys(folder.path()).unwrap();
    let from = |now| current(&keys, now).map(|key| key.valid_from);
    assert_eq!(from(999), None);
    assert_eq!(from(1000), Some(1000));
    assert_eq!(from(1000 + DAY_MILLIS), Some(1000 + DAY_MILLIS), "the newest key");
    assert_eq!(from(1000 + 2 * DAY_MILLIS), None, "both have expired");
    assert_eq!(issuers("us", folder.path()).unwrap().len(), 2);
    assert!(matches!(new_key(folder.path(), 1000, 1), Err(KeyError::File(..))));
    assert_eq!(names(folder.path()).len(), 2, "no temporary file remains");
    fs::set_permissions(&first, Permissions::from_mode(0o640)).unwrap();
    assert!(matches!(read_keys(folder.path()), Err(KeyError::TooOpen(path)) if path == first));
    fs::set_permissions(&first, Permissions::from_mode(0o600)).unwrap();
    fs::write(&first, "{\"secret\":\"00\",\"validFrom\":1,\"validTo\":2}").unwrap();
    assert!(matches!(read_keys(folder.path()), Err(KeyError::Malformed(..))));
}

#[test]
fn a_revoked_key_signs_nothing_and_stays_listed_without_its_secret() {
    let folder = tempfile::tempdir().unwrap();
    let file = new_key(folder.path(), 1000, 2).unwrap();
    new_key(folder.path(), 2000, 2).unwrap();
    let states = |now| {
        let keys = list_keys(folder.path(), now).unwrap();
        keys.iter().map(|key| key.state).collect::<Vec<_>>()
    };
    assert_eq!(states(1500), [KeyState::Current, KeyState::NotYetValid]);
    assert_eq!(states(3000), [KeyState::Valid, KeyState::Current]);
    assert_eq!(states(1000 + 2 * DAY_MILLIS), [KeyState::Ended, KeyState::Current]);
    let secret = secret(&file);
    let listed = list_keys(folder.path(), 3000).unwrap();
    let newer = &listed[1];
    let revoked = revoke_key(folder.path(), &newer.key_id, 2500, Some("lost"), 3000).unwrap();
    assert_eq!((revoked.state, revoked.revoked_at), (KeyState::Revoked, Some(2500)));
    assert_eq!(revoked.revocation_reason.as_deref(), Some("lost"));
    let keys = read_keys(folder.path()).unwrap();
    assert_eq!(current(&keys, 3000).unwrap().valid_from, 1000, "the older one signs again");
    let by_public_key = revoke_key(folder.path(), &listed[0].public_key, 3000, None, 3000).unwrap();
    assert_eq!(by_public_key.state, KeyState::Revoked);
    assert!(read_keys(folder.path()).unwrap().is_empty());
    for entry in names(folder.path()) {
        let path = folder.path().join(entry);
        assert!(!fs::read_to_string(&path).unwrap().contains(&secret));
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    // Verifiers can parse the published list.
    let published = serde_json::json!({ "issuers": issuers("us", folder.path()).unwrap() });
    let read = attestation::trust_list::parse_trust_list(published.to_string().as_bytes()).unwrap();
    assert_eq!(read.iter().map(|key| key.revoked_at).collect::<Vec<_>>(), [Some(3000), Some(2500)]);
}

#[test]
fn a_revocation_is_never_taken_back_nor_moved_to_a_later_time() {
    let folder = tempfile::tempdir().unwrap();
    new_key(folder.path(), 1000, 2).unwrap();
    let id = list_keys(folder.path(), 1000).unwrap()[0].key_id.clone();
    let revoke = |at, reason| revoke_key(folder.path(), &id, at, reason, 5000);
    assert_eq!(revoke(4000, Some("stolen")).unwrap().revoked_at, Some(4000));
    let again = revoke(4500, None).unwrap();
    assert_eq!((again.revoked_at, again.revocation_reason), (Some(4000), Some("stolen".into())));
    assert_eq!(revoke(3000, None).unwrap().revoked_at, Some(3000));
    assert!(matches!(revoke(5001, None), Err(KeyError::RevocationInFuture)));
    assert!(matches!(revoke(1, Some("a\nb")), Err(KeyError::InvalidReason)));
    assert!(matches!(revoke(1, Some(&"a".repeat(201))), Err(KeyError::InvalidReason)));
    for name in ["", "00", &id[1..], &id.to_uppercase(), &"0".repeat(64)] {
        let refused = revoke_key(folder.path(), name, 1, None, 5000);
        assert!(matches!(refused, Err(KeyError::UnknownKey(_))), "{name}");
    }
    assert_eq!(list_keys(folder.path(), 5000).unwrap()[0].revoked_at, Some(3000));
}

/// The copy stands for a key file that was restored from a backup.
#[test]
fn a_copy_does_not_bring_a_revoked_key_back() {
    let folder = tempfile::tempdir().unwrap();
    let file = new_key(folder.path(), 1000, 2).unwrap();
    let before = fs::read(&file).unwrap();
    let id = list_keys(folder.path(), 1000).unwrap()[0].key_id.clone();
    revoke_key(folder.path(), &id, 1000, None, 1000).unwrap();
    write(&folder.path().join("0.json"), &before);
    assert!(read_keys(folder.path()).unwrap().is_empty());
    let states: Vec<_> = list_keys(folder.path(), 1000).unwrap();
    assert!(states.iter().all(|key| key.state == KeyState::Revoked));
    // Revoking the key again removes the secret from both files.
    let secret = secret_in(&before);
    revoke_key(folder.path(), &id, 1000, None, 1000).unwrap();
    for name in names(folder.path()) {
        assert!(!fs::read_to_string(folder.path().join(name)).unwrap().contains(&secret));
    }
}

#[test]
fn key_files_are_read_strictly() {
    let hexes = ["07".repeat(32), "0G".repeat(32), "07".repeat(31)];
    let [key, odd, short] = hexes.each_ref().map(String::as_str);
    for (text, fine) in [
        (format!(r#"{{"secret":"{key}","validFrom":1,"validTo":2}}"#), true),
        (format!(r#"{{"secret":"{key}","validFrom":1,"validTo":2,"revokedAt":1}}"#), true),
        (format!(r#"{{"publicKey":"{key}","validFrom":1,"validTo":2,"revokedAt":1}}"#), true),
        (format!(r#"{{"publicKey":"{key}","validFrom":1,"validTo":2}}"#), false),
        (r#"{"validFrom":1,"validTo":2,"revokedAt":1}"#.to_owned(), false),
        (format!(r#"{{"secret":"{key}","publicKey":"{key}","validFrom":1,"validTo":2}}"#), false),
        (format!(r#"{{"secret":"{odd}","validFrom":1,"validTo":2}}"#), false),
        (format!(r#"{{"secret":"{short}","validFrom":1,"validTo":2}}"#), false),
        (format!(r#"{{"secret":"{key}","validFrom":2,"validTo":2}}"#), false),
        (format!(r#"{{"secret":"{key}","validFrom":-1,"validTo":2}}"#), false),
        (format!(r#"{{"secret":"{key}","validFrom":1,"validTo":2,"revokedat":1}}"#), false),
        (format!(r#"{{"secret":"{key}","validFrom":1,"validTo":2,"revokedAt":"now"}}"#), false),
        (format!(r#"{{"secret":"{key}","validFrom":1,"validTo":2}} x"#), false),
        (format!(r#"{{"secret":"{key}","secret":"{key}","validFrom":1,"validTo":2}}"#), false),
        (
            format!("{{\"secret\":\"{key}\",\"validFrom\":1,\"validTo\":2}}{}", " ".repeat(4096)),
            false,
        ),
        (String::new(), false),
    ] {
        assert_eq!(parse_key(text.as_bytes()).is_ok(), fine, "{text}");
    }
    let folder = tempfile::tempdir().unwrap();
    let text = format!(r#"{{"secret":"{key}","validFrom":1,"validTo":2}}"#);
    for number in 0..=MAX_KEYS {
        write(&folder.path().join(format!("{number}.json")), text.as_bytes());
    }
    assert!(matches!(read_keys(folder.path()), Err(KeyError::TooMany(_))), "no file is ignored");
}

fn names(folder: &Path) -> Vec<std::ffi::OsString> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

fn write(path: &Path, bytes: &[u8]) {
    let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).unwrap();
    out.write_all(bytes).unwrap();
}

fn secret(file: &Path) -> String {
    secret_in(&fs::read(file).unwrap())
}

fn secret_in(bytes: &[u8]) -> String {
    let content: KeyFile = serde_json::from_slice(bytes).unwrap();
    content.secret.unwrap()
}
