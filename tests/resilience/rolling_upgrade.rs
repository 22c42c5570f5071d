//! A release replaces the one before it behind a load balancer, instance by instance, while a partner
//! sends requests and applicants are in the middle of a sign-in.
//!
//! `AVOUCH_PREVIOUS_BIN` names the program of the earlier release. Without it, the same program plays
//! both parts, and one migration is made pending. `ROLLING_APPLICANTS` (1) is the number of applicants
//! who sign in before the first instance is replaced; one more comes meanwhile. At least one of the three
//! instances has no applicant then.

use std::{
    env, fs,
    path::PathBuf,
    process::Stdio,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use acceptance::{
    applicant::Applicant,
    cluster::Cluster,
    database::Kind,
    eventually,
    partner::Partner,
    root,
    service::{Deployment, binary},
};
use hyper::Method;
use serde_json::{Value, json};
use testkit::redis::RedisServer;

const INSTANCES: usize = 3;
const TIMEOUT: Duration = Duration::from_secs(60);
/// The time between two requests of each partner.
const REQUEST_INTERVAL: Duration = Duration::from_millis(60);
const PARTNERS: usize = 2;
/// A migration whose table no request of this test needs, made pending where no earlier release is named.
const MIGRATION: (&str, &str) = ("0027", "0027_definition_drafts");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_and_no_applicant_signs_in_again_while_instances_are_replaced() {
    let count = env::var("ROLLING_APPLICANTS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let previous = env::var_os("AVOUCH_PREVIOUS_BIN").map(PathBuf::from);
    let redis = RedisServer::start();
    let program = previous.clone().unwrap_or_else(binary);
    let mut deployment = Deployment::prepare_with(Kind::Postgres, program).await;
    deployment.set("AVOUCH_REDIS_URL", redis.url());
    deployment.set("AVOUCH_MIGRATE", "never");
    deployment.set("AVOUCH_DRAIN_MIN_SECONDS", "2");
    let mut cluster = Cluster::start(deployment, &[4; INSTANCES], true).await;
    if previous.is_none() {
        make_pending(&cluster.deployment).await;
    }
    let load = Load::start(&cluster.deployment).await;
    let mut visits = Vec::new();
    for _ in 0..count {
        visits.push(Visit::begin(&cluster).await);
    }

    cluster.deployment.program = binary();
    migrate(&cluster.deployment);
    let began = Instant::now();
    for number in 0..INSTANCES {
        let asked = Instant::now();
        cluster.send_sigterm(number);
        cluster.until_balanced(INSTANCES - 1).await;
        if number == 0 {
            visits.push(Visit::begin(&cluster).await);
        }
        let (mut here, elsewhere): (Vec<_>, Vec<_>) =
            visits.into_iter().partition(|visit| visit.instance == number);
        visits = elsewhere;
        let ending = here.len();
        while let Some(visit) = here.pop() {
            visit.end(&cluster).await;
        }
        let status = cluster.ended(number, TIMEOUT).await;
        assert!(status.success(), "instance {number}: {status}");
        let drained = asked.elapsed();
        cluster.run(number).await;
        cluster.until_balanced(INSTANCES).await;
        println!(
            "instance {number}: {ending} applicants ended there, drained in {drained:.1?}, replaced after {:.1?}",
            asked.elapsed()
        );
    }
    println!("{INSTANCES} instances were replaced in {:.1?}", began.elapsed());
    assert!(visits.is_empty(), "every applicant's instance was replaced");
    load.end().await;
}

/// An applicant who has typed user name and password, and is asked for a code.
struct Visit {
    id: String,
    applicant: Applicant,
    /// The instance that runs the session's browser.
    instance: usize,
}

impl Visit {
    async fn begin(cluster: &Cluster) -> Self {
        let before = cluster.sessions().await;
        let session = cluster.deployment.create(&json!({})).await;
        let text = |name: &str| session[name].as_str().expect("a text").to_owned();
        let (id, applicant) = (text("sessionId"), Applicant::visit(&text("embedUrl")).await);
        let page = applicant.top_level();
        page.click("[data-testid=start]").await;
        page.sign_in("otp", "any").await;
        page.until_prompted("Enter the code").await;
        let instance = eventually("an instance to report the session", TIMEOUT, async || {
            let now = cluster.sessions().await;
            now.iter().zip(&before).position(|(now, before)| now > before)
        })
        .await;
        Self { id, applicant, instance }
    }

    /// Types the code, shares, and leaves. The session has had one browser, and one sign-in.
    async fn end(self, cluster: &Cluster) {
        let page = self.applicant.top_level();
        page.until_prompted("Enter the code").await;
        page.answer("123456").await;
        page.click("[data-testid=consent-approve]").await;
        assert_eq!(page.until_outcome().await, "COMPLETED");
        self.applicant.close().await;
        let timeline = cluster.deployment.partner.timeline(&self.id).await;
        let begun = timeline.iter().filter(|(event, _)| event == "BrowserStarted").count();
        let lost = timeline.iter().any(|(event, _)| event == "BrowserLost");
        assert!(begun == 1 && !lost, "the applicant had to sign in again: {timeline:?}");
    }
}

/// Undoes a migration that the running instances do not need, so that it is pending.
async fn make_pending(deployment: &Deployment) {
    let (version, name) = MIGRATION;
    let down = root().join("migrations/postgres").join(name).join("down.sql");
    let down = fs::read_to_string(down).expect("a migration");
    let delete = format!("DELETE FROM __diesel_schema_migrations WHERE version = '{version}'");
    deployment.database.execute(&format!("{down};{delete}")).await;
}

fn migrate(deployment: &Deployment) {
    let began = Instant::now();
    let migrate = deployment.command().arg("migrate").stderr(Stdio::inherit()).output();
    let migrate = migrate.expect("avouch runs");
    let printed = String::from_utf8_lossy(&migrate.stdout);
    assert!(migrate.status.success() && printed.contains("00"), "{printed}");
    println!("migrate took {:.1?}: {}", began.elapsed(), printed.trim());
}

/// Partners that send requests at a steady rate through the load balancer.
struct Load {
    stop: Arc<AtomicBool>,
    sent: Arc<Mutex<Sent>>,
    partners: Vec<tokio::task::JoinHandle<()>>,
}

#[derive(Default)]
struct Sent {
    took: Vec<Duration>,
    failures: Vec<String>,
}

impl Load {
    async fn start(deployment: &Deployment) -> Self {
        let platforms = deployment.partner.get("browser-platforms").await;
        let body = json!({
            "platformId": platforms.at("/data/0/id"), "location": { "country": "US" },
            "externalReferenceId": "rolling",
        });
        let (stop, sent) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Sent>>::default());
        let partners = (0..PARTNERS).map(|_| {
            let partner = deployment.partner.clone();
            tokio::spawn(one_partner(partner, body.clone(), Arc::clone(&stop), Arc::clone(&sent)))
        });
        Self { partners: partners.collect(), stop, sent }
    }

    /// Prints the figures; panics if a request failed.
    async fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for partner in self.partners {
            partner.await.unwrap();
        }
        let Sent { mut took, failures } = std::mem::take(&mut *self.sent.lock().unwrap());
        took.sort();
        let at = |percent: usize| took[(took.len() - 1) * percent / 100].as_secs_f64() * 1e3;
        let (p50, p99, longest) = (at(50), at(99), at(100));
        println!(
            "{} requests, {} failed; p50 {p50:.1} ms, p99 {p99:.1} ms, longest {longest:.1} ms",
            took.len(),
            failures.len()
        );
        let shown = failures.iter().take(10).map(String::as_str).collect::<Vec<_>>().join("\n");
        assert!(failures.is_empty(), "{} requests failed, the first:\n{shown}", failures.len());
    }
}

