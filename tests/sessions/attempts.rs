//! Several attempts in one session: a real browser, a partner that polls, and a webhook endpoint.

use std::time::Duration;

use acceptance::{
    applicant::{Applicant, Embed, IN_NO_FIELD},
    database::Kind,
    eventually,
    processes::processes_with,
    service::Deployment,
};
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until another attempt is offered, and returns the texts of the page about it.
async fn offer(embed: &Embed<'_>) -> String {
    embed.until("an offer", "!document.querySelector('[data-testid=failure]').hidden").await;
    let text = "document.querySelector('[data-testid=failure]').innerText";
    embed.evaluate(text).await.as_str().unwrap_or_default().to_owned()
}

/// Accepts the offer, and waits until the page shows the next attempt: until then its instruction is
/// that of the attempt before.
async fn try_again(embed: &Embed<'_>) {
    embed.click("[data-testid=retry]").await;
    embed.until("the next attempt", "document.querySelector('[data-testid=failure]').hidden").await;
}

/// Creates a session that is shown to the applicant.
async fn shown(deployment: &Deployment, extra: &Value) -> (String, Applicant) {
    let session = deployment.create(extra).await;
    let applicant = Applicant::visit(&deployment.demo).await;
    applicant.show(session["embedUrl"].as_str().unwrap()).await;
    (session["sessionId"].as_str().unwrap().to_owned(), applicant)
}

async fn deliveries(deployment: &Deployment, id: &str) -> Vec<Value> {
    let delivered = async || Some(deployment.deliveries(id).await).filter(|all| !all.is_empty());
    eventually("a delivery", TIMEOUT, delivered).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_applicant_has_as_many_attempts_as_the_session() {
    let deployment = Deployment::start(Kind::Postgres).await;
    let (id, applicant) = shown(&deployment, &json!({})).await;
    let embed = applicant.embed().await;

    // First: the site is down.
    embed.sign_in("site_down", "any").await;
    let text = offer(&embed).await;
    assert!(text.contains("Attempts left:\u{a0}2"), "{text}");
    assert_eq!(embed.accessibility_violations().await, json!([]));
    let session = deployment.session(&id).await;
    assert_eq!(
        (&session["status"], &session["errorCode"]),
        (&json!("AWAITING_USER"), &Value::Null)
    );
    assert_eq!((&session["attempts"], &session["maxAttempts"]), (&json!(1), &json!(3)));
    assert_eq!(session["nextAction"]["kind"], "retry");
    eventually("the first browser to end", TIMEOUT, async || {
        processes_with(&deployment.browsers()).is_empty().then_some(())
    })
    .await;
    try_again(&embed).await;

    // Second: three wrong codes. The offer is still there after a reload.
    embed.sign_in("otp", "any").await;
    for prompt in ["Enter the code", "not the code", "not the code"] {
        embed.until_prompted(prompt).await;
        // The prompt is the same the last two times.
        embed.until("the page after the form was sent", IN_NO_FIELD).await;
        embed.answer("000000").await;
    }
    let text = offer(&embed).await;
    assert!(text.contains("Attempts left:\u{a0}1"), "{text}");
    embed.evaluate("window.before = 1").await;
    applicant.evaluate("document.querySelector('iframe').src += ''").await;
    eventually("the page to be loaded again", TIMEOUT, async || {
        let fresh = "document.readyState === 'complete' && window.before === undefined";
        (applicant.embed().await.evaluate(fresh).await == true).then_some(())
    })
    .await;
    let embed = applicant.embed().await;
    assert_eq!(offer(&embed).await, text);
    try_again(&embed).await;

    // Third: all goes well.
    embed.sign_in("ok", "any").await;
    embed.click("[data-testid=consent-approve]").await;
    assert_eq!(embed.until_outcome().await, "COMPLETED");
    let session = deployment.session(&id).await;
    assert_eq!((&session["status"], &session["attempts"]), (&json!("COMPLETED"), &json!(3)));
    let delivered = deliveries(&deployment, &id).await;
    assert_eq!(delivered.len(), 1, "{delivered:?}");
    assert_eq!(delivered[0]["payload"]["attempts"], 3);
    let timeline = deployment.partner.timeline(&id).await;
    let count = |name: &str| timeline.iter().filter(|(event, _)| event == name).count();
    assert_eq!((count("Failed"), count("RetryRequested")), (2, 2), "{timeline:?}");
    applicant.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_ends_with_its_last_attempt() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let (id, applicant) = shown(&deployment, &json!({ "maxAttempts": 2 })).await;
    let embed = applicant.embed().await;
    embed.sign_in("site_down", "any").await;
    offer(&embed).await;
    try_again(&embed).await;
    embed.sign_in("site_down", "any").await;
    let ended = deployment.until(&id, "ERROR", TIMEOUT).await;
    assert_eq!(
        (&ended["errorCode"], &ended["attempts"]),
        (&json!("PLATFORM_UNAVAILABLE"), &json!(2))
    );
    assert_eq!(embed.until_outcome().await, "ERROR");
    let delivered = deliveries(&deployment, &id).await;
    assert_eq!(delivered.len(), 1, "{delivered:?}");
    assert_eq!(delivered[0]["payload"]["attempts"], 2);
    applicant.close().await;
}

/// The partner is told of the failure once the applicant has closed the page, also where the service
/// was killed meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_offer_ends_when_the_applicant_has_left() {
    let mut deployment = Deployment::start(Kind::Postgres).await;
    for is_killed in [false, true] {
        let (id, applicant) = shown(&deployment, &json!({})).await;
        let embed = applicant.embed().await;
        embed.sign_in("site_down", "any").await;
        offer(&embed).await;
        applicant.close().await;
        if is_killed {
            deployment.kill();
            deployment.run().await;
        }
        let ended = deployment.until(&id, "ERROR", Duration::from_secs(60)).await;
        assert_eq!(ended["errorCode"], "PLATFORM_UNAVAILABLE");
        let delivered = deliveries(&deployment, &id).await;
        assert_eq!(delivered.len(), 1, "{delivered:?}");
        assert_eq!(delivered[0]["payload"]["attempts"], 1);
    }
}
