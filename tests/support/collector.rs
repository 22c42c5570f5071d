//! A collector of traces: receives OTLP over HTTP as protocol buffers.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{KeyValue, any_value::Value},
    trace::v1::Span,
};
use prost::Message as _;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};

/// What a collector does with requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    Accept,
    /// Reads requests and never answers.
    Hang,
}

/// A collector on a port of its own, until the test ends.
#[derive(Clone)]
pub struct Collector {
    pub url: String,
    received: Arc<Mutex<Received>>,
}

#[derive(Default)]
struct Received {
    spans: Vec<CollectedSpan>,
    bytes: Vec<u8>,
}

/// A span, with identifiers as lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectedSpan {
    /// The `service.instance.id` of the process that sent it.
    pub instance: String,
    pub trace: String,
    pub id: String,
    /// Empty for a root.
    pub parent: String,
    pub name: String,
    /// Nanoseconds since the epoch.
    pub start: u64,
    pub end: u64,
    pub attributes: BTreeMap<String, String>,
    /// The traces and spans of its links.
    pub links: Vec<(String, String)>,
}

impl CollectedSpan {
    /// Returns an attribute; empty if there is none.
    pub fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }
}

impl Collector {
    pub async fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        let collector = Self { url, received: Arc::default() };
        let me = collector.clone();
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let me = me.clone();
                tokio::spawn(async move { me.serve(stream, behaviour).await });
            }
        });
        collector
    }

    fn received(&self) -> MutexGuard<'_, Received> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all spans so far.
    pub fn spans(&self) -> Vec<CollectedSpan> {
        self.received().spans.clone()
    }

    /// Returns the spans of a trace in the order of their beginnings.
    pub fn trace(&self, id: &str) -> Vec<CollectedSpan> {
        let mut spans = self.spans();
        spans.retain(|span| span.trace == id);
        spans.sort_by_key(|span| (span.start, span.end));
        spans
    }

    /// Returns whether a text occurs anywhere in what was received.
    pub fn has_seen(&self, text: &str) -> bool {
        assert!(text.len() > 3, "{text} is too short to be looked for");
        crate::contains(&self.received().bytes, text.as_bytes())
    }

    async fn serve(&self, stream: TcpStream, behaviour: Behaviour) {
        let mut stream = BufReader::new(stream);
        while let Some((path, body)) = read(&mut stream).await {
            if behaviour == Behaviour::Hang {
                tokio::time::sleep(Duration::from_secs(3600)).await;
            }
            assert_eq!(path, "/v1/traces");
            let request = ExportTraceServiceRequest::decode(&*body).expect("OTLP");
            {
                let mut received = self.received();
                received.bytes.extend(body);
                received.spans.extend(collected(request));
            }
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            if stream.write_all(answer).await.is_err() {
                return;
            }
        }
    }
}

/// Reads the path and the body of a request; `None` where there is no more.
async fn read(stream: &mut BufReader<TcpStream>) -> Option<(String, Vec<u8>)> {
    let (mut path, mut length, mut line) = (String::new(), 0, String::new());
    loop {
        line.clear();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let text = line.trim_end().to_ascii_lowercase();
        if text.is_empty() {
            break;
        }
        if path.is_empty() {
            path.push_str(text.split(' ').nth(1)?);
        } else if let Some(value) = text.strip_prefix("content-length: ") {
            length = value.parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some((path, body))
}

fn collected(request: ExportTraceServiceRequest) -> Vec<CollectedSpan> {
    let mut all = vec![];
    for resource_spans in request.resource_spans {
        let resource = attributes(&resource_spans.resource.unwrap_or_default().attributes);
        let spans = resource_spans.scope_spans.into_iter().flat_map(|scope| scope.spans);
        all.extend(spans.map(|span| collected_span(&resource["service.instance.id"], span)));
    }
    all
}

fn collected_span(instance: &str, span: Span) -> CollectedSpan {
    let links = span.links.iter().map(|link| (hex(&link.trace_id), hex(&link.span_id)));
    CollectedSpan {
        instance: instance.to_owned(),
        trace: hex(&span.trace_id),
        id: hex(&span.span_id),
        parent: hex(&span.parent_span_id),
        start: span.start_time_unix_nano,
        end: span.end_time_unix_nano,
        attributes: attributes(&span.attributes),
        links: links.collect(),
        name: span.name,
    }
}

fn attributes(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |attribute: &KeyValue| match attribute.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        other => panic!("{other:?}"),
    };
    let named = attributes.iter().filter_map(|one| Some((one.key.clone(), text(one)?)));
    named.collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
