//! The conditions of which alerts warn are seen in the metrics of a running service. The rules themselves have
//! tests of their own (`deploy/prometheus/alerts.test.yaml`).

use std::{collections::BTreeMap, time::Duration};

use acceptance::{
    applicant::Applicant, cuttable_proxy::CuttableProxy, database::Kind, eventually,
    service::Deployment,
};
use hyper::{Method, StatusCode};
use serde_json::json;

/// Longer than the interval in which queues are read, than a process without a database counts as ready,
/// and than a browser is started again and an applicant who left is waited for.
const TIMEOUT: Duration = Duration::from_secs(180);

/// The metrics of a deployment at one moment.
struct Scrape(BTreeMap<String, f64>);

impl Scrape {
    async fn of(deployment: &Deployment) -> Self {
        let answer = deployment.partner.send(Method::GET, "/metrics", String::new()).await;
        let text = String::from_utf8_lossy(&answer.bytes);
        let samples = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        });
        Self(samples.collect())
    }

    /// Returns the value of a time series; not a number if there is none.
    fn get(&self, series: &str) -> f64 {
        self.0.get(series).copied().unwrap_or(f64::NAN)
    }
}

/// Waits until the metrics meet a condition, and returns them.
async fn until(deployment: &Deployment, what: &str, condition: impl Fn(&Scrape) -> bool) -> Scrape {
    eventually(what, TIMEOUT, async || {
        Some(Scrape::of(deployment).await).filter(|scrape| condition(scrape))
    })
    .await
}

/// `AvouchBrowsersFull` and `AvouchDrainsLong`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn applicants_that_wait_and_processes_that_drain_are_seen() {
    let mut deployment = Deployment::prepare(Kind::Postgres).await;
    deployment.set("AVOUCH_BROWSERS", "1");
    deployment.run().await;
    let idle = until(&deployment, "a ready process", |now| now.get("avouch_ready") >= 1.0).await;
    assert!(idle.get("avouch_browser_slots_used") < 1.0, "{:?}", idle.0);
    let (first, second) =
        (Applicant::visit(&deployment.demo).await, Applicant::visit(&deployment.demo).await);
    let links = [deployment.create(&json!({})).await, deployment.create(&json!({})).await]
        .map(|session| session["embedUrl"].as_str().expect("a link").to_owned());
    let signing_in = first.show(&links[0]).await;
    signing_in.until_prompted("Sign in").await;
    let _queued = second.show(&links[1]).await;
    let full = until(&deployment, "an applicant who waits", |now| {
        now.get("avouch_browser_oldest_wait_seconds") > 2.0
    })
    .await;
    for (series, value) in [
        ("avouch_browser_slots", 1.0),
        ("avouch_browser_slots_used", 1.0),
        ("avouch_browser_waiting", 1.0),
        ("avouch_sessions{status=\"AWAITING_USER\"}", 1.0),
        ("avouch_sessions{status=\"INITIALIZING\"}", 1.0),
        ("avouch_viewers{kind=\"applicant\"}", 2.0),
        ("avouch_browser_start_seconds_count{outcome=\"started\"}", 1.0),
        ("avouch_session_first_frame_seconds_count", 1.0),
        ("avouch_draining", 0.0),
    ] {
        assert!((full.get(series) - value).abs() < 0.1, "{series}: {:?}", full.0);
    }

    deployment.send_sigterm();
    let draining =
        until(&deployment, "the process to drain", |now| now.get("avouch_draining") >= 1.0).await;
    assert!(draining.get("avouch_browser_slots") >= 1.0, "the metrics are served meanwhile");
    until(&deployment, "the process not to be ready", |now| now.get("avouch_ready") < 1.0).await;
    first.close().await;
    second.close().await;
}

