//! Tests of checkpoints of other implementations, and of modified checkpoints.

use proptest::prelude::*;

use super::*;
use crate::tlog::{LogProof, MAX_NOTE_BYTES, MAX_PROOF_BYTES, RightEdge, entry, leaf_hash};

const ORIGIN: &str = "log.witness.test/attestations";

fn key(byte: u8) -> SigningKey {
    SigningKey::from_bytes(&[byte; 32])
}

fn known(byte: u8) -> NoteKey {
    NoteKey::new(ORIGIN, key(byte).verifying_key().as_bytes()).unwrap()
}

fn checkpoint(size: u64) -> Checkpoint {
    Checkpoint { origin: ORIGIN.into(), size, root: [5; 32] }
}

/// The example of C2SP signed-note, with the key from the documentation of Go's `sumdb/note`.
#[test]
fn notes_and_keys_of_other_implementations_are_parsed() {
    let go = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
    let peter = NoteKey::parse(go).unwrap();
    assert_eq!((peter.name(), peter.to_string().as_str()), ("PeterNeumann", go));
    let note = "If you think cryptography is the answer to your problem,\n\
        then you don't know what your problem is.\n\n\
        — PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";
    let parsed = SignedNote::parse(note.as_bytes()).unwrap();
    assert_eq!(parsed.verify(&peter), Ok(()));
    assert_eq!(parsed.write(), note);
    let changed = SignedNote::parse(note.replace("answer", "anwser").as_bytes()).unwrap();
    assert_eq!(changed.verify(&peter), Err(TlogError::Signature("PeterNeumann".into())));
    // The example of C2SP tlog-checkpoint; its key is not published.
    let example = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n\
        — example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n";
    let example = SignedCheckpoint::parse(example.as_bytes()).unwrap();
    assert_eq!(example.unverified().size, 20_852_163);
}

#[test]
fn a_checkpoint_is_verified_by_each_signing_key() {
    let signed = SignedCheckpoint::sign(&checkpoint(7), &[&key(1), &key(2)]).unwrap();
    for by in [1, 2] {
        assert_eq!(signed.verify(&known(by)), Ok(&checkpoint(7)));
    }
    assert_eq!(signed.verify(&known(3)), Err(TlogError::Unsigned(ORIGIN.into())));
    let elsewhere = NoteKey::new("other", key(1).verifying_key().as_bytes()).unwrap();
    assert_eq!(signed.verify(&elsewhere), Err(TlogError::Origin(ORIGIN.into())));
    // Another valid signature does not replace an invalid signature by the known key.
    let two = SignedCheckpoint::sign(&checkpoint(8), &[&key(1)]).unwrap().write();
    let (_, line) = two.split_once("\n\n").unwrap();
    let both = format!("{}{line}", signed.write());
    let both = SignedCheckpoint::parse(both.as_bytes()).unwrap();
    assert_eq!(both.verify(&known(1)), Err(TlogError::Signature(ORIGIN.into())));
    assert!(both.verify(&known(2)).is_ok(), "other signatures are not affected");
}

