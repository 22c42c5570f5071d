//! The page at `/`, the entry to the portal, and HEAD requests.

use acceptance::{
    applicant::Applicant,
    database::Kind,
    portal_page::{assert_accessible, heading},
    portal_routes::routes,
    portal_user::{PortalUser, base, signed_in},
    service::Deployment,
};
use hyper::Method;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_landing_page_leads_to_the_portal_and_the_documentation() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let anonymous = PortalUser::new(&base(&deployment));
    let page = anonymous.get("/").await;
    assert_eq!((page.status, page.header("x-frame-options")), (200, "DENY"));
    for link in ["/portal/", "/docs/", "/v1/openapi.json"] {
        let href = format!("href=\"{}\"", link.replace('/', "&#x2f;"));
        let is_linked =
            page.text.contains(&href) || page.text.contains(&format!("href=\"{link}\""));
        assert!(is_linked, "{link}: {}", page.text);
        assert!(anonymous.get(link).await.status < 400, "{link}");
    }
    for path in ["/portal", "/portal/"] {
        assert_eq!(anonymous.get(path).await.header("location"), "/portal/overview", "{path}");
    }
    let browser = Applicant::visit(&format!("{}/", base(&deployment))).await;
    let page = browser.top_level();
    heading(&page, "Verify that applicants own their accounts").await;
    assert_accessible(&page, "landing").await;
    page.click("main a.primary").await;
    heading(&page, "Sign in").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_answers_head_like_get_without_a_body() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let owner = signed_in(&deployment, "ada@lender.example", "owner").await;
    let pages: Vec<_> = routes("get").into_iter().filter(|path| !path.contains('{')).collect();
    assert!(pages.len() > 15, "{pages:?}");
    for path in pages {
        let shown = owner.get(&path).await;
        let head = owner.send(Method::HEAD, &path, "", &[]).await;
        assert_eq!((head.status, head.text.as_str()), (shown.status, ""), "{path}");
        assert_eq!(head.header("content-type"), shown.header("content-type"), "{path}");
    }
}
