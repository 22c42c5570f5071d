//! Applicants unsubscribe from mail: by one click in their mail program (RFC 8058) and on a page,
//! and what happens to the links that partners send afterwards.

use std::{collections::BTreeSet, time::Duration};

use acceptance::{
    applicant::Applicant,
    database::Kind,
    eventually,
    mail_server::Server,
    portal_page::{assert_accessible, text},
    portal_user::{PortalUser, signed_in},
    service::Deployment,
};
use serde_json::json;

const TIMEOUT: Duration = Duration::from_secs(60);
const ADA: &str = "ada@example.com";
/// The body that a mail program posts (RFC 8058, section 3.2).
const ONE_CLICK: &[(&str, &str)] = &[("List-Unsubscribe", "One-Click")];

async fn mailing(server: &Server, public: Option<&str>) -> Deployment {
    let mut deployment = Deployment::prepare(Kind::Postgres).await;
    deployment.set("AVOUCH_SMTP_URL", server.url());
    deployment.set("AVOUCH_SMTP_ROOTS", server.roots());
    deployment.set("AVOUCH_MAIL_FROM", "no-reply@avouch.example");
    if let Some(public) = public {
        deployment.set("AVOUCH_PUBLIC_URL", public);
    }
    deployment.run().await;
    deployment
}

/// Creates a session whose link is mailed to this address; returns the session's identifier.
async fn invite(deployment: &Deployment, address: &str) -> String {
    let receiver = json!({ "email": address, "locale": "de-AT" });
    let order = json!({ "notificationPlatformId": 1, "receiverData": receiver });
    deployment.create(&order).await["sessionId"].as_str().unwrap().to_owned()
}

