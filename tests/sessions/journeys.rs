//! Complete sessions: a real Chromium on both sides, the service as a process, and a partner's
//! page.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use acceptance::{
    applicant::{Applicant, Embed, IN_NO_FIELD},
    contains,
    database::Kind,
    eventually,
    platform::publish,
    processes::processes_with,
    service::Deployment,
};
use app::{Overrides, Service, config::Config};
use chrono::{DateTime, TimeDelta, Utc};
use ports::clock::Clock as _;
use serde_json::{Value, json};
use testkit::{clock::FakeClock, sample};

/// The password that the applicant types, which must not be stored anywhere.
const CANARY: &str = "canary7xq3password";
const TIMEOUT: Duration = Duration::from_secs(60);

macro_rules! on_both_stores {
    ($($name:ident => $body:path;)*) => { $(
        mod $name {
            use super::*;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                $body(Kind::Sqlite).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                $body(Kind::Postgres).await;
            }
        }
    )* };
}

on_both_stores! {
    signing_in_and_consenting_completes_the_session => signing_in;
    a_second_factor_is_asked_of_the_applicant => second_factors;
    failures_and_missing_data_have_their_status_and_code => shortfalls;
    the_applicant_cancels_or_declines_consent => refusals;
    terminating_while_the_applicant_types_closes_page_and_browser => terminating;
    typed_secrets_are_stored_nowhere => secrecy;
    a_session_expires_at_its_deadline => expiring;
}

async fn signing_in(kind: Kind) {
    let deployment = Deployment::start(kind).await;
    let applicant = Applicant::visit(&deployment.demo).await;
    let embed = applicant.start_session().await;
    let host = embed.evaluate("document.getElementById('host').textContent").await;
    assert!(host.as_str().is_some_and(|host| host.contains("sandbox.localhost")), "{host}");
    embed.sign_in("ok", "any").await;
    assert_eq!(verified(&deployment, &embed).await["accountId"], "acme-ok-4711");
    applicant.close().await;
    assert_nothing_runs(&deployment).await;
}

async fn second_factors(kind: Kind) {
    let deployment = Deployment::start(kind).await;
    let applicant = Applicant::visit(&deployment.demo).await;
    for (user, prompt, answer) in
        [("otp", "Enter the code", "123456"), ("questions", "Answer your", "blue")]
    {
        let embed = applicant.start_session().await;
        embed.sign_in(user, "any").await;
        embed.until_prompted(prompt).await;
        let sessions = deployment.partner.get("browser-sessions?limit=1").await;
        let id = sessions.at("/data/sessions/0/sessionId").as_str().unwrap().to_owned();
        let hint = if user == "otp" { json!("sms ***56") } else { Value::Null };
        assert_eq!(deployment.session(&id).await["nextAction"]["hint"], hint, "{user}");
        embed.answer(answer).await;
        let data = verified(&deployment, &embed).await;
        assert_eq!(data["accountId"], format!("acme-{user}-4711"));
    }
    let embed = applicant.start_session().await;
    embed.sign_in("captcha", "any").await;
    embed.until_prompted("Solve the puzzle").await;
    embed.until("the page after the sign-in", IN_NO_FIELD).await;
    applicant.press("Tab").await;
    applicant.write(" ").await;
    applicant.press("Enter").await;
    assert_eq!(verified(&deployment, &embed).await["accountId"], "acme-captcha-4711");

    let embed = applicant.start_session().await;
    embed.sign_in("logout_midway", "any").await;
    embed.until_prompted("Enter the code").await;
    embed.answer("123456").await;
    embed.until_prompted("Sign in to Acme").await;
    embed.sign_in("ok", "any").await;
    assert_eq!(verified(&deployment, &embed).await["accountId"], "acme-ok-4711");
    applicant.close().await;
}

