//! The way out of browsers that run elsewhere: one proxy for all of them, which tells them apart by
//! what they show.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::secret::Secret;
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinHandle,
};
use uuid::Uuid;

use crate::{
    forwarder::{CONNECTIONS, carry, read_request, refuse},
    ways::Ways,
};

/// A host that the gate itself is (RFC 6761, section 6.4): whoever sees its page came through.
pub(crate) const READY: &str = "ready.avouch.invalid";
/// The title of its page.
pub(crate) const READY_TITLE: &str = "through";
/// After a connection that could not be taken.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);
/// Connections that have not shown anything yet.
const STRANGERS: usize = 256;

/// A running proxy; it ends when dropped.
pub(crate) struct Gate {
    doors: Doors,
    task: JoinHandle<()>,
}

/// By what is shown, as it stands in the header.
type Doors = Arc<Mutex<HashMap<String, Door>>>;

/// Where a browser that shows the right thing may go.
#[derive(Clone)]
struct Door {
    ways: Arc<Ways>,
    room: Arc<Semaphore>,
}

/// Lets one browser through for as long as it is there.
pub(crate) struct Pass {
    pub(crate) user: String,
    pub(crate) password: Secret,
    shown: String,
    doors: Doors,
}

impl Gate {
    /// Serves browsers that connect to this socket.
    pub(crate) fn open(listener: TcpListener) -> Self {
        let doors = Doors::default();
        Self { task: tokio::spawn(serve(listener, doors.clone())), doors }
    }

    /// Lets one more browser through, at first to nowhere.
    pub(crate) fn admit(&self) -> Pass {
        let random = || Uuid::new_v4().simple().to_string();
        let (user, password) = (random(), random());
        let shown = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
        let pass = Pass { user, password: Secret::new(password), shown, doors: self.doors.clone() };
        pass.lead(Arc::new(Ways::nowhere()));
        pass
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn open(doors: &Doors) -> MutexGuard<'_, HashMap<String, Door>> {
    doors.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pass {
    /// From now on new connections go these ways.
    pub(crate) fn lead(&self, ways: Arc<Ways>) {
        let door = Door { ways, room: Arc::new(Semaphore::new(CONNECTIONS)) };
        open(&self.doors).insert(self.shown.clone(), door);
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        open(&self.doors).remove(&self.shown);
    }
}

async fn serve(listener: TcpListener, doors: Doors) {
    let strangers = Arc::new(Semaphore::new(STRANGERS));
    while let Ok(permit) = strangers.clone().acquire_owned().await {
        let Ok((mut stream, _)) = listener.accept().await else {
            // Too many files are open, as a rule: others close some.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let doors = doors.clone();
        tokio::spawn(async move {
            let read = read_request(&mut stream).await;
            drop(permit);
            let Ok(Some((request, rest))) = read else { return };
            let shown = request.credentials.as_deref().unwrap_or_default();
            let door = open(&doors).get(shown).cloned();
            // A connection that breaks is the browser's to notice.
            let _ = match door {
                None => ask(&mut stream).await,
                Some(_) if request.host == READY && request.forwarded.is_some() => {
                    greet(&mut stream).await
                }
                Some(door) => match door.room.try_acquire() {
                    Ok(_permit) => carry(stream, request, &rest, &door.ways).await,
                    Err(_) => refuse(&mut stream, "503 Service Unavailable", "").await,
                },
            };
        });
    }
}

async fn ask(stream: &mut TcpStream) -> io::Result<()> {
    let how = "Proxy-Authenticate: Basic realm=\"avouch\"\r\n";
    refuse(stream, "407 Proxy Authentication Required", how).await
}

async fn greet(stream: &mut TcpStream) -> io::Result<()> {
    let page = format!("<!doctype html><title>{READY_TITLE}</title>");
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nConnection: close\r\n\r\n",
        page.len()
    );
    stream.write_all(format!("{head}{page}").as_bytes()).await
}
