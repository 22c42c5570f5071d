//! Ownership of a session: what the holder of a link, an API key, a second device or a lost device
//! can do.

use std::time::Duration;

use acceptance::{
    applicant::{Applicant, Embed},
    database::Kind,
    eventually,
    portal_user::mail_with,
    service::Deployment,
    viewer::{Viewer, devices, secret},
};
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(60);
const PICTURE: &str = "document.querySelector('canvas').dataset.pictures > 0";
/// Holds in a document that was loaded after `window.before` was set.
const FRESH: &str = "document.readyState === 'complete' && window.before === undefined";
const REPLACED: &str = "(() => { const note = document.getElementById('note'); \
    return !note.hidden && note.textContent.includes('in another window'); })()";
const GUEST: &str = "document.getElementById('guest').hidden === false";

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no {name} in {value}")).to_owned()
}

/// Starts a session whose applicant is at the sign-in page.
async fn begun(deployment: &Deployment, extra: &Value) -> (String, String, Applicant) {
    let session = deployment.create(extra).await;
    let (id, link) = (text(&session, "sessionId"), text(&session, "embedUrl"));
    let applicant = Applicant::visit(&link).await;
    let page = applicant.top_level();
    page.click("[data-testid=start]").await;
    page.until_prompted("Sign in").await;
    page.until("a frame", PICTURE).await;
    (id, link, applicant)
}

