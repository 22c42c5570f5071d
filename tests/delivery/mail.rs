//! Links sent to applicants by mail, through a real mail server: STARTTLS, a password, greylisting,
//! refusals, slowness and crashes of the server.

use std::{collections::BTreeMap, time::Duration};

use acceptance::{
    applicant::Applicant, database::Kind, eventually, mail_server::Server, service::Deployment,
};
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(60);
const LONG_TIMEOUT: Duration = Duration::from_secs(240);

/// Starts a deployment that sends mail through a server.
async fn mailing(kind: Kind, server: &Server) -> Deployment {
    let mut deployment = Deployment::prepare(kind).await;
    deployment.set("AVOUCH_SMTP_URL", server.url());
    deployment.set("AVOUCH_SMTP_ROOTS", server.roots());
    deployment.set("AVOUCH_NOTIFICATION_BACKOFF", "1x2");
    deployment.set("AVOUCH_MAIL_FROM", "no-reply@avouch.example");
    deployment.run().await;
    deployment
}

fn invited(address: &str) -> Value {
    json!({
        "notificationPlatformId": 1,
        "receiverData": { "name": "Ada Example", "email": address, "locale": "de-AT" },
        "senderName": "Müller & Söhne",
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_arrives_once_and_opens_the_session() {
    let server = Server::start().await;
    let deployment = mailing(Kind::Postgres, &server).await;
    let channels = deployment.partner.get("notification-platforms").await;
    assert_eq!(
        (channels.at("/data/0/id"), channels.at("/data/0/name")),
        (&json!(1), &json!("email"))
    );
    let created = deployment.create(&invited("ada@example.com")).await;
    let (id, link) =
        (created["sessionId"].as_str().unwrap(), created["embedUrl"].as_str().unwrap());
    let mail = eventually("a mail", TIMEOUT, async || server.mails().pop()).await;
    assert_eq!((&mail["tls"], &mail["authenticated"]), (&json!(true), &json!(true)));
    assert_eq!(mail["to"], json!(["ada@example.com"]));
    assert_eq!(mail["parts"], json!(["multipart/alternative", "text/plain", "text/html"]));
    let header = |name: &str| mail["headers"][name].as_str().unwrap_or_default().to_owned();
    assert_eq!(header("from"), "Müller & Söhne <no-reply@avouch.example>");
    assert_eq!(header("to"), "Ada Example <ada@example.com>");
    assert!(header("subject").starts_with("Müller & Söhne bittet Sie"), "{mail}");
    assert_eq!(header("auto-submitted"), "auto-generated");
    assert!(mail["text"].as_str().unwrap().lines().any(|line| line == link), "{mail}");
    assert!(mail["html"].as_str().unwrap().contains("<html lang=\"de\""), "{mail}");
    deployment.partner.until_notification(id, "NotificationSent", None).await;

    // Mail scanners open each link, some of them in a browser.
    for _ in 0..20 {
        assert_eq!(deployment.partner.fetch(link, None).await.0, 200);
    }
    let scanner = Applicant::visit(link).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    scanner.close().await;
    assert_eq!(deployment.session(id).await["status"], "CREATED");

    let applicant = Applicant::visit(link).await;
    let page = applicant.top_level();
    page.click("[data-testid=start]").await;
    page.until("a frame", "document.querySelector('canvas').dataset.pictures > 0").await;
    page.sign_in("ok", "any").await;
    page.click("[data-testid=consent-approve]").await;
    page.until_outcome().await;
    assert_eq!(deployment.session(id).await["status"], "COMPLETED");
    assert_eq!(server.mails().len(), 1, "once");
    applicant.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_defers_refuses_or_is_slow_delays_no_other_mail() {
    let server = Server::start().await;
    let deployment = mailing(Kind::Sqlite, &server).await;
    let mut sessions = BTreeMap::new();
    for name in ["slow", "grey", "nobody", "full", "ada"] {
        let created = deployment.create(&invited(&format!("{name}@example.com"))).await;
        sessions.insert(name, created["sessionId"].as_str().unwrap().to_owned());
    }
    deployment.partner.until_notification(&sessions["ada"], "NotificationSent", None).await;
    let slow = deployment.partner.notifications(&sessions["slow"]).await;
    assert_eq!(slow.len(), 1, "a slow mailbox delays no other mail");
    let refused = "NotificationFailed";
    deployment
        .partner
        .until_notification(&sessions["nobody"], refused, Some("unknown_receiver"))
        .await;
    deployment.partner.until_notification(&sessions["full"], refused, Some("mailbox_full")).await;
    deployment.partner.until_notification(&sessions["grey"], "NotificationSent", None).await;
    deployment.partner.until_notification(&sessions["slow"], "NotificationSent", None).await;
    let mut receivers: Vec<_> = server.mails().iter().map(|mail| mail["to"][0].clone()).collect();
    receivers.sort_by_key(Value::to_string);
    assert_eq!(receivers, ["ada@example.com", "grey@example.com", "slow@example.com"]);
    let log = std::fs::read_to_string(deployment.log()).unwrap();
    assert!(log.contains("550 5.1.1") && !log.contains("nobody@"), "no address is logged");
    let failed = &deployment.session(&sessions["nobody"]).await;
    assert_eq!(failed["status"], "CREATED", "the partner still has the link");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_is_resent_on_request_within_the_limit() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let partner = &deployment.partner;
    let created = deployment.create(&invited("ada@example.com")).await;
    let id = created["sessionId"].as_str().unwrap();
    deployment.partner.until_notification(id, "NotificationSent", None).await;
    let outbox = deployment.data().join("outbox");
    assert_eq!(std::fs::read_dir(outbox).unwrap().count(), 1, "a file where there is no server");
    let again = format!("browser-session/{id}/resend-notification");
    let early = partner.post(&again, &Value::Null).await;
    assert_eq!(early.status, 429, "{}", early.body);
    let wait: u64 = early.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    let plain = deployment.create(&json!({})).await;
    let plain = plain["sessionId"].as_str().unwrap();
    let path = format!("browser-session/{plain}/resend-notification");
    assert_eq!(partner.post(&path, &Value::Null).await.status, 409, "no channel");
    let path = format!("browser-session/{}/resend-notification", uuid::Uuid::new_v4());
    assert_eq!(partner.post(&path, &Value::Null).await.status, 404);
    partner.delete(&format!("browser-session/{id}")).await;
    assert_eq!(partner.post(&again, &Value::Null).await.status, 409, "it has ended");

    for (body, field) in [
        (
            json!({ "notificationPlatformId": 7, "receiverData": { "email": "a@b.example" } }),
            "notificationPlatformId",
        ),
        (
            json!({ "notificationPlatformId": 1, "receiverData": { "name": "Ada" } }),
            "receiverData.email",
        ),
        (json!({ "notificationPlatformId": 1 }), "receiverData"),
        (
            json!({ "notificationPlatformId": 1, "receiverData": { "email": "a@b.example\r\nBcc: c@d.example" } }),
            "receiverData.email",
        ),
        (
            json!({ "notificationPlatformId": 1, "receiverData": { "email": "a@b.example" }, "senderName": "x\nBcc: y" }),
            "senderName",
        ),
    ] {
        let answer = deployment.partner.create(&body).await;
        let message = answer.body["message"].as_str().unwrap_or_default();
        assert!(answer.status == 400 && message.contains(field), "{field}: {}", answer.body);
    }
}

/// Fifty links to mailboxes that take eight seconds each, eight at once, would delay the
/// fifty-first by 50 s; another team's link waits only for those that are already being sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_of_one_team_do_not_delay_another_teams() {
    let server = Server::start().await;
    let deployment = mailing(Kind::Postgres, &server).await;
    for number in 0..50 {
        deployment.create(&invited(&format!("slow+{number}@example.com"))).await;
    }
    let other = deployment.admin(&["create-team", "Marketplace"]);
    let other = other["teamId"].as_str().unwrap();
    let key = deployment.admin(&["create-key", "--team", other, "--environment", "development"]);
    let late = deployment.partner.with_key(key["apiKey"].as_str());
    let created = late.create(&invited("ada@example.com")).await;
    let id = created.at("/data/sessionId").as_str().unwrap().to_owned();
    eventually("the other team's link", Duration::from_secs(120), async || {
        late.notifications(&id)
            .await
            .iter()
            .any(|(event, _)| event == "NotificationSent")
            .then_some(())
    })
    .await;
    let before = server.mails().len() - 1;
    println!("{before} links of the first team came before the other team's");
    assert!(before <= 24, "{before}");
}

/// `MAILS` sets the number of mails; the server crashes three times meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_applicant_gets_one_mail_although_the_server_crashes() {
    let count: usize = std::env::var("MAILS").map_or(150, |count| count.parse().unwrap());
    let mut server = Server::start().await;
    let deployment = mailing(Kind::Postgres, &server).await;
    let mut sessions = vec![];
    let mut crashes = 0;
    for number in 0..count {
        let created = deployment.create(&invited(&format!("applicant-{number}@example.com"))).await;
        sessions.push(created["sessionId"].as_str().unwrap().to_owned());
        if number % (count / 4).max(1) == count / 8 && crashes < 3 {
            // The crash comes while mails are being sent.
            server.kill();
            tokio::time::sleep(Duration::from_secs(2)).await;
            server.run().await;
            crashes += 1;
        }
    }
    assert_eq!(crashes, 3);
    eventually("every mail", LONG_TIMEOUT, async || {
        let receivers = server.mails().into_iter().map(|mail| mail["to"][0].to_string());
        let receivers: std::collections::BTreeSet<_> = receivers.collect();
        (receivers.len() == count).then_some(())
    })
    .await;
    for id in &sessions {
        deployment.partner.until_notification(id, "NotificationSent", None).await;
    }
    // A mail arrives twice only where the server stored it and crashed before it confirmed so; both
    // copies have the same message id, by which a mailbox recognises them.
    let mut copies: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for mail in server.mails() {
        copies
            .entry(mail["to"][0].to_string())
            .or_default()
            .push(mail["headers"]["message-id"].clone());
    }
    let twice: Vec<_> = copies.values().filter(|names| names.len() > 1).collect();
    println!("{count} mails, {crashes} crashes, {} arrived twice", twice.len());
    assert!(twice.len() <= 8 * crashes, "no more duplicates than connections");
    for names in twice {
        assert!(names.iter().all(|name| name == &names[0]), "{names:?}");
    }
}
