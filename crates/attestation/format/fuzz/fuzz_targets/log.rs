//! Arbitrary bytes are refused without a panic as a checkpoint, a proof, a bundle or a key of a
//! log; accepted ones have one encoding. The trusted key's private key is unknown here.
#![no_main]

use attestation::tlog::{
    LogProof, MAX_TREE_SIZE, NoteKey, RightEdge, SignedCheckpoint, read_bundle, read_tile,
    verify_consistency, verify_inclusion, write_bundle,
};
use libfuzzer_sys::fuzz_target;

const KEY: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";

fuzz_target!(|bytes: &[u8]| {
    let Ok(known) = NoteKey::parse(KEY) else { unreachable!("the key is valid") };
    if let Ok(checkpoint) = SignedCheckpoint::parse(bytes) {
        assert_eq!(checkpoint.write().as_bytes(), bytes);
        assert!(checkpoint.unverified().size <= MAX_TREE_SIZE);
        assert!(checkpoint.verify(&known).is_err());
    }
    if let Ok(proof) = LogProof::read(bytes) {
        assert_eq!(proof.write().as_bytes(), bytes);
        assert!(proof.verify(b"entry", &known).is_err());
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(key) = NoteKey::parse(text)
    {
        assert_eq!(key.to_string(), text);
    }
    let Some((width, rest)) = bytes.split_first() else { return };
    if let Ok(entries) = read_bundle(rest, u16::from(*width)) {
        assert_eq!(write_bundle(entries).as_deref(), Ok(rest));
    }
    // Sizes and paths that an attacker may claim.
    let Some((size, rest)) = rest.split_first_chunk() else { return };
    let Some((index, rest)) = rest.split_first_chunk() else { return };
    let (size, index) = (u64::from_be_bytes(*size), u64::from_be_bytes(*index));
    let path =
        read_tile(rest, u16::try_from(rest.len() / 32).unwrap_or(u16::MAX)).unwrap_or_default();
    let root = [1; 32];
    assert!(verify_inclusion(b"entry", index, size, &path, &root).is_err());
    assert!(size == index || verify_consistency((index, &root), (size, &root), &path).is_err());
    let levels = path.chunks(usize::from(*width).max(1)).map(<[_]>::to_vec).collect();
    if let Ok(mut edge) = RightEdge::new(size, levels) {
        let next = edge.next_path();
        if edge.push(root).is_ok() {
            let size = edge.size();
            assert!(next.len() <= 64 && edge.root() != [0; 32]);
            assert!(edge.partial_tiles().len() <= 8 && size > 0);
        }
    }
});
