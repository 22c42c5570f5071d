//! A client of the DevTools protocol, over a pair of pipes or over a WebSocket.

mod http;
mod pipe;
mod socket;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};
use tokio::{
    net::UnixStream,
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch},
};

pub(crate) use self::{
    http::{HttpMethod, HttpRequest, HttpResponse},
    socket::{Socket, SocketError},
};
use crate::hosted::ByteStream;

/// The time within which Chromium must reply to a command.
const CALL_TIMEOUT: Duration = Duration::from_secs(20);
/// Commands that wait to be written, and events that wait to be handled.
const QUEUE_CAPACITY: usize = 4096;
/// Characters of an error that are passed on.
const MAX_ERROR_CHARS: usize = 200;
/// Bytes of a message. A longer one ends the connection: regular ones are much shorter.
const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;
/// Bytes of the events that wait to be handled; not less than those of a message.
const MAX_QUEUED_EVENT_BYTES: usize = 128 * 1024 * 1024;
/// Values in a reply, of which each takes 32 bytes and more, although a digit and a comma may be its text.
const MAX_REPLY_VALUES: usize = 1 << 20;

/// Sends commands and receives their replies. Cheap to clone.
#[derive(Clone)]
pub struct DevToolsClient {
    inner: Arc<Inner>,
}

struct Inner {
    outgoing: mpsc::Sender<Outgoing>,
    next_id: AtomicU64,
    pending: Mutex<HashMap<u64, PendingReply>>,
    /// A permit for each byte of the events that may still be queued.
    event_bytes: Arc<Semaphore>,
    closed: watch::Sender<bool>,
}

/// The receiver of a reply.
type Reply = oneshot::Receiver<Result<Value, DevToolsError>>;

/// A command whose reply is awaited.
struct PendingReply {
    /// The DevTools session that it was sent to.
    session: Option<String>,
    sender: oneshot::Sender<Result<Value, DevToolsError>>,
}

/// A command to be written, with the permit that is released once it is written.
struct Outgoing {
    text: String,
    permit: Option<OwnedSemaphorePermit>,
}

/// An event of Chromium.
#[derive(Debug)]
pub struct DevToolsEvent {
    pub method: String,
    /// The DevTools session that it belongs to; `None` for the browser itself.
    pub session: Option<String>,
    params: Box<RawValue>,
    /// Held until the event was handled.
    _bytes: OwnedSemaphorePermit,
}

impl DevToolsEvent {
    /// Returns the event's parameters; `null` if they cannot be parsed.
    #[must_use]
    pub fn params(&self) -> Value {
        serde_json::from_str(self.params.get()).unwrap_or(Value::Null)
    }

