//! A new owner in a real browser: from the invitation mail to the delivered webhook of a session.

use std::time::Duration;

use acceptance::{
    applicant::{Applicant, Embed},
    database::Kind,
    eventually,
    partner::Partner,
    portal_page::{assert_accessible, confirm, enter, heading, sign_in, text},
    portal_user::{PortalUser, base, code_at, mailed_link, now, signed_in, status_with, user},
    service::Deployment,
    webhook_endpoint::{Endpoint, Reply},
};
use serde_json::{Value, json};

const ADA: &str = "ada@lender.example";
const PASSPHRASE: &str = "nine teapots under glass";
const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until a condition holds on the loaded page.
async fn until(page: &Embed<'_>, what: &str, condition: &str) {
    page.until(what, &format!("document.readyState === 'complete' && ({condition})")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_owner_goes_from_invitation_to_a_delivered_webhook() {
    let mut deployment = Deployment::prepare(Kind::Postgres).await;
    deployment.set("AVOUCH_EGRESS_ALLOW", "127.0.0.1/32");
    deployment.run().await;
    let endpoint = Endpoint::start(|attempt| {
        if attempt.path == "/hook" { Reply::Status(200) } else { Reply::Status(500) }
    })
    .await;
    let operator = signed_in(&deployment, "olga@avouch.example", "operator").await;
    let fields = [("email", " Ada@Lender.example"), ("role", "owner")];
    assert_eq!(operator.fill("/portal/members", "/portal/members", &fields).await.status, 303);

    let browser = Applicant::visit(&mailed_link(&deployment, ADA).await).await;
    let page = browser.top_level();
    first_sign_in(&page).await;
    let key = make_key(&page, &deployment).await;
    let secret = make_webhook(&page, &endpoint).await;
    send_a_test(&page, &endpoint, &secret).await;
    let session = play(&deployment, &key).await;
    eventually("the delivery", TIMEOUT, async || (endpoint.count() > 0).then_some(())).await;
    let attempt = endpoint.take().remove(0);
    assert_eq!(attempt.field("sessionId"), session);
    assert!(attempt.signed_with(&secret) && attempt.header("x-lender") == "sesame");
    inspect_session(&page, &session).await;

    page.click("nav a[href='/portal/keys']").await;
    heading(&page, "API keys").await;
    page.click("tbody tr:first-child details summary").await;
    page.click("tbody tr:first-child details button").await;
    heading(&page, "API key rotated").await;
    let rotated = text(&page, "document.getElementById('secret').value").await;
    assert_eq!(status_with(&deployment, &key).await, 401, "the old one, at once");
    assert_eq!(status_with(&deployment, &rotated).await, 200);
    page.click("a.button").await;
    heading(&page, "API keys").await;
    page.click("tbody tr:first-child details:nth-of-type(2) summary").await;
    page.click("tbody tr:first-child details:nth-of-type(2) button").await;
    until(&page, "the key to be revoked", "document.querySelector('.state.revoked') !== null")
        .await;
    assert_eq!(status_with(&deployment, &rotated).await, 401);
    browser.close().await;
}

/// The checklist marks what a new team has done, for those who may do it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checklist_marks_what_a_new_team_has_done() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let team = deployment.admin(&["create-team", "New"])["teamId"].clone();
    let password = user(&deployment, team.as_str().unwrap(), ADA, "owner");
    let owner = PortalUser::new(&base(&deployment));
    owner.sign_in(ADA, &password).await;
    let steps = async || {
        let page = owner.get("/portal/overview").await.text;
        let list = page.split_once("class=\"checklist\"").map_or("", |(_, rest)| rest);
        let list = list.split("</ol>").next().unwrap_or_default();
        (list.matches("<li").count(), list.matches("class=\"is-done\"").count())
    };
    assert_eq!(steps().await, (4, 0));
    let key = [("label", "Backend"), ("environment", "development"), ("expiry", "never")];
    assert_eq!(owner.fill("/portal/keys", "/portal/keys", &key).await.status, 200);
    assert_eq!(steps().await, (4, 1));
    let hook = [("url", "https://hooks.lender.example/"), ("timeout", "9"), ("retries", "1")];
    assert_eq!(owner.fill("/portal/keys", "/portal/webhooks", &hook).await.status, 200);
    let member = [("email", "eve@lender.example"), ("role", "member")];
    assert_eq!(owner.fill("/portal/members", "/portal/members", &member).await.status, 303);
    assert_eq!(steps().await, (4, 3), "no sandbox session is completed yet");
    let viewer = signed_in(&deployment, "vic@lender.example", "viewer").await;
    assert!(!viewer.get("/portal/overview").await.text.contains("Get started"));
}

/// Chooses a password, signs in, and sets up one-time codes.
async fn first_sign_in(page: &Embed<'_>) {
    heading(page, "Welcome to Avouch").await;
    assert_accessible(page, "an invitation").await;
    enter(page, "new", "passwordpassword").await;
    page.click("button.primary").await;
    until(page, "a refusal", "document.querySelector('[role=alert]') !== null").await;
    enter(page, "new", PASSPHRASE).await;
    page.click("button.primary").await;
    heading(page, "Sign in").await;
    assert_accessible(page, "a password was chosen").await;
    assert_eq!(text(page, "document.getElementById('email').value").await, ADA);
    enter(page, "password", PASSPHRASE).await;
    page.click("button.primary").await;
    heading(page, "Overview").await;

    page.click("nav a[href='/portal/account']").await;
    heading(page, "Account").await;
    page.click("a.primary").await;
    confirm(page, PASSPHRASE).await;
    heading(page, "Set up two-factor authentication").await;
    let secret = text(page, "document.querySelector('code.secret').textContent").await;
    enter(page, "code", &code_at(&secret, now())).await;
    page.click("button.primary").await;
    heading(page, "Recovery codes").await;
    page.click("header button").await;
    sign_in(page, ADA, PASSPHRASE).await;
    heading(page, "Confirm your identity").await;
    // Each time step's code works once; the next step's is accepted early.
    enter(page, "code", &code_at(&secret, now() + 30)).await;
    page.click("button.primary").await;
    heading(page, "Overview").await;
    page.click("nav a[href='/portal/members']").await;
    heading(page, "Members").await;
    assert_accessible(page, "members").await;
}

async fn make_key(page: &Embed<'_>, deployment: &Deployment) -> String {
    page.click("nav a[href='/portal/keys']").await;
    heading(page, "API keys").await;
    enter(page, "label", "Loan desk").await;
    page.click("main .primary").await;
    heading(page, "API key created").await;
    let key = text(page, "document.getElementById('secret').value").await;
    assert_eq!(status_with(deployment, &key).await, 200);
    key
}

/// Creates a webhook for the new key only; returns its secret.
async fn make_webhook(page: &Embed<'_>, endpoint: &Endpoint) -> String {
    page.click("nav a[href='/portal/webhooks']").await;
    heading(page, "Webhooks").await;
    assert_accessible(page, "webhooks").await;
    enter(page, "url", "http://hooks.lender.example/").await;
    enter(page, "header-name", "x-lender").await;
    enter(page, "header-value", "sesame").await;
    page.click("fieldset p:nth-of-type(2) label").await;
    page.click("main .primary").await;
    until(page, "a refusal", "document.querySelector('[role=alert]') !== null").await;
    assert_accessible(page, "a webhook that is refused").await;
    assert_eq!(text(page, "document.getElementById('header-name').value").await, "x-lender");
    let kept = "document.querySelector('fieldset p:nth-of-type(2) input').checked";
    assert_eq!(page.evaluate(kept).await, true, "the choice is kept");
    page.evaluate("document.getElementById('url').value = ''").await;
    enter(page, "url", &endpoint.url("dead")).await;
    enter(page, "header-value", "sesame").await;
    page.click("main .primary").await;
    heading(page, "Endpoint created").await;
    assert_accessible(page, "a webhook's secret").await;
    let secret = text(page, "document.getElementById('secret').value").await;
    assert!(secret.starts_with("whsec_"), "{secret}");
    page.click("a.button").await;
    heading(page, "Webhook endpoint").await;
    assert_accessible(page, "a webhook").await;
    let whole = text(page, "document.documentElement.outerHTML").await;
    assert!(!whole.contains(&secret) && !whole.contains("sesame"), "shown once");
    secret
}

/// A refused test delivery shows its cause on the page; after the URL is corrected it is delivered.
async fn send_a_test(page: &Embed<'_>, endpoint: &Endpoint, secret: &str) {
    page.click(".actions .primary").await;
    heading(page, "Delivery").await;
    until(page, "its end", "document.querySelector('.state.exhausted') !== null").await;
    assert_accessible(page, "a delivery").await;
    let answered = text(page, "document.querySelector('article h3').textContent").await;
    assert_eq!(answered, "1. 500 Internal Server Error");
    let headers = text(page, "document.querySelector('article pre').textContent").await;
    assert!(headers.contains("webhook-id") && !headers.contains("sesame"), "{headers}");
    let payload = text(page, "document.querySelector('[aria-label=Payload]').textContent").await;
    let payload: Value = serde_json::from_str(&payload).unwrap();
    assert_eq!(payload["status"], "COMPLETED");
    assert_eq!(payload["extractedData"]["accountId"], "(redacted)", "{payload}");
    page.click("dl a").await;
    heading(page, "Webhook endpoint").await;
    page.click("main details summary").await;
    page.evaluate("document.getElementById('url').value = ''").await;
    enter(page, "url", &endpoint.url("hook")).await;
    page.click("main details[open] .primary").await;
    until(page, "the change", "document.querySelector('.done') !== null").await;
    let _ = endpoint.take();
    page.click("main section tbody a").await;
    heading(page, "Delivery").await;
    page.click("main > form button").await;
    until(page, "its end", "document.querySelector('.state.delivered') !== null").await;
    assert_eq!(page.evaluate("document.querySelectorAll('article').length").await, 2);
    let attempt = endpoint.take().remove(0);
    assert!(attempt.signed_with(secret) && attempt.header("x-lender") == "sesame", "kept");
}

/// Plays a session of the new key that fails; returns its identifier.
async fn play(deployment: &Deployment, key: &str) -> String {
    let partner = Partner::new(&base(deployment), Some(key));
    let made = partner.create(&json!({ "externalReferenceId": "loan-7" })).await;
    let session: Value = made.at("/data").clone();
    let applicant = Applicant::visit(&deployment.demo).await;
    let embed = applicant.show(session["embedUrl"].as_str().unwrap()).await;
    embed.sign_in("locked", "any").await;
    assert_eq!(embed.until_outcome().await, "ERROR");
    applicant.close().await;
    session["sessionId"].as_str().unwrap().to_owned()
}

/// The page shows timeline, deliveries and recording of the session.
async fn inspect_session(page: &Embed<'_>, id: &str) {
    page.click("nav a[href='/portal/overview']").await;
    heading(page, "Overview").await;
    assert_accessible(page, "overview").await;
    assert_eq!(
        text(
            page,
            "document.querySelector('section:last-of-type tbody').innerText.split(/\\s+/).join(' ')"
        )
        .await,
        "Acme (sandbox) login ACCOUNT_LOCKED 1 sessions"
    );
    page.click("nav a[href='/portal/sessions']").await;
    heading(page, "Sessions").await;
    enter(page, "find", "loan-8").await;
    page.click("main form button").await;
    until(page, "nothing found", "document.querySelector('.empty') !== null").await;
    page.evaluate("document.getElementById('find').value = ''").await;
    enter(page, "find", "loan-7").await;
    page.click("main form button").await;
    page.click(&format!("a[href='/portal/sessions/{id}']")).await;
    heading(page, "Session").await;
    until(page, "the recording", "document.querySelector('video')?.duration > 0").await;
    assert_accessible(page, "a session with its film").await;
    let whole = text(page, "document.querySelector('main').textContent").await;
    for part in ["loan-7", "ACCOUNT_LOCKED", "Loan desk", "Delivered"] {
        assert!(whole.contains(part), "{part}: {whole}");
    }
    let reason = text(page, "document.querySelector('main section').textContent").await;
    for part in ["The platform has locked the account", "ACCOUNT_LOCKED", "step", "unlock"] {
        assert!(reason.contains(part), "the reason comes first: {reason}");
    }
    let link = "document.querySelector('.reason a').getAttribute('href')";
    assert_eq!(text(page, link).await, "/docs/errors.html#account_locked");
    let height = page.evaluate("document.querySelector('video').getBoundingClientRect().height");
    assert!(height.await.as_f64().unwrap() <= 480.0);
    let times = "[...document.querySelectorAll('time')].every((time) => \
        /:\\d\\d UTC$/.test(time.title) && time.textContent !== time.title)";
    assert_eq!(page.evaluate(times).await, true, "local times, with the UTC time as their title");
    page.evaluate("document.querySelector('video').play()").await;
    until(page, "the recording to play", "document.querySelector('video').currentTime > 0").await;
}
