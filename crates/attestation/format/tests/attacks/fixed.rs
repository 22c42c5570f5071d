//! Headers whose values the descriptor fixes: the prover chooses none of them.

use attestation::{
    descriptor::{Descriptor, DescriptorError, RevealMode},
    http::{
        RedactedBytes,
        request::{RequestError, read},
    },
};

use crate::setup::{descriptor, request_with};

const JSON: &str = "Accept: application/json\r\n";

/// Returns the descriptor of requests with these headers' values.
fn fixing(values: &[(&str, &str)]) -> Descriptor {
    let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Descriptor { modes: vec![RevealMode::ZktlsRequest], values: values.collect(), ..descriptor() }
}

fn asked(headers: &str, descriptor: &Descriptor) -> Result<Vec<String>, RequestError> {
    let bytes = request_with(headers);
    let request = read(RedactedBytes { bytes: &bytes, hidden: &[] }, descriptor)?;
    Ok(request.chosen.into_iter().map(|chosen| chosen.header).collect())
}

#[test]
fn a_header_has_the_value_that_the_descriptor_fixes() {
    let descriptor = fixing(&[("accept", "application/json")]);
    assert_eq!(asked(JSON, &descriptor), Ok(vec![]));
    assert_eq!(asked("ACCEPT: application/json\r\n", &descriptor), Ok(vec![]));
    let other = Err(RequestError::Value("accept".into()));
    for value in ["text/html", "Application/json", " application/json", "application/json ", ""] {
        assert_eq!(asked(&format!("Accept: {value}\r\n"), &descriptor), other, "{value:?}");
    }
    assert_eq!(asked("", &descriptor), other, "it is missing");
    assert_eq!(asked("Cookie: a\r\n", &descriptor), other);
    let twice = asked(&format!("{JSON}{JSON}"), &descriptor);
    assert_eq!(twice, Err(RequestError::Duplicate("accept".into())));
    // No byte of it may be hidden.
    let bytes = request_with(JSON);
    let at = bytes.windows(6).position(|part| part == b"applic").unwrap();
    let mut zeros = bytes.clone();
    zeros[at..at + 3].fill(0);
    let hidden = std::iter::once(at..at + 3).collect::<Vec<_>>();
    let found = read(RedactedBytes { bytes: &zeros, hidden: &hidden }, &descriptor);
    assert_eq!(found, Err(RequestError::HiddenElsewhere));
}

/// The prover chooses a value that is not fixed, and the result states it.
#[test]
fn values_that_the_prover_chose_are_told() {
    let headers = format!("{JSON}User-Agent: any\r\nCookie: sid=1\r\n");
    let some = fixing(&[("accept", "application/json")]);
    assert_eq!(asked(&headers, &some), Ok(vec!["user-agent".into(), "cookie".into()]));
    let none = fixing(&[]);
    assert_eq!(asked(JSON, &none), Ok(vec!["accept".into()]));
    let bytes = request_with(JSON);
    let request = read(RedactedBytes { bytes: &bytes, hidden: &[] }, &none).unwrap();
    assert_eq!(bytes[request.chosen[0].value.clone()], *b"application/json");
}

#[test]
fn values_are_those_of_headers_that_are_seen() {
    assert_eq!(fixing(&[("accept", "a b")]).check(), Ok(()));
    let long = "a".repeat(2001);
    for (name, value) in [
        ("cookie", "a"),
        ("x-other", "a"),
        ("Accept", "a"),
        ("accept", ""),
        ("accept", " a"),
        ("accept", "a "),
        ("accept", "a\r\nhost: b"),
        ("accept", "a\tb"),
        ("accept", "\u{e4}"),
        ("accept", "\u{7f}"),
        ("accept", &long),
    ] {
        let refused = fixing(&[(name, value)]).check();
        assert_eq!(refused, Err(DescriptorError::Value(name.into())), "{value:?}");
    }
}

/// Descriptors are identified by the hash of their JSON, which does not change if nothing is fixed.
#[test]
fn descriptors_without_values_keep_their_names() {
    let json = serde_json::to_string(&fixing(&[])).unwrap();
    assert!(!json.contains("values"), "{json}");
    assert_eq!(serde_json::from_str::<Descriptor>(&json).unwrap(), fixing(&[]));
    let with = fixing(&[("accept", "application/json")]);
    assert_ne!(with.sha256(), fixing(&[]).sha256());
    let json = serde_json::to_string(&with).unwrap();
    assert!(json.contains(r#""values":{"accept":"application/json"}"#), "{json}");
    assert_eq!(serde_json::from_str::<Descriptor>(&json).unwrap(), with);
}
