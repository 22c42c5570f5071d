//! The browsers of this process, by their ids.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use async_trait::async_trait;
use domain::{egress::Egress, egress_proxy::EgressProxies, id::BrowserId};
use futures_util::future::join_all;
use ports::browser::{Browser, BrowserPool, BrowserSpec, StartError};

use crate::{
    browser::RemoteBrowser, factory::BrowserSource, memory_usage::memory_by_root, slots::Slot,
    warm_pool::WarmPool,
};

/// Released ids that are remembered: more than can be starting at the same time.
const RELEASED_CAPACITY: usize = 10_000;
/// The interval of checks of the warm pool and of memory when no event triggers one.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// The interval of checks whether a host of warm browsers drains.
const DRAIN_CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// The delay between the assignment of a warm browser and the start of the next one, so that the
/// session's page is loaded first.
const REFILL_DELAY: Duration = Duration::from_secs(2);
/// The delay after the start of a warm browser failed.
const RETRY_DELAY: Duration = Duration::from_secs(10);

/// The options of a pool.
#[derive(Debug)]
pub struct PoolOptions {
    pub source: BrowserSource,
    /// Browsers that may run at once, including warm ones.
    pub capacity: usize,
    /// Warm browsers: those that run without a session, ready for the next one.
    pub warm: usize,
    pub egress: Egress,
    pub egress_proxies: EgressProxies,
    /// A URL that returns the country that a request came from. Without one, the configured country
    /// of an egress proxy is trusted.
    pub country_check_url: Option<String>,
    /// Hosts that the service serves itself, and their addresses.
    pub local_hosts: HashMap<String, SocketAddr>,
}

/// A pool that gives each session a browser of its own.
pub struct ChromiumPool {
    warm_pool: WarmPool,
    /// Bytes of private memory of one browser; `None` for browsers on other machines.
    memory_limit: Option<u64>,
    registry: Mutex<Registry>,
}

#[derive(Default)]
struct Registry {
    running: HashMap<BrowserId, RunningBrowser>,
    starting: HashSet<BrowserId>,
    released: HashSet<BrowserId>,
    release_order: VecDeque<BrowserId>,
    closed: bool,
}

struct RunningBrowser {
    browser: Arc<RemoteBrowser>,
    /// Freed when the browser has ended.
    _slot: Slot,
}

impl Registry {
    fn release(&mut self, id: BrowserId) -> Option<RunningBrowser> {
        if self.released.insert(id) {
            self.release_order.push_back(id);
        }
        if self.release_order.len() > RELEASED_CAPACITY
            && let Some(oldest) = self.release_order.pop_front()
        {
            self.released.remove(&oldest);
        }
        self.running.remove(&id)
    }
}

impl ChromiumPool {
    /// Creates a pool that keeps warm browsers and enforces the memory limit until it is dropped.
    /// Must be called within a Tokio runtime.
    #[must_use]
    pub fn new(options: PoolOptions) -> Arc<Self> {
        let memory_limit = match &options.source {
            BrowserSource::Local(local) => Some(local.memory_limit),
            BrowserSource::Fleet(_) | BrowserSource::Hosts(_) => None,
        };
        let uses_hosts = matches!(options.source, BrowserSource::Hosts(_));
        let pool = Arc::new(Self {
            warm_pool: WarmPool::new(options),
            memory_limit,
            registry: Mutex::default(),
        });
        tokio::spawn(maintain(Arc::downgrade(&pool)));
        if uses_hosts {
            tokio::spawn(end_draining(Arc::downgrade(&pool)));
        }
        pool
    }

    /// Ends the warm browsers and starts no more of them, for a process that drains: on a browser host they
    /// would occupy slots that others need. Sessions still get browsers.
    pub async fn drain(&self) {
        self.warm_pool.drain().await;
    }

