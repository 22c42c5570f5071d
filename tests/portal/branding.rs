//! A team's brand on its applicants' pages and in their mails.

use acceptance::{
    applicant::Applicant,
    database::Kind,
    portal_page::{assert_accessible, heading, sign_in},
    portal_user::{PortalUser, base, mail_with, signed_in, user},
    service::Deployment,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

const BRANDING: &str = "/portal/branding";
const LOGO: &str = "/portal/branding/logo";
const OLGA: &str = "olga@lender.example";
/// A PNG of one pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// The address and the text of the visible link to the privacy policy.
const POLICY: &str = "(({ hidden, firstElementChild: { href, textContent } }) => \
    hidden ? null : [href, textContent])(document.getElementById('intro-privacy'))";
const BUTTON: &str = "getComputedStyle(document.getElementById('start')).backgroundColor";

fn png() -> Vec<u8> {
    STANDARD.decode(PNG).unwrap()
}

/// Creates a session whose link is mailed; returns the link.
async fn invited(deployment: &Deployment, address: &str) -> String {
    let order = json!({ "notificationPlatformId": 1, "senderName": "Lender",
        "receiverData": { "email": address, "locale": "de" } });
    let session = deployment.create(&order).await;
    session["embedUrl"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_applicants_page_and_mail_show_the_teams_brand() {
    let deployment = Deployment::start(Kind::Postgres).await;
    let owner = signed_in(&deployment, OLGA, "owner").await;
    let plain = invited(&deployment, "plain@example.com").await;
    let mail = mail_with(&deployment, "plain@example.com", "background:#1f4fd8").await;
    assert!(!mail.contains("cid:logo"), "{mail}");
    let look = [
        ("name", "Lender & <Sons>"),
        ("colour", "#A01050"),
        ("privacy_url", "https://lender.example/privacy?for=applicants&lang=en"),
    ];
    let saved = owner.fill(BRANDING, BRANDING, &look).await;
    assert_eq!((saved.status, saved.header("location")), (303, "/portal/branding?done=branding"));
    let page = owner.get(saved.header("location")).await;
    assert!(page.text.contains("role=\"status\">Branding saved."), "{}", page.text);
    let forged = owner.get("/portal/branding?done=Call+us+at+555").await;
    assert!(forged.status == 200 && !forged.text.contains("role=\"status\""), "{}", forged.text);
    assert_eq!(owner.upload(BRANDING, LOGO, &png()).await.status, 303);

    let link = invited(&deployment, "ada@example.com").await;
    let mail = mail_with(&deployment, "ada@example.com", "background:#a01050").await;
    for part in ["multipart/related", "Content-ID: <logo>", "src=\"cid:logo\"", &PNG[..60]] {
        assert!(mail.contains(part), "{part}: {mail}");
    }
    assert!(mail.contains("alt=\"Lender &amp; &lt;Sons&gt;\""), "{mail}");

    // A session that existed before shows the brand, too: it belongs to the same team.
    for link in [&link, &plain] {
        let applicant = Applicant::visit(link).await;
        let page = applicant.top_level();
        page.until("the start", "document.getElementById('start')?.hidden === false").await;
        assert_eq!(
            page.evaluate("document.documentElement.lang").await,
            "de",
            "the language of the mail"
        );
        let name = page.evaluate("document.getElementById('brand').textContent").await;
        assert_eq!(name, "Lender & <Sons>");
        assert_eq!(page.evaluate(BUTTON).await, "rgb(160, 16, 80)");
        let policy = json!([
            "https://lender.example/privacy?for=applicants&lang=en",
            "Datenschutzerklärung von \u{2068}Lender & <Sons>\u{2069}"
        ]);
        assert_eq!(page.evaluate(POLICY).await, policy);
        page.until("the logo", "document.querySelector('#brand img').naturalWidth === 1").await;
        assert_accessible(&page, "the applicant's page").await;
        applicant.close().await;
    }
    without_link_or_of_another_team(&deployment, &owner, &link).await;
}

/// The brand is not shown without a valid link, and not for other teams.
async fn without_link_or_of_another_team(deployment: &Deployment, owner: &PortalUser, link: &str) {
    let anonymous = PortalUser::new("");
    let (address, _) = link.split_once('?').unwrap();
    for link in [address.to_owned(), format!("{address}?token=made-up")] {
        let page = anonymous.get(&link).await;
        assert!(page.status == 200 && !page.text.contains("Sons"), "{}", page.text);
    }
    let logo = link.replace('?', "/logo?");
    let shown = anonymous.get(&logo).await;
    assert_eq!((shown.status, shown.header("content-type")), (200, "image/png"));
    assert_eq!(shown.header("x-content-type-options"), "nosniff");
    assert_eq!(anonymous.get(&logo.replace("token=", "token=x")).await.status, 404);
    let team = deployment.admin(&["create-team", "Another"])["teamId"].clone();
    let key = ["create-key", "--team", team.as_str().unwrap(), "--environment", "development"];
    let key = deployment.admin(&key)["apiKey"].as_str().unwrap().to_owned();
    let theirs = deployment.partner.with_key(Some(&key)).create(&json!({})).await;
    let theirs = theirs.at("/data/embedUrl").as_str().unwrap().to_owned();
    assert!(!anonymous.get(&theirs).await.text.contains("Sons"));

    assert_eq!(owner.fill(BRANDING, "/portal/branding/logo/remove", &[]).await.status, 303);
    assert_eq!(anonymous.get(&logo).await.status, 404);
    assert!(anonymous.get(link).await.text.contains("Sons"), "the name stays");
    assert_eq!(owner.fill(BRANDING, BRANDING, &[]).await.status, 303);
    let page = anonymous.get(link).await.text;
    assert!(!page.contains("Sons") && !page.contains("lender.example/privacy"), "{page}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_owners_change_a_brand_and_its_values_are_bounded() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let owner = signed_in(&deployment, "ada@lender.example", "owner").await;
    let member = signed_in(&deployment, "bob@lender.example", "member").await;
    for path in [BRANDING, "/portal/branding/logo/remove"] {
        assert_eq!(member.fill("/portal/account", path, &[]).await.status, 403, "{path}");
    }
    assert_eq!(member.upload("/portal/account", LOGO, &png()).await.status, 403);
    assert_eq!(member.get(BRANDING).await.status, 200);
    for odd in [
        ("name", "a\r\nBcc: all@example.org"),
        ("name", &"é".repeat(61)),
        ("colour", "red"),
        ("colour", "#ffffff"),
        ("colour", "#000000;background:url(https://evil.example)"),
        ("privacy_url", "http://lender.example/privacy"),
        ("privacy_url", "javascript:alert(1)"),
        ("privacy_url", &format!("https://lender.example/{}", "p".repeat(2048))),
    ] {
        assert_eq!(owner.fill(BRANDING, BRANDING, &[odd]).await.status, 422, "{odd:?}");
    }
    let large = [png(), vec![0; 10_000]].concat();
    let huge = [png(), vec![0; 300_000]].concat();
    for odd in [&b""[..], b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"GIF89a", &large, &huge] {
        assert_eq!(owner.upload(BRANDING, LOGO, odd).await.status, 422, "{} bytes", odd.len());
    }
    assert_eq!(owner.get(LOGO).await.status, 404, "no logo was stored");
    // A form with a file is subject to the same origin checks.
    let body = "--edge\r\ncontent-disposition: form-data; name=\"logo\"\r\n\r\nx\r\n--edge--\r\n";
    let kind = ("content-type", "multipart/form-data; boundary=edge");
    for headers in
        [vec![kind, ("origin", owner.base.as_str())], vec![kind, ("sec-fetch-site", "cross-site")]]
    {
        let answer = owner.send(hyper::Method::POST, LOGO, body, &headers).await;
        assert_eq!(answer.status, 403, "{headers:?}");
    }

    let password = user(&deployment, &deployment.team, OLGA, "owner");
    let browser = Applicant::visit(&format!("{}{BRANDING}", base(&deployment))).await;
    let page = browser.top_level();
    sign_in(&page, OLGA, &password).await;
    heading(&page, "Branding").await;
    assert_accessible(&page, "no branding").await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("logo.png");
    std::fs::write(&file, png()).unwrap();
    let input = browser
        .devtools("Runtime.evaluate", json!({ "expression": "document.getElementById('logo')" }))
        .await;
    let chosen = json!({ "objectId": input["result"]["objectId"], "files": [file] });
    browser.devtools("DOM.setFileInputFiles", chosen).await;
    page.click("section form button:not(.plain)").await;
    page.until("the logo", "document.querySelector('img.logo')?.naturalWidth === 1").await;
    assert_accessible(&page, "branding").await;
    let log = owner.get("/portal/audit/entries.jsonl").await.text;
    assert!(log.contains("branding.logo"), "{log}");
    assert_eq!(page.evaluate("document.querySelector('[role=alert]')").await, Value::Null);
    browser.close().await;
}