    /// Parses the parameters into a type that has only the required fields.
    #[must_use]
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Option<T> {
        serde_json::from_str(self.params.get()).ok()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum DevToolsError {
    #[error("the connection to Chromium is closed")]
    Closed,
    #[error("Chromium did not reply to {0} in time")]
    TimedOut(String),
    #[error("Chromium refused the command: {0}")]
    Refused(String),
    #[error("Chromium's reply has more than {MAX_REPLY_VALUES} values")]
    ReplyTooLarge,
    #[error("the page was closed before it replied")]
    PageClosed,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DevToolsMessage {
    id: Option<u64>,
    method: Option<String>,
    session_id: Option<String>,
    params: Option<Box<RawValue>>,
    result: Option<Box<RawValue>>,
    error: Option<ErrorBody>,
}

/// The parameters of `Target.detachedFromTarget`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EndedSession {
    session_id: String,
}

#[derive(Deserialize)]
struct ErrorBody {
    message: String,
}

impl DevToolsClient {
    /// Creates a client over a pair of pipes. The receiver yields events and must be drained.
    #[must_use]
    pub fn from_pipes(from: UnixStream, to: UnixStream) -> (Self, mpsc::Receiver<DevToolsEvent>) {
        let (inner, commands) = Inner::new();
        let (events, receiver) = mpsc::channel(QUEUE_CAPACITY);
        tokio::spawn(pipe::write(to, commands));
        tokio::spawn(pipe::read(from, inner.clone(), events));
        (Self { inner }, receiver)
    }

    /// Creates a client over a byte stream that has the same messages as the pipes.
    #[must_use]
    pub(crate) fn from_stream(stream: ByteStream) -> (Self, mpsc::Receiver<DevToolsEvent>) {
        let (inner, commands) = Inner::new();
        let (events, receiver) = mpsc::channel(QUEUE_CAPACITY);
        let (reader, writer) = tokio::io::split(stream);
        tokio::spawn(pipe::write(writer, commands));
        tokio::spawn(pipe::read(reader, inner.clone(), events));
        (Self { inner }, receiver)
    }

    /// Creates a client over a WebSocket; otherwise as [`Self::from_pipes`].
    #[must_use]
    pub(crate) fn from_socket(socket: Socket) -> (Self, mpsc::Receiver<DevToolsEvent>) {
        let (inner, commands) = Inner::new();
        let (events, receiver) = mpsc::channel(QUEUE_CAPACITY);
        socket.spawn_tasks(inner.clone(), commands, events);
        (Self { inner }, receiver)
    }

    /// Sends a command and waits for its reply.
    pub async fn call(
        &self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<Value, DevToolsError> {
        let (id, reply) = self.start(session, method, params, None)?;
        let _forgotten = ForgottenReply { client: self, id };
        match tokio::time::timeout(CALL_TIMEOUT, reply).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(_)) => Err(DevToolsError::Closed),
            Err(_) => Err(DevToolsError::TimedOut(method.to_owned())),
        }
    }

    /// Sends a command in order and does not wait for the reply: a page that shows a dialog replies to no
    /// input.
    pub fn send_no_reply(&self, session: Option<&str>, method: &str, params: Value) {
        // The reply is dropped with its receiver. A full queue means that Chromium hangs.
        let _ = self.send(session, method, params);
    }

    /// Closes the connection: nothing more is sent, and callers that wait get an error.
    pub fn close(&self) {
        self.inner.close();
    }

    #[must_use]
    pub fn is_closed(&self) -> bool {
        *self.inner.closed.borrow()
    }

    /// Waits until the connection is closed.
    pub async fn closed(&self) {
        let mut closed = self.inner.closed.subscribe();
        let _ = closed.wait_for(|closed| *closed).await;
    }

    /// Sends a command in order, and returns the receiver of its reply.
    pub(crate) fn send(
        &self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<Reply, DevToolsError> {
        self.send_with_permit(session, method, params, None)
    }

    /// Like [`Self::send`], with a permit that is released once the command is written.
    pub(crate) fn send_with_permit(
        &self,
        session: Option<&str>,
        method: &str,
        params: Value,
        room: Option<OwnedSemaphorePermit>,
    ) -> Result<Reply, DevToolsError> {
        self.start(session, method, params, room).map(|(_, reply)| reply)
    }

    /// Sends a command in order, and returns its id and the receiver of its reply.
    fn start(
        &self,
        session: Option<&str>,
        method: &str,
        params: Value,
        room: Option<OwnedSemaphorePermit>,
    ) -> Result<(u64, Reply), DevToolsError> {
        if self.is_closed() {
            return Err(DevToolsError::Closed);
        }
        let id = self.inner.next_id.fetch_add(1, Ordering::Relaxed);
        let mut message = Map::from_iter([
            ("id".to_owned(), id.into()),
            ("method".to_owned(), method.into()),
            ("params".to_owned(), params),
        ]);
        if let Some(session) = session {
            message.insert("sessionId".to_owned(), session.into());
        }
        let (sender, reply) = oneshot::channel();
        let pending = PendingReply { session: session.map(str::to_owned), sender };
        self.inner.pending().insert(id, pending);
        let outgoing = Outgoing { text: Value::Object(message).to_string(), permit: room };
        if self.inner.outgoing.try_send(outgoing).is_err() {
            self.inner.pending().remove(&id);
            return Err(DevToolsError::Closed);
        }
        Ok((id, reply))
    }
}

/// Removes a reply from those that are awaited once nobody waits for it any more: a page that never
/// replies is asked again and again.
struct ForgottenReply<'a> {
    client: &'a DevToolsClient,
    id: u64,
}

impl Drop for ForgottenReply<'_> {
    fn drop(&mut self) {
        self.client.inner.pending().remove(&self.id);
    }
}

