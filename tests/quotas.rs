//! One team's work holds up no other team's: browsers, creations; and what the service keeps on disk
//! and shows of itself is for its owner.

use std::{os::unix::fs::PermissionsExt as _, time::Duration};

use acceptance::{
    database::Kind,
    partner::Partner,
    person::base,
    service::Deployment,
    viewer::{Viewer, secret},
};
use hyper::Method;
use serde_json::{Value, json};

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no {name} in {value}")).to_owned()
}

/// Another key of a team.
fn key(deployment: &Deployment, team: &str) -> Partner {
    let key = deployment.admin(&["create-key", "--team", team, "--environment", "development"]);
    deployment.partner.with_key(key["apiKey"].as_str())
}

/// A session whose applicant has opened its page.
async fn opened(partner: &Partner, device: char) -> Viewer {
    let created = partner.create(&json!({})).await;
    Viewer::open(&text(created.at("/data"), "embedUrl"), &secret(device)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_sessions_of_one_team_delay_another_team_by_one_turn() {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    deployment.set("AVOUCH_BROWSERS", "2");
    deployment.run().await;
    let keys: Vec<_> = (0..5).map(|_| key(&deployment, &deployment.team)).collect();
    let mut crowd = vec![];
    for number in 0..50 {
        crowd.push(opened(&keys[number % 5], 'a').await);
    }
    // The first two have the browsers.
    let mut first = vec![];
    for viewer in &mut crowd[..2] {
        first.push(viewer.until("state", |state| state["status"] == "AWAITING_USER").await);
    }
    let waits = crowd[49].until("state", |state| state["place"].is_number()).await;
    assert!(waits["place"].as_u64().unwrap() > 10, "{waits}");

    let other = deployment.admin(&["create-team", "Marketplace"]);
    let mut late = opened(&key(&deployment, &text(&other, "teamId")), 'b').await;
    let waits = late.until("state", |state| state["place"].is_number()).await;
    assert_eq!(waits["place"], 1, "{waits}");
    crowd[0].say(&json!({ "t": "cancel" })).await;
    late.until("state", |state| state["status"] == "AWAITING_USER").await;
    // Nobody of the crowd was let in before.
    for viewer in &mut crowd[2..] {
        while let Some(told) = viewer.told(Duration::from_millis(20)).await {
            assert_eq!(told["status"], "INITIALIZING", "{told}");
        }
    }
    // The next one is the crowd's again.
    late.say(&json!({ "t": "cancel" })).await;
    crowd[2].until("state", |state| state["status"] == "AWAITING_USER").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_keys_of_a_team_create_no_more_than_the_team_may() {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    deployment.set("AVOUCH_CREATE_LIMIT", "4/60");
    deployment.set("AVOUCH_TEAM_CREATE_LIMIT", "6/60");
    deployment.run().await;
    let mut created = vec![];
    for _ in 0..4 {
        let partner = key(&deployment, &deployment.team);
        for _ in 0..3 {
            created.push(partner.create(&json!({})).await);
        }
    }
    let made = created.iter().filter(|answer| answer.status == 201).count();
    assert_eq!(made, 6);
    let last = created.last().unwrap();
    assert_eq!(last.status, 429, "{}", last.body);
    assert!(last.headers.contains_key("retry-after"));
    let other = text(&deployment.admin(&["create-team", "Marketplace"]), "teamId");
    assert_eq!(key(&deployment, &other).create(&json!({})).await.status, 201);
}

/// Without a mail server links wait in the outbox folder; what counts is that they are taken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_keys_of_a_team_send_one_receiver_no_more_links_than_allowed() {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    deployment.set("AVOUCH_RECIPIENT_LIMIT", "3/3600");
    deployment.run().await;
    let invited = |address: &str| json!({ "notificationPlatformId": 1, "receiverData": { "email": address } });
    let keys: Vec<_> = (0..5).map(|_| key(&deployment, &deployment.team)).collect();
    let mut created = vec![];
    for (number, partner) in keys.iter().enumerate() {
        let address = if number % 2 == 0 { "ada@example.com" } else { "ADA@example.com" };
        created.push(partner.create(&invited(address)).await);
    }
    assert_eq!(created.iter().filter(|answer| answer.status == 201).count(), 3);
    let last = created.last().unwrap();
    assert_eq!(last.status, 429, "{}", last.body);
    assert!(last.body.to_string().contains("receiver"), "{}", last.body);
    assert!(last.headers.contains_key("retry-after"));
    // Sending again counts too: what it has to wait for is the receiver's window, an hour, and not
    // the minute after the link before.
    let id = text(created[0].at("/data"), "sessionId");
    let path = format!("browser-session/{id}/resend-notification");
    let again = keys[0].post(&path, &Value::Null).await;
    assert_eq!(again.status, 429, "{}", again.body);
    let wait: u64 = again.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!(wait > 60, "{wait}");
    // Another receiver, a session without a link, and another team are not held up.
    assert_eq!(deployment.partner.create(&invited("eve@example.com")).await.status, 201);
    assert_eq!(deployment.partner.create(&json!({})).await.status, 201);
    let other = text(&deployment.admin(&["create-team", "Marketplace"]), "teamId");
    let other = key(&deployment, &other).create(&invited("ada@example.com")).await;
    assert_eq!(other.status, 201, "{}", other.body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_kept_on_disk_is_for_its_owner_alone() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    deployment.create(&json!({})).await;
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&deployment.data()), 0o700);
    let database = deployment.database.url.trim_start_matches("sqlite://").to_owned();
    for suffix in ["", "-wal", "-shm"] {
        let file = format!("{database}{suffix}");
        assert_eq!(mode(file.as_ref()), 0o600, "{file}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_viewer_of_the_description_works_under_a_strict_policy() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let page = Partner::new(&base(&deployment), None);
    let (status, _) = page.fetch(&format!("{}/docs/", base(&deployment)), None).await;
    assert_eq!(status, 200);
    for path in ["/docs/", "/docs/swagger-ui.css", "/docs/swagger-initializer.js"] {
        let answer = page.send(Method::GET, path, String::new()).await;
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("frame-ancestors 'none'"), "{path}: {policy}");
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
    }
    let reader =
        acceptance::applicant::Applicant::visit(&format!("{}/docs/", base(&deployment))).await;
    let shown = "document.body.innerText.includes('Avouch partner API')";
    acceptance::eventually("the description", Duration::from_secs(20), async || {
        (reader.evaluate(shown).await == true).then_some(())
    })
    .await;
    reader.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_are_for_this_machine_and_browsers_keep_to_https() {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    deployment.set("AVOUCH_PUBLIC_URL", "https://avouch.example");
    deployment.run().await;
    let get = async |path: &str, headers: &[(&str, &str)]| {
        deployment.partner.send_with(Method::GET, path, String::new(), headers).await
    };
    assert_eq!(get("/metrics", &[]).await.status, 200);
    for header in ["x-forwarded-for", "forwarded", "via"] {
        assert_eq!(get("/metrics", &[(header, "203.0.113.9")]).await.status, 404, "{header}");
    }
    let hsts = get("/healthz", &[]).await.headers["strict-transport-security"].clone();
    assert_eq!(hsts, "max-age=63072000");
}
