//! What a collector receives, and what happens without one.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use chrono::TimeDelta;
use domain::{
    id::SessionId,
    session::{Status, Version},
};
use opentelemetry_proto::tonic::{
    collector::trace::v1::{
        ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
    },
    trace::v1::Span as Message,
};
use ports::spans::{Span, SpanRecorder as _, SpanSubject, SpanTrace};
use prost::Message as _;
use testkit::sample::noon;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use uuid::Uuid;

use super::*;
use crate::ids::{root_of, status_of, trace_of};

/// A collector that answers each request with the next of these statuses, and with 200 afterwards.
struct Collector {
    url: String,
    received: Arc<Mutex<Vec<(String, ExportTraceServiceRequest)>>>,
}

impl Collector {
    async fn start(statuses: Vec<u16>, answer: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/traces", listener.local_addr().unwrap());
        let received = Arc::<Mutex<Vec<_>>>::default();
        let all = received.clone();
        tokio::spawn(async move {
            let mut statuses = statuses.into_iter();
            while let Ok((mut stream, _)) = listener.accept().await {
                let (head, body) = read(&mut stream).await;
                let body = ExportTraceServiceRequest::decode(&*body).unwrap();
                all.lock().unwrap().push((head, body));
                let head = format!(
                    "HTTP/1.1 {} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    statuses.next().unwrap_or(200),
                    answer.len()
                );
                stream.write_all(&[head.as_bytes(), &answer].concat()).await.unwrap();
            }
        });
        Self { url, received }
    }

    fn requests(&self) -> usize {
        self.received.lock().unwrap().len()
    }

    fn spans(&self) -> Vec<Message> {
        let received = self.received.lock().unwrap();
        let resources = received.iter().flat_map(|(_, request)| &request.resource_spans);
        let scopes = resources.flat_map(|resource| &resource.scope_spans);
        scopes.flat_map(|scope| &scope.spans).cloned().collect()
    }
}

/// Reads a request: its head as text, and its body.
async fn read(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut bytes = vec![];
    loop {
        stream.read_buf(&mut bytes).await.unwrap();
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.unwrap().parse().unwrap();
        let mut body = bytes[end + 4..].to_vec();
        while body.len() < length {
            stream.read_buf(&mut body).await.unwrap();
        }
        return (head, body);
    }
}

struct Counting(Mutex<u8>);

impl RandomSource for Counting {
    fn new_id(&self) -> u128 {
        1
    }

    fn random_u16(&self) -> u16 {
        0
    }

    fn random_bytes(&self) -> [u8; 32] {
        let mut count = self.0.lock().unwrap();
        *count = count.wrapping_add(1);
        [*count; 32]
    }
}

fn start(url: &str, sampler: Sampler) -> TraceExport {
    let config = TraceConfig {
        endpoint: url.to_owned(),
        headers: vec![("x-key".into(), Secret::new("geheim".into()))],
        roots: vec![],
        timeout: Duration::from_millis(300),
        sampler,
        service_name: "avouch".into(),
        attributes: vec![
            ("deployment.environment.name".into(), "test".into()),
            ("service.instance.id".into(), "of others".into()),
        ],
    };
    let process = TracedProcess { instance: "one".into(), version: "1.2.3" };
    TraceExport::start(&config, &process, Arc::new(Counting(Mutex::new(0)))).unwrap()
}

fn session() -> SessionId {
    SessionId::from_uuid(Uuid::from_u128(7))
}

fn span(trace: SpanTrace, subject: SpanSubject) -> Span {
    let end = noon() + TimeDelta::seconds(1);
    Span { trace, subject, start: noon(), end, error: None, attributes: vec![], cause: None }
}

fn node() -> Span {
    span(SpanTrace::Session(session()), SpanSubject::Node)
}