/// Returns the unsubscribe URL of a mail to this address, which is in its header and its body.
async fn unsubscribe_url(server: &Server, address: &str) -> String {
    let mail = eventually("a mail", TIMEOUT, async || {
        server.mails().into_iter().find(|mail| mail["to"] == json!([address]))
    })
    .await;
    let header = mail["headers"]["list-unsubscribe"].as_str().unwrap().to_owned();
    let url = header.trim_start_matches('<').trim_end_matches('>');
    for part in ["text", "html"] {
        let part = mail[part].as_str().unwrap().replace("&#x2f;", "/");
        assert!(part.contains(url), "{part}");
    }
    url.to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_click_unsubscribes_from_a_teams_mail() {
    let server = Server::start().await;
    let deployment = mailing(&server, Some("https://avouch.example")).await;
    let partner = &deployment.partner;
    let first = invite(&deployment, ADA).await;
    partner.until_notification(&first, "NotificationSent", None).await;
    let url = unsubscribe_url(&server, ADA).await;
    let headers = server.mails()[0]["headers"].clone();
    assert_eq!(headers["list-unsubscribe-post"], "List-Unsubscribe=One-Click");
    let path = url.strip_prefix("https://avouch.example").unwrap();
    let here = deployment.setting("AVOUCH_LISTEN").unwrap();
    let program = PortalUser::new(&format!("http://{here}"));

    // Mail scanners that follow the link change nothing.
    for _ in 0..20 {
        assert_eq!(program.get(path).await.status, 200);
    }
    let second = invite(&deployment, "Ada@Example.com").await;
    partner.until_notification(&second, "NotificationSent", None).await;

    // The response is neither a page with a question nor a redirect (RFC 8058).
    let answer = program.post_from(path, ONE_CLICK, &[]).await;
    assert_eq!((answer.status, answer.header("location")), (200, ""));
    assert_eq!(program.post_from(path, ONE_CLICK, &[]).await.status, 200, "once more");
    let third = invite(&deployment, "ADA@example.com").await;
    partner.until_notification(&third, "NotificationFailed", Some("unsubscribed")).await;
    let beside = invite(&deployment, "bob@example.com").await;
    partner.until_notification(&beside, "NotificationSent", None).await;
    assert_eq!(deployment.session(&third).await["status"], "CREATED", "the partner has its link");

    // Another team counts as another sender.
    let team = deployment.admin(&["create-team", "Other"]);
    let team = team["teamId"].as_str().unwrap();
    let key = deployment.admin(&["create-key", "--team", team, "--environment", "development"]);
    let other = partner.with_key(Some(key["apiKey"].as_str().unwrap()));
    let order = json!({ "notificationPlatformId": 1, "receiverData": { "email": ADA } });
    let theirs = other.create(&order).await.at("/data/sessionId").as_str().unwrap().to_owned();
    other.until_notification(&theirs, "NotificationSent", None).await;
    let mails = server.mails();
    let ways = mails.iter().map(|mail| mail["headers"]["list-unsubscribe"].as_str());
    let ways: BTreeSet<_> = ways.map(|way| way.unwrap().split('?').next()).collect();
    assert_eq!(ways.len(), 3, "one unsubscribe address for each address of each team: {ways:?}");

    let (name, language) = path.split_once('?').unwrap();
    assert_eq!(program.post(&format!("{name}/undo?{language}"), &[("", "")]).await.status, 200);
    let fourth = invite(&deployment, ADA).await;
    partner.until_notification(&fourth, "NotificationSent", None).await;
    let arrived = |address: &str| {
        let mails = server.mails();
        mails.iter().filter(|mail| mail["to"] == json!([address])).count()
    };
    assert_eq!((arrived(ADA), arrived("ADA@example.com")), (3, 0));

    for odd in [&name[..name.len() - 1], &format!("{name}A"), "/unsubscribe/%22%3E%3Cscript%3E"] {
        for answer in [program.get(odd).await, program.post_from(odd, ONE_CLICK, &[]).await] {
            assert_eq!(answer.status, 404, "{odd}");
            let page = answer.text;
            assert!(page.contains("<html") && !page.contains("<script"), "{page}");
        }
    }
    let log = std::fs::read_to_string(deployment.log()).unwrap().to_lowercase();
    assert!(!log.contains(ADA), "no address is logged");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_unsubscribe_page_asks_first_and_can_be_undone() {
    let server = Server::start().await;
    let deployment = mailing(&server, None).await;
    let owner = signed_in(&deployment, "olga@lender.example", "owner").await;
    let look = [("name", "Lender & <Sons>"), ("colour", "")];
    assert_eq!(owner.fill("/portal/branding", "/portal/branding", &look).await.status, 303);
    let first = invite(&deployment, ADA).await;
    deployment.partner.until_notification(&first, "NotificationSent", None).await;
    let url = unsubscribe_url(&server, ADA).await;
    let post = &server.mails()[0]["headers"]["list-unsubscribe-post"];
    assert!(post.is_null(), "no one-click header without HTTPS");

    let applicant = Applicant::visit(&url).await;
    let page = applicant.top_level();
    page.until("the question", "document.querySelector('form button') !== null").await;
    assert_accessible(&page, "the question").await;
    assert_eq!(
        page.evaluate("document.documentElement.lang").await,
        "de",
        "the language of the mail"
    );
    assert_eq!(text(&page, "document.querySelector('header').innerText").await, "Lender & <Sons>");
    page.click("form button").await;
    page.until("the end", "document.querySelector('[action*=undo]') !== null").await;
    assert_accessible(&page, "the end").await;
    let second = invite(&deployment, ADA).await;
    let partner = &deployment.partner;
    partner.until_notification(&second, "NotificationFailed", Some("unsubscribed")).await;
    page.click("form button").await;
    page.until("the undo", "document.querySelector('[action*=undo]') === null").await;
    assert_accessible(&page, "the undo").await;
    let third = invite(&deployment, ADA).await;
    partner.until_notification(&third, "NotificationSent", None).await;
    applicant.close().await;
}
