//! Every page of the portal that a link leads to is accessible, in light and dark mode, in English and
//! on a phone in German, and small.

use std::collections::BTreeSet;

use acceptance::{
    applicant::{Applicant, Embed},
    database::Kind,
    portal_page::{assert_accessible, enter, heading, text},
    portal_user::{base, signed_in, user},
    service::Deployment,
};
use serde_json::json;

/// The size of a page with everything it fetches, in bytes.
const MAX_PAGE_BYTES: f64 = 100_000.0;
const PAGE_BYTES: &str = "[...performance.getEntriesByType('navigation'), \
    ...performance.getEntriesByType('resource')].reduce((sum, entry) => sum + entry.encodedBodySize, 0)";
const LINKS: &str = "[...document.querySelectorAll('a[href^=\"/portal\"]:not([download])')] \
    .filter((a) => a.pathname !== '/portal' && a.pathname !== '/portal/').map((a) => a.pathname).join(' ')";
const LOADED: &str = "document.readyState === 'complete'";
const LANGUAGE: &str = "document.documentElement.lang";
/// What is wider than the screen, without what scrolls in an element of its own.
const TOO_WIDE: &str = "document.documentElement.scrollWidth <= innerWidth ? '' : \
    [...document.querySelectorAll('body *')].filter((e) => !e.closest('.wide, .plot, pre, nav') && \
    e.getBoundingClientRect().right > innerWidth).map((e) => e.outerHTML.slice(0, 80)).join(' ') || 'the page'";

/// Who visits the pages.
struct Reader {
    email: &'static str,
    role: &'static str,
    /// The number of pages that the reader sees at least.
    least: usize,
    /// In CSS pixels.
    width: u32,
    language: &'static str,
    /// The titles of the pages on the way: sign-in, start page, confirmation, authenticator app.
    titles: [&'static str; 4],
}

const ENGLISH: [&str; 4] =
    ["Sign in", "Overview", "Confirm your identity", "Set up two-factor authentication"];
const GERMAN: [&str; 4] =
    ["Anmelden", "Übersicht", "Identität bestätigen", "Zwei-Faktor-Authentifizierung einrichten"];
const READERS: [Reader; 3] = [
    Reader {
        email: "olga@lender.example",
        role: "owner",
        least: 16,
        width: 1280,
        language: "en",
        titles: ENGLISH,
    },
    Reader {
        email: "op@avouch.example",
        role: "operator",
        least: 14,
        width: 1280,
        language: "en",
        titles: ENGLISH,
    },
    Reader {
        email: "otto@lender.example",
        role: "owner",
        least: 16,
        width: 390,
        language: "de",
        titles: GERMAN,
    },
];

/// Opens every page that is reachable by links; returns their paths.
async fn visited(page: &Embed<'_>, base: &str, reader: &Reader) -> BTreeSet<String> {
    let mut known = BTreeSet::from(["/portal/overview".to_owned(), "/portal/nowhere".to_owned()]);
    let mut open: Vec<_> = known.iter().cloned().collect();
    while let Some(path) = open.pop() {
        let url = format!("{base}{path}");
        page.applicant.navigate(&url).await;
        let there = format!("{LOADED} && location.pathname === {path:?}");
        page.until(&path, &there).await;
        let weight = page.evaluate(PAGE_BYTES).await.as_f64().unwrap();
        println!("{path}: {weight} bytes");
        assert!(weight > 0.0 && weight < MAX_PAGE_BYTES, "{path}: {weight} bytes");
        assert_eq!(text(page, LANGUAGE).await, reader.language, "{path}");
        assert_eq!(text(page, TOO_WIDE).await, "", "{path} is {} pixels wide", reader.width);
        let shot = format!("{} {}{}", reader.language, reader.role, path.replace('/', "-"));
        assert_accessible(page, &shot).await;
        for link in text(page, LINKS).await.split_whitespace() {
            if known.insert(link.to_owned()) {
                open.push(link.to_owned());
            }
        }
        assert!(known.len() < 100, "the number of pages is bounded: {known:?}");
    }
    known
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_linked_page_is_accessible_and_small() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let base = base(&deployment);
    let member = signed_in(&deployment, "bob@lender.example", "member").await;
    let session = deployment.create(&json!({ "externalReferenceId": "loan-7" })).await;
    let session = format!("browser-session/{}", session["sessionId"].as_str().unwrap());
    deployment.partner.delete(&session).await;
    deployment.admin(&[
        "create-receiver",
        "--team",
        &deployment.team,
        "--email",
        "ada@example.com",
    ]);
    let words = [
        ("name", "Ours"),
        ("language", "en"),
        ("subject", "{{ sender }} asks"),
        ("body", "[Confirm]({{ link }})"),
    ];
    let draft = member.fill("/portal/templates", "/portal/templates", &words).await;
    let draft = draft.header("location").to_owned();
    assert_eq!(
        member.fill(&draft, &format!("{draft}/submit"), &[("revision", "1")]).await.status,
        303
    );

    for reader in READERS {
        let password = user(&deployment, &deployment.team, reader.email, reader.role);
        let browser = Applicant::visit("about:blank").await;
        let page = browser.top_level();
        let open = async |path: &str| {
            let url = format!("{base}{path}");
            browser.navigate(&url).await;
        };
        let agent = page.evaluate("navigator.userAgent").await;
        let preference = json!({ "userAgent": agent, "acceptLanguage": reader.language });
        browser.devtools("Emulation.setUserAgentOverride", preference).await;
        let screen = json!({ "width": reader.width, "height": 1000, "deviceScaleFactor": 1,
            "mobile": false });
        browser.devtools("Emulation.setDeviceMetricsOverride", screen).await;
        open("/portal/forgot").await;
        page.until("the page", &format!("{LOADED} && location.pathname === '/portal/forgot'"))
            .await;
        assert_accessible(&page, &format!("{} forgot", reader.language)).await;
        open("/portal").await;
        let [sign_in, overview, confirm, authenticator] = reader.titles;
        heading(&page, sign_in).await;
        enter(&page, "email", reader.email).await;
        enter(&page, "password", &password).await;
        page.click("button.primary").await;
        heading(&page, overview).await;
        // Some pages are shown only after reauthentication.
        open("/portal/account/second-factor").await;
        heading(&page, confirm).await;
        assert_accessible(&page, &format!("{} confirm", reader.language)).await;
        enter(&page, "password", &password).await;
        page.click("main form:not([data-passkey]) button").await;
        heading(&page, authenticator).await;
        let pages = visited(&page, &base, &reader).await;
        println!("{}, {}: {} pages", reader.role, reader.language, pages.len());
        assert!(pages.len() >= reader.least, "{pages:?}");
        browser.close().await;
    }
}
