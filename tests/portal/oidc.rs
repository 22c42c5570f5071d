//! Signing in to the portal with a real OpenID Connect provider.

use std::{
    process::{Child, Command, Stdio},
    time::Duration,
};

use acceptance::{
    applicant::{Applicant, Embed},
    database::Kind,
    eventually, free_port,
    portal_page::{assert_accessible, enter, heading, text},
    portal_user::{PortalUser, base, code_at, now, user},
    root,
    service::Deployment,
};
use serde_json::json;

const ADA: &str = "ada@lender.example";
const EVE: &str = "eve@lender.example";

struct Provider {
    port: u16,
    process: Child,
}

impl Provider {
    async fn start(callback: &str) -> Self {
        let port = free_port();
        let mut node = Command::new("node");
        node.arg(root().join("tests/oidc/server.mjs")).arg(port.to_string()).arg(callback);
        let process = node.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let provider = Self { port, process };
        eventually("the provider", Duration::from_secs(60), async || {
            tokio::net::TcpStream::connect(("127.0.0.1", port)).await.ok()
        })
        .await;
        provider
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts a deployment with a provider and one user in its team.
async fn deployment(kind: Kind) -> (Deployment, Provider) {
    let mut deployment = Deployment::prepare(kind).await;
    // The deployment has another host name than the provider, so that they share no cookies.
    let port = base(&deployment).rsplit_once(':').unwrap().1.to_owned();
    deployment.set("AVOUCH_PUBLIC_URL", format!("http://localhost:{port}"));
    let provider = Provider::start(&format!("{}/portal/sign-in/back", base(&deployment))).await;
    deployment.set("AVOUCH_OIDC_ISSUER", format!("http://127.0.0.1:{}", provider.port));
    deployment.set("AVOUCH_OIDC_CLIENT_ID", "avouch");
    deployment.set("AVOUCH_OIDC_CLIENT_SECRET", "a-secret-of-two");
    deployment.set("AVOUCH_OIDC_NAME", "Lender & Sons");
    deployment.run().await;
    user(&deployment, &deployment.team, ADA, "owner");
    (deployment, provider)
}

/// Goes from a page of the portal to the provider, and returns signed in there under this name.
async fn sign_in_at_provider(browser: &Applicant, deployment: &Deployment, name: &str) {
    let page = browser.top_level();
    let keys = format!("{}/portal/keys", base(deployment));
    browser.devtools("Network.clearBrowserCookies", json!({})).await;
    browser.navigate(&keys).await;
    heading(&page, "Sign in").await;
    page.click("a.button").await;
    answer_provider(browser, deployment, name).await;
}

/// Signs in at the provider under this name, and returns to the portal.
async fn answer_provider(browser: &Applicant, deployment: &Deployment, name: &str) {
    let page = browser.top_level();
    page.until("the provider", "document.querySelector('input[name=login]') !== null").await;
    fill(browser, &page, "login", name).await;
    fill(browser, &page, "password", "whatever").await;
    page.click("button[type=submit]").await;
    // The provider asks once for consent to the requested claims.
    let consent = "document.querySelector('input[name=prompt][value=consent]') !== null";
    let back = format!("location.origin === '{}'", base(deployment));
    page.until("the provider's question", &format!("{consent} || {back}")).await;
    if page.evaluate(consent).await == true {
        page.click("button[type=submit]").await;
    }
    page.until("the portal", &back).await;
}

async fn fill(browser: &Applicant, page: &Embed<'_>, name: &str, value: &str) {
    page.click(&format!("input[name={name}]")).await;
    browser.write(value).await;
}

async fn is_refused(page: &Embed<'_>, text: &str) {
    heading(page, "Sign in").await;
    let told = format!("document.querySelector('[role=alert]')?.textContent.includes({text:?})");
    page.until(text, &told).await;
    assert_eq!(page.evaluate("location.pathname === '/portal/sign-in/back'").await, true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_signs_in_with_an_identity_provider() {
    let (deployment, _provider) = deployment(Kind::Postgres).await;
    let browser = Applicant::visit(&format!("{}/portal", base(&deployment))).await;
    let page = browser.top_level();
    heading(&page, "Sign in").await;
    assert_accessible(&page, "sign-in with a provider").await;
    let shown = text(&page, "document.querySelector('a.button').textContent").await;
    assert_eq!(shown, "Sign in with Lender & Sons");

    sign_in_at_provider(&browser, &deployment, "ada").await;
    // The portal continues to the page that was requested first.
    heading(&page, "API keys").await;
    let whose = "document.body.textContent.includes('ada@lender.example')";
    assert_eq!(page.evaluate(whose).await, true);
    // The second sign-in is recognised by the provider's subject for the user.
    sign_in_at_provider(&browser, &deployment, "ada").await;
    heading(&page, "API keys").await;

    sign_in_at_provider(&browser, &deployment, "nobody").await;
    is_refused(&page, "Ask an owner of your team").await;
    user(&deployment, &deployment.team, EVE, "viewer");
    sign_in_at_provider(&browser, &deployment, "mallory").await;
    is_refused(&page, "isn't verified").await;
    sign_in_at_provider(&browser, &deployment, "successor").await;
    is_refused(&page, "Ask an owner of your team").await;
    sign_in_at_provider(&browser, &deployment, "eve").await;
    heading(&page, "API keys").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_factor_is_still_required_after_the_provider() {
    let (deployment, _provider) = deployment(Kind::Sqlite).await;
    let browser = Applicant::visit(&format!("{}/portal", base(&deployment))).await;
    let page = browser.top_level();
    sign_in_at_provider(&browser, &deployment, "ada").await;
    heading(&page, "API keys").await;
    page.click("nav a[href='/portal/account']").await;
    heading(&page, "Account").await;
    // A sign-in at the provider may be hours old: it asks again before a change.
    page.click("a[href='/portal/account/second-factor']").await;
    heading(&page, "Confirm your identity").await;
    assert_accessible(&page, "a confirmation at the provider").await;
    page.click("main a.button").await;
    answer_provider(&browser, &deployment, "ada").await;
    heading(&page, "Set up two-factor authentication").await;
    let secret = text(&page, "document.querySelector('code.secret').textContent").await;
    enter(&page, "code", &code_at(&secret, now())).await;
    page.click("button.primary").await;
    heading(&page, "Recovery codes").await;
    sign_in_at_provider(&browser, &deployment, "ada").await;
    heading(&page, "Confirm your identity").await;
    enter(&page, "code", &code_at(&secret, now() + 30)).await;
    page.click("form:not([data-passkey]) button").await;
    heading(&page, "API keys").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forged_callback_signs_no_user_in() {
    let (deployment, provider) = deployment(Kind::Sqlite).await;
    let person = PortalUser::new(&base(&deployment));
    // Callbacks for a sign-in that another browser, or none, has started.
    for link in ["", "?state=x&code=y", "?error=access_denied&state=x", "?code=%00&state=%ff"] {
        let back = person.get(&format!("/portal/sign-in/back{link}")).await;
        assert!(back.status >= 400 && person.cookie().is_none(), "{link}: {}", back.status);
    }
    let away = person.get("/portal/sign-in/away?next=//evil.example/portal/").await;
    let location = away.header("location").to_owned();
    assert!(location.starts_with(&format!("http://127.0.0.1:{}/auth?", provider.port)));
    assert!(!location.contains("evil"), "{location}");
    let state = location.split("state=").nth(1).unwrap().split('&').next().unwrap();
    // A code that the provider did not issue; then the same from another browser.
    for other in [&person, &PortalUser::new(&base(&deployment))] {
        let back = other.get(&format!("/portal/sign-in/back?code=made-up&state={state}")).await;
        assert!(back.status >= 400 && other.cookie().unwrap_or_default().is_empty());
    }
    drop(provider);
    let gone = person.get("/portal/sign-in/away").await;
    assert!(gone.status >= 400 && gone.text.contains("temporarily unavailable"), "{}", gone.text);
    let none = Deployment::start(Kind::Sqlite).await;
    let stranger = PortalUser::new(&base(&none));
    assert!(!stranger.get("/portal/sign-in").await.text.contains("Sign in with"));
    assert_eq!(stranger.get("/portal/sign-in/away").await.status, 404);
    assert_eq!(stranger.get("/portal/sign-in/back?state=x&code=y").await.status, 404);
}