#[tokio::test]
async fn the_spans_of_a_session_are_one_trace_below_one_root() {
    let collector = Collector::start(vec![], vec![]).await;
    let export = start(&collector.url, Sampler::Always);
    let trace = SpanTrace::Session(session());
    let status = SpanSubject::Status { status: Status::Running, since: Version(6) };
    let request = SpanSubject::Request { method: "GET", route: Some("/x".into()) };
    for subject in [SpanSubject::Session, status, SpanSubject::Node, SpanSubject::Node] {
        export.recorder.record(span(trace, subject));
    }
    let own = export.recorder.new_trace().unwrap();
    export.recorder.record(span(SpanTrace::Own(own), request));
    export.finish().await;
    let spans = collector.spans();
    let [root, status, node, other_node, request] = &spans[..] else { panic!("{spans:?}") };
    for of_session in [root, status, node, other_node] {
        assert_eq!(of_session.trace_id, trace_of(session()));
    }
    assert_eq!((&*root.span_id, root.parent_span_id.is_empty()), (&root_of(session())[..], true));
    assert_eq!(status.span_id, status_of(session(), Version(6)));
    assert_ne!(node.span_id, other_node.span_id);
    for child in [status, node, other_node] {
        assert_eq!(child.parent_span_id, root.span_id);
    }
    assert_eq!((&request.trace_id[..], request.parent_span_id.is_empty()), (&own.0[..], true));
    assert_ne!(request.trace_id, root.trace_id);
    assert_eq!(own.to_string(), "03".repeat(16), "as log lines have it");

    let received = collector.received.lock().unwrap();
    let [(head, body)] = &received[..] else { panic!("not one batch") };
    for line in
        ["content-type: application/x-protobuf", "x-key: geheim", "user-agent: avouch/1.2.3"]
    {
        assert!(head.contains(line), "{head}");
    }
    let resource = body.resource_spans[0].resource.clone().unwrap();
    let expected = Resource {
        attributes: vec![
            encode::text("service.name", "avouch"),
            encode::text("service.version", "1.2.3"),
            encode::text("service.instance.id", "one"),
            encode::text("deployment.environment.name", "test"),
        ],
        ..Resource::default()
    };
    assert_eq!(resource, expected);
}

#[tokio::test]
async fn only_sampled_traces_are_sent_and_of_a_session_all_or_nothing() {
    let collector = Collector::start(vec![], vec![]).await;
    let export = start(&collector.url, Sampler::Ratio(0.5));
    let sessions = [Uuid::from_u128(u128::MAX), Uuid::from_u128(7)].map(SessionId::from_uuid);
    assert_eq!(sessions.map(|id| export.recorder.is_sampled(id)), [true, false]);
    for id in sessions {
        export.recorder.record(span(SpanTrace::Session(id), SpanSubject::Node));
        export.recorder.record(span(SpanTrace::Session(id), SpanSubject::Session));
    }
    export.finish().await;
    let traces = collector.spans().into_iter().map(|span| span.trace_id);
    assert_eq!(traces.collect::<Vec<_>>(), [trace_of(sessions[0]); 2]);
    assert_eq!(start(&collector.url, Sampler::Never).recorder.new_trace(), None);
}

#[tokio::test]
async fn a_collector_that_is_busy_is_asked_again_and_one_that_refuses_is_not() {
    let busy = Collector::start(vec![503, 429], vec![]).await;
    let export = start(&busy.url, Sampler::Always);
    export.recorder.record(node());
    until(|| busy.requests() == 3).await;
    export.finish().await;
    assert_eq!(busy.requests(), 3);
    let refusing = Collector::start(vec![400], vec![]).await;
    let export = start(&refusing.url, Sampler::Always);
    export.recorder.record(node());
    until(|| refusing.requests() == 1).await;
    export.recorder.record(node());
    until(|| refusing.requests() == 2).await;
    export.finish().await;
    assert_eq!(refusing.spans().len(), 2, "the second batch has the second span only");
}

#[tokio::test]
async fn a_collector_that_hangs_holds_nobody_up() {
    // Connections are accepted by the system, and nobody answers.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/traces", listener.local_addr().unwrap());
    let export = start(&url, Sampler::Always);
    let began = Instant::now();
    for _ in 0..MAX_QUEUED_SPANS * 4 {
        export.recorder.record(node());
    }
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(export.recorder.queue.capacity(), 0, "the queue is bounded");
    let began = Instant::now();
    export.finish().await;
    let took = began.elapsed();
    assert!(took < FLUSH_TIMEOUT + Duration::from_secs(1), "{took:?}");
}

#[tokio::test]
async fn spans_after_the_end_are_dropped() {
    let collector = Collector::start(vec![], vec![]).await;
    let export = start(&collector.url, Sampler::Always);
    let recorder = export.recorder.clone();
    export.finish().await;
    recorder.record(node());
    assert_eq!(collector.requests(), 0);
}

#[test]
fn what_a_collector_rejects_is_counted() {
    let partial_success =
        Some(ExportTracePartialSuccess { rejected_spans: 3, ..Default::default() });
    let body = ExportTraceServiceResponse { partial_success }.encode_to_vec();
    assert_eq!(export::rejected(&body), 3);
    assert_eq!(export::rejected(b""), 0);
    assert_eq!(export::rejected(b"<html>"), 0);
}

async fn until(condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < Duration::from_secs(20), "not in time");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
