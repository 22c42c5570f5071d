//! Webhooks as a partner's operator sees them, over a running service: the schedule of attempts,
//! tests, the log, resending, secrets, keys and deactivation.

use std::time::Duration;

use acceptance::{
    database::Kind,
    eventually,
    service::Deployment,
    webhook_endpoint::{Attempt, Endpoint, Reply},
};
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(60);

/// A deployment whose only active webhook leads to an endpoint of the test.
struct Fixture {
    deployment: Deployment,
    endpoint: Endpoint,
    webhook: String,
    secret: String,
}

impl Fixture {
    async fn start(kind: Kind, endpoint: Endpoint, more: &[&str]) -> Self {
        Self::start_with(kind, endpoint, more, "1x2").await
    }

    async fn start_with(kind: Kind, endpoint: Endpoint, more: &[&str], backoff: &str) -> Self {
        let mut deployment = Deployment::prepare(kind).await;
        deployment.set("AVOUCH_WEBHOOK_BACKOFF", backoff);
        deployment.set("AVOUCH_EGRESS_ALLOW", "127.0.0.1/32");
        let team = deployment.team.clone();
        let listed = deployment.admin(&["list-webhooks", "--team", &team]);
        let other = listed["webhooks"][0]["webhookId"].as_str().expect("a webhook").to_owned();
        deployment.admin(&["set-webhook", &other, "--active", "false"]);
        let url = endpoint.url("hook");
        let order = [&["create-webhook", "--team", &team, "--url", &url], more].concat();
        let made = deployment.admin(&order);
        let text = |name: &str| made[name].as_str().expect("a text").to_owned();
        let (webhook, secret) = (text("webhookId"), text("secret"));
        deployment.run().await;
        Self { deployment, endpoint, webhook, secret }
    }

    /// Ends a session; returns its identifier.
    async fn end_one(&self) -> String {
        let session = self.deployment.create(&json!({})).await;
        let id = session["sessionId"].as_str().expect("a session").to_owned();
        self.deployment.partner.delete(&format!("browser-session/{id}")).await;
        id
    }

