//! Tests of reported values: numbers keep their digits.

use super::*;

/// Returns exit code and report for an attestation of this value.
fn reported(value: &str) -> (i32, String) {
    let files = Files::new();
    let (mut body, mut disclosure) = attested();
    let claim = disclosure.openings.last_mut().unwrap();
    claim.value = value.as_bytes().to_vec();
    body.claims[0].commitment = claim.commitment();
    files.write("attestation.cbor", &sign(&body, &key()).unwrap());
    files.write("disclosure.cbor", &disclosure.write().unwrap());
    files.verify(
        &[FULL, &["--disclosure", "disclosure.cbor", "--require-field", "user_id"]].concat(),
    )
}

#[test]
fn numbers_are_reported_as_they_were_attested() {
    for number in [
        "18446744073709551616",
        "18446744073709551617",
        "0.10000000000000000001",
        "-0",
        "1.0",
        "1E+2",
        "123456789012345678901234567890.123456789",
    ] {
        let (code, report) = reported(number);
        assert_eq!(code, 0, "{report}");
        let written = format!("\"value\":{number}}}");
        assert!(report.contains(&written), "{number}: {report}");
        assert!(report.ends_with("}\n") && report.lines().count() == 1);
    }
    for value in ["\"a\"", "true", "false", "\"18446744073709551617\""] {
        assert!(reported(value).1.contains(&format!("\"value\":{value}}}")), "{value}");
    }
}

/// An attestor may sign anything: a value that a claim cannot have is not reported as one.
#[test]
fn invalid_claim_values_are_reported_as_null() {
    for other in
        ["", "{}", "[1]", "1 2", "01", "+1", "0x1", "nothing", "\"a", "1\n2", "NaN", "\u{e4}"]
    {
        let (code, report) = reported(other);
        assert_eq!(code, 17, "{other:?}: {report}");
        assert!(report.contains("\"value\":null}"), "{other:?}: {report}");
    }
}