async fn shortfalls(kind: Kind) {
    let deployment = Deployment::start(kind).await;
    let applicant = Applicant::visit(&deployment.demo).await;
    let outcomes = [
        ("locked", "ERROR", json!("ACCOUNT_LOCKED")),
        ("partial", "PARTIAL_COMPLETE", json!("DATA_INCOMPLETE")),
        ("slow", "COMPLETED", Value::Null),
        ("no_data", "ERROR", json!("NO_DATA")),
        ("push", "COMPLETED", Value::Null),
        ("action_required", "ERROR", json!("ACCOUNT_ACTION_REQUIRED")),
        ("signed_in_elsewhere", "ERROR", json!("ALREADY_LOGGED_IN_ELSEWHERE")),
        ("passkey", "ERROR", json!("UNSUPPORTED_AUTH_METHOD")),
        ("push_denied", "ERROR", json!("MFA_FAILED")),
        ("automated", "ERROR", json!("BOT_DETECTED")),
        ("rate_limited", "ERROR", json!("PLATFORM_RATE_LIMITED")),
        ("site_down", "ERROR", json!("PLATFORM_UNAVAILABLE")),
        ("site_down_midway", "ERROR", json!("PLATFORM_UNAVAILABLE")),
        ("unexpected", "ERROR", json!("UNEXPECTED_PAGE")),
        ("redirects", "ERROR", json!("NAVIGATION_BLOCKED_LIMIT")),
    ];
    // What a site does is the same for both databases: one of each status is enough for the second.
    let count = if kind == Kind::Sqlite { outcomes.len() } else { 3 };
    for (user, status, code) in outcomes.into_iter().take(count) {
        let embed = applicant.start_session().await;
        embed.sign_in(user, "any").await;
        if status != "ERROR" {
            embed.click("[data-testid=consent-approve]").await;
        }
        assert_eq!(embed.until_outcome().await, status, "{user}");
        let id = session_of(&applicant).await;
        let session = deployment.session(&id).await;
        assert_eq!((&session["status"], &session["errorCode"]), (&json!(status), &code), "{user}");
        let missing = if user == "partial" { json!(["followers"]) } else { json!([]) };
        assert_eq!(session["missing"], missing, "{user}");
        let delivery = only_delivery(&deployment, &id).await;
        assert_eq!(delivery["payload"]["status"], status, "{user}");
        assert_eq!(delivery["payload"]["extractedData"], session["extractedData"], "{user}");
        assert_eq!(delivery["payload"]["metadata"]["errorCode"], code, "{user}");
    }
    applicant.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_site_that_was_redesigned_ends_the_session_with_extraction_failed() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let platform = publish(&deployment, "acme-redesigned", |definition| {
        definition["nodes"]["badge"]["fields"]["tier"] = "[data-field=level]".into();
        definition["output"]["tier"]["required"] = true.into();
    });
    let session = deployment.create(&json!({ "platformId": platform, "maxAttempts": 1 })).await;
    let id = session["sessionId"].as_str().unwrap();
    let applicant = Applicant::visit(session["embedUrl"].as_str().unwrap()).await;
    let embed = applicant.top_level();
    embed.pass_introduction().await;
    embed.sign_in("ok", "any").await;
    assert_eq!(embed.until_outcome().await, "ERROR");
    let shown = embed.evaluate("document.getElementById('outcome').textContent").await;
    let text = "The data could not be read.";
    assert!(shown.as_str().is_some_and(|shown| shown.contains(text)), "{shown}");
    let ended = deployment.session(id).await;
    assert_eq!(
        (&ended["status"], &ended["errorCode"]),
        (&json!("ERROR"), &json!("EXTRACTION_FAILED"))
    );
    let delivery = only_delivery(&deployment, id).await;
    assert_eq!(delivery["payload"]["metadata"]["errorCode"], "EXTRACTION_FAILED");
    applicant.close().await;
}

async fn refusals(kind: Kind) {
    let deployment = Deployment::start(kind).await;
    let applicant = Applicant::visit(&deployment.demo).await;
    let embed = applicant.start_session().await;
    embed.cancel().await;
    assert_eq!(embed.until_outcome().await, "CANCELLED");
    let id = session_of(&applicant).await;
    assert_eq!(only_delivery(&deployment, &id).await["payload"]["status"], "CANCELLED");

    let embed = applicant.start_session().await;
    embed.sign_in("ok", "any").await;
    embed.click("[data-testid=consent-decline]").await;
    assert_eq!(embed.until_outcome().await, "CANCELLED");
    let id = session_of(&applicant).await;
    let delivery = only_delivery(&deployment, &id).await;
    assert_eq!(delivery["payload"]["metadata"]["errorCode"], "CONSENT_DECLINED");
    assert_eq!(delivery["payload"].get("extractedData"), None);
    assert_eq!(deployment.session(&id).await["extractedData"], Value::Null);
    applicant.close().await;
    for secret in ["acme-ok-4711", "Ada Example"] {
        assert_found_nowhere(&deployment, secret).await;
    }
}

async fn terminating(kind: Kind) {
    let deployment = Deployment::start(kind).await;
    let applicant = Applicant::visit(&deployment.demo).await;
    let embed = applicant.start_session().await;
    embed.until_prompted("Sign in").await;
    embed.focus_first_field().await;
    applicant.write("half a na").await;
    let id = session_of(&applicant).await;
    assert!(!processes_with(&deployment.browsers()).is_empty(), "a Chromium runs");

    let began = Instant::now();
    let answer = deployment.partner.delete(&format!("browser-session/{id}")).await;
    assert_eq!((answer.status, answer.at("/data/status")), (200, &json!("TERMINATED")));
    applicant.write("me").await;
    assert_eq!(embed.until_outcome().await, "TERMINATED");
    eventually("Chromium to end", TIMEOUT, async || {
        processes_with(&deployment.browsers()).is_empty().then_some(())
    })
    .await;
    // The bound allows for loaded machines; the printed figure is the measurement.
    let took = began.elapsed();
    println!("terminated, reported and closed in {took:?}");
    assert!(took < Duration::from_secs(10), "it took {took:?}");
    let drawn = "(() => { const c = document.querySelector('canvas'); const d = \
         c.getContext('2d').getImageData(0, 0, c.width, c.height).data; \
         for (let i = 0; i < d.length; i += 4) if (d[i] | d[i + 1] | d[i + 2]) return true; \
         return !c.hidden; })()";
    assert_eq!(embed.evaluate(drawn).await, false, "the picture is cleared");
    assert_eq!(only_delivery(&deployment, &id).await["payload"]["status"], "TERMINATED");
    applicant.close().await;
}

