//! Webhooks as a partner's operator sees them: the schedule of attempts, tests, the log, sending
//! again, secrets, keys and switches, over a running service.

use std::time::Duration;

use acceptance::{
    database::Kind,
    eventually,
    service::Deployment,
    webhook_endpoint::{Attempt, Endpoint, Reply},
};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(10);

/// A deployment whose only active webhook is a receiver of the test's own.
struct Home {
    deployment: Deployment,
    receiver: Endpoint,
    webhook: String,
    secret: String,
}

impl Home {
    async fn start(kind: Kind, receiver: Endpoint, more: &[&str]) -> Self {
        Self::start_with(kind, receiver, more, "1x2").await
    }

    async fn start_with(kind: Kind, receiver: Endpoint, more: &[&str], backoff: &str) -> Self {
        let mut deployment = Deployment::prepare(kind).await;
        deployment.set("AVOUCH_WEBHOOK_BACKOFF", backoff);
        deployment.set("AVOUCH_EGRESS_ALLOW", "127.0.0.1/32");
        let team = deployment.team.clone();
        let listed = deployment.admin(&["list-webhooks", "--team", &team]);
        let other = listed["webhooks"][0]["webhookId"].as_str().expect("a webhook").to_owned();
        deployment.admin(&["set-webhook", &other, "--active", "false"]);
        let url = receiver.url("hook");
        let order = [&["create-webhook", "--team", &team, "--url", &url], more].concat();
        let made = deployment.admin(&order);
        let text = |name: &str| made[name].as_str().expect("a text").to_owned();
        let (webhook, secret) = (text("webhookId"), text("secret"));
        deployment.run().await;
        Self { deployment, receiver, webhook, secret }
    }

    /// Ends a session; its identifier.
    async fn end_one(&self) -> String {
        let session = self.deployment.create(&json!({})).await;
        let id = session["sessionId"].as_str().expect("a session").to_owned();
        self.deployment.partner.delete(&format!("browser-session/{id}")).await;
        id
    }

    async fn arrivals(&self, count: usize) -> Vec<Attempt> {
        eventually("the deliveries", SOON, async || (self.receiver.count() >= count).then_some(()))
            .await;
        self.receiver.take()
    }

    async fn until_state(&self, state: &str) -> Value {
        eventually(&format!("a delivery to be {state}"), Duration::from_secs(300), async || {
            let list = ["list-deliveries", "--webhook", &self.webhook, "--state", state];
            Some(self.deployment.admin(&list)["deliveries"][0].clone()).filter(Value::is_object)
        })
        .await
    }
}

macro_rules! on_both_stores {
    ($($case:ident)+) => {$(
        mod $case {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() { super::$case(super::Kind::Sqlite).await; }
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() { super::$case(super::Kind::Postgres).await; }
        }
    )+};
}

on_both_stores! {
    a_failing_endpoint_gets_four_attempts
    the_endpoints_response_decides_about_retries
    a_test_delivery_has_one_attempt
    both_secrets_sign_during_a_rotation
    exhausted_deliveries_can_be_resent
    an_inactive_webhook_gets_no_deliveries_for_what_ends_meanwhile
    a_webhook_gets_the_sessions_of_its_keys_only
}

