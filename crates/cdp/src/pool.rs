//! The browsers of this process, by the names they were given.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use domain::{egress::Egress, id::BrowserId};
use ports::browser::{Browser, BrowserPool, BrowserSpec, StartError};
use tokio::sync::Semaphore;

use crate::{
    browser::RemoteBrowser,
    forwarder::{Exits, Forwarder},
    launch::{Chromium, LaunchOptions},
};

/// Names remembered as released: more than can be on their way at once.
const REMEMBERED: usize = 10_000;

/// How this process runs browsers.
#[derive(Debug, Clone)]
pub struct PoolOptions {
    pub executable: PathBuf,
    /// The folder of all browsers of this process; nobody else's.
    pub folder: PathBuf,
    /// How many may run at once.
    pub capacity: usize,
    pub egress: Egress,
    /// Hosts that the service serves itself, and where.
    pub routes: HashMap<String, SocketAddr>,
}

/// A Chromium process for each session.
pub struct ChromiumPool {
    options: PoolOptions,
    room: Arc<Semaphore>,
    names: Mutex<Names>,
}

#[derive(Default)]
struct Names {
    running: HashMap<BrowserId, Running>,
    starting: HashSet<BrowserId>,
    released: HashSet<BrowserId>,
    order: VecDeque<BrowserId>,
}

struct Running {
    browser: Arc<RemoteBrowser>,
    /// Given back when the browser has ended.
    _room: tokio::sync::OwnedSemaphorePermit,
}

impl Names {
    fn release(&mut self, id: BrowserId) -> Option<Running> {
        if self.released.insert(id) {
            self.order.push_back(id);
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.released.remove(&oldest);
        }
        self.running.remove(&id)
    }
}

impl ChromiumPool {
    #[must_use]
    pub fn new(options: PoolOptions) -> Self {
        let room = Arc::new(Semaphore::new(options.capacity));
        Self { options, room, names: Mutex::default() }
    }

    /// Ends every browser; for the end of the process.
    pub async fn end_all(&self) {
        let running: Vec<_> = self.names().running.keys().copied().collect();
        for id in running {
            self.release(id).await;
        }
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn launch(&self, spec: BrowserSpec) -> Result<RemoteBrowser, StartError> {
        let unavailable =
            |error: &dyn std::error::Error| StartError::Unavailable(error.to_string());
        let exits =
            Exits { egress: self.options.egress.clone(), routes: self.options.routes.clone() };
        let forwarder = Forwarder::start(exits).await.map_err(|error| unavailable(&error))?;
        let options = LaunchOptions {
            executable: self.options.executable.clone(),
            folder: self.options.folder.join(short(spec.id)),
            flags: vec![
                format!("--proxy-server=http://{}", forwarder.address),
                // Without this, loopback addresses are reached around the proxy.
                "--proxy-bypass-list=<-loopback>".to_owned(),
                format!("--window-size={},{}", spec.viewport.width, spec.viewport.height),
            ],
        };
        let (chromium, events) =
            Chromium::launch(&options).await.map_err(|error| unavailable(&error))?;
        RemoteBrowser::adopt(chromium, events, spec, forwarder)
            .await
            .map_err(|error| unavailable(&error))
    }
}

/// The random part of a name: paths of sockets are short.
fn short(id: BrowserId) -> String {
    let (_, random) = id.as_uuid().as_u64_pair();
    format!("{random:x}")
}

#[async_trait]
impl BrowserPool for ChromiumPool {
    async fn start(&self, spec: BrowserSpec) -> Result<Arc<dyn Browser>, StartError> {
        let id = spec.id;
        {
            let mut names = self.names();
            if names.released.contains(&id) {
                return Err(StartError::Released);
            }
            if let Some(running) = names.running.get(&id) {
                return Ok(running.browser.clone());
            }
            if !names.starting.insert(id) {
                return Err(StartError::Unavailable("it is being started already".into()));
            }
        }
        let room = self.room.clone().try_acquire_owned();
        let started = match room {
            Ok(room) => self.launch(spec).await.map(|browser| (browser, room)),
            Err(_) => Err(StartError::Unavailable("all browsers are in use".into())),
        };
        let released = {
            let mut names = self.names();
            names.starting.remove(&id);
            let (browser, room) = started?;
            let browser = Arc::new(browser);
            if !names.released.contains(&id) {
                names.running.insert(id, Running { browser: browser.clone(), _room: room });
                return Ok(browser);
            }
            browser
        };
        released.end().await;
        Err(StartError::Released)
    }

    async fn release(&self, id: BrowserId) {
        let running = self.names().release(id);
        if let Some(running) = running {
            running.browser.end().await;
        }
    }
}