async fn secrecy(kind: Kind) {
    let deployment = Deployment::start(kind).await;
    let applicant = Applicant::visit(&deployment.demo).await;
    let embed = applicant.start_session().await;
    embed.sign_in("nobody", CANARY).await;
    embed.until_prompted("did not accept").await;
    // The search comes after a refused sign-in, while the browser's files still exist.
    assert_found_nowhere(&deployment, CANARY).await;
    embed.sign_in_again("ok", CANARY).await;
    verified(&deployment, &embed).await;
    assert_found_nowhere(&deployment, CANARY).await;
    applicant.close().await;
}

/// Gives consent, and checks that poll and webhook agree, and that there is one signed webhook.
async fn verified(deployment: &Deployment, embed: &Embed<'_>) -> Value {
    embed.click("[data-testid=consent-approve]").await;
    assert_eq!(embed.until_outcome().await, "COMPLETED");
    let id = session_of(embed.applicant).await;
    let session = deployment.session(&id).await;
    assert_eq!((&session["status"], &session["progress"]), (&json!("COMPLETED"), &json!(100)));
    let delivery = only_delivery(deployment, &id).await;
    assert_eq!(delivery["payload"]["status"], "COMPLETED");
    assert_eq!(delivery["payload"]["extractedData"], session["extractedData"]);
    assert_eq!(session["extractedData"].as_object().map(serde_json::Map::len), Some(5));
    session["extractedData"].clone()
}

/// Returns the session that the partner's page shows.
async fn session_of(applicant: &Applicant) -> String {
    let source = applicant.evaluate("document.querySelector('iframe').src").await;
    let path = source.as_str().and_then(|url| url.split("/embed/").nth(1)).unwrap();
    path.split('?').next().unwrap().to_owned()
}

/// Waits for a delivery, and a little longer for a second one, which must not come.
async fn only_delivery(deployment: &Deployment, id: &str) -> Value {
    eventually("a delivery", TIMEOUT, async || deployment.deliveries(id).await.pop()).await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let mut deliveries = deployment.deliveries(id).await;
    assert_eq!(deliveries.len(), 1, "{deliveries:?}");
    let delivery = deliveries.remove(0);
    assert_eq!(delivery["verified"], true, "the signature verifies");
    delivery
}

async fn assert_nothing_runs(deployment: &Deployment) {
    eventually("every Chromium to end", TIMEOUT, async || {
        processes_with(&deployment.browsers()).is_empty().then_some(())
    })
    .await;
}

/// Searches the log, the database and every file for a text, also in UTF-16.
async fn assert_found_nowhere(deployment: &Deployment, secret: &str) {
    assert!(!deployment.database.dump().await.contains(secret), "in the database");
    let wide: Vec<u8> = secret.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut folders = vec![deployment.folder.path().to_owned()];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        // Chromium creates and removes files at any time; a removed file contains nothing.
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file()
                && let Ok(bytes) = std::fs::read(entry.path())
            {
                files += 1;
                assert!(
                    !contains(&bytes, secret.as_bytes()) && !contains(&bytes, &wide),
                    "{secret} is in {}",
                    entry.path().display()
                );
            }
        }
    }
    assert!(files > 0, "at least one file was searched");
}

/// Starts the service in this process, with a clock that the test sets.
async fn expiring(kind: Kind) {
    let deployment = Deployment::prepare(kind).await;
    let config = Config::load(None, |name| deployment.setting(name)).unwrap();
    let clock = Arc::new(FakeClock::at(sample::noon()));
    let program = acceptance::service::binary();
    let parts = Overrides { clock: Some(clock.clone()), program, ..Overrides::default() };
    let service = Service::start(&config, parts).await.unwrap();
    let applicant = Applicant::visit(&deployment.demo).await;
    let embed = applicant.start_session().await;
    embed.until_prompted("Sign in").await;
    let id = session_of(&applicant).await;
    let session = deployment.session(&id).await;
    assert_eq!(session["status"], "AWAITING_USER");
    let next = &session["nextAction"];
    assert_eq!((&next["kind"], &next["hint"]), (&json!("login"), &Value::Null));
    let deadline = next["deadline"].as_str().unwrap().parse::<DateTime<Utc>>().unwrap();
    assert!(deadline > clock.now(), "{deadline}");

    let expires = session["expiresAt"].as_str().unwrap().parse::<DateTime<Utc>>().unwrap();
    // The API rounds down to milliseconds.
    clock.forward(expires - clock.now() + TimeDelta::milliseconds(1));
    assert_eq!(embed.until_outcome().await, "ERROR");
    let session = deployment.session(&id).await;
    assert_eq!(
        (&session["status"], &session["errorCode"]),
        (&json!("ERROR"), &json!("SESSION_EXPIRED"))
    );
    let delivery = only_delivery(&deployment, &id).await;
    assert_eq!(delivery["payload"]["metadata"]["errorCode"], "SESSION_EXPIRED");
    applicant.close().await;
    service.stop().await;
}