impl Inner {
    fn new() -> (Arc<Self>, mpsc::Receiver<Outgoing>) {
        let (outgoing, commands) = mpsc::channel(QUEUE_CAPACITY);
        let inner = Self {
            outgoing,
            next_id: AtomicU64::new(1),
            pending: Mutex::default(),
            event_bytes: Arc::new(Semaphore::new(MAX_QUEUED_EVENT_BYTES)),
            closed: watch::Sender::new(false),
        };
        (Arc::new(inner), commands)
    }

    /// Marks the connection as closed, and drops the senders of pending replies.
    fn close(&self) {
        self.closed.send_replace(true);
        self.pending().clear();
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<u64, PendingReply>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the wait for replies of a session: Chromium sends none once its page is closed.
    fn session_ended(&self, session: &str) {
        let is_of_it = |_: &u64, one: &mut PendingReply| one.session.as_deref() == Some(session);
        for (_, pending) in self.pending().extract_if(is_of_it) {
            let _ = pending.sender.send(Err(DevToolsError::PageClosed));
        }
    }

    /// Passes a reply to its caller, or an event to the receiver.
    async fn dispatch(&self, bytes: &[u8], events: &mpsc::Sender<DevToolsEvent>) {
        let Ok(message) = serde_json::from_slice::<DevToolsMessage>(bytes) else {
            // Not logged in full: it may contain the applicant's input.
            tracing::warn!(
                length = bytes.len(),
                "failed to parse a message of Chromium; it is dropped"
            );
            return;
        };
        if let Some(id) = message.id {
            let Some(pending) = self.pending().remove(&id) else { return };
            let reply = if let Some(error) = message.error {
                let message = error.message.chars().take(MAX_ERROR_CHARS).collect();
                Err(DevToolsError::Refused(message))
            } else {
                // Read only now: a reply that nobody waits for is not.
                read_result(message.result.as_deref())
            };
            let _ = pending.sender.send(reply);
        } else if let (Some(method), Some(params)) = (message.method, message.params) {
            if method == "Target.detachedFromTarget"
                && let Ok(ended) = serde_json::from_str::<EndedSession>(params.get())
            {
                self.session_ended(&ended.session_id);
            }
            // A browser that sends more than is handled waits; its replies wait with it.
            let length = bytes.len().min(MAX_QUEUED_EVENT_BYTES);
            let length = u32::try_from(length).unwrap_or(u32::MAX);
            let room = self.event_bytes.clone().acquire_many_owned(length).await;
            let Ok(bytes) = room else { return };
            let session = message.session_id;
            let _ = events.send(DevToolsEvent { method, session, params, _bytes: bytes }).await;
        }
    }
}

/// Reads the result of a command; `null` if there is none, or if it cannot be parsed.
fn read_result(result: Option<&RawValue>) -> Result<Value, DevToolsError> {
    let Some(text) = result.map(RawValue::get) else { return Ok(Value::Null) };
    if text.len() > MAX_REPLY_VALUES && has_more_values_than(text.as_bytes(), MAX_REPLY_VALUES) {
        return Err(DevToolsError::ReplyTooLarge);
    }
    Ok(serde_json::from_str(text).unwrap_or(Value::Null))
}

/// Whether a JSON text has more values than `max`. Each but the first follows one of three characters.
fn has_more_values_than(text: &[u8], max: usize) -> bool {
    let (mut is_string, mut is_escaped, mut values) = (false, false, 1_usize);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_string,
            b'"' => is_string = !is_string,
            b',' | b'[' | b'{' if !is_string => values = values.saturating_add(1),
            _ => {}
        }
    }
    values > max
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test]
    async fn a_call_that_is_given_up_is_not_awaited() {
        let (to, _commands) = UnixStream::pair().unwrap();
        let (from, _chromium) = UnixStream::pair().unwrap();
        let (client, _events) = DevToolsClient::from_pipes(from, to);
        for _ in 0..10 {
            let call = client.call(None, "Runtime.evaluate", json!({}));
            let given_up = tokio::time::timeout(Duration::from_millis(1), call).await;
            assert!(given_up.is_err());
        }
        assert_eq!(client.inner.pending().len(), 0);
    }

    /// Returns a client, its events, and the end of the pipe on which it reads messages.
    fn reading() -> (DevToolsClient, mpsc::Receiver<DevToolsEvent>, [UnixStream; 2]) {
        let (to, commands) = UnixStream::pair().unwrap();
        let (from, chromium) = UnixStream::pair().unwrap();
        let (client, events) = DevToolsClient::from_pipes(from, to);
        (client, events, [chromium, commands])
    }

    #[tokio::test]
    async fn events_that_nobody_handles_are_held_back_by_their_size() {
        let (_client, mut events, [mut chromium, _commands]) = reading();
        let text = "x".repeat(32 * 1024 * 1024);
        let mut event = json!({ "method": "Test.event", "params": { "text": text } }).to_string();
        event.push('\0');
        let write = tokio::spawn(async move {
            for _ in 0..6 {
                chromium.write_all(event.as_bytes()).await.unwrap();
            }
            chromium
        });
        // Three of them fit; the fourth, of which a few bytes more are counted, does not.
        while events.len() < 3 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(events.len(), 3);
        for _ in 0..6 {
            assert_eq!(events.recv().await.unwrap().method, "Test.event");
        }
        write.await.unwrap();
    }

    #[tokio::test]
    async fn a_reply_of_many_values_is_refused_and_a_long_text_is_not() {
        let (client, _events, [mut chromium, _commands]) = reading();
        let text = format!("\\\",[{{{}", ",".repeat(2 * MAX_REPLY_VALUES));
        let values = format!("[{}1]", "1,".repeat(MAX_REPLY_VALUES));
        for (result, length) in [(format!("\"{text}\""), Some(text.len() - 1)), (values, None)] {
            let (id, reply) = client.start(None, "Runtime.evaluate", json!({}), None).unwrap();
            let message = format!("{{\"id\":{id},\"result\":{result}}}\0");
            let written = tokio::spawn(async move {
                chromium.write_all(message.as_bytes()).await.unwrap();
                chromium
            });
            let reply = tokio::time::timeout(Duration::from_secs(30), reply).await.unwrap();
            match (reply.unwrap(), length) {
                (Ok(read), Some(length)) => assert_eq!(read.as_str().unwrap().len(), length),
                (Err(DevToolsError::ReplyTooLarge), None) => {}
                (reply, _) => panic!("{reply:?}"),
            }
            chromium = written.await.unwrap();
        }
    }

    #[test]
    fn values_are_counted_outside_of_strings() {
        for (text, values) in
            [("1", 1), ("[1,2]", 3), (r#"{"a,[":"\",{\\","b":[[]]}"#, 5), ("[", 2), (r#"",,"#, 1)]
        {
            assert!(!has_more_values_than(text.as_bytes(), values), "{text}");
            assert!(has_more_values_than(text.as_bytes(), values - 1), "{text}");
        }
    }

    #[tokio::test]
    async fn a_page_that_closes_lets_nobody_wait_for_its_replies() {
        let (to, _commands) = UnixStream::pair().unwrap();
        let (from, mut chromium) = UnixStream::pair().unwrap();
        let (client, mut events) = DevToolsClient::from_pipes(from, to);
        let send = |session| client.send(Some(session), "Runtime.evaluate", json!({})).unwrap();
        let (popup, mut opener) = (send("popup"), send("opener"));
        let mut ended = json!({
            "method": "Target.detachedFromTarget", "params": { "sessionId": "popup" },
        })
        .to_string()
        .into_bytes();
        ended.push(0);
        chromium.write_all(&ended).await.unwrap();
        let reply = tokio::time::timeout(Duration::from_secs(5), popup).await.unwrap();
        assert!(matches!(reply.unwrap(), Err(DevToolsError::PageClosed)));
        assert_eq!(events.recv().await.unwrap().method, "Target.detachedFromTarget");
        assert!(opener.try_recv().is_err(), "the other page may still reply");
    }
}