async fn a_failing_endpoint_gets_four_attempts(kind: Kind) {
    tries(kind, "1x2", [1.0, 2.0, 4.0]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes four minutes"]
async fn a_failing_endpoint_gets_four_attempts_with_the_default_backoff() {
    tries(Kind::Postgres, "5x6", [5.0, 30.0, 180.0]).await;
}

/// One attempt and three retries, each wait shifted by up to a fifth.
async fn tries(kind: Kind, backoff: &str, waits: [f64; 3]) {
    let dead = Endpoint::start(|_| Reply::Status(500)).await;
    let home = Home::start_with(kind, dead, &[], backoff).await;
    let session = home.end_one().await;
    let delivery = home.until_state("exhausted").await;
    let arrivals = home.receiver.take();
    assert_eq!(arrivals.len(), 4, "one attempt and three retries");
    for (pair, wait) in arrivals.windows(2).zip(waits) {
        let waited = pair[1].at.duration_since(pair[0].at).expect("in order").as_secs_f64();
        println!("{waited:.2} s for {wait:.0}");
        assert!((0.8 * wait..1.2 * wait + 0.5).contains(&waited), "{waited} for {wait}");
    }
    let first = &arrivals[0];
    for arrival in &arrivals {
        assert_eq!(arrival.header("webhook-id"), first.header("webhook-id"));
        assert_eq!(arrival.body, first.body);
        assert!(arrival.signed_with(&home.secret), "signed");
    }
    assert_eq!(delivery["sessionId"], session.as_str());
    assert_eq!(delivery["deliveryId"], first.header("webhook-id"));

    let id = first.header("webhook-id");
    let shown = home.deployment.admin(&["show-delivery", id]);
    assert_eq!(shown["attempts"].as_array().map(Vec::len), Some(4), "{shown}");
    assert_eq!(shown["attempts"][3]["status"], 500);
    assert_eq!(shown["attempts"][3]["answer"], "no");
    home.deployment.admin(&["resend", id]);
    let again = home.arrivals(1).await.remove(0);
    assert_eq!((again.header("webhook-id"), &again.body), (id, &first.body));
}

async fn the_endpoints_response_decides_about_retries(kind: Kind) {
    let receiver = Endpoint::start(|arrival| match arrival.path.as_str() {
        "/gone" => Reply::Status(410),
        "/moved" => Reply::Bytes(
            b"HTTP/1.1 302 Found\r\nlocation: /hook\r\ncontent-length: 0\r\n\r\n".to_vec(),
        ),
        "/later" => Reply::Bytes(
            b"HTTP/1.1 503 Later\r\nretry-after: 3000\r\ncontent-length: 0\r\n\r\n".to_vec(),
        ),
        "/half" => Reply::CloseWithin,
        "/reset" => Reply::Reset,
        "/hang" => Reply::Hang(Duration::from_secs(20)),
        _ => Reply::Status(204),
    })
    .await;
    let home = Home::start(kind, receiver, &[]).await;
    let team = home.deployment.team.clone();
    let paths = ["gone", "moved", "later", "half", "reset", "hang"];
    let webhooks = paths.map(|path| {
        let url = home.receiver.url(path);
        let order = ["create-webhook", "--team", &team, "--url", &url, "--timeout-seconds", "1"];
        let order =
            [&order[..], &["--retries", "1", "--header", "x-token: hidden-canary"]].concat();
        let made = home.deployment.admin(&order);
        made["webhookId"].as_str().expect("a webhook").to_owned()
    });
    home.end_one().await;
    let expected = [
        ("exhausted", 1, json!(410), Value::Null),
        ("exhausted", 2, json!(302), Value::Null),
        ("pending", 1, json!(503), Value::Null),
        ("exhausted", 2, Value::Null, json!("body")),
        ("exhausted", 2, Value::Null, json!("http")),
        ("exhausted", 2, Value::Null, json!("timeout")),
    ];
    for (webhook, (state, attempts, status, error)) in webhooks.iter().zip(expected) {
        let shown = eventually("its attempts", SOON, async || {
            let list = home.deployment.admin(&["list-deliveries", "--webhook", webhook]);
            let id = list["deliveries"][0]["deliveryId"].as_str()?.to_owned();
            let shown = home.deployment.admin(&["show-delivery", &id]);
            let made = shown["attempts"].as_array().map_or(0, Vec::len);
            (shown["state"] == state && made == attempts).then_some(shown)
        })
        .await;
        let last = &shown["attempts"][attempts - 1];
        assert_eq!((&last["status"], &last["error"]), (&status, &error), "{shown}");
        let sent = last["sent"].to_string();
        assert!(sent.contains("x-token: (hidden)") && !sent.contains("canary"), "{sent}");
    }
    let direct = home.receiver.take().into_iter().filter(|one| one.path == "/hook").count();
    assert_eq!(direct, 1, "no redirect was followed");
    assert!(!home.deployment.database.dump().await.contains("hidden-canary"));
}

async fn a_test_delivery_has_one_attempt(kind: Kind) {
    let refusing = Endpoint::start(|_| Reply::Status(500)).await;
    let home = Home::start(kind, refusing, &[]).await;
    let shown = home.deployment.admin(&["test-webhook", &home.webhook]);
    assert_eq!((&shown["state"], &shown["test"]), (&json!("exhausted"), &json!(true)), "{shown}");
    let arrivals = home.receiver.take();
    assert_eq!(arrivals.len(), 1, "it is not tried again");
    let body: Value = serde_json::from_str(&arrivals[0].body).expect("JSON");
    assert_eq!(body["metadata"]["test"], true);
    assert_eq!(body["sessionId"], shown["sessionId"]);
    assert!(arrivals[0].signed_with(&home.secret));
}

async fn both_secrets_sign_during_a_rotation(kind: Kind) {
    let home = Home::start(kind, Endpoint::start(|_| Reply::Status(204)).await, &[]).await;
    let rotate = ["rotate-webhook-secret", &home.webhook, "--overlap-hours"];
    let fresh = |hours: &str| {
        let made = home.deployment.admin(&[&rotate[..], &[hours]].concat());
        made["secret"].as_str().expect("a secret").to_owned()
    };
    let second = fresh("1");
    home.end_one().await;
    let both = home.arrivals(1).await.remove(0);
    assert!(both.signed_with(&home.secret) && both.signed_with(&second));
    let third = fresh("0");
    home.end_one().await;
    let one = home.arrivals(1).await.remove(0);
    assert!(one.signed_with(&third) && !one.signed_with(&second) && !one.signed_with(&home.secret));
    assert_eq!(one.header("x-webhook-signature"), one.header("webhook-signature"));
    let dump = home.deployment.database.dump().await;
    assert!([&home.secret, &second, &third].iter().all(|secret| !dump.contains(*secret)));
}

async fn exhausted_deliveries_can_be_resent(kind: Kind) {
    let gone = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let is_gone = gone.clone();
    let receiver = Endpoint::start(move |_| {
        let gone = is_gone.load(std::sync::atomic::Ordering::SeqCst);
        Reply::Status(if gone { 500 } else { 204 })
    })
    .await;
    let home = Home::start(kind, receiver, &["--retries", "0"]).await;
    for _ in 0..3 {
        home.end_one().await;
    }
    let before = home.arrivals(3).await;
    home.until_state("exhausted").await;
    gone.store(false, std::sync::atomic::Ordering::SeqCst);
    let span = ["--from", "2026-01-01T00:00:00Z", "--to", "2100-01-01T00:00:00Z"];
    let again = [&["resend-exhausted", "--webhook", &home.webhook][..], &span].concat();
    assert_eq!(home.deployment.admin(&again)["sent"], 3);
    let mut ids: Vec<_> = home
        .arrivals(3)
        .await
        .into_iter()
        .chain(before)
        .map(|arrival| arrival.header("webhook-id").to_owned())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 3, "the same identifiers");
    home.until_state("delivered").await;
}

async fn an_inactive_webhook_gets_no_deliveries_for_what_ends_meanwhile(kind: Kind) {
    let home = Home::start(kind, Endpoint::start(|_| Reply::Status(204)).await, &[]).await;
    let switch = |on: &str| home.deployment.admin(&["set-webhook", &home.webhook, "--active", on]);
    switch("false");
    home.end_one().await;
    switch("true");
    let told = home.end_one().await;
    let arrival = home.arrivals(1).await.remove(0);
    assert_eq!(arrival.field("sessionId"), told, "what ended while it was off owes it nothing");
    assert_eq!(home.receiver.count(), 0);
}

async fn a_webhook_gets_the_sessions_of_its_keys_only(kind: Kind) {
    let mut deployment = Deployment::prepare(kind).await;
    let team = deployment.team.clone();
    let make = ["create-key", "--team", &team, "--environment", "development"];
    let other = deployment.admin(&make)["keyId"].as_str().expect("a key").to_owned();
    let receiver = Endpoint::start(|_| Reply::Status(204)).await;
    deployment.set("AVOUCH_EGRESS_ALLOW", "127.0.0.1/32");
    for (path, keys) in [("all", &[][..]), ("other", &["--key", &other][..])] {
        let url = receiver.url(path);
        let order = ["create-webhook", "--team", &team, "--url", &url];
        deployment.admin(&[&order[..], keys].concat());
    }
    deployment.run().await;
    let session = deployment.create(&json!({})).await;
    let id = session["sessionId"].as_str().expect("a session");
    deployment.partner.delete(&format!("browser-session/{id}")).await;
    eventually("a delivery", SOON, async || (receiver.count() > 0).then_some(())).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let paths: Vec<_> = receiver.take().into_iter().map(|arrival| arrival.path).collect();
    assert_eq!(paths, ["/all"]);
}
