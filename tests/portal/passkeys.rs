//! Passkeys in the portal: made and shown by a real browser with an authenticator of its own.

use std::time::Duration;

use acceptance::{
    applicant::{Applicant, Embed},
    database::Kind,
    eventually,
    portal_page::{assert_accessible, confirm, enter, heading, sign_in, text},
    portal_user::{PortalUser, base, user},
    service::Deployment,
};
use serde_json::{Value, json};

const ADA: &str = "ada@lender.example";
const SOON: Duration = Duration::from_secs(10);

/// A deployment that is served under a name: there are no passkeys for numbers.
async fn named() -> Deployment {
    let mut deployment = Deployment::prepare(Kind::Postgres).await;
    let port = base(&deployment).rsplit_once(':').unwrap().1.to_owned();
    deployment.set("AVOUCH_PUBLIC_URL", format!("http://localhost:{port}"));
    deployment.run().await;
    deployment
}

/// Plugs an authenticator in, which says yes at once; answers its name.
async fn authenticator(browser: &Applicant) -> Value {
    browser.devtools("WebAuthn.enable", json!({})).await;
    let options = json!({
        "protocol": "ctap2", "transport": "usb", "hasResidentKey": false,
        "hasUserVerification": false, "automaticPresenceSimulation": true,
    });
    let added = browser.devtools("WebAuthn.addVirtualAuthenticator", json!({ "options": options }));
    json!({ "authenticatorId": added.await["authenticatorId"] })
}

/// The first one is added by somebody who has not confirmed yet who they are.
async fn add_passkey(page: &Embed<'_>, name: &str, password: Option<&str>) {
    page.click("nav a[href='/portal/account']").await;
    heading(page, "Your account").await;
    page.click("a[href='/portal/account/passkeys/new']").await;
    if let Some(password) = password {
        confirm(page, password).await;
    }
    heading(page, "Add a passkey").await;
    assert_accessible(page, "a new passkey").await;
    enter(page, "name", name).await;
    page.click("main button.primary").await;
}