    async fn attempts(&self, count: usize) -> Vec<Attempt> {
        eventually("the deliveries", TIMEOUT, async || {
            (self.endpoint.count() >= count).then_some(())
        })
        .await;
        self.endpoint.take()
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

/// One attempt and three retries are made; each wait varies by up to a fifth.
async fn tries(kind: Kind, backoff: &str, waits: [f64; 3]) {
    let dead = Endpoint::start(|_| Reply::Status(500)).await;
    let fixture = Fixture::start_with(kind, dead, &[], backoff).await;
    let session = fixture.end_one().await;
    let delivery = fixture.until_state("exhausted").await;
    let attempts = fixture.endpoint.take();
    assert_eq!(attempts.len(), 4, "one attempt and three retries");
    for (pair, wait) in attempts.windows(2).zip(waits) {
        let waited = pair[1].at.duration_since(pair[0].at).expect("in order").as_secs_f64();
        println!("{waited:.2} s for {wait:.0}");
        // Beyond the variation, a busy machine may take a second to notice that it is time.
        assert!((0.8 * wait..1.2 * wait + 1.0).contains(&waited), "{waited} for {wait}");
    }
    let first = &attempts[0];
    for attempt in &attempts {
        assert_eq!(attempt.header("webhook-id"), first.header("webhook-id"));
        assert_eq!(attempt.body, first.body);
        assert!(attempt.signed_with(&fixture.secret), "signed");
    }
    assert_eq!(delivery["sessionId"], session.as_str());
    assert_eq!(delivery["deliveryId"], first.header("webhook-id"));

    let id = first.header("webhook-id");
    let shown = fixture.deployment.admin(&["show-delivery", id]);
    assert_eq!(shown["attempts"].as_array().map(Vec::len), Some(4), "{shown}");
    assert_eq!(shown["attempts"][3]["status"], 500);
    assert_eq!(shown["attempts"][3]["answer"], "no");
    fixture.deployment.admin(&["resend", id]);
    let again = fixture.attempts(1).await.remove(0);
    assert_eq!((again.header("webhook-id"), &again.body), (id, &first.body));
}

async fn the_endpoints_response_decides_about_retries(kind: Kind) {
    let endpoint = Endpoint::start(|attempt| match attempt.path.as_str() {
        "/gone" => Reply::Status(410),
        "/moved" => Reply::Bytes(
            b"HTTP/1.1 302 Found\r\nlocation: /hook\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                .to_vec(),
        ),
        "/later" => Reply::Bytes(
            b"HTTP/1.1 503 Later\r\nretry-after: 3000\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                .to_vec(),
        ),
        "/half" => Reply::CloseWithin,
        "/reset" => Reply::Reset,
        "/hang" => Reply::Hang(Duration::from_secs(20)),
        _ => Reply::Status(204),
    })
    .await;
    let fixture = Fixture::start(kind, endpoint, &[]).await;
    let team = fixture.deployment.team.clone();
    let paths = ["gone", "moved", "later", "half", "reset", "hang"];
    let webhooks = paths.map(|path| {
        let url = fixture.endpoint.url(path);
        let order = ["create-webhook", "--team", &team, "--url", &url, "--timeout-seconds", "1"];
        let order =
            [&order[..], &["--retries", "1", "--header", "x-token: hidden-canary"]].concat();
        let made = fixture.deployment.admin(&order);
        made["webhookId"].as_str().expect("a webhook").to_owned()
    });
    fixture.end_one().await;
    let expected = [
        ("exhausted", 1, json!(410), Value::Null),
        ("exhausted", 2, json!(302), Value::Null),
        ("pending", 1, json!(503), Value::Null),
        ("exhausted", 2, Value::Null, json!("body")),
        ("exhausted", 2, Value::Null, json!("http")),
        ("exhausted", 2, Value::Null, json!("timeout")),
    ];
    for (webhook, (state, attempts, status, error)) in webhooks.iter().zip(expected) {
        let shown = eventually("its attempts", TIMEOUT, async || {
            let list = fixture.deployment.admin(&["list-deliveries", "--webhook", webhook]);
            let id = list["deliveries"][0]["deliveryId"].as_str()?.to_owned();
            let shown = fixture.deployment.admin(&["show-delivery", &id]);
            let made = shown["attempts"].as_array().map_or(0, Vec::len);
            (shown["state"] == state && made == attempts).then_some(shown)
        })
        .await;
        let last = &shown["attempts"][attempts - 1];
        assert_eq!((&last["status"], &last["error"]), (&status, &error), "{shown}");
        let sent = last["sent"].to_string();
        assert!(sent.contains("x-token: (hidden)") && !sent.contains("canary"), "{sent}");
    }
    let direct = fixture.endpoint.take().into_iter().filter(|one| one.path == "/hook").count();
    assert_eq!(direct, 1, "no redirect was followed");
    assert!(!fixture.deployment.database.dump().await.contains("hidden-canary"));
}

async fn a_test_delivery_has_one_attempt(kind: Kind) {
    let refusing = Endpoint::start(|_| Reply::Status(500)).await;
    let fixture = Fixture::start(kind, refusing, &[]).await;
    let shown = fixture.deployment.admin(&["test-webhook", &fixture.webhook]);
    assert_eq!((&shown["state"], &shown["test"]), (&json!("exhausted"), &json!(true)), "{shown}");
    let attempts = fixture.endpoint.take();
    assert_eq!(attempts.len(), 1, "a test delivery is not retried");
    let body: Value = serde_json::from_str(&attempts[0].body).expect("JSON");
    assert_eq!(body["metadata"]["test"], true);
    assert_eq!(body["sessionId"], shown["sessionId"]);
    assert!(attempts[0].signed_with(&fixture.secret));
}

async fn both_secrets_sign_during_a_rotation(kind: Kind) {
    let fixture = Fixture::start(kind, Endpoint::start(|_| Reply::Status(204)).await, &[]).await;
    let rotate = ["rotate-webhook-secret", &fixture.webhook, "--overlap-hours"];
    let fresh = |hours: &str| {
        let made = fixture.deployment.admin(&[&rotate[..], &[hours]].concat());
        made["secret"].as_str().expect("a secret").to_owned()
    };
    let second = fresh("1");
    fixture.end_one().await;
    let both = fixture.attempts(1).await.remove(0);
    assert!(both.signed_with(&fixture.secret) && both.signed_with(&second));
    let third = fresh("0");
    fixture.end_one().await;
    let one = fixture.attempts(1).await.remove(0);
    assert!(
        one.signed_with(&third) && !one.signed_with(&second) && !one.signed_with(&fixture.secret)
    );
    assert_eq!(one.header("x-webhook-signature"), one.header("webhook-signature"));
    let dump = fixture.deployment.database.dump().await;
    assert!([&fixture.secret, &second, &third].iter().all(|secret| !dump.contains(*secret)));
}

async fn exhausted_deliveries_can_be_resent(kind: Kind) {
    let gone = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let is_gone = gone.clone();
    let endpoint = Endpoint::start(move |_| {
        let gone = is_gone.load(std::sync::atomic::Ordering::SeqCst);
        Reply::Status(if gone { 500 } else { 204 })
    })
    .await;
    let fixture = Fixture::start(kind, endpoint, &["--retries", "0"]).await;
    for _ in 0..3 {
        fixture.end_one().await;
    }
    let before = fixture.attempts(3).await;
    fixture.until_state("exhausted").await;
    gone.store(false, std::sync::atomic::Ordering::SeqCst);
    let span = ["--from", "2026-01-01T00:00:00Z", "--to", "2100-01-01T00:00:00Z"];
    let again = [&["resend-exhausted", "--webhook", &fixture.webhook][..], &span].concat();
    assert_eq!(fixture.deployment.admin(&again)["sent"], 3);
    let mut ids: Vec<_> = fixture
        .attempts(3)
        .await
        .into_iter()
        .chain(before)
        .map(|attempt| attempt.header("webhook-id").to_owned())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 3, "the same identifiers");
    fixture.until_state("delivered").await;
}

async fn an_inactive_webhook_gets_no_deliveries_for_what_ends_meanwhile(kind: Kind) {
    let fixture = Fixture::start(kind, Endpoint::start(|_| Reply::Status(204)).await, &[]).await;
    let switch =
        |on: &str| fixture.deployment.admin(&["set-webhook", &fixture.webhook, "--active", on]);
    switch("false");
    fixture.end_one().await;
    switch("true");
    let told = fixture.end_one().await;
    let attempt = fixture.attempts(1).await.remove(0);
    assert_eq!(
        attempt.field("sessionId"),
        told,
        "sessions that ended while it was inactive cause no delivery"
    );
    assert_eq!(fixture.endpoint.count(), 0);
}

async fn a_webhook_gets_the_sessions_of_its_keys_only(kind: Kind) {
    let mut deployment = Deployment::prepare(kind).await;
    let team = deployment.team.clone();
    let make = ["create-key", "--team", &team, "--environment", "development"];
    let other = deployment.admin(&make)["keyId"].as_str().expect("a key").to_owned();
    let endpoint = Endpoint::start(|_| Reply::Status(204)).await;
    deployment.set("AVOUCH_EGRESS_ALLOW", "127.0.0.1/32");
    for (path, keys) in [("all", &[][..]), ("other", &["--key", &other][..])] {
        let url = endpoint.url(path);
        let order = ["create-webhook", "--team", &team, "--url", &url];
        deployment.admin(&[&order[..], keys].concat());
    }
    deployment.run().await;
    let session = deployment.create(&json!({})).await;
    let id = session["sessionId"].as_str().expect("a session");
    deployment.partner.delete(&format!("browser-session/{id}")).await;
    eventually("a delivery", TIMEOUT, async || (endpoint.count() > 0).then_some(())).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let paths: Vec<_> = endpoint.take().into_iter().map(|attempt| attempt.path).collect();
    assert_eq!(paths, ["/all"]);
}
