//! The portal in a real browser: a first sign-in, keys, a second factor, the audit log, sessions,
//! and pages without scripts.

use std::time::Duration;

use acceptance::{
    applicant::{Applicant, Embed},
    database::Kind,
    eventually,
    portal_page::{assert_accessible, confirm, enter, heading, sign_in, text},
    portal_user::{PortalUser, base, code_at, now, signed_in, status_with, user},
    service::Deployment,
};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

const ADA: &str = "ada@lender.example";

/// Goes from the first sign-in to a revoked key by mouse and keyboard.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_creates_rotates_and_revokes_a_key_with_a_second_factor() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let password = user(&deployment, &deployment.team, ADA, "owner");
    let browser = Applicant::visit(&format!("{}/portal", base(&deployment))).await;
    let page = browser.top_level();
    heading(&page, "Sign in").await;
    assert_accessible(&page, "sign-in").await;
    sign_in(&page, ADA, "not this one, I think").await;
    page.until("a refusal", "document.querySelector('[role=alert]') !== null").await;
    assert_accessible(&page, "a refusal").await;
    // The address that was entered is still in its field.
    enter(&page, "password", &password).await;
    page.click("button.primary").await;
    heading(&page, "Overview").await;
    assert_accessible(&page, "nothing yet").await;
    page.click("nav a[href='/portal/keys']").await;
    heading(&page, "API keys").await;
    assert_accessible(&page, "keys").await;

    enter(&page, "label", "Loan <b>desk</b>").await;
    page.click("main .primary").await;
    heading(&page, "API key created").await;
    assert_accessible(&page, "a key").await;
    let key = text(&page, "document.getElementById('secret').value").await;
    assert!(key.starts_with("avk_dev_"), "{key}");
    assert_eq!(status_with(&deployment, &key).await, 200);
    page.click("a.button").await;
    heading(&page, "API keys").await;
    assert_eq!(page.evaluate("document.body.textContent.includes('Loan <b>desk</b>')").await, true);
    assert_eq!(
        page.evaluate("document.documentElement.outerHTML.includes('avk_dev_')").await,
        false
    );

    page.click("tbody tr:first-child details summary").await;
    page.click("tbody tr:first-child details button").await;
    heading(&page, "API key rotated").await;
    let rotated = text(&page, "document.getElementById('secret').value").await;
    assert_eq!(status_with(&deployment, &key).await, 401, "the old one, at once");
    assert_eq!(status_with(&deployment, &rotated).await, 200);
    page.click("a.button").await;
    let used = "document.querySelector('tbody tr:first-child td:nth-child(6) time') !== null || (location.reload(), false)";
    eventually("the last use", Duration::from_secs(60), async || {
        tokio::time::sleep(Duration::from_secs(1)).await;
        heading(&page, "API keys").await;
        (page.evaluate(used).await == true).then_some(())
    })
    .await;
    page.click("tbody tr:first-child details:nth-of-type(2) summary").await;
    page.click("tbody tr:first-child details:nth-of-type(2) button").await;
    page.until("the key to be revoked", "document.querySelector('.state.revoked') !== null").await;
    assert_eq!(status_with(&deployment, &rotated).await, 401);

    let codes = second_factor(&page, &password).await;
    sign_in_with_codes(&page, &password, &codes).await;
    page.click("nav a[href='/portal/audit']").await;
    heading(&page, "Audit log").await;
    assert_accessible(&page, "audit").await;
    let done = text(&page, "[...document.querySelectorAll('tbody code:not([title])')].map((c) => c.textContent).join(' ')").await;
    assert_eq!(
        done,
        "sign-in sign-in.refused sign-in sign-in.refused second-factor.keep sign-in.confirm key.revoke key.rotate \
         key.make sign-in sign-in.refused person.add"
    );
    browser.close().await;
}

/// The second factor's secrets, as its owner would note them.
struct Codes {
    secret: String,
    /// A code that was used already.
    used: String,
    recovery: Vec<Value>,
}

