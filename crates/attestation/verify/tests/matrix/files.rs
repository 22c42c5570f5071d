//! Tests of files that are truncated, too long, missing or of another kind: each has its exit code.

use super::*;

#[test]
fn truncated_long_or_unrelated_evidence_is_refused() {
    let files = Files::new();
    let whole = ATTESTED.evidence.write().unwrap();
    let mut proof = ATTESTED.evidence.clone();
    let middle = proof.reveal.proof.len() / 2;
    proof.reveal.proof[middle] ^= 1;
    let mut short = ATTESTED.evidence.clone();
    short.reveal.proof.truncate(middle);
    let mut record = ATTESTED.evidence.clone();
    let last = record.server.len() - 40;
    record.server[last] ^= 1;
    let mut descriptor = ATTESTED.evidence.clone();
    descriptor.descriptor = descriptor.descriptor.replace("/api/v1/me", "/api/v1/you");
    for (what, bytes) in [
        ("nothing", vec![]),
        ("half", whole[..whole.len() / 2].to_vec()),
        ("a byte less", whole[..whole.len() - 1].to_vec()),
        ("a byte more", [whole.as_slice(), &[0]].concat()),
        ("too much", vec![0; attestation::evidence::MAX_EVIDENCE_BYTES + 1]),
        ("zeros", vec![0; 1000]),
        ("another proof", proof.write().unwrap()),
        ("half a proof", short.write().unwrap()),
        ("another record", record.write().unwrap()),
        ("another descriptor", descriptor.write().unwrap()),
    ] {
        files.write("evidence.cbor", &bytes);
        let (code, _, stderr) = files.verify(EXAMINED);
        assert_eq!(code, 7, "{what}: {stderr}");
        assert_eq!(stderr.trim_end().lines().count(), 1, "{what}: {stderr}");
    }
    files.write("evidence.cbor", &whole);
    let root = rcgen::generate_simple_self_signed(vec!["root.test".to_owned()]).unwrap();
    files.write("roots.pem", root.cert.pem().as_bytes());
    files.refused(EXAMINED, 7);
    for bytes in [&b""[..], b"x", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
    {
        files.write("roots.pem", bytes);
        files.refused(EXAMINED, 1);
    }
}

#[test]
fn a_truncated_long_or_missing_file_has_its_exit_code() {
    let disclosed = ATTESTED.disclosure.write().unwrap();
    let signed = sign(&ATTESTED.body, &key()).unwrap();
    for (name, bytes, code) in [
        ("disclosure.cbor", vec![], 6),
        ("disclosure.cbor", disclosed[..disclosed.len() - 1].to_vec(), 6),
        ("disclosure.cbor", vec![0; attestation::attest::MAX_DISCLOSURE_BYTES + 1], 6),
        ("attestation.cbor", vec![], 2),
        ("attestation.cbor", signed[..signed.len() - 1].to_vec(), 2),
        ("attestation.cbor", [signed.as_slice(), &[0]].concat(), 2),
        ("attestation.cbor", vec![0; attestation::signed::MAX_ATTESTATION_BYTES + 1], 2),
        ("attestation.cbor", sign(&ATTESTED.body, &SigningKey::from_bytes(&[9; 32])).unwrap(), 4),
        ("keys.json", vec![], 1),
        ("keys.json", b"{\"issuers\":[]}".to_vec(), 1),
        ("keys.json", vec![b' '; attestation::trust_list::MAX_TRUST_LIST_BYTES + 1], 1),
        ("session.json", vec![], 1),
        ("session.json", vec![b' '; 5000], 1),
        ("session.json", json!({ "sessionId": SESSION, "salt": "00" }).to_string().into(), 1),
    ] {
        let files = Files::new();
        files.write(name, &bytes);
        files.refused(&[DISCLOSED, &["--session", "session.json"]].concat(), code);
        fs::remove_file(files.0.path().join(name)).unwrap();
        files.refused(&[DISCLOSED, &["--session", "session.json"]].concat(), 1);
    }
}
