//! The responses about attestations.

use actix_web::{http::Method, test};
use domain::session::ProofHash;
use ports::driving::{Comparison, Coverage, FieldMatch, MockSessionService, PortableAttestation};
use serde_json::json;

use super::{
    PATH, failure,
    mocks::{authenticator, call, services, session, shown},
};
use crate::app;

#[actix_web::test]
async fn a_comparison_says_what_it_covers() {
    let mut service = MockSessionService::new();
    service.expect_compare().returning(|_, _, _| {
        let fields = [("accountId", FieldMatch::Matches), ("tier", FieldMatch::NotAttested)];
        Ok(Comparison {
            session: session().id,
            matches: true,
            coverage: Coverage::AttestedFieldsOnly,
            fields: fields.map(|(field, held)| (field.to_owned(), held)).into(),
        })
    });
    let body = json!({ "proofHash": "0a".repeat(32), "extractedData": {} });
    let path = "/v1/partner/attestations/verify";
    let answer = call(service, &Method::POST, path, Some(&body)).await;
    let expected = json!({ "status": "success", "data": {
        "sessionId": session().id, "matches": true, "coverage": "attested_fields_only",
        "fields": { "accountId": "matches", "tier": "not_attested" },
    } });
    let told = answer.strip_prefix("200 OK ").unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(told).unwrap(), expected);
}

#[actix_web::test]
async fn an_attestation_is_a_file() {
    let mut service = MockSessionService::new();
    service.expect_attestation().returning(|_, id| {
        assert_eq!(id, session().id);
        let proof = ProofHash::new(&"0a".repeat(32)).unwrap();
        Ok(Some(PortableAttestation { proof, file: b"cbor".to_vec() }))
    });
    let app = test::init_service(app(services(authenticator(|| Ok(None)), service))).await;
    let path = format!("{PATH}/attestation");
    let request = test::TestRequest::get().uri(&path).insert_header(("x-api-key", "avk_dev_key"));
    let answer = test::call_service(&app, request.to_request()).await;
    let header = |name: &str| answer.headers().get(name).unwrap().to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "application/cbor");
    let name = "attachment; filename=\"attestation-00000000-0000-0000-0000-000000000001.cbor\"";
    assert_eq!(header("content-disposition"), name);
    assert_eq!(header("cache-control"), "private, no-store");
    let hash = crate::hash::hex(&crate::hash::sha256(b"cbor"));
    assert_eq!(header("etag"), format!("\"{hash}\""));
    assert_eq!(shown(answer).await, "200 OK cbor");
    // A session without an attestation and an absent session have different responses.
    let mut service = MockSessionService::new();
    service.expect_attestation().returning(|_, _| Ok(None));
    let answer = call(service, &Method::GET, &path, None).await;
    let expected = failure(404, "Not Found", "Attestation not found", "ATTESTATION_NOT_FOUND");
    assert_eq!(answer, expected);
}
