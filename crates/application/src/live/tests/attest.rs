//! The end of a run that is to be attested.

use domain::{
    error_code::ErrorCode,
    session::{Event, ExtractedData, Outcome, ProofHash, Status},
    workflow::AttestMode,
};
use ports::attestor::{AttestError, AttestationPackage, AttestationStore as _, Attested, Issuer};
use serde_json::{Value, json};

use super::{
    pass,
    small_workflow::{Run, definition},
};

#[tokio::test(start_paused = true)]
async fn a_session_ends_with_its_attestation() {
    let run = Run::new(definition(&json!({ "attest": plan("me") }))).await;
    run.to_consent().await;
    assert!(run.prompt().witnessed, "the attestor sees all of the exchange");
    run.world.attestor.results.push(Ok(attested(&json!({ "name": "Ada" }))));
    run.answer(true);
    pass(1).await;
    assert_eq!(run.status().await, Status::Verifying);
    pass(3).await;
    let session = run.world.read(run.id).await;
    let attestation = session.state.outcome().and_then(Outcome::attestation).unwrap();
    assert_eq!(
        (session.status(), attestation.fields.as_slice()),
        (Status::Completed, &["name".to_owned()][..])
    );
    assert!(run.world.store.attestation(run.id).await.unwrap().is_some());
    let order = run.world.attestor.orders.lock().unwrap().remove(0);
    assert_eq!(
        (order.url.as_str(), order.user_agent.as_str()),
        ("https://sample.example/me", "test")
    );
    assert_eq!((order.tenant.team, order.challenge.as_slice()), (run.world.team, &b"nonce"[..]));
    run.is_over().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_cannot_be_attested_keeps_its_data() {
    for result in [
        Err(AttestError::Refused("no".into())),
        Err(AttestError::Lost("it closed the connection".into())),
        Err(AttestError::TimedOut),
        Ok(attested(&json!({ "name": "Eve" }))),
        Ok(attested(&json!({ "other": "Ada" }))),
    ] {
        let run = Run::new(definition(&json!({ "attest": plan("me") }))).await;
        run.to_consent().await;
        run.world.attestor.results.push(result);
        run.answer(true);
        pass(5).await;
        let session = run.world.read(run.id).await;
        assert_eq!(session.status(), Status::PartialComplete);
        assert_eq!(run.code().await, Some(ErrorCode::AttestationFailed));
        assert_eq!(session.data().unwrap()["name"], "Ada");
        run.is_over().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_for_an_unknown_request_attests_nothing() {
    let run = Run::new(definition(&json!({ "attest": plan("unknown") }))).await;
    run.to_consent().await;
    run.answer(true);
    pass(2).await;
    assert_eq!(run.code().await, Some(ErrorCode::AttestationFailed));
}

#[tokio::test(start_paused = true)]
async fn neither_the_applicant_nor_the_browser_is_needed_for_the_attestation() {
    let run = Run::new(definition(&json!({ "attest": plan("me") }))).await;
    run.to_consent().await;
    run.world.attestor.results.push(Ok(attested(&json!({ "name": "Ada" }))));
    run.answer(true);
    pass(1).await;
    run.browser.end();
    run.live.state.send_modify(|state| state.present = false);
    pass(3).await;
    assert_eq!(run.status().await, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn an_attestation_that_comes_after_the_end_of_its_session_is_dropped() {
    let run = Run::new(definition(&json!({ "attest": plan("me") }))).await;
    run.to_consent().await;
    run.world.attestor.results.push(Ok(attested(&json!({ "name": "Ada" }))));
    run.answer(true);
    pass(1).await;
    run.world.apply(run.id, [Event::TerminatedByPartner]).await;
    pass(10).await;
    assert_eq!(run.status().await, Status::Terminated);
    assert!(run.world.store.attestation(run.id).await.unwrap().is_none());
    run.is_over().await;
}

/// A plan that shows the attestor all of a named request.
fn plan(request: &str) -> Value {
    json!({
        "request": request, "platform": 1, "version": 1, "modes": ["full-reveal"],
        "fields": { "name": "/name" },
    })
}

fn attested(values: &Value) -> Attested {
    let values: ExtractedData = values.as_object().unwrap().clone();
    Attested {
        proof: ProofHash::new(&"0a".repeat(32)).unwrap(),
        values,
        package: AttestationPackage {
            mode: AttestMode::FullReveal,
            salt: [0; 32],
            attestation: vec![1],
            disclosure: vec![2],
            evidence: None,
            inclusion: None,
            issuer: Issuer { public_key: [0; 32], valid_from: 0, valid_to: 0 },
        },
    }
}
