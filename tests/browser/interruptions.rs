//! A site that goes down in the middle of a session, and applicants who leave the page for another
//! application.

use std::time::Duration;

use acceptance::{
    applicant::{Applicant, SANDBOX_FIELDS},
    cuttable_proxy::CuttableProxy,
    database::Kind,
    service::Deployment,
    small_platform::SmallPlatform,
};
use serde_json::json;

const PICTURE: &str = "document.querySelector('canvas').dataset.pictures > 0";
const DOWN: &str = "!document.getElementById('down').hidden";
const STARTS: &str = "document.getElementById('start').getClientRects().length > 0";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_goes_on_after_its_site_was_down() {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    let site = SmallPlatform::start().await;
    site.allow(&mut deployment);
    deployment.run().await;
    let platform = site.publish(&deployment);
    let session = deployment.create(&json!({ "platformId": platform })).await;
    let id = session["sessionId"].as_str().unwrap();
    let applicant = Applicant::visit(session["embedUrl"].as_str().unwrap()).await;
    let embed = applicant.top_level();
    embed.click("[data-testid=start]").await;
    embed.sign_in("ada", "any").await;
    embed.until_prompted("Enter the code").await;

    site.set_down(true);
    embed.answer("123456").await;
    embed.until("the message", DOWN).await;
    let told = embed.evaluate("document.getElementById('down').innerText").await;
    let told = told.as_str().unwrap().replace(['\u{2068}', '\u{2069}'], "");
    for part in [
        "We can't reach Acme (sandbox)",
        "The site does not respond. Reload the page, or try again later.",
        "Reload the page",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let spoken = embed.evaluate("document.getElementById('spoken').textContent").await;
    assert!(spoken.as_str().unwrap().contains("The site does not respond"), "{spoken}");
    assert_eq!(embed.accessibility_violations().await, json!([]));
    embed.click("#down-reload").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(embed.evaluate(DOWN).await, true, "it is still down");
    assert_eq!(deployment.session(id).await["status"], "AWAITING_USER");

    site.set_down(false);
    embed.click("#down-reload").await;
    embed.until("the page", &format!("!({DOWN})")).await;
    embed.click("[data-testid=consent-approve]").await;
    assert_eq!(embed.until_outcome().await, "COMPLETED");
    assert_eq!(deployment.session(id).await["extractedData"]["accountId"], "acme-small-4711");
    applicant.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_applicant_fetches_a_code_in_another_application() {
    continues_after(Duration::from_secs(10)).await;
}

/// Run with `cargo xtask test --tests-only -- -P long --run-ignored only -E 'test(nine_minutes)'`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes more than nine minutes"]
async fn an_applicant_is_away_for_nine_minutes() {
    continues_after(Duration::from_secs(9 * 60)).await;
}

/// Leaves the page at the one-time code, on a phone: the page is hidden and stopped, and its connection
/// ends. After this time the applicant returns, and finishes the session.
async fn continues_after(absence: Duration) {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    let proxy = CuttableProxy::to(&deployment.setting("AVOUCH_LISTEN").unwrap()).await;
    deployment.set("AVOUCH_PUBLIC_URL", format!("http://127.0.0.1:{}", proxy.port));
    deployment.run().await;
    let session = deployment.create(&json!({})).await;
    let id = session["sessionId"].as_str().unwrap();
    let applicant = Applicant::visit_with_a_phone(session["embedUrl"].as_str().unwrap()).await;
    let embed = applicant.top_level();
    embed.click("[data-testid=start]").await;
    embed.until_prompted("Sign in").await;
    embed.until("a frame", PICTURE).await;
    let [name, password, code] = SANDBOX_FIELDS;
    embed.tap_and_write(name, "otp").await;
    embed.tap_and_write(password, "any").await;
    applicant.press("Enter").await;
    embed.until_prompted("Enter the code").await;

    applicant.leave().await;
    proxy.disconnect();
    tokio::time::sleep(absence).await;
    assert_eq!(deployment.session(id).await["status"], "AWAITING_USER");
    proxy.reconnect();
    applicant.come_back().await;
    embed.until("the page to be visible", "document.visibilityState === 'visible'").await;
    embed.until("the connection", "document.getElementById('note').hidden").await;
    assert_eq!(embed.evaluate(STARTS).await, false, "the session goes on without another start");
    embed.until_prompted("Enter the code").await;
    embed.tap_and_write(code, "123456").await;
    applicant.press("Enter").await;
    embed.click("[data-testid=consent-approve]").await;
    assert_eq!(embed.until_outcome().await, "COMPLETED");
    assert_eq!(deployment.session(id).await["status"], "COMPLETED");
    applicant.close().await;
}
