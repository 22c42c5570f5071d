//! Tests that change each field of the body: which exit code detects it, for a forger without the
//! key and for a lying attestor.

use std::sync::atomic::{AtomicUsize, Ordering};

use attestation::{
    body::{Body, HiddenHeaderPart},
    signed::sign,
};

use crate::{
    DISCLOSED, Files,
    attested::{ATTESTED, Attested, SELECTIVE, SPARTAN, key},
    expected,
};

/// A change, and its detection.
#[derive(Clone)]
struct Row {
    /// The field, and the changed part of it.
    what: &'static str,
    change: fn(&mut Body),
    /// The exit code of expectations and disclosure without evidence, for a change that the
    /// attestor signed; 0 if they accept it.
    expected: i32,
    /// Whether the evidence detects it.
    evidence: bool,
}

const fn row(what: &'static str, change: fn(&mut Body), expected: i32, evidence: bool) -> Row {
    Row { what, change, expected, evidence }
}

/// Neither expectations nor evidence detect the values that only the attestor states: its clock,
/// its connection to the server, its log, its build.
fn rows() -> Vec<Row> {
    [circumstances(), contents()].concat()
}

/// The attestation itself, its subject, the connection and its times.
fn circumstances() -> Vec<Row> {
    vec![
        row("version", |body| body.version = 1, 2, true),
        row("id", |body| body.id[0] ^= 1, 0, true),
        row("issuer", |body| body.issuer[0] ^= 1, 3, false),
        row("algorithm", |body| body.algorithm = 0, 2, true),
        row("mode", |body| body.mode = 0, 13, true),
        row("mode unknown", |body| body.mode = 3, 13, true),
        row("session", |body| body.session[0] ^= 1, 8, false),
        row("partner", |body| body.partner[0] ^= 1, 16, false),
        row("attempt", |body| body.attempt = 3, 18, false),
        row("challenge", |body| body.challenge[0] ^= 1, 15, false),
        row("challenge longer", |body| body.challenge.push(0), 15, false),
        row("descriptor platform", |body| body.descriptor.platform = 2, 11, true),
        row("descriptor version", |body| body.descriptor.version = 2, 0, true),
        row("descriptor sha256", |body| body.descriptor.sha256[0] ^= 1, 12, true),
        row("server name", |body| body.server.name.push('s'), 10, true),
        row("server port", |body| body.server.port = 8443, 10, true),
        row("server address", |body| body.server.address[0] ^= 1, 0, false),
        row("server egress", |body| body.server.egress = 1, 0, false),
        row("server resolver", |body| body.server.resolver = 1, 0, false),
        row("tls version", |body| body.tls.version = 0x0303, 0, true),
        row("tls suite", |body| body.tls.suite = 0x1301, 0, true),
        row("tls group", |body| body.tls.group ^= 1, 0, true),
        row("tls scheme", |body| body.tls.scheme ^= 1, 0, true),
        row("tls leaf_key_sha256", |body| body.tls.leaf_key_sha256[0] ^= 1, 0, true),
        row("tls chain_sha256", |body| body.tls.chain_sha256[0] ^= 1, 0, true),
        row("tls roots_sha256", |body| body.tls.roots_sha256[0] ^= 1, 0, false),
        row("tls transcript", |body| body.tls.transcript[0] ^= 1, 0, true),
        row("time opened", |body| body.time.opened = 1, 0, true),
        row("time closed", |body| body.time.closed += 1, 0, false),
        row("time signed", |body| body.time.signed -= 2 * 60 * 60 * 1000, 3, false),
    ]
}

/// The capture, the request, the response, the claims and the proof, and the attestor.
fn contents() -> Vec<Row> {
    vec![
        row("capture client_length", |body| body.capture.client_length += 1, 0, true),
        row("capture server_length", |body| body.capture.server_length += 1, 0, true),
        row("capture sha256", |body| body.capture.sha256[0] ^= 1, 0, true),
        row("request method", |body| body.request.method = "POST".into(), 0, true),
        row("request target", |body| body.request.target.push('x'), 0, true),
        row("request length", |body| body.request.length += 1, 0, true),
        row("request hidden none", |body| body.request.hidden.clear(), 0, true),
        row("request hidden start", |body| body.request.hidden[0].start += 1, 0, true),
        row("request hidden length", |body| body.request.hidden[0].length += 1, 0, true),
        row(
            "request hidden header",
            |body| body.request.hidden[0].header = "accept".into(),
            0,
            true,
        ),
        row("request hidden more", |body| body.request.hidden.push(accept()), 0, true),
        row("request root", |body| body.request.root[0] ^= 1, 6, false),
        row("response status", |body| body.response.status = 204, 0, true),
        row("response content_type", |body| body.response.content_type.push('x'), 0, true),
        row("response head_length", |body| body.response.head_length += 1, 0, true),
        row("response body_length", |body| body.response.body_length += 1, 0, true),
        row("response hidden", |body| body.response.hidden += 1, 0, true),
        row("response root", |body| body.response.root[0] ^= 1, 6, false),
        row("claims field", |body| body.claims[0].field.push('x'), 17, true),
        row("claims pointer", |body| body.claims[0].pointer = "/n".into(), 0, true),
        row("claims commitment", |body| body.claims[0].commitment[0] ^= 1, 6, false),
        row("claims less", |body| drop(body.claims.pop()), 6, true),
        row("claims more", |body| body.claims.push(body.claims[0].clone()), 0, true),
        row("proof system", |body| body.proof.system.push('x'), 0, true),
        row("proof circuit", |body| body.proof.circuit[0] ^= 1, 0, true),
        row("proof sha256", |body| body.proof.sha256[0] ^= 1, 0, true),
        row("proof public_sha256", |body| body.proof.public_sha256[0] ^= 1, 0, true),
        row("attestor", |body| body.attestor.sha256[0] ^= 1, 0, false),
        row("log", |body| body.log.index += 1, 0, false),
        row("blind", |body| body.blinding[0] ^= 1, 0, false),
    ]
}

