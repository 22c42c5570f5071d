//! Fairness and limits between teams: browsers, deliveries, proofs, creations and links.

use std::time::{Duration, Instant};

use acceptance::{
    database::Kind,
    partner::Partner,
    portal_user::signed_in,
    service::Deployment,
    viewer::{Viewer, secret},
    webhook_endpoint::{Endpoint, Reply},
};
use serde_json::{Value, json};

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no {name} in {value}")).to_owned()
}

/// Creates another key of a team.
fn key(deployment: &Deployment, team: &str) -> Partner {
    let key = deployment.admin(&["create-key", "--team", team, "--environment", "development"]);
    deployment.partner.with_key(key["apiKey"].as_str())
}

/// Creates a session and opens its page.
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
    // The first two sessions have the two browsers.
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
    crowd[0].send(&json!({ "t": "cancel" })).await;
    late.until("state", |state| state["status"] == "AWAITING_USER").await;
    // None of the other waiting sessions of the first team got a browser before.
    for viewer in &mut crowd[2..] {
        while let Some(told) = viewer.next_message(Duration::from_millis(20)).await {
            assert_eq!(told["status"], "INITIALIZING", "{told}");
        }
    }
    // The first team gets the next browser, for one of the sessions that waited first: the starts of
    // sessions that are created at once overtake each other.
    late.send(&json!({ "t": "cancel" })).await;
    let ends = Instant::now() + Duration::from_secs(60);
    while !awaits_user(&mut crowd[2..12]).await {
        assert!(Instant::now() < ends, "no session of the first team got a browser");
    }
}

/// Reads what the viewers were told meanwhile. Returns whether one of them may sign in.
async fn awaits_user(viewers: &mut [Viewer]) -> bool {
    for viewer in viewers {
        while let Some(told) = viewer.next_message(Duration::from_millis(20)).await {
            if told["status"] == "AWAITING_USER" {
                return true;
            }
        }
    }
    false
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_sessions_of_a_team_are_limited() {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    deployment.set("AVOUCH_BROWSERS", "1");
    deployment.set("AVOUCH_BROWSER_QUEUE_PER_TEAM", "2");
    deployment.set("AVOUCH_CREATE_LIMIT", "60/60");
    deployment.run().await;
    let mut running = opened(&deployment.partner, 'a').await;
    running.until("state", |state| state["status"] == "AWAITING_USER").await;
    // An applicant who left would not be counted.
    let mut waiting =
        [opened(&deployment.partner, 'a').await, opened(&deployment.partner, 'a').await];
    for waits in &mut waiting {
        waits.until("state", |state| state["place"].is_number()).await;
    }
    let created = deployment.create(&json!({ "maxAttempts": 1 })).await;
    let mut refused = Viewer::open(&text(&created, "embedUrl"), &secret('a')).await;
    refused.until("state", |state| state["status"] == "ERROR").await;
    let session = deployment.session(&text(&created, "sessionId")).await;
    assert_eq!(session["errorCode"], "BROWSER_UNAVAILABLE", "{session}");
    // The overview shows the team's limits and its current use.
    let ada = signed_in(&deployment, "ada@lender.example", "member").await;
    let page = ada.get("/portal/overview").await.text;
    for shown in ["<dd>1 of 1</dd>", "<dd>2 of 2</dd>", "60 per minute", "20 per day"] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    let other = text(&deployment.admin(&["create-team", "Marketplace"]), "teamId");
    let mut late = opened(&key(&deployment, &other), 'b').await;
    let waits = late.until("state", |state| state["place"].is_number()).await;
    assert_eq!(waits["place"], 1, "{waits}");
}

/// Five hundred deliveries of ten webhooks to an endpoint that does not respond, and one delivery
/// of another team.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_of_one_team_do_not_delay_another_teams() {
    let hangs = Endpoint::start(|_| Reply::Hang(Duration::from_secs(60))).await;
    let answers = Endpoint::start(|_| Reply::Status(200)).await;
    let mut deployment = Deployment::prepare(Kind::Postgres).await;
    deployment.set("AVOUCH_EGRESS_ALLOW", "127.0.0.1/32");
    deployment.set("AVOUCH_CREATE_LIMIT", "off");
    for number in 0..10 {
        let url = hangs.url(&number.to_string());
        deployment.admin(&["create-webhook", "--team", &deployment.team, "--url", &url]);
    }
    let other = text(&deployment.admin(&["create-team", "Marketplace"]), "teamId");
    deployment.admin(&["create-webhook", "--team", &other, "--url", &answers.url("hook")]);
    deployment.run().await;
    let ends = async |partner: &Partner| {
        let created = partner.create(&json!({})).await;
        let id = text(created.at("/data"), "sessionId");
        partner.delete(&format!("browser-session/{id}")).await;
    };
    let late = key(&deployment, &other);
    for _ in 0..50 {
        ends(&deployment.partner).await;
    }
    acceptance::eventually("hanging calls", Duration::from_secs(60), async || {
        (hangs.count() >= 20).then_some(())
    })
    .await;
    let began = std::time::Instant::now();
    ends(&late).await;
    acceptance::eventually("the other team's delivery", Duration::from_secs(8), async || {
        (answers.count() == 1).then_some(())
    })
    .await;
    println!("delivered after {:?}, with {} hanging calls", began.elapsed(), hangs.count());
}

