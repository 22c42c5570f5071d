//! Runs the browsers of other machines: starts a Chromium and hands out the bytes of its pipes and of its
//! connections, without reading them.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ports::browser::{Scale, StartError};
use tokio::net::{TcpListener, UnixStream};

use crate::{
    factory::{LocalBrowsers, unavailable},
    launch::{BrowserProcess, StartedProcess},
    memory_usage::memory_by_root,
    slots::{Slot, Slots},
};

/// The interval of checks of the memory of browsers.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The browsers of this machine, for use by others.
pub struct BrowserHost {
    local: LocalBrowsers,
    slots: Slots,
    capacity: usize,
    started: AtomicU64,
    running: Mutex<HashMap<u64, Arc<BrowserProcess>>>,
}

/// A browser that was started. Dropping it kills its processes; [`BrowserHandle::end`] also waits until they are gone.
pub struct LocalBrowser {
    /// What Chromium writes: DevTools messages, each terminated by a NUL byte.
    pub reader: UnixStream,
    /// What Chromium reads.
    pub writer: UnixStream,
    /// The socket on which the browser expects its HTTP proxy, the only one that it can reach from its
    /// sandbox.
    pub proxy: TcpListener,
    pub handle: BrowserHandle,
}

/// Ends a browser.
pub struct BrowserHandle {
    host: Arc<BrowserHost>,
    number: u64,
    process: Arc<BrowserProcess>,
    /// Freed when the browser has ended.
    _slot: Slot,
}

impl BrowserHandle {
    /// Kills every process, waits until they are gone, and removes every file.
    pub async fn end(self) {
        self.process.end().await;
    }
}

impl Drop for BrowserHandle {
    fn drop(&mut self) {
        self.process.kill_group();
        self.host.running().remove(&self.number);
    }
}

impl BrowserHost {
    /// Creates a host for at most `capacity` browsers at once. It ends those that exceed the memory limit.
    /// Must be called within a Tokio runtime.
    #[must_use]
    pub fn new(local: LocalBrowsers, capacity: usize) -> Arc<Self> {
        let host = Arc::new(Self {
            local,
            slots: Slots::new(capacity),
            capacity,
            started: AtomicU64::new(0),
            running: Mutex::default(),
        });
        tokio::spawn(enforce_memory_limit(Arc::downgrade(&host)));
        host
    }

    /// Returns the number of browsers that may run at once.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the number of browsers that occupy a slot.
    #[must_use]
    pub fn used(&self) -> usize {
        self.capacity.saturating_sub(self.slots.free_count())
    }

    /// Starts a browser with this device scale factor.
    ///
    /// # Errors
    /// All slots are in use, or Chromium cannot be started.
    pub async fn start(self: &Arc<Self>, scale: Scale) -> Result<LocalBrowser, StartError> {
        let slot = self.slots.take().ok_or(StartError::NoRoom)?;
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let (options, own_listener) = self.local.launch_options(number, scale, slot.index).await?;
        let started = BrowserProcess::start(&options).await.map_err(|error| unavailable(&error))?;
        let StartedProcess { process, reader, writer, proxy_listener } = started;
        let process = Arc::new(process);
        self.running().insert(number, process.clone());
        let handle = BrowserHandle { host: self.clone(), number, process, _slot: slot };
        let proxy = proxy_listener.or(own_listener);
        let proxy = proxy
            .ok_or_else(|| StartError::Unavailable("the sandbox sent no proxy socket".into()))?;
        Ok(LocalBrowser { reader, writer, proxy, handle })
    }

    fn running(&self) -> MutexGuard<'_, HashMap<u64, Arc<BrowserProcess>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Kills browsers that exceed the memory limit, until the host is dropped. Their pipes end then.
async fn enforce_memory_limit(host: Weak<BrowserHost>) {
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        let Some(host) = host.upgrade() else { return };
        let running: Vec<_> = host.running().values().cloned().collect();
        let roots: HashSet<_> = running.iter().filter_map(|process| process.pid()).collect();
        if roots.is_empty() {
            continue;
        }
        let usage = tokio::task::spawn_blocking(move || memory_by_root(&roots)).await;
        let usage = usage.unwrap_or_default();
        for process in running {
            let bytes = process.pid().and_then(|pid| usage.get(&pid).copied()).unwrap_or_default();
            if bytes > host.local.memory_limit {
                let bound = host.local.memory_limit;
                tracing::warn!(bytes, bound, "a browser exceeded its memory limit and is ended");
                process.kill_group();
            }
        }
    }
}