/// The page of a session that has begun, which offers no start.
async fn opened(applicant: &Applicant) -> Embed<'_> {
    let page = applicant.top_level();
    page.until("the page", "document.readyState === 'complete'").await;
    page
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_alone_shows_and_controls_nothing_once_the_session_has_started() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let (id, _, applicant) = begun(&deployment, &json!({})).await;
    // A poll with the API key returns the link.
    let link = text(&deployment.session(&id).await, "embedUrl");
    let mut stranger = Viewer::open(&link, &secret('x')).await;
    let guest = stranger.until("guest", |_| true).await;
    assert_eq!((&guest["status"], &guest["channel"]), (&json!("AWAITING_USER"), &json!(false)));
    let keys: Vec<_> = guest.as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["answer", "asking", "channel", "platform", "progress", "status", "t"]);

    let page = applicant.top_level();
    page.sign_in("ok", "any").await;
    page.until("consent", "document.getElementById('consent').hidden === false").await;
    for prompt in 0..8 {
        stranger.send(&json!({ "t": "share", "prompt": prompt, "share": true })).await;
        stranger.send(&json!({ "t": "share", "prompt": prompt, "share": false })).await;
    }
    for message in [
        json!({ "t": "cancel" }),
        json!({ "t": "handover" }),
        json!({ "t": "refresh" }),
        json!({ "t": "admit", "number": 10, "allow": true }),
        json!({ "t": "key", "down": true, "key": "Enter", "code": "Enter", "keyCode": 13,
            "repeat": false, "modifiers": 0 }),
        json!({ "t": "code", "code": "12345678" }),
        json!({ "t": "send" }),
    ] {
        stranger.send(&message).await;
    }
    let wrong = stranger.until("guest", |guest| !guest["answer"].is_null()).await;
    assert_eq!(wrong["answer"], "wrong_code");
    let ends = tokio::time::Instant::now() + Duration::from_secs(3);
    while tokio::time::Instant::now() < ends {
        if let Some(told) = stranger.next_message(Duration::from_millis(500)).await {
            assert_eq!(told["t"], "guest", "{told}");
        }
    }
    assert_eq!(stranger.frames, 0);
    assert_eq!(deployment.session(&id).await["status"], "AWAITING_USER");
    let replaced = page.evaluate(REPLACED).await;
    assert_eq!(replaced, false);

    page.click("[data-testid=consent-approve]").await;
    assert_eq!(page.until_outcome().await, "COMPLETED");
    assert_eq!(
        devices(&deployment, &id).await,
        ["DeviceJoined: device 1, start", "ConsentGiven: device 1"]
    );
    // After the end the link still shows the outcome.
    let ended = stranger.until("state", |state| !state["outcome"].is_null()).await;
    assert_eq!(ended["status"], "COMPLETED");
    applicant.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stolen_link_gives_the_session_to_one_device_only() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let session = deployment.create(&json!({})).await;
    let (id, link) = (text(&session, "sessionId"), text(&session, "embedUrl"));
    let mut thief = Viewer::open(&link, &secret('t')).await;
    thief.until("state", |state| state["status"] == "AWAITING_USER").await;
    // The applicant is informed, and gives the thief no data.
    let applicant = Applicant::visit(&link).await;
    let page = opened(&applicant).await;
    page.until("the notification", GUEST).await;
    assert_eq!(page.evaluate("document.querySelector('canvas').hidden").await, true);
    // Twenty devices open a session at the same moment: one of them owns it.
    let session = deployment.create(&json!({})).await;
    let link = text(&session, "embedUrl");
    let tries = "abcdefghijklmnopqrst".chars().map(|letter| {
        let link = link.clone();
        tokio::spawn(async move {
            let mut viewer = Viewer::open(&link, &secret(letter)).await;
            viewer.next_message(TIMEOUT).await.expect("an answer")["t"] == "state"
        })
    });
    let tries: Vec<_> = tries.collect();
    let mut owners = 0;
    for one in tries {
        owners += usize::from(one.await.unwrap());
    }
    assert_eq!(owners, 1);
    assert_eq!(deployment.session(&id).await["status"], "AWAITING_USER");
    applicant.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_keeps_its_session_over_a_reload_and_loses_it_with_its_storage() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let (_, _, applicant) = begun(&deployment, &json!({})).await;
    let page = applicant.top_level();
    // The secret is kept in two places, of which one is enough.
    for forget in ["0", "localStorage.clear()"] {
        page.evaluate(&format!("(window.before = 1, {forget}, location.reload())")).await;
        page.until("a fresh page", FRESH).await;
        page.until("a frame", PICTURE).await;
    }
    let forget = "document.cookie = document.cookie.split('=')[0] + \
        '=; Max-Age=0; Secure; Partitioned; SameSite=None; Path=' + location.pathname";
    page.evaluate(&format!(
        "(window.before = 1, localStorage.clear(), {forget}, location.reload())"
    ))
    .await;
    page.until("a fresh page", FRESH).await;
    page.until("the notification", GUEST).await;
    let shown = page.evaluate("document.getElementById('guest-send').hidden").await;
    assert_eq!(shown, true, "there is no channel");
    applicant.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_joins_by_the_code_shown_and_by_approval() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let (id, link, applicant) = begun(&deployment, &json!({})).await;
    let first = applicant.top_level();
    first.click("#phone").await;
    let shown = "document.getElementById('typed-code').textContent.replace(/[^0-9]/g, '')";
    first.until("the code", &format!("{shown}.length === 8")).await;
    let code = first.evaluate(shown).await;

    let second = Applicant::visit(&link).await;
    let page = opened(&second).await;
    page.until("the notification", GUEST).await;
    assert_eq!(page.accessibility_violations().await, json!([]));
    page.click("[data-testid=guest-code]").await;
    second.write("00000000").await;
    second.press("Enter").await;
    page.until(
        "the answer",
        "document.getElementById('guest-answer').textContent.includes('not valid')",
    )
    .await;
    page.click("[data-testid=guest-code]").await;
    second.write(code.as_str().unwrap()).await;
    second.press("Enter").await;
    page.until("a frame", PICTURE).await;
    first.until("the notification", REPLACED).await;
    applicant.close().await;
    asks_until_it_may_not(&page, &link).await;
    let joined = ["device 1, start", "device 2, shown_code", "device 3, approval"];
    let joined = joined.map(|device| format!("DeviceJoined: {device}"));
    assert_eq!(devices(&deployment, &id).await, joined);
    second.close().await;
}

