//! Which requests are accepted, and the findings of those that are refused.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn refusal(body: &Value) -> String {
    NewSession::read(body).unwrap_err().to_string()
}

#[test]
fn absent_fields_have_defaults() {
    let request =
        NewSession::read(&json!({"platformId": 1, "location": {"country": "us"}, "new": 1}));
    let request = request.unwrap();
    assert_eq!(request.location.country, "US");
    assert_eq!(request.expires_in, ExpiresIn::MAX_HOURS);
    assert_eq!(request.attestation, AttestationRequest::NotWanted);
}

#[test]
fn refusals_name_the_field() {
    let table = [
        (json!([]), "the body must be a JSON object"),
        (json!({"location": {"country": "US"}}), "platformId must be a number"),
        (json!({"platformId": "1", "location": {"country": "US"}}), "platformId must be a number"),
        (
            json!({"platformId": 1.5, "location": {"country": "US"}}),
            "platformId must be an integer",
        ),
        (json!({"platformId": 1}), "location must be an object"),
        (
            json!({"platformId": 1, "location": {}}),
            "location.country must be an ISO 3166-1 alpha-2 code",
        ),
        (
            json!({"platformId": 1, "location": {"country": "US"}, "emailTemplateId": 1}),
            "emailTemplateId must be left out without notificationPlatformId",
        ),
        (
            json!({"platformId": 1, "location": {"country": "US"}, "expiresInHours": 0}),
            "expiresInHours must be between 1 and 168",
        ),
        (
            json!({"platformId": 1, "location": {"country": "US"}, "preferredRegion": "moon"}),
            "preferredRegion must be one of us-central, us-west, us-east, asia-south, europe-west",
        ),
        (
            json!({"platformId": 1, "location": {"country": "US"}, "receiverData": {"email": "x"}}),
            "receiverData.email must be an e-mail address",
        ),
        (
            json!({"platformId": 1, "location": {"country": "US"}, "notificationPlatformId": 1}),
            "receiverData must be given with notificationPlatformId",
        ),
        (
            json!({"platformId": 1, "location": {"country": "US"}, "externalReferenceId": "a\u{0}"}),
            "externalReferenceId must not contain control characters",
        ),
        (
            json!({"platformId": 1, "location": {"country": "US"}, "attestationChallenge": 7}),
            "attestationChallenge must be a string",
        ),
        (
            json!({"platformId": 1, "location": {"country": "US"}, "attestationChallenge": "Zg=="}),
            "attestationChallenge must be 1 to 64 bytes in base64url without padding",
        ),
        (
            json!({"platformId": 1, "location": {"country": "US"}, "attestationChallenge": "A".repeat(87)}),
            "attestationChallenge must be at most 86 characters long",
        ),
        (
            json!({"platformId": 1, "location": {"country": "US"}, "attestationChallenge": ""}),
            "attestationChallenge must not be empty",
        ),
    ];
    for (body, message) in table {
        assert_eq!(refusal(&body), message, "{body}");
    }
}

#[test]
fn a_purpose_is_one_line_without_links_and_a_return_url_is_https() {
    let body = |field: &str, value: &str| json!({"platformId": 1, "location": {"country": "US"}, field: value});
    for purpose in ["see https://evil.example/x", "WWW.evil.example", "ask pay@evil.example"] {
        let message = "purpose must not contain links or addresses";
        assert_eq!(refusal(&body("purpose", purpose)), message, "{purpose}");
    }
    for (purpose, message) in [
        ("", "purpose must not be empty"),
        ("a\nb", "purpose must not contain control characters"),
        ("a\u{2028}b", "purpose must be one line"),
        ("a\u{202e}b", "purpose must not contain bidirectional control characters"),
        ("é".repeat(141).as_str(), "purpose must be at most 140 characters long"),
    ] {
        assert_eq!(refusal(&body("purpose", purpose)), message, "{purpose:?}");
    }
    let request = NewSession::read(&body("purpose", &"é".repeat(140))).unwrap();
    assert_eq!(request.purpose, Some("é".repeat(140)));
    let message = "returnUrl must be an https URL without user name and password";
    for url in ["http://lender.example/", "https://user@lender.example/", "javascript:alert(1)"] {
        assert_eq!(refusal(&body("returnUrl", url)), message, "{url}");
    }
    let request = NewSession::read(&body("returnUrl", "https://lender.example/next")).unwrap();
    assert_eq!(request.return_url.unwrap().as_str(), "https://lender.example/next");
}

#[test]
fn a_sender_name_has_no_links_and_no_bidirectional_controls() {
    let body =
        |name: &str| json!({"platformId": 1, "location": {"country": "US"}, "senderName": name});
    for name in ["Your bank https://evil.example/x", "WWW.evil.example", "pay@evil.example"] {
        let message = "senderName must be a name, without links or addresses";
        assert_eq!(refusal(&body(name)), message, "{name}");
    }
    assert_eq!(
        refusal(&body("bank\u{202e}elpmaxe")),
        "senderName must not contain bidirectional control characters"
    );
    for name in ["Müller & Söhne", "Booking.com", "بنك المثال"] {
        assert!(NewSession::read(&body(name)).is_ok(), "{name}");
    }
}

#[test]
fn all_findings_are_reported_at_once() {
    assert_eq!(
        refusal(&json!({"platformId": "x", "location": 1, "generateAttestation": 1})),
        "platformId must be a number; location must be an object; generateAttestation must be a boolean"
    );
}

#[test]
fn a_list_query_out_of_bounds_is_refused_not_clamped() {
    let read = |limit, offset| ListQuery::read(None, limit, offset);
    assert_eq!(read(None, None).unwrap().page, PageRequest { limit: 20, offset: 0 });
    assert_eq!(read(Some("101"), None).unwrap_err().to_string(), "limit must be between 1 and 100");
    assert_eq!(read(Some("x"), None).unwrap_err().to_string(), "limit must be an integer");
    assert_eq!(read(None, Some("-1")).unwrap_err().to_string(), "offset must be at least 0");
    assert_eq!(
        ListQuery::read(Some("DONE"), None, None).unwrap_err().to_string(),
        "status must be a session status"
    );
}

proptest! {
    /// For any number, parsing neither panics nor accepts an expiry out of bounds.
    #[test]
    fn expiry_stays_in_bounds(hours: f64) {
        let body = json!({"platformId": 1, "location": {"country": "DE"}, "expiresInHours": hours});
        if let Ok(request) = NewSession::read(&body) {
            prop_assert!(request.expires_in.span() <= ExpiresIn::MAX_HOURS.span());
        }
    }
}