async fn until_problem(page: &Embed<'_>) {
    let shown = "document.querySelector('.problem')?.hidden === false";
    page.until("what went wrong", shown).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_passkey_is_added_used_and_removed() {
    let deployment = named().await;
    let password = user(&deployment, &deployment.team, ADA, "owner");
    let browser = Applicant::visit(&format!("{}/portal", base(&deployment))).await;
    let device = authenticator(&browser).await;
    let page = browser.top_level();
    heading(&page, "Sign in").await;
    sign_in(&page, ADA, &password).await;
    heading(&page, "Overview").await;
    add_passkey(&page, "Key <b>ring</b>", Some(&password)).await;
    heading(&page, "Recovery codes").await;
    assert_accessible(&page, "recovery codes").await;
    let code = text(&page, "document.querySelector('.codes code').textContent").await;
    let other = text(&page, "document.querySelectorAll('.codes code')[1].textContent").await;
    // The same device makes no second one for the same person.
    add_passkey(&page, "Once more", None).await;
    until_problem(&page).await;
    page.click("nav a[href='/portal/account']").await;
    heading(&page, "Your account").await;
    assert_accessible(&page, "an account with a passkey").await;
    let shown = "document.querySelector('.rows strong').textContent === 'Key <b>ring</b>'";
    assert_eq!(page.evaluate(shown).await, true);

    page.click("header button").await;
    sign_in(&page, ADA, &password).await;
    heading(&page, "Confirm it is you").await;
    assert_accessible(&page, "a passkey is asked for").await;
    page.click("form[data-passkey] button").await;
    heading(&page, "Overview").await;

    // Without the device there are the codes.
    browser.devtools("WebAuthn.removeVirtualAuthenticator", device).await;
    page.click("header button").await;
    sign_in(&page, ADA, &password).await;
    heading(&page, "Confirm it is you").await;
    enter(&page, "code", "abcd-efgh-ijkl-mnop").await;
    page.click("form:not([data-passkey]) button").await;
    page.until("a refusal", "document.querySelector('[role=alert]:not([hidden])') !== null").await;
    enter(&page, "code", &code).await;
    page.click("form:not([data-passkey]) button").await;
    heading(&page, "Overview").await;

    page.click("nav a[href='/portal/account']").await;
    heading(&page, "Your account").await;
    // With the second of the codes: it is asked for as the password is.
    page.click(".rows summary").await;
    page.click(".rows button").await;
    heading(&page, "Confirm it is you").await;
    assert_accessible(&page, "a confirmation with a passkey").await;
    enter(&page, "code", &other).await;
    confirm(&page, &password).await;
    heading(&page, "Your account").await;
    page.until("it is gone", "document.querySelector('.rows') === null").await;
    page.click("header button").await;
    sign_in(&page, ADA, &password).await;
    heading(&page, "Overview").await;
    browser.close().await;
}

/// Somebody who has shown their password, with what their browser is asked.
async fn half_in(deployment: &Deployment, password: &str) -> (PortalUser, String, String) {
    let person = PortalUser::new(&base(deployment));
    let sent = person.sign_in(ADA, password).await;
    assert!(sent.header("location").starts_with("/portal/sign-in/code"));
    let page = person.get("/portal/sign-in/code").await;
    let options = page.after("data-options=\"").replace("&quot;", "\"").replace("&#x2f;", "/");
    (person, options, page.after("name=\"asked\" value=\""))
}

async fn answer(page: &Embed<'_>, options: &str) -> String {
    let script = format!(
        "navigator.credentials.get({{ publicKey: \
         PublicKeyCredential.parseRequestOptionsFromJSON({options}) }}).then(JSON.stringify)"
    );
    text(page, &script).await
}

async fn show(person: &PortalUser, asked: &str, answer: &str) -> bool {
    let fields = [("asked", asked), ("answer", answer), ("next", "")];
    let shown = person.post("/portal/sign-in/passkey", &fields).await;
    let inside = person.get("/portal/overview").await.status == 200;
    assert_eq!(inside, shown.status == 303, "{}", shown.text);
    inside
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_assertion_counts_only_for_its_own_challenge() {
    let deployment = named().await;
    let password = user(&deployment, &deployment.team, ADA, "owner");
    let browser = Applicant::visit(&format!("{}/portal", base(&deployment))).await;
    authenticator(&browser).await;
    let page = browser.top_level();
    heading(&page, "Sign in").await;
    sign_in(&page, ADA, &password).await;
    heading(&page, "Overview").await;
    add_passkey(&page, "Laptop", Some(&password)).await;
    heading(&page, "Recovery codes").await;

    let (ada, options, asked) = half_in(&deployment, &password).await;
    let right = answer(&page, &options).await;
    let mut wrong: Value = serde_json::from_str(&right).unwrap();
    let signature = wrong["response"]["signature"].as_str().unwrap();
    wrong["response"]["signature"] = format!("{}AAAA", &signature[..signature.len() - 4]).into();
    // Five wrong ones in all: the sixth would make the right one wait.
    for odd in [wrong.to_string().as_str(), &"[".repeat(20_000)] {
        assert!(!show(&ada, &asked, odd).await, "{odd:.40}");
    }
    // What was asked of one sign-in is not answered in another, nor is another's question.
    let (other, _, others) = half_in(&deployment, &password).await;
    assert!(!show(&other, &asked, &right).await, "another sign-in's question");
    assert!(!show(&other, &others, &right).await, "the answer to another question");
    assert!(!show(&ada, "AAAA", &right).await);
    assert!(show(&ada, &asked, &right).await);
    // Tries are counted together with those of codes and passwords.
    let refused = eventually("a refusal", SOON, async || {
        let fields = [("asked", others.as_str()), ("answer", "{}"), ("next", "")];
        let shown = other.post("/portal/sign-in/passkey", &fields).await;
        (shown.status == 429).then_some(shown)
    })
    .await;
    assert!(!refused.header("retry-after").is_empty());
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_assertion_counts_once_and_only_for_the_portals_origin() {
    let deployment = named().await;
    let password = user(&deployment, &deployment.team, ADA, "owner");
    let browser = Applicant::visit(&format!("{}/portal", base(&deployment))).await;
    authenticator(&browser).await;
    let page = browser.top_level();
    heading(&page, "Sign in").await;
    sign_in(&page, ADA, &password).await;
    heading(&page, "Overview").await;
    add_passkey(&page, "Laptop", Some(&password)).await;
    heading(&page, "Recovery codes").await;

    // Another port of the same host may ask for the passkey, and is found out by its origin.
    let (ada, options, asked) = half_in(&deployment, &password).await;
    browser.devtools("Page.navigate", json!({ "url": deployment.demo })).await;
    let elsewhere = format!("location.origin === '{}'", deployment.demo);
    page.until("another origin", &elsewhere).await;
    let phished = answer(&page, &options).await;
    assert!(!show(&ada, &asked, &phished).await, "{phished}");
    let start = format!("{}/portal/sign-in", base(&deployment));
    browser.devtools("Page.navigate", json!({ "url": start })).await;
    heading(&page, "Sign in").await;
    let right = answer(&page, &options).await;
    assert!(show(&ada, &asked, &right).await);
    let (late, ..) = half_in(&deployment, &password).await;
    assert!(!show(&late, &asked, &right).await, "the same once more");

    // Who has lost everything is let in by an operator.
    let (lost, ..) = half_in(&deployment, &password).await;
    deployment.admin(&["drop-second-factor", "--email", ADA]);
    assert_eq!(lost.get("/portal/overview").await.status, 303);
    let found = PortalUser::new(&base(&deployment));
    assert_eq!(found.sign_in(ADA, &password).await.header("location"), "/portal/overview");
    assert_eq!(found.get("/portal/overview").await.status, 200);

    // By numbers there are none, and nothing of them is offered.
    let mut numbers = Deployment::prepare(Kind::Sqlite).await;
    numbers.run().await;
    let password = user(&numbers, &numbers.team, ADA, "owner");
    let person = PortalUser::new(&base(&numbers));
    person.sign_in(ADA, &password).await;
    assert!(!person.get("/portal/account").await.text.contains("asskey"));
    person.confirm(&[]).await;
    assert_eq!(person.get("/portal/account/passkeys/new").await.status, 404);
    browser.close().await;
}