/// `AvouchEndpointPaused` and `AvouchDeliveriesExhausted`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endpoints_that_are_down_are_seen() {
    let mut deployment = Deployment::prepare(Kind::Postgres).await;
    deployment.set("AVOUCH_EGRESS_ALLOW", "127.0.0.1/32");
    let nowhere = format!("http://127.0.0.1:{}/hook", acceptance::free_port());
    let team = deployment.team.clone();
    deployment.admin(&["create-webhook", "--team", &team, "--url", &nowhere]);
    deployment.admin(&["create-webhook", "--team", &team, "--url", &nowhere, "--retries", "0"]);
    deployment.run().await;
    for _ in 0..15 {
        let session = deployment.create(&json!({})).await;
        let id = session["sessionId"].as_str().expect("a session").to_owned();
        deployment.partner.delete(&format!("browser-session/{id}")).await;
    }
    let down = until(&deployment, "deliveries that wait for the endpoint", |now| {
        now.get("avouch_queue_due{queue=\"paused_deliveries\"}") >= 1.0
            && now.get("avouch_queue_oldest_due_seconds{queue=\"paused_deliveries\"}") > 0.0
    })
    .await;
    assert!(
        down.get("avouch_delivery_attempts_total{outcome=\"connect\"}") >= 10.0,
        "{:?}",
        down.0
    );
    assert!(down.get("avouch_deliveries_exhausted_total") >= 1.0, "{:?}", down.0);
    assert!(
        down.get("avouch_queue_oldest_due_seconds{queue=\"deliveries\"}") < 30.0,
        "the endpoint that works is not late: {:?}",
        down.0
    );
    assert!(down.get("avouch_delivery_wait_seconds_count") >= 1.0, "{:?}", down.0);
}

/// `AvouchBrowserStartsFail` and `AvouchSessionsFail`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn browsers_that_do_not_start_are_seen() {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    deployment.set("AVOUCH_BROWSER", "/bin/false");
    deployment.set("AVOUCH_BROWSER_JAIL", "off");
    deployment.run().await;
    let session = deployment.create(&json!({})).await;
    let applicant = Applicant::visit(&deployment.demo).await;
    let page = applicant.show(session["embedUrl"].as_str().expect("a link")).await;
    let failed = "avouch_browser_start_seconds_count{outcome=\"failed\"}";
    // As often as a browser is started for one attempt.
    until(&deployment, "starts that fail", |now| now.get(failed) >= 5.0).await;
    page.click("[data-testid=retry-decline]").await;
    let closed =
        "avouch_sessions_closed_total{status=\"ERROR\",error_code=\"BROWSER_UNAVAILABLE\"}";
    until(&deployment, "a session that fails", |now| now.get(closed) >= 1.0).await;
    applicant.close().await;
}

/// `AvouchNotReady` and `AvouchDatabasePoolFull`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_gone_is_seen() {
    let mut deployment = Deployment::prepare(Kind::Postgres).await;
    let mut url = url::Url::parse(&deployment.database.url).expect("a URL");
    let server = format!("{}:{}", url.host_str().expect("a host"), url.port().unwrap_or(5432));
    let proxy = CuttableProxy::to(&server).await;
    url.set_host(Some("127.0.0.1")).expect("a host");
    url.set_port(Some(proxy.port)).expect("a port");
    deployment.set("AVOUCH_DATABASE_URL", url.as_str());
    deployment.run().await;
    let is_ready = |now: &Scrape| now.get("avouch_ready") >= 1.0;
    let before = until(&deployment, "a ready process", is_ready).await;
    assert!(before.get("avouch_queue_due{queue=\"jobs\"}") < 1.0, "{:?}", before.0);

    proxy.disconnect();
    let gone =
        until(&deployment, "a process that is not ready", |now| now.get("avouch_ready") < 1.0)
            .await;
    assert!(gone.get("avouch_draining") < 1.0, "{:?}", gone.0);
    let failed = "avouch_database_connection_wait_seconds_count{outcome=\"failed\"}";
    until(&deployment, "connections that fail", |now| now.get(failed) > 5.0).await;
    until(&deployment, "queues that are not known", |now| {
        now.0.contains_key("avouch_queue_due{queue=\"jobs\"}")
            && now.get("avouch_queue_due{queue=\"jobs\"}").is_nan()
    })
    .await;
    let ready = deployment.partner.send(Method::GET, "/readyz", String::new()).await;
    assert_eq!(ready.status, StatusCode::SERVICE_UNAVAILABLE);

    proxy.reconnect();
    until(&deployment, "a process that is ready again", is_ready).await;
}
