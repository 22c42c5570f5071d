//! The throughput of webhook deliveries, compared with a bare client that posts the same bodies in
//! the same run: `cargo xtask bench webhooks`.

mod common {
    pub(super) mod isolation;
}

use std::{
    env, fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use acceptance::{
    database::Kind,
    eventually, root,
    service::Deployment,
    webhook_endpoint::{Attempt, Endpoint, Reply},
};
use chrono::{DateTime, Utc};
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, body::Bytes};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use ports::delivery::{ClaimRequest, DeliveryQueue as _};
use serde_json::{Value, json};
use store::Store;
use system::encryption::XChaChaCipher;

use self::common::isolation::isolation;

/// Deliveries of one run, and the number of rounds of the service and the baseline in turn.
const DELIVERIES: usize = 60_000;
const ROUNDS: usize = 3;
/// Concurrent calls of the baseline: as many as the service makes to one endpoint.
const CONCURRENT_CALLS: usize = 128;
/// Sessions that are ended one after another, to measure the time from commit to arrival.
const ENDED_SESSIONS: usize = 1000;
const CLAIM_ROUNDS: usize = 40;

#[tokio::main]
async fn main() {
    // Runs one named part alone: `cargo bench … -- isolation`.
    let named = env::args().nth(1).filter(|name| !name.starts_with('-'));
    let wanted = |part: &str| named.as_ref().is_none_or(|name| name == part);
    let mut report = Vec::new();
    if wanted("isolation") {
        report.push(isolation().await);
    }
    if wanted("deliveries") {
        report.extend(deliveries().await);
    }
    if named.is_some() {
        return;
    }
    let folder = root().join("target/bench");
    fs::create_dir_all(&folder).expect("a folder");
    let text = serde_json::to_string_pretty(&json!({ "figures": report })).expect("a report");
    fs::write(folder.join("webhooks.json"), text).expect("a file");
}

async fn deliveries() -> Vec<Value> {
    let endpoint = Endpoint::start(|_| Reply::Status(204)).await;
    let mut bench = Bench::prepare(endpoint).await;
    let mut pairs = vec![];
    for _ in 0..ROUNDS {
        pairs.push((bench.drain(DELIVERIES).await, bench.bare(DELIVERIES).await));
    }
    pairs.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
    let (ours, base) = pairs[ROUNDS / 2];
    let ratio = ours / base;
    println!("deliveries: {ours:.0}/s; bare hyper client: {base:.0}/s; ratio {ratio:.2}");
    let deliveries = json!({
        "name": "deliveries", "perSecond": ours, "base": "bare hyper client",
        "basePerSecond": base, "ratio": ratio,
    });
    vec![deliveries, bench.commit_to_arrival().await, bench.claims().await]
}

struct Bench {
    deployment: Deployment,
    endpoint: Endpoint,
    database: tokio_postgres::Client,
    webhook: String,
    body: String,
}

impl Bench {
    async fn prepare(endpoint: Endpoint) -> Self {
        let mut deployment = Deployment::prepare(Kind::Postgres).await;
        deployment.set("AVOUCH_LOG", "warn");
        deployment.set("AVOUCH_EGRESS_ALLOW", "127.0.0.1/32");
        let team = deployment.team.clone();
        let url = endpoint.url("hook");
        let made = deployment.admin(&["create-webhook", "--team", &team, "--url", &url]);
        let webhook = made["webhookId"].as_str().expect("a webhook").to_owned();
        let url = &deployment.database.url;
        let (database, connection) =
            tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("a connection");
        tokio::spawn(connection);
        // The demo partner's webhook is not part of the measurement.
        let other = "UPDATE webhooks SET active = false WHERE url NOT LIKE '%/hook'";
        database.batch_execute(other).await.expect("one webhook");
        deployment.run().await;
        let mut bench = Self { deployment, endpoint, database, webhook, body: String::new() };
        bench.end_one().await;
        eventually("a delivery", Duration::from_secs(5), async || {
            (bench.endpoint.count() == 1).then_some(())
        })
        .await;
        bench.body = bench.endpoint.take().remove(0).body;
        bench
    }

    async fn end_one(&self) {
        let session = self.deployment.create(&json!({})).await;
        let id = session["sessionId"].as_str().expect("a session");
        self.deployment.partner.delete(&format!("browser-session/{id}")).await;
    }

    /// Inserts deliveries that are all due at once.
    async fn owe(&self, many: usize) {
        let (webhook, body) = (&self.webhook, self.body.replace('\'', "''"));
        self.database
            .batch_execute(&format!(
                "BEGIN; CREATE SEQUENCE IF NOT EXISTS ids;
                 CREATE TEMP TABLE fresh ON COMMIT DROP AS
                   SELECT lpad(to_hex(nextval('ids')), 32, '0')::uuid AS id,
                     gen_random_uuid() AS session FROM generate_series(1, {many});
                 INSERT INTO notices (id, test, body) SELECT id, false, '{body}' FROM fresh;
                 INSERT INTO deliveries (id, webhook, session, notice, created_at)
                   SELECT id, '{webhook}', session, id, now() FROM fresh;
                 INSERT INTO delivery_queue (delivery, webhook, session, notice, since, due)
                   SELECT id, '{webhook}', session, id, now(), clock_timestamp() FROM fresh;
                 COMMIT;"
            ))
            .await
            .expect("deliveries");
    }

