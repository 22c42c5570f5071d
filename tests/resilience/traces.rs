//! Traces of sessions over several processes, as a collector receives them.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    process::{Child, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use acceptance::{
    applicant::Applicant,
    collector::{Behaviour, CollectedSpan, Collector},
    database::Kind,
    eventually, free_port,
    service::Deployment,
    viewer::{Viewer, secret},
    webhook_endpoint::{Endpoint, Reply},
};
use hyper::Method;
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(60);
const PASSWORD: &str = "canary-password";
const REFERENCE: &str = "canary-reference";
const ADDRESS: &str = "canary-ada@example.com";
const PARTNERS_TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARTNERS_SPAN: &str = "00f067aa0ba902b7";

/// A process of a deployment, killed when it is dropped.
struct Running(Child);

impl Running {
    /// Starts the process that sends webhooks. Its log has the form of JSON.
    fn delivering(deployment: &Deployment) -> Self {
        let mut command = deployment.command();
        command.env("AVOUCH_LISTEN", format!("127.0.0.1:{}", free_port()));
        let log = File::create(deployment.folder.path().join("log-delivery")).unwrap();
        command.env("AVOUCH_LOG_FORMAT", "json");
        command.args(["serve", "--role", "delivery"]).stdout(Stdio::null()).stderr(log);
        Self(command.spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A deployment whose spans go to this collector.
async fn traced(collector: &str) -> Deployment {
    let mut deployment = Deployment::prepare(Kind::Postgres).await;
    deployment.set("OTEL_EXPORTER_OTLP_ENDPOINT", collector);
    deployment
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_one_trace_from_its_creation_to_its_delivery_by_three_processes() {
    let collector = Collector::start(Behaviour::Accept).await;
    let mut deployment = traced(&collector.url).await;
    deployment.set("AVOUCH_EGRESS_ALLOW", "127.0.0.1/32");
    deployment.set("AVOUCH_ROLE", "api,browser");
    // The endpoint is not available at first.
    let asked = AtomicUsize::new(0);
    let endpoint = Endpoint::start(move |_| {
        Reply::Status(if asked.fetch_add(1, Ordering::Relaxed) == 0 { 503 } else { 204 })
    })
    .await;
    let url = endpoint.url("canary-path?token=canary-token");
    deployment.admin(&["create-webhook", "--team", &deployment.team, "--url", &url]);
    deployment.run().await;
    let other = deployment.second_process().await;
    let _delivering = Running::delivering(&deployment);

    let platform = deployment.platform("acme-sandbox").await;
    let body = json!({
        "platformId": platform, "location": { "country": "US" },
        "externalReferenceId": REFERENCE, "notificationPlatformId": 1,
        "receiverData": { "name": "Ada Canary", "email": ADDRESS },
    });
    let parent = format!("00-{PARTNERS_TRACE}-{PARTNERS_SPAN}-00");
    let headers = [("traceparent", parent.as_str())];
    let path = "/v1/partner/browser-session";
    let created = other.partner.send_with(Method::POST, path, body.to_string(), &headers).await;
    let session = created.at("/data").clone();
    let (id, link) = (text(&session, "sessionId"), text(&session, "embedUrl"));
    deployment.partner.until_notification(id, "NotificationSent", None).await;

    let applicant = Applicant::visit(link).await;
    let page = applicant.top_level();
    page.click("[data-testid=start]").await;
    page.until_prompted("Sign in").await;
    page.sign_in("ok", PASSWORD).await;
    page.click("[data-testid=consent-approve]").await;
    let ended = deployment.until(id, "COMPLETED", TIMEOUT).await;
    applicant.close().await;
    eventually("the deliveries", TIMEOUT, async || {
        (endpoint.count() >= 2 && !deployment.deliveries(id).await.is_empty()).then_some(())
    })
    .await;

    let trace = id.replace('-', "");
    let spans = eventually("the trace", Duration::from_secs(60), async || {
        let spans = collector.trace(&trace);
        let count = |name| spans.iter().filter(|span| span.name == name).count();
        (count("webhook.attempt") >= 3 && count("session") == 1).then_some(spans)
    })
    .await;
    println!("{}", drawn(&spans));
    let root = has_one_root(&spans);
    assert_eq!(root.attribute("avouch.session.status"), "COMPLETED");
    assert_eq!(root.attribute("avouch.session.id"), id);
    has_all_statuses(&spans, root);
    has_what_happened_within(&spans);
    let instances: BTreeSet<_> = spans.iter().map(|span| span.instance.as_str()).collect();
    assert_eq!(instances.len(), 3, "one that created it, one that ran it, one that delivered");

    let polls = eventually("the poll that saw the end", TIMEOUT, async || {
        let route = "GET /v1/partner/browser-session/{id}";
        let mut spans = collector.spans();
        spans.retain(|span| span.name == route && span.attribute("avouch.session.id") == id);
        (!spans.is_empty()).then_some(spans)
    });
    for poll in polls.await {
        assert!(poll.trace != trace && poll.parent.is_empty());
        assert_eq!(poll.links, [(trace.clone(), root.id.clone())]);
        is_logged_with_its_trace(&deployment, &poll);
    }
    logs_lead_to_the_trace(&deployment, id, &trace);

    let (_, token) = link.split_once("token=").unwrap();
    let fixed = [PASSWORD, REFERENCE, ADDRESS, "Ada Canary", "canary-path", "canary-token", token];
    let mut canaries: Vec<_> = fixed.into_iter().map(str::to_owned).collect();
    canaries.extend([deployment.api_key.clone(), deployment.webhook_secret.clone()]);
    let collected = texts(&ended["extractedData"]);
    assert!(!collected.is_empty(), "{ended:#}");
    canaries.extend(collected);
    for canary in canaries {
        assert!(!collector.has_seen(&canary), "{canary} was sent to the collector");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_status_that_another_process_ends_has_a_span_as_well() {
    let collector = Collector::start(Behaviour::Accept).await;
    let mut deployment = traced(&collector.url).await;
    deployment.run().await;
    let other = deployment.second_process().await;
    let session = deployment.create(&json!({})).await;
    let id = text(&session, "sessionId");
    let mut viewer = Viewer::open(text(&session, "embedUrl"), &secret('a')).await;
    viewer.until("state", |state| state["status"] == "AWAITING_USER").await;
    let deleted = other.partner.delete(&format!("browser-session/{id}")).await;
    assert_eq!(deleted.status, 200, "{}", deleted.body);
    let trace = id.replace('-', "");
    let spans = eventually("the trace", Duration::from_secs(60), async || {
        let spans = collector.trace(&trace);
        let all = ["session", "session.awaiting_user", "session.running", "webhook.attempt"];
        let has = |name: &&str| spans.iter().any(|span| span.name == *name);
        all.iter().all(has).then_some(spans)
    })
    .await;
    let root = has_one_root(&spans);
    let named = |name| spans.iter().find(|span| span.name == name).unwrap();
    let (running, asked) = (named("session.running"), named("session.awaiting_user"));
    assert_eq!((running.end, asked.end), (asked.start, root.end), "{}", drawn(&spans));
    assert_eq!(asked.instance, root.instance);
    assert_ne!(asked.instance, running.instance);
    assert_eq!(asked.attribute("avouch.session.event"), "TerminatedByPartner");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_hangs_or_is_gone_holds_no_session_up() {
    let hanging = Collector::start(Behaviour::Hang).await;
    let gone = format!("http://127.0.0.1:{}", free_port());
    for url in [&hanging.url, &gone] {
        let mut deployment = traced(url).await;
        deployment.set("OTEL_EXPORTER_OTLP_TIMEOUT", "500");
        deployment.run().await;
        let session = deployment.create(&json!({})).await;
        let id = text(&session, "sessionId");
        let applicant = Applicant::visit(text(&session, "embedUrl")).await;
        let page = applicant.top_level();
        page.click("[data-testid=start]").await;
        page.until_prompted("Sign in").await;
        page.sign_in("ok", PASSWORD).await;
        page.click("[data-testid=consent-approve]").await;
        deployment.until(id, "COMPLETED", TIMEOUT).await;
        applicant.close().await;
        eventually("the webhook", TIMEOUT, async || {
            (!deployment.deliveries(id).await.is_empty()).then_some(())
        })
        .await;
        eventually("the loss to be counted", Duration::from_secs(60), async || {
            (dropped(&deployment, "export").await > 0).then_some(())
        })
        .await;
        let asked = Instant::now();
        deployment.send_sigterm();
        let status = deployment.ended(Duration::from_secs(60)).await;
        println!("with {url} the process ended {:?} after SIGTERM", asked.elapsed());
        assert!(status.success(), "{status}");
        assert!(asked.elapsed() < Duration::from_secs(15), "{:?}", asked.elapsed());
    }
}

/// Returns how many spans were lost for a reason.
async fn dropped(deployment: &Deployment, reason: &str) -> u64 {
    let metrics = deployment.partner.send(Method::GET, "/metrics", String::new()).await;
    let text = String::from_utf8(metrics.bytes.to_vec()).unwrap();
    let start = format!("avouch_spans_dropped_total{{reason=\"{reason}\"}} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&start));
    line.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
}

/// Returns the root, whose children all other spans are.
fn has_one_root(spans: &[CollectedSpan]) -> &CollectedSpan {
    let roots: Vec<_> = spans.iter().filter(|span| span.parent.is_empty()).collect();
    let [root] = roots[..] else { panic!("{}", drawn(spans)) };
    assert_eq!(root.name, "session");
    for span in spans {
        assert!(span.id == root.id || span.parent == root.id, "{span:?}");
        assert!(span.start <= span.end, "{span:?}");
    }
    let ids: BTreeSet<_> = spans.iter().map(|span| &span.id).collect();
    assert_eq!(ids.len(), spans.len(), "{}", drawn(spans));
    root
}

/// The statuses follow each other from the creation of the session to its end, by one process.
fn has_all_statuses(spans: &[CollectedSpan], root: &CollectedSpan) {
    let statuses: Vec<_> = spans.iter().filter(|span| span.name.starts_with("session.")).collect();
    let mut at = root.start;
    for span in &statuses {
        assert_eq!((span.start, &span.instance), (at, &root.instance), "{span:?}");
        at = span.end;
    }
    assert_eq!(at, root.end);
    let names: BTreeSet<_> = statuses.iter().map(|span| span.name.as_str()).collect();
    let all = [
        "session.awaiting_user",
        "session.collecting_data",
        "session.connected",
        "session.created",
        "session.initializing",
        "session.loading_tree",
        "session.ready",
        "session.running",
    ];
    assert_eq!(names, all.into(), "{}", drawn(spans));
    let values = |name| {
        let values = statuses.iter().map(|span| span.attribute(name));
        values.filter(|value| !value.is_empty()).collect::<BTreeSet<_>>()
    };
    assert_eq!(values("avouch.prompt.kind"), ["consent", "login"].into());
}

/// The creation, the link by mail, the browser, the nodes and the attempts at deliveries.
fn has_what_happened_within(spans: &[CollectedSpan]) {
    let named = |name| spans.iter().filter(|span| span.name == name).collect::<Vec<_>>();
    let requests = named("POST /v1/partner/browser-session");
    let [creation] = requests[..] else { panic!("{}", drawn(spans)) };
    assert_eq!(creation.attribute("http.response.status_code"), "201");
    assert_eq!(creation.links, [(PARTNERS_TRACE.to_owned(), PARTNERS_SPAN.to_owned())]);
    let notifications = named("notification.attempt");
    let [mail] = notifications[..] else { panic!("{}", drawn(spans)) };
    let attribute = |name| mail.attribute(name);
    assert_eq!(["avouch.notification.channel", "avouch.attempt"].map(attribute), ["email", "1"]);
    assert!(!attribute("avouch.notification.id").is_empty() && attribute("error.type").is_empty());
    assert_eq!((named("browser.queue").len(), named("browser.start").len()), (1, 1));
    let nodes = named("workflow.node");
    assert!(nodes.len() >= 3, "{}", drawn(spans));
    assert!(nodes.iter().all(|node| !node.attribute("avouch.workflow.node").is_empty()));
    let attempts = named("webhook.attempt");
    let status = |span: &CollectedSpan| span.attribute("http.response.status_code").to_owned();
    let refused = attempts.iter().find(|span| status(span) == "503").expect("a refusal");
    assert_eq!(refused.attribute("error.type"), "503");
    assert_eq!(refused.attribute("avouch.attempt"), "1");
    let delivery = refused.attribute("avouch.delivery.id");
    let again = attempts
        .iter()
        .find(|span| span.attribute("avouch.delivery.id") == delivery && span.id != refused.id);
    let again = again.expect("another attempt");
    assert_eq!((status(again).as_str(), again.attribute("avouch.attempt")), ("204", "2"));
    assert_eq!(again.attribute("http.request.resend_count"), "1");
    for attempt in attempts {
        assert_eq!(attempt.attribute("server.address"), "127.0.0.1");
    }
}

/// Each line about a session leads to its trace, in both forms. The second process has created it.
fn logs_lead_to_the_trace(deployment: &Deployment, id: &str, trace: &str) {
    let lines = |name: &str, session: &str| {
        let log = fs::read_to_string(deployment.folder.path().join(name)).unwrap();
        let lines = log.lines().filter(|line| line.contains(session)).map(str::to_owned);
        let lines: Vec<_> = lines.collect();
        assert!(!lines.is_empty(), "{name} has no line about the session");
        lines
    };
    let end = format!(" trace_id={trace}");
    for name in ["log", "log-another"] {
        for line in lines(name, &format!("session.id={id}")) {
            assert!(line.ends_with(&end), "{line}");
        }
    }
    for line in lines("log-delivery", &format!(r#""session.id":"{id}""#)) {
        let object: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(object["trace_id"], trace, "{line}");
    }
}

/// The line about a request within its span has the trace of the request.
fn is_logged_with_its_trace(deployment: &Deployment, request: &CollectedSpan) {
    let log = fs::read_to_string(deployment.log()).unwrap();
    let end = format!(" trace_id={}", request.trace);
    let mut lines = log.lines().filter(|line| line.ends_with(&end));
    assert!(lines.any(|line| line.contains(": answered method=\"GET\"")), "{request:?}");
}

/// Shows a trace, for people who read the output of a test.
fn drawn(spans: &[CollectedSpan]) -> String {
    let start = spans.iter().map(|span| span.start).min().unwrap_or_default();
    let lines = spans.iter().map(|span| {
        let [from, to] = [span.start, span.end].map(|time| (time - start) / 1_000_000);
        format!("{from:>7} to {to:>7} ms {} {:?}", span.name, span.attributes)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the texts in a value that are long enough to be looked for.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) if text.len() > 3 => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(members) => members.values().flat_map(texts).collect(),
        _ => vec![],
    }
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().expect(name)
}
