//! Valid descriptors: no target or header is ambiguous for servers.

use attestation::descriptor::{Descriptor, DescriptorError, RevealMode};

use crate::setup::descriptor;

/// Attack 26.
#[test]
fn targets_that_lead_elsewhere_are_refused() {
    let with = |target: &str| Descriptor { target: target.into(), ..descriptor() }.check();
    for target in ["/", "/api/me", "/api/me/", "/a?x=1&y=../z", "/a?next=//b"] {
        assert_eq!(with(target), Ok(()), "{target}");
    }
    for target in [
        "",
        "api",
        "/api/me/../x",
        "/..",
        "/./x",
        "/a/%2e%2e/b",
        "/a%2Fb",
        "/a;v=1/b",
        "/a//b",
        "//a",
        "/a#b",
        "/a b",
        "/a\r\nX: y",
        "/\u{e4}",
        "/a\\b",
        "/%252e/",
        "/%00",
        "*",
        "https://other.test/",
    ] {
        assert_eq!(with(target), Err(DescriptorError::Target), "{target}");
    }
    assert_eq!(with(&format!("/{}", "a".repeat(2001))), Err(DescriptorError::Target));
}

#[test]
fn headers_that_change_what_is_asked_for_are_refused() {
    for name in [
        "host",
        "content-length",
        "transfer-encoding",
        "x-forwarded-for",
        "x-original-url",
        "expect",
        "x-http-method-override",
        "range",
        "if-none-match",
        "te",
        "Cookie",
        "",
        "a b",
        "a:",
    ] {
        let headers = vec!["cookie".into(), name.into()];
        let refused = Descriptor { headers, ..descriptor() }.check();
        assert_eq!(refused, Err(DescriptorError::Header(name.into())), "{name}");
    }
    let twice = Descriptor { headers: vec!["cookie".into(); 2], ..descriptor() };
    assert_eq!(twice.check(), Err(DescriptorError::Header("cookie".into())));
    let hidden = Descriptor { hidden: vec!["authorization".into()], ..descriptor() };
    assert_eq!(hidden.check(), Err(DescriptorError::Hidden("authorization".into())));
}

#[test]
fn descriptors_say_everything_and_nothing_twice() {
    assert_eq!(descriptor().check(), Ok(()));
    for host in
        ["", "localhost", "Platform.test", "a..b", "-a.test", "a.test.", "a_b.test", "1.2.3.4:80"]
    {
        let refused = Descriptor { host: host.into(), ..descriptor() }.check();
        assert_eq!(refused, Err(DescriptorError::Host), "{host}");
    }
    for modes in [
        vec![],
        vec![RevealMode::ZktlsRequest, RevealMode::FullReveal],
        vec![RevealMode::FullReveal; 2],
    ] {
        let descriptor = Descriptor { modes, ..descriptor() };
        assert_eq!(descriptor.check(), Err(DescriptorError::Modes));
    }
    assert_eq!(Descriptor { claims: vec![], ..descriptor() }.check(), Err(DescriptorError::Count));
    let mut twice = descriptor();
    twice.claims[1].field = "user_id".into();
    assert_eq!(twice.check(), Err(DescriptorError::Claim("user_id".into())));
    let text = serde_json::to_string(&descriptor()).unwrap();
    assert_eq!(serde_json::from_str::<Descriptor>(&text).unwrap(), descriptor());
    assert!(serde_json::from_str::<Descriptor>(&text.replace("\"host\"", "\"hast\"")).is_err());
}