    /// Returns deliveries per second, from the first to the last of those that are due.
    async fn drain(&mut self, many: usize) -> f64 {
        self.deployment.kill();
        self.owe(many).await;
        self.database.batch_execute("VACUUM ANALYZE").await.expect("statistics");
        self.deployment.run().await;
        let patience = Duration::from_secs(300);
        eventually("all deliveries", patience, async || {
            (self.endpoint.count() >= many).then_some(())
        })
        .await;
        rate(self.endpoint.take().iter().map(|attempt| attempt.at).collect())
    }

    /// Returns the same figure for a bare client.
    async fn bare(&self, many: usize) -> f64 {
        let client: Client<HttpConnector, Full<Bytes>> =
            Client::builder(TokioExecutor::new()).build_http();
        let (url, left) = (self.endpoint.url("hook"), Arc::new(AtomicUsize::new(many)));
        let tasks = (0..CONCURRENT_CALLS).map(|_| {
            let (client, url, body, left) =
                (client.clone(), url.clone(), self.body.clone(), left.clone());
            tokio::spawn(async move {
                while left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
                    .is_ok()
                {
                    let request = Request::post(&url)
                        .header("content-type", "application/json")
                        .body(Full::new(Bytes::from(body.clone())))
                        .expect("a request");
                    let answer = client.request(request).await.expect("an answer");
                    answer.into_body().collect().await.expect("its body");
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.expect("all posts succeed");
        }
        rate(self.endpoint.take().iter().map(|attempt| attempt.at).collect())
    }

    /// Measures the time from the end of a session, as the body states it, to the delivery's
    /// arrival.
    async fn commit_to_arrival(&self) -> Value {
        for _ in 0..ENDED_SESSIONS {
            self.end_one().await;
        }
        eventually("all deliveries", Duration::from_secs(30), async || {
            (self.endpoint.count() >= ENDED_SESSIONS).then_some(())
        })
        .await;
        let mut times: Vec<_> = self.endpoint.take().iter().map(waited).collect();
        times.sort_by(f64::total_cmp);
        let at = |percent: usize| times[(times.len() - 1) * percent / 100];
        let (p50, p99) = (at(50), at(99));
        println!("decision to arrival, one after another: p50 {p50:.1} ms, p99 {p99:.1} ms");
        json!({ "name": "decision to arrival", "p50Ms": p50, "p99Ms": p99 })
    }

    /// Measures the cost of a claim with a thousand due deliveries, and with a million.
    async fn claims(&mut self) -> Value {
        self.deployment.kill();
        let url = self.deployment.database.url.clone();
        let store =
            Store::open(&url, self.seal()).await.expect("a store").with_pipelined_connection();
        let mut costs = vec![];
        for many in [1_000, 999_000] {
            self.owe(many).await;
            self.database.batch_execute("VACUUM ANALYZE").await.expect("statistics");
            let mut times = vec![];
            for _ in 0..CLAIM_ROUNDS {
                let ask = ClaimRequest {
                    now: SystemTime::now().into(),
                    after: None,
                    limit: 20,
                    each: 20,
                    capacities: vec![],
                };
                let began = Instant::now();
                let claimed = store.claim_deliveries(&ask).await.expect("a claim");
                times.push(began.elapsed().as_secs_f64() * 1e3);
                assert_eq!(claimed.deliveries.len(), 20);
            }
            times.sort_by(f64::total_cmp);
            costs.push(times[CLAIM_ROUNDS / 2]);
        }
        let ratio = costs[1] / costs[0];
        println!(
            "a claim of 20 of 1,000: {:.2} ms; of 1,000,000: {:.2} ms; ratio {ratio:.2}",
            costs[0], costs[1]
        );
        self.deployment.run().await;
        let before = self.deployment.resident_kib();
        let many = 200_000;
        eventually("a fifth of the backlog", Duration::from_secs(120), async || {
            (self.endpoint.count() >= many).then_some(())
        })
        .await;
        let after = self.deployment.resident_kib();
        let early = self.endpoint.take();
        let speed = rate(early.iter().map(|attempt| attempt.at).collect());
        println!(
            "resident memory with that backlog: {} MiB, {} MiB after {many} at {speed:.0}/s",
            before / 1024,
            after / 1024
        );
        json!({ "name": "claim", "millisOf1000": costs[0], "millisOf1000000": costs[1], "ratio": ratio,
            "residentKiB": after, "perSecondWithBacklog": speed })
    }

    /// The key with which the deployment encrypts its secrets.
    fn seal(&self) -> Arc<XChaChaCipher> {
        let key = fs::read(self.deployment.data().join("secret.key")).expect("the key");
        let named = [key.as_slice(), b":avouch:seal"].concat();
        let digest = ring::digest::digest(&ring::digest::SHA256, &named);
        Arc::new(XChaChaCipher::new(digest.as_ref().try_into().expect("32 bytes")))
    }
}

/// Returns the milliseconds from the end of a session, as the body states it, to the arrival.
fn waited(attempt: &Attempt) -> f64 {
    let ended: DateTime<Utc> = attempt.field("completedAt").parse().expect("a moment");
    let waited = attempt.at.duration_since(SystemTime::from(ended)).unwrap_or_default();
    waited.as_secs_f64() * 1e3
}

/// Returns the rate per second between the first and the last time.
fn rate(mut times: Vec<SystemTime>) -> f64 {
    times.sort_unstable();
    let (first, last) = (times[0], times[times.len() - 1]);
    let seconds = last.duration_since(first).unwrap_or_default().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a million at most")]
    let count = times.len() as f64;
    count / seconds
}