#[test]
fn checkpoints_and_keys_have_one_encoding() {
    let good = SignedCheckpoint::sign(&checkpoint(7), &[&key(1)]).unwrap().write();
    assert_eq!(SignedCheckpoint::parse(good.as_bytes()).unwrap().write(), good);
    let (text, line) = good.split_once("\n\n").unwrap();
    let many: String = vec![line; 33].concat();
    for bad in [
        String::new(),
        format!("{text}\n"),
        format!("{text}\n\n"),
        format!("{text}\n\n{}", line.trim_end()),
        format!("{text}\n\n{line}\n"),
        format!("{text}\nextension\n\n{line}"),
        format!("{text}\n\n{many}"),
        good.replace("\n7\n", "\n07\n"),
        good.replace("\n7\n", "\n\n7\n"),
        good.replace("\n7\n", "\n7\r\n"),
        good.replace("\n7\n", "\n-7\n"),
        good.replace("\n7\n", "\n9999999999999999999999\n"),
        good.replace(ORIGIN, "with space"),
        good.replace(ORIGIN, ""),
        good.replace('\u{2014}', "-"),
        good.replace("BQU=", "BQV="),
        good.replace("BQU=", ""),
        good.replace("BQUFBQU=", "BQUFBQUF"),
        format!("{}{good}", "x".repeat(MAX_NOTE_BYTES)),
    ] {
        assert!(SignedCheckpoint::parse(bad.as_bytes()).is_err(), "{bad:?}");
    }
    let vkey = known(1).to_string();
    assert_eq!(NoteKey::parse(&vkey), Ok(known(1)));
    for bad in [
        String::new(),
        vkey.replace(ORIGIN, "other"),
        vkey.replace(ORIGIN, ""),
        vkey.to_uppercase(),
        vkey.replacen("+A", "+B", 1),
        format!("{vkey}="),
        format!("{vkey} "),
    ] {
        assert!(NoteKey::parse(&bad).is_err(), "{bad}");
    }
    assert!(
        SignedCheckpoint::sign(&Checkpoint { origin: "a b".into(), ..checkpoint(1) }, &[]).is_err()
    );
}

fn proofs(count: u8) -> Vec<(Vec<u8>, String)> {
    let mut edge = RightEdge::default();
    let proof = |number: u8| {
        let (entry, path) = (entry(&[number; 32]), edge.next_path());
        edge.push(leaf_hash(&entry)).unwrap();
        let (size, root) = (edge.size(), edge.root());
        let checkpoint = Checkpoint { origin: ORIGIN.into(), size, root };
        let checkpoint = SignedCheckpoint::sign(&checkpoint, &[&key(1)]).unwrap();
        (entry, LogProof { index: size - 1, path, checkpoint }.write())
    };
    (0..count).map(proof).collect()
}

#[test]
fn a_proof_is_valid_for_one_entry_of_one_log() {
    let proofs = proofs(9);
    for (number, size) in (0..9).zip(1..) {
        let (entry, text) = &proofs[number];
        let proof = LogProof::read(text.as_bytes()).unwrap();
        assert_eq!(&proof.write(), text);
        assert_eq!(proof.verify(entry, &known(1)).unwrap().size, size);
        assert_eq!(proof.verify(entry, &known(2)), Err(TlogError::Unsigned(ORIGIN.into())));
        let (other, _) = &proofs[(number + 1) % 9];
        assert_eq!(proof.verify(other, &known(1)), Err(TlogError::NotIncluded));
        // The proof of one entry with the signed checkpoint of another size.
        let mixed = LogProof {
            checkpoint: LogProof::read(proofs[(number + 1) % 9].1.as_bytes()).unwrap().checkpoint,
            ..proof
        };
        assert!(mixed.verify(entry, &known(1)).is_err(), "{number}");
    }
    let (_, text) = &proofs[8];
    for bad in [
        text.replace("v1\n", "v2\n"),
        text.replace("index", "extra AA==\nindex"),
        text.replace("index 8", "index 08"),
        text.replace("index 8", "index"),
        text.replacen("\n\n", "\n", 1),
        text.replacen("\n\n", &format!("\n{}\n", "A".repeat(44)), 1),
        text.replacen("\n\n", &format!("\n{}\n", format!("{}=\n", "A".repeat(43)).repeat(64)), 1),
        format!("{text}{}", "x".repeat(MAX_PROOF_BYTES)),
    ] {
        assert!(LogProof::read(bad.as_bytes()).is_err(), "{bad}");
    }
}

proptest! {
    #[test]
    fn a_changed_proof_is_refused(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let (entry, text) = proofs(8).pop().unwrap();
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        prop_assume!(bytes[at] != byte);
        bytes[at] = byte;
        let verified = LogProof::read(&bytes).and_then(|proof| proof.verify(&entry, &known(1)).cloned());
        prop_assert!(verified.is_err());
    }

    #[test]
    fn any_bytes_are_refused_in_peace(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(SignedCheckpoint::parse(&bytes).is_err());
        prop_assert!(LogProof::read(&bytes).is_err());
    }
}