/// A third device asks the active viewer, who denies and then allows it; requests are limited.
async fn asks_until_it_may_not(page: &Embed<'_>, link: &str) {
    // The active viewer is shown the number that the guest's page shows.
    let mut third = Viewer::open(link, &secret('3')).await;
    third.until("guest", |_| true).await;
    third.send(&json!({ "t": "ask" })).await;
    let asking = third.until("guest", |guest| guest["asking"].is_number()).await;
    let number = asking["asking"].as_u64().unwrap().to_string();
    page.until(
        "the question",
        &format!("document.getElementById('admit-text').textContent.includes({number:?})"),
    )
    .await;
    page.click("[data-testid=admit-deny]").await;
    let denied = third.until("guest", |guest| !guest["answer"].is_null()).await;
    assert_eq!(denied["answer"], "not_approved");
    third.send(&json!({ "t": "ask" })).await;
    third.until("guest", |guest| guest["asking"].is_number()).await;
    page.click("[data-testid=admit-allow]").await;
    third.until("admitted", |_| true).await;
    let mut third = Viewer::open(link, &secret('3')).await;
    third.until("state", |_| true).await;
    page.until("the notification", REPLACED).await;
    // The number of requests is limited.
    for _ in 0..4 {
        let mut guest = Viewer::open(link, &secret('4')).await;
        guest.send(&json!({ "t": "ask" })).await;
        guest.until("guest", |g| g["asking"].is_number() || !g["answer"].is_null()).await;
    }
    let mut guest = Viewer::open(link, &secret('4')).await;
    guest.send(&json!({ "t": "ask" })).await;
    let told = guest.until("guest", |guest| !guest["answer"].is_null()).await;
    assert_eq!(told["answer"], "not_approved");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_device_is_replaced_by_a_link_over_the_sessions_channel() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let asked = json!({ "notificationPlatformId": 1,
        "receiverData": { "email": "ada@example.com" } });
    let (id, link, lost) = begun(&deployment, &asked).await;
    lost.close().await;
    let mut guest = Viewer::open(&link, &secret('n')).await;
    let told = guest.until("guest", |_| true).await;
    assert_eq!(told["channel"], true);
    // A link was sent when the session was created, and at most one is sent per minute.
    let sent = eventually("a minute to pass", Duration::from_secs(90), async || {
        guest.send(&json!({ "t": "send" })).await;
        let told = guest.until("guest", |guest| !guest["answer"].is_null()).await;
        if told["answer"] == "link_sent" {
            return Some(());
        }
        assert_eq!(told["answer"], "link_not_sent");
        tokio::time::sleep(Duration::from_secs(10)).await;
        guest = Viewer::open(&link, &secret('n')).await;
        None
    });
    sent.await;
    let mail = mail_with(&deployment, "ada@example.com", "#code=").await;
    let at = mail.find(&link).expect("the link");
    let once = mail[at..].split(['"', '<', ' ', '\r', '\n']).next().unwrap().to_owned();
    assert!(once.contains("#code="), "{once}");
    let mut joined = Viewer::open(&once, &secret('n')).await;
    joined.until("state", |_| true).await;
    let mut again = Viewer::open(&once, &secret('m')).await;
    again.until("guest", |_| true).await;
    assert!(
        devices(&deployment, &id).await.contains(&"DeviceJoined: device 2, sent_code".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consent_counts_only_from_the_viewer_that_was_asked() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let (id, link, applicant) = begun(&deployment, &json!({})).await;
    let page = applicant.top_level();
    let kept = "localStorage.getItem('avouch-device-' + location.pathname.split('/').pop())";
    let own = page.evaluate(kept).await.as_str().unwrap().to_owned();
    page.sign_in("ok", "any").await;
    page.until("consent", "document.getElementById('consent').hidden === false").await;
    // The same device on another connection: consent counts only for a prompt that was shown on it.
    let mut viewer = Viewer::open(&link, &own).await;
    let state = viewer.until("state", |state| state["prompt"]["kind"] == "consent").await;
    let number = state["prompt"]["number"].as_u64().unwrap();
    page.until("the notification", REPLACED).await;
    for wrong in (0..50).filter(|wrong| *wrong != number) {
        viewer.send(&json!({ "t": "share", "prompt": wrong, "share": true })).await;
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(deployment.session(&id).await["status"], "AWAITING_USER");
    viewer.send(&json!({ "t": "share", "prompt": number, "share": true })).await;
    deployment.until(&id, "COMPLETED", TIMEOUT).await;
    applicant.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_link_of_a_revoked_key_starts_no_session_and_ends_none() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let admin = |arguments: &[&str]| deployment.admin(arguments);
    let key = admin(&["create-key", "--team", &deployment.team, "--environment", "development"]);
    let partner = deployment.partner.with_key(key["apiKey"].as_str());
    let [begun, waiting] = [partner.create(&json!({})).await, partner.create(&json!({})).await]
        .map(|answer| text(answer.at("/data"), "embedUrl"));
    let mut viewer = Viewer::open(&begun, &secret('a')).await;
    viewer.until("state", |state| state["status"] == "AWAITING_USER").await;
    admin(&["revoke-key", key["keyId"].as_str().unwrap()]);
    let mut late = Viewer::open(&waiting, &secret('a')).await;
    assert_eq!(late.next_message(TIMEOUT).await.unwrap(), json!({ "t": "refused" }));
    let mut again = Viewer::open(&begun, &secret('a')).await;
    again.until("state", |state| state["status"] == "AWAITING_USER").await;
}
