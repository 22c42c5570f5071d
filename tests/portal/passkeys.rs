//! Passkeys in the portal, with a real browser and a virtual authenticator.

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
const TIMEOUT: Duration = Duration::from_secs(60);

/// Starts a deployment with a host name: passkeys do not work for IP addresses.
async fn named() -> Deployment {
    let mut deployment = Deployment::prepare(Kind::Postgres).await;
    let port = base(&deployment).rsplit_once(':').unwrap().1.to_owned();
    deployment.set("AVOUCH_PUBLIC_URL", format!("http://localhost:{port}"));
    deployment.run().await;
    deployment
}

/// Adds a virtual authenticator that confirms at once; returns its identifier.
async fn authenticator(browser: &Applicant) -> Value {
    browser.devtools("WebAuthn.enable", json!({})).await;
    let options = json!({
        "protocol": "ctap2", "transport": "usb", "hasResidentKey": false,
        "hasUserVerification": false, "automaticPresenceSimulation": true,
    });
    let added = browser.devtools("WebAuthn.addVirtualAuthenticator", json!({ "options": options }));
    json!({ "authenticatorId": added.await["authenticatorId"] })
}

/// Adds a passkey; `password` reauthenticates where the user has not done so yet.
async fn add_passkey(page: &Embed<'_>, name: &str, password: Option<&str>) {
    page.click("nav a[href='/portal/account']").await;
    heading(page, "Account").await;
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
    page.until("the problem to be shown", shown).await;
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
    // The same authenticator creates no second passkey for the same user.
    add_passkey(&page, "Once more", None).await;
    until_problem(&page).await;
    page.click("nav a[href='/portal/account']").await;
    heading(&page, "Account").await;
    assert_accessible(&page, "an account with a passkey").await;
    let shown = "document.querySelector('.rows strong').textContent === 'Key <b>ring</b>'";
    assert_eq!(page.evaluate(shown).await, true);

    page.click("header button").await;
    sign_in(&page, ADA, &password).await;
    heading(&page, "Confirm your identity").await;
    assert_accessible(&page, "a passkey is asked for").await;
    page.click("form[data-passkey] button").await;
    heading(&page, "Overview").await;

    // Without the authenticator the recovery codes work.
    browser.devtools("WebAuthn.removeVirtualAuthenticator", device).await;
    page.click("header button").await;
    sign_in(&page, ADA, &password).await;
    heading(&page, "Confirm your identity").await;
    enter(&page, "code", "abcd-efgh-ijkl-mnop").await;
    page.click("form:not([data-passkey]) button").await;
    page.until("a refusal", "document.querySelector('[role=alert]:not([hidden])') !== null").await;
    enter(&page, "code", &code).await;
    page.click("form:not([data-passkey]) button").await;
    heading(&page, "Overview").await;

    page.click("nav a[href='/portal/account']").await;
    heading(&page, "Account").await;
    // The second recovery code is used: reauthentication asks for it and for the password.
    page.click(".rows summary").await;
    page.click(".rows button").await;
    heading(&page, "Confirm your identity").await;
    assert_accessible(&page, "a confirmation with a passkey").await;
    enter(&page, "code", &other).await;
    confirm(&page, &password).await;
    heading(&page, "Account").await;
    page.until("the passkey to be removed", "document.querySelector('.rows') === null").await;
    page.click("header button").await;
    sign_in(&page, ADA, &password).await;
    heading(&page, "Overview").await;
    browser.close().await;
}

/// Signs in with the password only; returns the request options of the passkey, and the id of their
/// challenge.
async fn password_only(deployment: &Deployment, password: &str) -> (PortalUser, String, String) {
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

    let (ada, options, asked) = password_only(&deployment, &password).await;
    let right = answer(&page, &options).await;
    let mut wrong: Value = serde_json::from_str(&right).unwrap();
    let signature = wrong["response"]["signature"].as_str().unwrap();
    wrong["response"]["signature"] = format!("{}AAAA", &signature[..signature.len() - 4]).into();
    // Five wrong attempts in all: a sixth would throttle the right one.
    for odd in [wrong.to_string().as_str(), &"[".repeat(20_000)] {
        assert!(!show(&ada, &asked, odd).await, "{odd:.40}");
    }
    // A challenge of one sign-in is not accepted in another, and neither is an assertion for
    // another challenge.
    let (other, _, others) = password_only(&deployment, &password).await;
    assert!(!show(&other, &asked, &right).await, "another sign-in's question");
    assert!(!show(&other, &others, &right).await, "the answer to another question");
    assert!(!show(&ada, "AAAA", &right).await);
    assert!(show(&ada, &asked, &right).await);
    // Attempts count together with those of codes and passwords.
    let refused = eventually("a refusal", TIMEOUT, async || {
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

    // Another port of the same host may request the passkey; the assertion's origin reveals it.
    let (ada, options, asked) = password_only(&deployment, &password).await;
    browser.navigate(&deployment.demo).await;
    let elsewhere = format!("location.origin === '{}'", deployment.demo);
    page.until("another origin", &elsewhere).await;
    let phished = answer(&page, &options).await;
    assert!(!show(&ada, &asked, &phished).await, "{phished}");
    let start = format!("{}/portal/sign-in", base(&deployment));
    browser.navigate(&start).await;
    heading(&page, "Sign in").await;
    let right = answer(&page, &options).await;
    assert!(show(&ada, &asked, &right).await);
    let (late, ..) = password_only(&deployment, &password).await;
    assert!(!show(&late, &asked, &right).await, "the same once more");

    // An operator restores access for a user who lost everything.
    let (lost, ..) = password_only(&deployment, &password).await;
    deployment.admin(&["drop-second-factor", "--email", ADA]);
    assert_eq!(lost.get("/portal/overview").await.status, 303);
    let found = PortalUser::new(&base(&deployment));
    assert_eq!(found.sign_in(ADA, &password).await.header("location"), "/portal/overview");
    assert_eq!(found.get("/portal/overview").await.status, 200);

    // Under an IP address there are no passkeys, and the pages offer none.
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
