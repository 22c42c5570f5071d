//! Tests of the mode that reveals only the declared parts of a response.

use super::{attested::SELECTIVE, fields::detected_by_the_evidence, *};

#[test]
fn undeclared_data_is_in_no_report() {
    let files = Files::of(&SELECTIVE);
    let expected = ["--mode", "zktls-full", "--host", "platform.test", "--max-age", "1h"];
    let options = [&expected[..], &["--require-field", "verified", "--show-transcript"]].concat();
    let (code, report, stderr) = files.verify(&[&options, EXAMINED].concat());
    assert_eq!((code, &report["level"]), (0, &json!("evidence")), "{stderr}");
    assert_eq!(report["attestationType"], "zktls-full");
    assert_eq!(report["claims"][0]["value"], "acct-829137");
    let body = report["evidence"]["responseBody"].as_str().unwrap();
    assert!(body.contains(&hex(b"\"n\":\0\0}")), "{body}");
    assert_eq!(report["response"]["hiddenBytes"], 2);
    // This mode is accepted by default, and other modes are refused.
    assert_eq!(files.verify(EXAMINED).0, 0);
    for other in ["zktls-request", "full-reveal"] {
        files.refused(&[&["--mode", other], EXAMINED].concat(), 13);
    }
    files.refused(&["--roots", "roots.pem"], 14);
}

/// One row per field of the body, with the exit code for a verifier that has the evidence and no
/// expectations.
#[test]
fn a_field_changed_by_the_attestor_has_the_exit_code_of_the_evidence() {
    let files = Files::of(&SELECTIVE);
    let mut seen = vec![];
    for (what, change) in detected_by_the_evidence() {
        let field = what.split(' ').next().unwrap();
        if seen.contains(&field) {
            continue;
        }
        seen.push(field);
        let mut body = SELECTIVE.body.clone();
        change(&mut body);
        files.attest(&body);
        let code = match field {
            "version" | "algorithm" => 2,
            "mode" => 13,
            _ => 7,
        };
        files.refused(EXAMINED, code);
    }
    assert_eq!(seen.len(), 13, "{seen:?}");
}