/// A change of a body, and the name of the changed part.
pub(crate) type NamedChange = (&'static str, fn(&mut Body));

/// Returns the changes that the evidence detects.
pub(crate) fn detected_by_the_evidence() -> Vec<NamedChange> {
    rows().into_iter().filter(|row| row.evidence).map(|row| (row.what, row.change)).collect()
}

fn accept() -> HiddenHeaderPart {
    HiddenHeaderPart { start: 0, length: 1, header: "accept".into() }
}

/// A new field of the body fails to compile here until it has a row.
#[test]
fn every_field_has_a_row() {
    let Body {
        version: _,
        id: _,
        issuer: _,
        algorithm: _,
        mode: _,
        session: _,
        partner: _,
        attempt: _,
        challenge: _,
        descriptor: _,
        server: _,
        tls: _,
        time: _,
        capture: _,
        request: _,
        response: _,
        claims: _,
        proof: _,
        attestor: _,
        log: _,
        blinding: _,
    } = &ATTESTED.body;
    let names = "version id issuer algorithm mode session partner attempt challenge descriptor \
                 server tls time capture request response claims proof attestor log blind";
    for name in names.split_whitespace() {
        let has = |row: &Row| row.what.split(' ').next() == Some(name);
        assert!(rows().iter().any(has), "{name}");
    }
}

/// A forger without the key.
#[test]
fn a_field_changed_after_signing_is_detected() {
    let files = Files::new();
    let honest = sign(&ATTESTED.body, &key()).unwrap();
    for Row { what, change, expected, .. } in rows() {
        let mut body = ATTESTED.body.clone();
        change(&mut body);
        let mut forged = sign(&body, &key()).unwrap();
        let (at, from) = (forged.len() - 64, honest.len() - 64);
        forged[at..].copy_from_slice(&honest[from..]);
        files.write("attestation.cbor", &forged);
        let (code, _, stderr) = files.verify(DISCLOSED);
        // The version, the key and its validity period are checked before the signature.
        let before = if matches!(expected, 2 | 3) { expected } else { 4 };
        assert_eq!(code, before, "{what}: {stderr}");
    }
}

/// A lying attestor, against a verifier with another attestation's hash, or with expectations only.
#[test]
fn a_field_changed_by_the_attestor_is_detected_by_expectations() {
    let files = Files::new();
    let all = expected();
    let all: Vec<_> = all.iter().map(String::as_str).collect();
    let hash = files.verify(DISCLOSED).1["proofHash"].as_str().unwrap().to_owned();
    for Row { what, change, expected, .. } in rows() {
        let mut body = ATTESTED.body.clone();
        change(&mut body);
        files.attest(&body);
        let (code, _, stderr) = files.verify(&[DISCLOSED, &all].concat());
        assert_eq!(code, expected, "{what}: {stderr}");
        let (code, ..) = files.verify(&[DISCLOSED, &["--expect-proof-hash", &hash]].concat());
        let before = if matches!(expected, 2 | 3) { expected } else { 5 };
        assert_eq!(code, before, "{what}");
    }
}

/// A lying attestor, against a verifier with the evidence.
#[test]
fn a_field_changed_by_the_attestor_is_detected_by_the_evidence() {
    let attested: [&Attested; 2] = [&ATTESTED, &SELECTIVE];
    let cases: Vec<_> = attested
        .into_iter()
        .flat_map(|one| rows().into_iter().map(move |row| (one, row)))
        .collect();
    // Most of the time of all these tests: each proof is verified anew.
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((attested, row)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    assert_eq!(is_refused(attested, row.change), row.evidence, "{}", row.what);
                }
            });
        }
    });
}

/// Whether the evidence refuses a changed body.
fn is_refused(attested: &Attested, change: fn(&mut Body)) -> bool {
    let root = attested.root.as_slice().into();
    let roots = [webpki::anchor_from_trusted_cert(&root).unwrap()];
    let mut body = attested.body.clone();
    change(&mut body);
    attested.evidence.verify(&body, None, &*SPARTAN, &roots).is_err()
}
