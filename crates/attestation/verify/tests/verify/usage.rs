//! Tests of malformed options, of the exit code of each kind of failure, and of the guide's table
//! of exit codes.

use super::*;

#[test]
fn malformed_options_are_usage_errors() {
    let files = Files::new();
    let long = "A".repeat(87);
    let name = "a".repeat(101);
    for (option, values) in [
        ("--host", &["", "a b", "a..b", ".", "a:", "a:0", "a:65536", "a:b", "https://a"][..]),
        ("--platform", &["", "-1", "x", "4294967296", "1.0"]),
        ("--mode", &["", "full", "ZKTLS-REQUEST", "0"]),
        ("--level", &["", "proof", "Evidence"]),
        ("--challenge", &["", "A", "AA==", "+A", "/A", "A A", "AB", "é", &long]),
        ("--require-field", &["", &name]),
        ("--max-attempt", &["", "0", "-1", "x", "4294967296"]),
        ("--max-age", &["", "1", "h", "-1h", "1y"]),
        ("--partner", &["", "x", "0", "00000000-0000-0000-0000-00000000000g"]),
    ] {
        for value in values {
            let option = format!("{option}={value}");
            let (code, text) = files.verify(&["--session", "session.json", &option]);
            assert_eq!(code, 1, "{option}: {text}");
            assert!(text.starts_with("error: "), "{option}: {text}");
        }
    }
    for arguments in [
        &["--evidence", "evidence.cbor"][..],
        &["--host", "a.test", "--host", "b.test"],
        &["--json=yes"],
    ] {
        let (code, text) = files.verify(arguments);
        assert_eq!(code, 1, "{arguments:?}: {text}");
        assert!(text.starts_with("error: "), "{text}");
    }
    // An option that is not a hash names a file.
    for (name, bytes) in [("empty", &b""[..]), ("other", b"{}"), ("long", &b" ".repeat(65537))] {
        files.write(name, bytes);
        assert_eq!(files.verify(&["--descriptor", name]).0, 1, "{name}");
    }
    assert_eq!(files.verify(&["--descriptor", &"0".repeat(63)]).0, 1);
}

#[test]
fn each_kind_of_failure_has_a_code_and_a_line() {
    let files = Files::new();
    let fails = |more: &[&str], expected: i32| {
        let (code, text) = files.verify(more);
        assert_eq!(code, expected, "{text}");
        assert_eq!(text.trim_end().lines().count(), 1, "{text}");
    };
    fails(&["--expect-proof-hash", &"0".repeat(64)], 5);
    fails(&["--disclosure", "nowhere.cbor"], 1);
    // No input has the salt of these names.
    fails(&["--partner", "00000000-0000-0000-0000-000000000000"], 1);
    fails(&["--session", "00000000-0000-0000-0000-000000000000"], 1);
    files.write("disclosure.cbor", b"x");
    fails(&["--disclosure", "disclosure.cbor"], 6);
    let (body, mut disclosure) = attested();
    disclosure.openings[2].value = b"\"b\"".to_vec();
    files.write("disclosure.cbor", &disclosure.write().unwrap());
    fails(&["--disclosure", "disclosure.cbor"], 6);
    files.issue(&json!({ "revokedAt": NOON }));
    fails(&[], 3);
    files.issue(&json!({ "validTo": NOON }));
    fails(&[], 3);
    files.issue(&json!({ "publicKey": "00".repeat(32) }));
    fails(&[], 3);
    files.issue(&json!({ "surprise": 1 }));
    fails(&[], 1);
    files.issue(&json!({}));
    files.write("attestation.cbor", &sign(&body, &SigningKey::from_bytes(&[8; 32])).unwrap());
    fails(&[], 4);
    files.write("attestation.cbor", b"x");
    fails(&[], 2);
    files.write("attestation.cbor", &vec![0; 300 * 1024]);
    fails(&[], 2);
    let (code, _) = files.verify(&["--no-such-flag"]);
    assert_eq!(code, 1);
}

/// An invalid command line is reported as JSON too.
#[test]
fn an_invalid_command_line_is_reported_as_json_on_request() {
    let files = Files::new();
    for options in [&["--json", "--mode=none"][..], &["--no-such-flag", "--json"]] {
        let (code, text) = files.verify(options);
        let (json, lines) = text.split_once('\n').unwrap();
        let said: Value = serde_json::from_str(json).unwrap();
        assert_eq!((code, &said["accepted"]), (1, &json!(false)));
        assert_eq!(
            (&said["refused"]["code"], &said["refused"]["class"]),
            (&json!(1), &json!("file"))
        );
        let message = said["refused"]["message"].as_str().unwrap();
        assert!(lines.starts_with("error: ") && lines.contains(message), "{text}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    // `--json` does not count as the value of another option, or after the end of options.
    for options in [&["--host=--json", "--mode=none"][..], &["--mode=none", "--", "--json"]] {
        let (code, text) = files.verify(options);
        assert_eq!(code, 1);
        assert!(text.starts_with("error: "), "{text}");
    }
    let (code, text) = files.verify(&["--json", "--help"]);
    assert_eq!(code, 0);
    assert!(text.contains("Usage:"), "{text}");
}

/// The documentation's table has the same codes and classes as `--help`.
#[test]
fn the_documentation_lists_every_exit_code() {
    let files = Files::new();
    let (code, help) = files.verify(&["--help"]);
    assert_eq!(code, 0);
    let page = "../../../docs/site/src/verify-attestations.md";
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).unwrap();
    let table = help.split("Exit codes:").nth(1).unwrap().lines();
    let rows: Vec<_> = table
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let code: u8 = words.next()?.parse().ok()?;
            Some((code, words.next()?))
        })
        .collect();
    assert!(rows.len() > 18 && (0..).zip(&rows).all(|(at, (code, _))| at == *code), "{rows:?}");
    for (code, class) in &rows[1..] {
        assert!(page.contains(&format!("\n| {code} | {class} | ")), "{code} {class}");
    }
}