/// Creates a session, polls it, lists sessions and ends it, until the load ends.
async fn one_partner(partner: Partner, body: Value, stop: Arc<AtomicBool>, sent: Arc<Mutex<Sent>>) {
    let mut pace = tokio::time::interval(REQUEST_INTERVAL);
    pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut request = async |method: Method, path: &str, body: &Value, expected: u16| {
        pace.tick().await;
        let began = Instant::now();
        let answer = partner.try_call(method.clone(), path, body).await;
        let mut sent = sent.lock().unwrap();
        sent.took.push(began.elapsed());
        match answer {
            Ok(answer) if answer.status == expected => Some(answer),
            Ok(answer) => {
                sent.failures.push(format!("{method} {path}: {} {}", answer.status, answer.body));
                None
            }
            Err(error) => {
                sent.failures.push(format!("{method} {path}: {error}"));
                None
            }
        }
    };
    while !stop.load(Ordering::Relaxed) {
        let Some(created) = request(Method::POST, "browser-session", &body, 201).await else {
            continue;
        };
        let id = created.at("/data/sessionId").as_str().unwrap_or_default().to_owned();
        let path = format!("browser-session/{id}");
        for read in [&path, "browser-sessions", &path] {
            request(Method::GET, read, &Value::Null, 200).await;
        }
        request(Method::DELETE, &path, &Value::Null, 200).await;
    }
}
