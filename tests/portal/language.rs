//! The language of the portal: the browser's preference, until a reader chooses another one.

use acceptance::{
    applicant::{Applicant, Embed},
    database::Kind,
    portal_page::{enter, heading, text},
    portal_user::{PortalUser, base, user},
    service::Deployment,
};
use hyper::Method;
use serde_json::json;

const ADA: &str = "ada@lender.example";
const LANGUAGE: &str = "document.documentElement.lang";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_german_browser_gets_german_pages_until_its_user_chooses_english() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let base = base(&deployment);
    let password = user(&deployment, &deployment.team, ADA, "owner");
    let browser = Applicant::visit("about:blank").await;
    let page = browser.top_level();
    let agent = page.evaluate("navigator.userAgent").await;
    let preference = json!({ "userAgent": agent, "acceptLanguage": "de-AT" });
    browser.devtools("Emulation.setUserAgentOverride", preference).await;
    browser.navigate(&format!("{base}/")).await;
    heading(&page, "Prüfen Sie, ob Antragstellern ihre Konten gehören").await;
    page.click("main a.primary").await;
    sign_in(&page, "wrong wrong wrong").await;
    page.until("a refusal", "document.querySelector('[role=alert]') !== null").await;
    let refusal = text(&page, "document.querySelector('[role=alert]').textContent").await;
    assert_eq!(refusal, "E-Mail-Adresse oder Passwort ist falsch.");
    sign_in(&page, &password).await;
    heading(&page, "Übersicht").await;
    page.click("nav a[href='/portal/account']").await;
    heading(&page, "Konto").await;
    let seen = text(&page, "document.querySelector('td time').title").await;
    assert!(seen.contains('.') && seen.ends_with(" UTC"), "{seen}");
    let local = text(&page, "document.querySelector('td time').textContent").await;
    assert!(local.contains('.') && local != seen, "a time in the viewer's zone: {local}");

    page.click("footer button[lang=en]").await;
    heading(&page, "Account").await;
    assert_eq!(text(&page, LANGUAGE).await, "en");
    assert_eq!(text(&page, "location.pathname").await, "/portal/account", "the same page");
    page.click("nav a[href='/portal/sessions']").await;
    heading(&page, "Sessions").await;
    page.click("header button").await;
    heading(&page, "Sign in").await;
    assert_eq!(text(&page, LANGUAGE).await, "en", "the choice outlives the sign-in");
    page.click("footer button[lang=de]").await;
    heading(&page, "Anmelden").await;
    browser.close().await;
}

async fn sign_in(page: &Embed<'_>, password: &str) {
    heading(page, "Anmelden").await;
    page.evaluate("document.getElementById('email').value = ''").await;
    enter(page, "email", ADA).await;
    enter(page, "password", password).await;
    page.click("button.primary").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_choice_is_a_cookie_and_leads_back_to_pages_of_the_portal_only() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let anonymous = PortalUser::new(&base(&deployment));
    for (preferred, language) in
        [("de", "de"), ("fr, de;q=0.1", "de"), ("en, de;q=0.9", "en"), ("tlh", "en"), ("", "en")]
    {
        let headers = [("accept-language", preferred)];
        for path in ["/", "/portal/sign-in", "/portal/forgot", "/portal/nowhere"] {
            let page = anonymous.send(Method::GET, path, "", &headers).await;
            assert_eq!(page.header("content-language"), language, "{path}, {preferred}");
            assert_eq!(page.header("vary"), "Accept-Language, Cookie", "{path}");
            assert!(page.text.contains(&format!("<html lang=\"{language}\">")), "{}", page.text);
        }
    }
    let choose = async |language: &str, next: &str| {
        anonymous.post("/portal/language", &[("language", language), ("next", next)]).await
    };
    for (next, location) in [
        ("/", "/"),
        ("/portal/sign-in?next=%2Fportal%2Fkeys", "/portal/sign-in?next=%2Fportal%2Fkeys"),
        ("//evil.example/", "/portal/overview"),
        ("https://evil.example/portal/", "/portal/overview"),
        ("/docs/", "/portal/overview"),
    ] {
        let chosen = choose("de", next).await;
        assert_eq!((chosen.status, chosen.header("location")), (303, location), "{next}");
        let cookie = chosen.header("set-cookie");
        assert!(cookie.starts_with("__Host-avouch-language=de;"), "{cookie}");
        assert!(cookie.contains("Max-Age=31536000"), "{cookie}");
    }
    let headers = [("accept-language", "en")];
    let page = anonymous.send(Method::GET, "/portal/sign-in", "", &headers).await;
    assert_eq!(page.header("content-language"), "de", "the choice is stronger");
    let forged = anonymous.post_from("/portal/sign-in", &[], &[("origin", "https://evil.example")]);
    let forged = forged.await;
    assert!(forged.status == 403 && forged.text.contains("Formular abgelaufen"), "{}", forged.text);
    assert!(!forged.text.contains("/portal/language"), "no choice on the response to a form");
    for odd in ["fr", "", "DE", "de-DE", "<b>"] {
        let refused = choose(odd, "/").await;
        assert_eq!((refused.status, refused.header("set-cookie")), (422, ""), "{odd}");
    }
}
