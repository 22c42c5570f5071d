//! Applicants on slow and interrupted networks and with reloaded pages, on a desktop and on a
//! phone.

use std::time::Duration;

use acceptance::{
    applicant::{Applicant, Embed, IN_NO_FIELD, SANDBOX_FIELDS},
    cuttable_proxy::CuttableProxy,
    database::Kind,
    service::Deployment,
};
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(60);
/// Each user name of the sandbox, with the status and error code of its session.
const ENDINGS: &[(&str, &str, Option<&str>)] = &[
    ("ok", "COMPLETED", None),
    ("otp", "COMPLETED", None),
    ("questions", "COMPLETED", None),
    ("slow", "COMPLETED", None),
    ("partial", "PARTIAL_COMPLETE", Some("DATA_INCOMPLETE")),
    ("no_data", "ERROR", Some("NO_DATA")),
    ("locked", "ERROR", Some("ACCOUNT_LOCKED")),
    ("site_down", "ERROR", Some("PLATFORM_UNAVAILABLE")),
    ("nobody", "ERROR", Some("CREDENTIALS_INVALID")),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_outcome_is_reached_over_a_slow_network_from_a_desktop() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let applicant = Applicant::visit("about:blank").await;
    emulate_slow_network(&applicant).await;
    for (user, status, code) in ENDINGS {
        let id = begin(&deployment, &applicant).await;
        let embed = applicant.top_level();
        let attempts = if *user == "nobody" { 3 } else { 1 };
        for attempt in 0..attempts {
            if attempt > 0 {
                embed.until_prompted("did not accept").await;
                // The prompt is the same each time.
                embed.until("the page after the form was sent", IN_NO_FIELD).await;
            }
            embed.sign_in_again(user, "any").await;
        }
        if let Some((prompt, answer)) = second_factor(user) {
            embed.until_prompted(prompt).await;
            embed.answer(answer).await;
        }
        ends(&deployment, &embed, &id, (user, status, *code)).await;
    }
    applicant.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_outcome_is_reached_over_a_slow_network_from_a_phone() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let applicant = Applicant::visit_with_a_phone("about:blank").await;
    emulate_slow_network(&applicant).await;
    for (user, status, code) in ENDINGS {
        let id = begin(&deployment, &applicant).await;
        let embed = applicant.top_level();
        let attempts = if *user == "nobody" { 3 } else { 1 };
        let [name, password, other] = SANDBOX_FIELDS;
        for attempt in 0..attempts {
            if attempt > 0 {
                embed.until_prompted("did not accept").await;
                // The prompt is the same each time.
                embed.until("the page after the form was sent", IN_NO_FIELD).await;
            }
            // The page shows the error above its fields, which moves them down.
            let down = if attempt > 0 { 42.0 } else { 0.0 };
            embed.tap_and_write((name.0, name.1 + down), user).await;
            embed.tap_and_write((password.0, password.1 + down), "any").await;
            applicant.press("Enter").await;
        }
        if let Some((prompt, answer)) = second_factor(user) {
            embed.until_prompted(prompt).await;
            embed.tap_and_write(other, answer).await;
            applicant.press("Enter").await;
        }
        ends(&deployment, &embed, &id, (user, status, *code)).await;
    }
    applicant.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reload_and_twenty_seconds_without_network_lose_nothing() {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    let proxy = CuttableProxy::to(&deployment.setting("AVOUCH_LISTEN").unwrap()).await;
    deployment.set("AVOUCH_PUBLIC_URL", format!("http://127.0.0.1:{}", proxy.port));
    deployment.run().await;
    let applicant = Applicant::visit("about:blank").await;
    let id = begin(&deployment, &applicant).await;
    let embed = applicant.top_level();
    embed.focus_first_field().await;
    let before = embed.evaluate("document.querySelector('canvas').dataset.pictures").await;
    applicant.write("o").await;
    // Data in transit when the connection is cut is lost.
    let seen =
        format!("document.querySelector('canvas').dataset.pictures > {}", before.as_str().unwrap());
    embed.until("the typed text", &seen).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    proxy.disconnect();
    embed
        .until(
            "the message about the lost connection",
            "document.getElementById('note').textContent.includes('lost')",
        )
        .await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(
        deployment.session(&id).await["status"],
        "AWAITING_USER",
        "the session waits for the applicant"
    );
    proxy.reconnect();
    embed.until("the frame to be shown again", "document.getElementById('note').hidden").await;
    let offered = "document.getElementById('start').getClientRects().length > 0";
    assert_eq!(embed.evaluate(offered).await, false, "the session goes on without another start");
    // The page and the field are the same, with the text that was typed.
    applicant.write("k").await;
    applicant.press("Tab").await;
    applicant.reload().await;
    embed.until("a frame", "document.querySelector('canvas').dataset.pictures > 0").await;
    assert_eq!(embed.evaluate(offered).await, false, "nor does a reload need one");
    let (x, y) = embed.on_screen(640.0, 351.0).await;
    applicant.click_at(x, y).await;
    applicant.write("any").await;
    applicant.press("Enter").await;
    ends(&deployment, &embed, &id, ("ok", "COMPLETED", None)).await;
    applicant.close().await;
}

/// Emulates a third-generation mobile network with a round trip of 200 ms.
async fn emulate_slow_network(applicant: &Applicant) {
    applicant.devtools("Network.enable", json!({})).await;
    let slow = json!({
        "offline": false, "latency": 200, "downloadThroughput": 1_600_000 / 8,
        "uploadThroughput": 750_000 / 8, "connectionType": "cellular3g",
    });
    applicant.devtools("Network.emulateNetworkConditions", slow).await;
}

/// Opens a session as a top-level page, up to the sign-in.
async fn begin(deployment: &Deployment, applicant: &Applicant) -> String {
    let session = deployment.create(&json!({})).await;
    applicant.navigate(session["embedUrl"].as_str().unwrap()).await;
    let embed = applicant.top_level();
    let id = session["sessionId"].as_str().unwrap().to_owned();
    let there = format!(
        "location.pathname.includes({id:?}) && document.getElementById('start')?.hidden === false"
    );
    embed.until("the start", &there).await;
    embed.click("[data-testid=start]").await;
    embed.until_prompted("Sign in").await;
    embed.until("a frame", "document.querySelector('canvas').dataset.pictures > 0").await;
    id
}

fn second_factor(user: &str) -> Option<(&'static str, &'static str)> {
    match user {
        "otp" => Some(("Enter the code", "123456")),
        "questions" => Some(("Answer your", "blue")),
        _ => None,
    }
}

async fn ends(
    deployment: &Deployment,
    embed: &Embed<'_>,
    id: &str,
    (user, status, code): (&str, &str, Option<&str>),
) {
    if status != "ERROR" {
        embed.click("[data-testid=consent-approve]").await;
    }
    assert_eq!(embed.until_outcome().await, status, "{user}");
    let session = deployment.until(id, status, TIMEOUT).await;
    assert_eq!(session["errorCode"], code.map_or(Value::Null, Value::from), "{user}");
}