    /// Ends every browser and refuses to start others, for the shutdown of the process.
    pub async fn end_all(&self) {
        let running: Vec<_> = {
            let mut registry = self.registry();
            registry.closed = true;
            registry.running.keys().copied().collect()
        };
        // At once: one that does not answer must not keep the others from being ended.
        join_all(running.into_iter().map(|id| self.release(id))).await;
        self.warm_pool.end().await;
    }

    /// Returns the number of warm browsers.
    #[must_use]
    pub fn warm_count(&self) -> usize {
        self.warm_pool.count()
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends browsers that exceed the memory limit.
    async fn enforce_memory_limit(&self) {
        let Some(memory_limit) = self.memory_limit else { return };
        let running: Vec<_> = {
            let registry = self.registry();
            let groups = registry.running.values().filter_map(|running| {
                running.browser.pid().map(|group| (group, running.browser.clone()))
            });
            groups.collect()
        };
        if running.is_empty() {
            return;
        }
        let roots: HashSet<_> = running.iter().map(|(group, _)| *group).collect();
        let usage = tokio::task::spawn_blocking(move || memory_by_root(&roots)).await;
        let Ok(usage) = usage else { return };
        for (group, browser) in running {
            let bytes = usage.get(&group).copied().unwrap_or_default();
            if bytes > memory_limit {
                tracing::warn!(
                    bytes,
                    bound = memory_limit,
                    "a browser exceeded its memory limit and is ended"
                );
                browser.end().await;
            }
        }
    }
}

/// Keeps warm browsers and enforces the memory limit, until the pool is dropped or closed.
async fn maintain(pool: Weak<ChromiumPool>) {
    loop {
        let Some(pool) = pool.upgrade() else { return };
        if pool.registry().closed {
            return pool.warm_pool.end().await;
        }
        pool.enforce_memory_limit().await;
        match pool.warm_pool.fill().await {
            Ok(true) => (),
            Ok(false) => {
                let refill = pool.warm_pool.refill.notified();
                if tokio::time::timeout(CHECK_INTERVAL, refill).await.is_ok() {
                    tokio::time::sleep(REFILL_DELAY).await;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "failed to start a warm browser; the pool tries again later");
                drop(pool);
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }
}

/// Ends the warm browsers of hosts that drain, until the pool is dropped. Other checks may wait for the start
/// of a browser meanwhile.
async fn end_draining(pool: Weak<ChromiumPool>) {
    loop {
        let Some(pool) = pool.upgrade() else { return };
        pool.warm_pool.end_draining().await;
        drop(pool);
        tokio::time::sleep(DRAIN_CHECK_INTERVAL).await;
    }
}

#[async_trait]
impl BrowserPool for ChromiumPool {
    async fn start(&self, spec: BrowserSpec) -> Result<Arc<dyn Browser>, StartError> {
        let id = spec.id;
        {
            let mut registry = self.registry();
            if registry.released.contains(&id) {
                return Err(StartError::Released);
            }
            if let Some(running) = registry.running.get(&id) {
                return Ok(running.browser.clone());
            }
            if registry.closed {
                return Err(StartError::Unavailable("the service is stopping".into()));
            }
            if !registry.starting.insert(id) {
                return Err(StartError::Unavailable("the browser is already starting".into()));
            }
        }
        let started = self.warm_pool.acquire(spec).await;
        let released = {
            let mut registry = self.registry();
            registry.starting.remove(&id);
            let (browser, slot) = started?;
            let browser = Arc::new(browser);
            if !registry.released.contains(&id) && !registry.closed {
                registry
                    .running
                    .insert(id, RunningBrowser { browser: browser.clone(), _slot: slot });
                return Ok(browser);
            }
            (browser, slot)
        };
        released.0.end().await;
        Err(StartError::Released)
    }

    async fn release(&self, id: BrowserId) {
        let running = self.registry().release(id);
        if let Some(running) = running {
            running.browser.end().await;
            drop(running);
            self.warm_pool.refill.notify_one();
        }
    }
}
