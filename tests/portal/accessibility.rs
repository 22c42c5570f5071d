//! Every page of the portal that a link leads to is accessible, in light and dark mode, and small.

use std::collections::BTreeSet;

use acceptance::{
    applicant::{Applicant, Embed},
    database::Kind,
    portal_page::{assert_accessible, confirm, heading, sign_in, text},
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

/// Opens every page that is reachable by links; returns their paths.
async fn visited(page: &Embed<'_>, base: &str, who: &str) -> BTreeSet<String> {
    let mut known = BTreeSet::from(["/portal/overview".to_owned(), "/portal/nowhere".to_owned()]);
    let mut open: Vec<_> = known.iter().cloned().collect();
    while let Some(path) = open.pop() {
        let url = format!("{base}{path}");
        page.applicant.devtools("Page.navigate", json!({ "url": url })).await;
        let there = format!("{LOADED} && location.pathname === {path:?}");
        page.until(&path, &there).await;
        let weight = page.evaluate(PAGE_BYTES).await.as_f64().unwrap();
        println!("{path}: {weight} bytes");
        assert!(weight > 0.0 && weight < MAX_PAGE_BYTES, "{path}: {weight} bytes");
        assert_accessible(page, &format!("{who}{}", path.replace('/', "-"))).await;
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

    for (email, role, least) in
        [("olga@lender.example", "owner", 16), ("op@avouch.example", "operator", 14)]
    {
        let password = user(&deployment, &deployment.team, email, role);
        let browser = Applicant::visit(&format!("{base}/portal/forgot")).await;
        let page = browser.top_level();
        page.until("the page", LOADED).await;
        assert_accessible(&page, "forgot").await;
        browser.devtools("Page.navigate", json!({ "url": format!("{base}/portal") })).await;
        heading(&page, "Sign in").await;
        sign_in(&page, email, &password).await;
        heading(&page, "Overview").await;
        // Some pages are shown only after reauthentication.
        let factor = format!("{base}/portal/account/second-factor");
        browser.devtools("Page.navigate", json!({ "url": factor })).await;
        heading(&page, "Confirm your identity").await;
        assert_accessible(&page, "confirm").await;
        confirm(&page, &password).await;
        heading(&page, "Set up two-factor authentication").await;
        let pages = visited(&page, &base, role).await;
        println!("{role}: {} pages", pages.len());
        assert!(pages.len() >= least, "{pages:?}");
        browser.close().await;
    }
}
