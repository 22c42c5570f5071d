//! The browsers of this process, by the names they were given.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use async_trait::async_trait;
use domain::{egress::Egress, egress_proxy::EgressProxies, id::BrowserId};
use ports::browser::{Browser, BrowserPool, BrowserSpec, StartError};

use crate::{
    browser::RemoteBrowser, seats::Taken, source::Source, usage::memory_below, warm::Starter,
};

/// Names remembered as released: more than can be on their way at once.
const REMEMBERED: usize = 10_000;
/// How often what is wanted ahead is looked at without being told.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// After a browser was taken: its page is loaded first, the next browser started then.
const CALM: Duration = Duration::from_secs(2);
/// After a start ahead of time that failed.
const PAUSE: Duration = Duration::from_secs(10);

/// How this process runs browsers.
#[derive(Debug)]
pub struct PoolOptions {
    pub source: Source,
    /// How many may run at once, those that wait included.
    pub capacity: usize,
    /// How many wait for a session that needs one.
    pub warm: usize,
    pub egress: Egress,
    pub exits: EgressProxies,
    /// Answers the country that a request came from; where there is none, an exit is believed.
    pub exit_check: Option<String>,
    /// Hosts that the service serves itself, and where.
    pub routes: HashMap<String, SocketAddr>,
}

/// A browser for each session.
pub struct ChromiumPool {
    starter: Starter,
    /// Bytes that one may take, where we can see how many it takes.
    memory: Option<u64>,
    names: Mutex<Names>,
}

#[derive(Default)]
struct Names {
    running: HashMap<BrowserId, Running>,
    starting: HashSet<BrowserId>,
    released: HashSet<BrowserId>,
    order: VecDeque<BrowserId>,
    closed: bool,
}

struct Running {
    browser: Arc<RemoteBrowser>,
    /// Given back when the browser has ended.
    _seat: Taken,
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
    /// A pool that keeps browsers ready and watches over those that run, for as long as it is there.
    /// Must be called within a runtime.
    #[must_use]
    pub fn new(options: PoolOptions) -> Arc<Self> {
        let memory = match &options.source {
            Source::Here(here) => Some(here.memory),
            Source::Elsewhere(_) => None,
        };
        let pool =
            Arc::new(Self { starter: Starter::new(options), memory, names: Mutex::default() });
        tokio::spawn(keep(Arc::downgrade(&pool)));
        pool
    }

    /// Ends every browser and starts no more; for the end of the process.
    pub async fn end_all(&self) {
        let running: Vec<_> = {
            let mut names = self.names();
            names.closed = true;
            names.running.keys().copied().collect()
        };
        for id in running {
            self.release(id).await;
        }
        self.starter.end().await;
    }

    /// How many browsers wait for a session.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.starter.waiting()
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends browsers that have more memory than they may.
    async fn watch_memory(&self) {
        let Some(bound) = self.memory else { return };
        let running: Vec<_> = {
            let names = self.names();
            let groups = names.running.values().filter_map(|running| {
                running.browser.pid().map(|group| (group, running.browser.clone()))
            });
            groups.collect()
        };
        if running.is_empty() {
            return;
        }
        let roots: HashSet<_> = running.iter().map(|(group, _)| *group).collect();
        let taken = tokio::task::spawn_blocking(move || memory_below(&roots)).await;
        let Ok(taken) = taken else { return };
        for (group, browser) in running {
            let bytes = taken.get(&group).copied().unwrap_or_default();
            if bytes > bound {
                tracing::warn!(bytes, bound, "a browser took too much memory");
                browser.end().await;
            }
        }
    }
}

/// Keeps browsers ready and watches over those that run.
async fn keep(pool: Weak<ChromiumPool>) {
    loop {
        let Some(pool) = pool.upgrade() else { return };
        if pool.names().closed {
            return pool.starter.end().await;
        }
        pool.watch_memory().await;
        match pool.starter.fill().await {
            Ok(true) => (),
            Ok(false) => {
                let wanted = pool.starter.wanted.notified();
                if tokio::time::timeout(LOOK_EVERY, wanted).await.is_ok() {
                    tokio::time::sleep(CALM).await;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "no browser could be started ahead of time");
                drop(pool);
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
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
            if names.closed {
                return Err(StartError::Unavailable("the service is stopping".into()));
            }
            if !names.starting.insert(id) {
                return Err(StartError::Unavailable("it is being started already".into()));
            }
        }
        let started = self.starter.browser(spec).await;
        let released = {
            let mut names = self.names();
            names.starting.remove(&id);
            let (browser, seat) = started?;
            let browser = Arc::new(browser);
            if !names.released.contains(&id) && !names.closed {
                names.running.insert(id, Running { browser: browser.clone(), _seat: seat });
                return Ok(browser);
            }
            (browser, seat)
        };
        released.0.end().await;
        Err(StartError::Released)
    }

    async fn release(&self, id: BrowserId) {
        let running = self.names().release(id);
        if let Some(running) = running {
            running.browser.end().await;
            drop(running);
            self.starter.wanted.notify_one();
        }
    }
}
