//! A client of the DevTools protocol, over a pair of pipes or over a WebSocket.

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
    sync::{OwnedSemaphorePermit, mpsc, oneshot, watch},
};

pub(crate) use self::socket::{Socket, SocketError};

/// How long Chromium may take to answer a command.
const PATIENCE: Duration = Duration::from_secs(20);
/// Commands on their way to Chromium, events on their way from it.
const QUEUE: usize = 4096;
/// A message longer than this ends the connection: no honest one is.
const LONGEST: usize = 64 * 1024 * 1024;

/// Sends commands and hands out replies. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    outgoing: mpsc::Sender<Outgoing>,
    next: AtomicU64,
    pending: Mutex<HashMap<u64, oneshot::Sender<Result<Value, CallError>>>>,
    closed: watch::Sender<bool>,
}

/// A command on its way, with the room that it takes until it is written.
struct Outgoing {
    text: String,
    room: Option<OwnedSemaphorePermit>,
}

/// Something Chromium tells without being asked.
#[derive(Debug)]
pub struct Event {
    pub method: String,
    /// The DevTools session it belongs to; none for the browser itself.
    pub session: Option<String>,
    params: Box<RawValue>,
}

impl Event {
    /// The event's parameters; `null` where they cannot be read.
    #[must_use]
    pub fn params(&self) -> Value {
        serde_json::from_str(self.params.get()).unwrap_or(Value::Null)
    }

    /// The parameters as a type that takes only what it needs.
    #[must_use]
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Option<T> {
        serde_json::from_str(self.params.get()).ok()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("Chromium is gone")]
    Gone,
    #[error("Chromium did not answer {0} in time")]
    TimedOut(String),
    #[error("Chromium refused: {0}")]
    Refused(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    id: Option<u64>,
    method: Option<String>,
    session_id: Option<String>,
    params: Option<Box<RawValue>>,
    result: Option<Value>,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Refusal {
    message: String,
}

impl Client {
    /// Speaks over a pair of pipes; events come out of the receiver, which must be drained.
    #[must_use]
    pub fn over(from: UnixStream, to: UnixStream) -> (Self, mpsc::Receiver<Event>) {
        let (inner, commands) = Inner::new();
        let (events, receiver) = mpsc::channel(QUEUE);
        tokio::spawn(pipe::write(to, commands));
        tokio::spawn(pipe::read(from, inner.clone(), events));
        (Self { inner }, receiver)
    }

    /// Speaks over a WebSocket; as with pipes.
    #[must_use]
    pub(crate) fn over_socket(socket: Socket) -> (Self, mpsc::Receiver<Event>) {
        let (inner, commands) = Inner::new();
        let (events, receiver) = mpsc::channel(QUEUE);
        socket.speak(inner.clone(), commands, events);
        (Self { inner }, receiver)
    }

    /// Sends a command and waits for its reply.
    pub async fn call(
        &self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<Value, CallError> {
        let reply = self.send(session, method, params)?;
        match tokio::time::timeout(PATIENCE, reply).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(_)) => Err(CallError::Gone),
            Err(_) => Err(CallError::TimedOut(method.to_owned())),
        }
    }

    /// Sends a command in order and does not wait: a page that shows a dialog answers no input.
    pub fn fire(&self, session: Option<&str>, method: &str, params: Value) {
        // The reply is dropped with its receiver; a full queue means that Chromium hangs.
        let _ = self.send(session, method, params);
    }

    /// Counts the connection as closed from now on: nothing more is sent, nobody waits any longer.
    pub fn close(&self) {
        self.inner.close();
    }

    #[must_use]
    pub fn is_closed(&self) -> bool {
        *self.inner.closed.borrow()
    }

    /// Comes back when the connection is closed.
    pub async fn closed(&self) {
        let mut closed = self.inner.closed.subscribe();
        let _ = closed.wait_for(|closed| *closed).await;
    }

    /// Sends a command in order; its reply comes out of the receiver.
    pub(crate) fn send(
        &self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<oneshot::Receiver<Result<Value, CallError>>, CallError> {
        self.send_with(session, method, params, None)
    }

    /// The same, with the room that the command takes: it is given back once the command is written.
    pub(crate) fn send_with(
        &self,
        session: Option<&str>,
        method: &str,
        params: Value,
        room: Option<OwnedSemaphorePermit>,
    ) -> Result<oneshot::Receiver<Result<Value, CallError>>, CallError> {
        if self.is_closed() {
            return Err(CallError::Gone);
        }
        let id = self.inner.next.fetch_add(1, Ordering::Relaxed);
        let mut message = Map::from_iter([
            ("id".to_owned(), id.into()),
            ("method".to_owned(), method.into()),
            ("params".to_owned(), params),
        ]);
        if let Some(session) = session {
            message.insert("sessionId".to_owned(), session.into());
        }
        let (sender, reply) = oneshot::channel();
        self.inner.pending().insert(id, sender);
        let outgoing = Outgoing { text: Value::Object(message).to_string(), room };
        if self.inner.outgoing.try_send(outgoing).is_err() {
            self.inner.pending().remove(&id);
            return Err(CallError::Gone);
        }
        Ok(reply)
    }
}

impl Inner {
    fn new() -> (Arc<Self>, mpsc::Receiver<Outgoing>) {
        let (outgoing, commands) = mpsc::channel(QUEUE);
        let inner = Self {
            outgoing,
            next: AtomicU64::new(1),
            pending: Mutex::default(),
            closed: watch::Sender::new(false),
        };
        (Arc::new(inner), commands)
    }

    /// Nothing more comes.
    fn close(&self) {
        self.closed.send_replace(true);
        self.pending().clear();
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Result<Value, CallError>>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn take(&self, bytes: &[u8], events: &mpsc::Sender<Event>) {
        let Ok(message) = serde_json::from_slice::<Message>(bytes) else {
            // Not logged in full: it may hold what the applicant typed.
            tracing::warn!(length = bytes.len(), "Chromium sent a message that cannot be read");
            return;
        };
        if let Some(id) = message.id {
            let Some(sender) = self.pending().remove(&id) else { return };
            let _ = sender.send(match message.error {
                Some(refusal) => Err(CallError::Refused(refusal.message)),
                None => Ok(message.result.unwrap_or(Value::Null)),
            });
        } else if let (Some(method), Some(params)) = (message.method, message.params) {
            let _ = events.send(Event { method, session: message.session_id, params }).await;
        }
    }
}