/// Sets up one-time codes.
async fn second_factor(page: &Embed<'_>, password: &str) -> Codes {
    page.click("nav a[href='/portal/account']").await;
    heading(page, "Account").await;
    assert_accessible(page, "account").await;
    page.click("a.primary").await;
    heading(page, "Confirm your identity").await;
    assert_accessible(page, "a confirmation").await;
    confirm(page, password).await;
    heading(page, "Set up two-factor authentication").await;
    assert_accessible(page, "a second factor").await;
    let secret = text(page, "document.querySelector('code.secret').textContent").await;
    enter(page, "code", "000000").await;
    page.click("button.primary").await;
    page.until("a refusal", "document.querySelector('[role=alert]') !== null").await;
    let same = text(page, "document.querySelector('code.secret').textContent").await;
    assert_eq!(same, secret, "the one that was scanned");
    let used = code_at(&secret, now());
    enter(page, "code", &used).await;
    page.click("button.primary").await;
    heading(page, "Recovery codes").await;
    assert_accessible(page, "recovery codes").await;
    let recovery = page
        .evaluate("[...document.querySelectorAll('.codes code')].map((c) => c.textContent)")
        .await;
    let recovery = recovery.as_array().unwrap().clone();
    assert_eq!(recovery.len(), 10);
    page.click("main a.button").await;
    heading(page, "Account").await;
    Codes { secret, used, recovery }
}

/// Signs out, and signs in with a code of either kind.
async fn sign_in_with_codes(page: &Embed<'_>, password: &str, codes: &Codes) {
    let recovery = codes.recovery[0].as_str().unwrap().to_uppercase();
    // The code of the setup was used; the next one belongs to the next time step.
    for (wrong, right) in [
        (codes.used.clone(), code_at(&codes.secret, now() + 30)),
        ("abcd-efgh-ijkl-mnop".to_owned(), recovery),
    ] {
        page.click("header button").await;
        sign_in(page, ADA, password).await;
        heading(page, "Confirm your identity").await;
        assert_accessible(page, "a code").await;
        enter(page, "code", &wrong).await;
        page.click("button.primary").await;
        page.until("a refusal", "document.querySelector('[role=alert]') !== null").await;
        enter(page, "code", &right).await;
        page.click("button.primary").await;
        heading(page, "Overview").await;
    }
}

/// The audit log reports whether it was changed, and its export contains everything that is needed
/// to verify it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_audit_log_is_exported_and_verified() {
    let deployment = Deployment::start(Kind::Postgres).await;
    let owner = signed_in(&deployment, ADA, "owner").await;
    for origins in ["https://apply.lender.example\nhttps://*.lender.example:8443", ""] {
        let fields = [("origins", origins)];
        let saved = owner.fill("/portal/embedding", "/portal/embedding", &fields).await;
        assert_eq!(saved.status, 200);
        let origins = origins.replace('/', "&#x2f;");
        assert!(owner.get("/portal/embedding").await.text.contains(&format!(">{origins}<")));
    }
    for odd in ["lender.example", "https://lender.example/path", "https://a.example; script-src *"]
    {
        let fields = [("origins", odd)];
        let refused = owner.fill("/portal/embedding", "/portal/embedding", &fields).await;
        assert_eq!(refused.status, 422, "{odd}");
    }
    let log = owner.get("/portal/audit/entries.jsonl").await.text;
    let mut before = vec![0; 32];
    for (line, number) in log.lines().rev().zip(1..) {
        let entry: Value = serde_json::from_str(line).unwrap();
        assert_eq!(entry["number"], number);
        let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let parts = ["team", "number", "at", "actor", "address", "action", "subject"].map(|name| {
            let part = if name == "number" { number.to_string() } else { text(name) };
            format!("{}:{part},", part.len())
        });
        let hash = digest(&SHA256, &[&before, parts.concat().as_bytes()].concat());
        before = hash.as_ref().to_vec();
        let told = text("hash");
        let told = (0..64).step_by(2).map(|at| u8::from_str_radix(&told[at..at + 2], 16).unwrap());
        assert_eq!(told.collect::<Vec<_>>(), before, "{entry}");
    }
    assert_eq!(log.lines().count(), 4, "{log}");
    let verify = async || owner.fill("/portal/audit", "/portal/audit/verify", &[]).await.text;
    assert!(verify().await.contains("4 entries verified"));
    deployment.database.execute("UPDATE audit_entries SET subject = 'x' WHERE number = 2").await;
    assert!(verify().await.contains("failed at entry 2"));
    deployment.database.execute("DELETE FROM audit_entries WHERE number = 1").await;
    assert!(verify().await.contains("failed at entry 2"));
}