/// Creates a session with an attestation whose applicant has signed in and is asked for consent;
/// returns the number of that prompt, too.
async fn asked_for_consent(partner: &Partner) -> (String, Viewer, u64) {
    let created = partner.create(&json!({ "generateAttestation": true })).await;
    let link = text(created.at("/data"), "embedUrl");
    let mut viewer = Viewer::open(&link, &secret('a')).await;
    viewer.until("scene", |scene| scene["fields"].as_array().is_some_and(|it| it.len() > 1)).await;
    focus_first_field(&mut viewer).await;
    viewer.send(&json!({ "t": "text", "text": "ok" })).await;
    press(&mut viewer, "Tab", 9).await;
    viewer.send(&json!({ "t": "text", "text": "any" })).await;
    press(&mut viewer, "Enter", 13).await;
    let state = viewer.until("state", |state| state["prompt"]["kind"] == "consent").await;
    let number = state["prompt"]["number"].as_u64().unwrap();
    (text(created.at("/data"), "sessionId"), viewer, number)
}

async fn press(viewer: &mut Viewer, code: &str, number: u32) {
    for down in [true, false] {
        viewer
            .send(&json!({ "t": "key", "down": down, "key": code, "code": code,
                "keyCode": number, "repeat": false, "modifiers": 0 }))
            .await;
    }
}

/// Presses Tab until the first field has the focus: Chromium drops the input of a page that it has not drawn
/// yet.
async fn focus_first_field(viewer: &mut Viewer) {
    for _ in 0..6 {
        press(viewer, "Tab", 9).await;
        let ends = tokio::time::Instant::now() + Duration::from_secs(10);
        let left = || ends.saturating_duration_since(tokio::time::Instant::now());
        while let Some(told) = viewer.next_message(left()).await {
            if told["t"] == "scene" && told["focused"] == 0 {
                return;
            }
        }
    }
    panic!("the first field does not get the focus");
}

async fn status(partner: &Partner, id: &str) -> Value {
    partner.get(&format!("browser-session/{id}")).await.at("/data/status").clone()
}

/// One proof runs at a time. Four sessions of one team get consent before one session of another
/// team.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proofs_of_one_team_do_not_delay_another_teams() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let other = text(&deployment.admin(&["create-team", "Marketplace"]), "teamId");
    let late = key(&deployment, &other);
    let mut asked = vec![];
    for partner in [&deployment.partner; 4].into_iter().chain([&late]) {
        asked.push((partner, asked_for_consent(partner).await));
    }
    for (partner, (id, viewer, prompt)) in &mut asked {
        viewer.send(&json!({ "t": "share", "prompt": *prompt, "share": true })).await;
        acceptance::eventually("the proof to start", Duration::from_secs(60), async || {
            (status(partner, id).await == "VERIFYING").then_some(())
        })
        .await;
    }
    let mut ended = vec![];
    acceptance::eventually("all proofs", Duration::from_secs(400), async || {
        for (at, (partner, (id, ..))) in asked.iter().enumerate() {
            if !ended.contains(&at) && status(partner, id).await == "COMPLETED" {
                ended.push(at);
            }
        }
        (ended.len() == asked.len()).then_some(())
    })
    .await;
    println!("in the order of their end: {ended:?}");
    let place = ended.iter().position(|at| *at == 4).unwrap();
    assert!(place <= 2, "{ended:?}: two proofs may run or be claimed before the other team's");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_creation_limit_of_a_team_holds_across_its_keys() {
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

/// Without a mail server links are written to the outbox folder; the test counts the requests that
/// are accepted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_recipient_limit_holds_across_the_keys_of_a_team() {
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
    // A resend counts, too: it has to wait for the recipient's window of an hour, not only for the
    // minute since the link before.
    let id = text(created[0].at("/data"), "sessionId");
    let path = format!("browser-session/{id}/resend-notification");
    let again = keys[0].post(&path, &Value::Null).await;
    assert_eq!(again.status, 429, "{}", again.body);
    let wait: u64 = again.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!(wait > 60, "{wait}");
    // Another recipient, a session without a link, and another team are not limited.
    assert_eq!(deployment.partner.create(&invited("eve@example.com")).await.status, 201);
    assert_eq!(deployment.partner.create(&json!({})).await.status, 201);
    let other = text(&deployment.admin(&["create-team", "Marketplace"]), "teamId");
    let other = key(&deployment, &other).create(&invited("ada@example.com")).await;
    assert_eq!(other.status, 201, "{}", other.body);
}