/// Without scripts, the pages work up to a valid key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_work_without_scripts() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let password = user(&deployment, &deployment.team, ADA, "owner");
    let browser = Applicant::visit("about:blank").await;
    browser.devtools("Emulation.setScriptExecutionDisabled", json!({ "value": true })).await;
    let url = format!("{}/portal/keys", base(&deployment));
    browser.navigate(&url).await;
    let page = browser.top_level();
    sign_in(&page, ADA, &password).await;
    heading(&page, "API keys").await;
    enter(&page, "label", "Without scripts").await;
    page.click("main .primary").await;
    heading(&page, "API key created").await;
    let key = text(&page, "document.getElementById('secret').value").await;
    assert_eq!(status_with(&deployment, &key).await, 200);
    let hidden = "document.querySelector('[data-copy]').hidden";
    assert_eq!(page.evaluate(hidden).await, true, "a button that needs scripts is hidden");
    browser.close().await;
}

/// A session goes from the list to its termination, which a viewer's role does not permit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_found_shown_and_terminated() {
    let deployment = Deployment::start(Kind::Postgres).await;
    let markup = "<img src=x onerror=alert(1)>";
    let created = deployment.create(&json!({ "externalReferenceId": markup })).await;
    let id = created["sessionId"].as_str().unwrap().to_owned();
    let (path, end) = (format!("/portal/sessions/{id}"), format!("/portal/sessions/{id}/end"));

    let viewer = signed_in(&deployment, "eve@lender.example", "viewer").await;
    assert_eq!(viewer.get(&path).await.status, 200);
    assert_eq!(viewer.fill(&path, &end, &[]).await.status, 403);
    let team = deployment.admin(&["create-team", "Another"])["teamId"].clone();
    let password = user(&deployment, team.as_str().unwrap(), "mal@other.example", "owner");
    let stranger = PortalUser::new(&base(&deployment));
    stranger.sign_in("mal@other.example", &password).await;
    assert_eq!(stranger.get(&path).await.status, 404);
    assert_eq!(stranger.fill("/portal/keys", &end, &[]).await.status, 404);
    assert!(!stranger.get("/portal/sessions").await.text.contains(&id));
    assert_eq!(deployment.session(&id).await["status"], "CREATED");
    for odd in ["?status=NONSENSE", "?from=-5", "?from=9223372036854775807", "?from=x"] {
        let status = viewer.get(&format!("/portal/sessions{odd}")).await.status;
        assert!(status == 200 || status == 400, "{odd}: {status}");
    }

    let password = user(&deployment, &deployment.team, ADA, "member");
    let browser = Applicant::visit(&format!("{}/portal/sessions", base(&deployment))).await;
    let page = browser.top_level();
    sign_in(&page, ADA, &password).await;
    heading(&page, "Sessions").await;
    assert_accessible(&page, "sessions").await;
    page.click("tbody a").await;
    heading(&page, "Session").await;
    assert_accessible(&page, "a session").await;
    assert_eq!(
        page.evaluate("document.querySelector('dl').textContent.includes('<img src=x')").await,
        true
    );
    page.click("main details summary").await;
    page.click("main details button").await;
    page.until("its end", "document.querySelector('.state.TERMINATED') !== null").await;
    assert_accessible(&page, "a session that ended").await;
    assert_eq!(deployment.session(&id).await["status"], "TERMINATED");
    let events = text(
        &page,
        "[...document.querySelectorAll('section:first-of-type tbody th')].map((e) => e.textContent).join(' ')",
    )
    .await;
    assert_eq!(events, "Session created Terminated by partner");
    page.click("nav a[href='/portal/sessions']").await;
    heading(&page, "Sessions").await;
    page.evaluate("document.getElementById('status').value = 'CREATED'").await;
    page.click("main button").await;
    page.until("no session", "document.querySelector('.empty') !== null").await;
    browser.close().await;
}
