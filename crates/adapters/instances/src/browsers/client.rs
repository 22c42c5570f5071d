//! An instance's side: knows how full the browser hosts are, and gets browsers from them.

use std::{
    collections::HashMap,
    fmt, io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use tokio::{net::TcpStream, sync::mpsc, task::JoinHandle};
use tokio_rustls::TlsConnector;

use super::{
    ByteStream,
    back_off::BackOff,
    wire::{PROTOCOL, REPORT_INTERVAL, Request, Response, Usage, read_line, write_line},
};
use crate::{
    identity::InstanceIdentity,
    multiplexer::{Driver, Multiplexer},
    socket::prepare,
};

/// The time within which a connection to a host must be open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time within which a browser must be there, whichever host it is of. The job that starts it is
/// claimed anew after 90 s.
const MAX_SELECTION_TIME: Duration = Duration::from_secs(55);
/// The time of one host.
const START_TIMEOUT: Duration = Duration::from_secs(40);
/// The time of one host while others could be tried.
const SHORT_START_TIMEOUT: Duration = Duration::from_secs(20);
/// The age at which a report is not relied on any more.
const REPORT_TTL: Duration = REPORT_INTERVAL.saturating_mul(4);
/// How often names are looked up again.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(5);
/// The time until a host that could not be reached is tried again.
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// The maximum number of hosts.
const MAX_HOSTS: usize = 256;

/// Why no host started a browser.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("all browser hosts are full")]
    Full,
    #[error("{0}")]
    Unavailable(String),
}

/// A browser that a host has started. Nothing is known of it yet: it may end, or hang, before its first reply.
pub struct OpenedBrowser {
    /// The address of the host.
    pub host: SocketAddr,
    /// DevTools messages, each terminated by a NUL byte. It ends when the browser has ended.
    pub devtools: ByteStream,
    /// The connections that the browser opens to its HTTP proxy.
    pub connections: mpsc::Receiver<ByteStream>,
    pub guard: BrowserGuard,
}

/// Keeps a browser of a host running. Dropping this ends the browser.
pub struct BrowserGuard {
    host: SocketAddr,
    hosts: Weak<Shared>,
    _driver: Driver,
}

/// The browser hosts of an instance. Dropping it closes the connections that report their usage; browsers
/// go on.
pub struct BrowserHosts {
    shared: Arc<Shared>,
    lookups: JoinHandle<()>,
}

struct Shared {
    identity: Arc<InstanceIdentity>,
    /// `HOST:PORT` each.
    names: Vec<String>,
    region: Option<String>,
    hosts: Mutex<HashMap<SocketAddr, KnownHost>>,
}

/// A host that a name leads to.
struct KnownHost {
    usage: Option<(Usage, Instant)>,
    /// Browsers that were asked for since the last report.
    asked: u32,
    back_off: BackOff,
    watch: JoinHandle<()>,
}

impl Drop for KnownHost {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

impl Drop for BrowserHosts {
    fn drop(&mut self) {
        self.lookups.abort();
        self.shared.hosts().clear();
    }
}

impl fmt::Debug for BrowserHosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrowserHosts").field("names", &self.shared.names).finish_non_exhaustive()
    }
}

impl BrowserHosts {
    /// Uses the hosts that these names (`HOST:PORT`) lead to, with all of their addresses, at most 256; those
    /// of other regions are left out. Returns once the names were looked up and the hosts have reported, or
    /// after five seconds. Must be called within a Tokio runtime.
    pub async fn connect(
        identity: Arc<InstanceIdentity>,
        names: Vec<String>,
        region: Option<String>,
    ) -> Self {
        let shared = Arc::new(Shared { identity, names, region, hosts: Mutex::default() });
        shared.look_up().await;
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        while shared.hosts().values().any(|host| host.usage.is_none()) && Instant::now() < deadline
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let lookups = tokio::spawn(look_up_again(Arc::downgrade(&shared)));
        Self { shared, lookups }
    }

    /// Gets a browser from the host that is used least; from the next one if that has become full or cannot
    /// be reached, within 55 s. A host that failed is left out for 5 to 60 s, unless no other one has room.
    /// What becomes of the browser is to be recorded.
    ///
    /// # Errors
    /// No host has a free slot, or none could start a browser.
    pub async fn open(&self, scale: u8) -> Result<OpenedBrowser, OpenError> {
        let (began, mut tried) = (Instant::now(), vec![]);
        let (mut is_full, mut failure) = (false, None);
        loop {
            let elapsed = began.elapsed();
            if elapsed >= MAX_SELECTION_TIME {
                break;
            }
            let next = self.shared.next_candidate(&tried);
            let Some(Candidate { address, is_last }) = next else { break };
            tried.push(address);
            match self.shared.start(address, scale, time_limit(elapsed, is_last)).await {
                Ok(browser) => return Ok(browser),
                Err(OpenError::Full) => is_full = true,
                Err(OpenError::Unavailable(reason)) => {
                    self.record_failure(address, &reason);
                    failure = Some(reason);
                }
            }
        }
        // A slot of a host that works becomes free some time.
        match failure {
            Some(reason) if !is_full && !self.shared.is_any_full() => {
                Err(OpenError::Unavailable(reason))
            }
            Some(_) => Err(OpenError::Full),
            None => Err(self.shared.none_free()),
        }
    }

    /// Records that a browser of this host could be set up.
    pub fn record_success(&self, host: SocketAddr) {
        if let Some(host) = self.shared.hosts().get_mut(&host) {
            host.back_off.record_success();
        }
    }

    /// Records that a host started no browser, or one that could not be set up: others are asked first for
    /// a time.
    pub fn record_failure(&self, host: SocketAddr, reason: &str) {
        let mut hosts = self.shared.hosts();
        let Some(known) = hosts.get_mut(&host) else { return };
        let back_off = known.back_off.record_failure(Instant::now());
        let seconds = back_off.as_secs();
        tracing::warn!(%host, reason, seconds, "a browser host started no browser");
    }

    /// Returns how many browsers the reachable hosts of this region can run at once, and how many run.
    #[must_use]
    pub fn usage(&self) -> (u64, u64) {
        let hosts = self.shared.hosts();
        let usages = hosts.values().filter_map(|host| host.current(self.shared.region.as_deref()));
        usages.fold((0, 0), |(slots, used), usage| {
            (slots + u64::from(usage.slots), used + u64::from(usage.used))
        })
    }
}

impl KnownHost {
    /// Returns the last report, if it is recent and of a host for this region.
    fn current(&self, region: Option<&str>) -> Option<&Usage> {
        let (usage, at) = self.usage.as_ref()?;
        (at.elapsed() < REPORT_TTL && usage.region.as_deref() == region).then_some(usage)
    }

    /// Returns how much of the host is in use, in thousandths; `None` if it starts no browser.
    fn load(&self, region: Option<&str>) -> Option<u64> {
        let usage = self.current(region)?;
        let used = u64::from(usage.used) + u64::from(self.asked);
        let slots = u64::from(usage.slots);
        (!usage.draining && used < slots).then(|| used * 1000 / slots.max(1))
    }
}

impl BrowserGuard {
    /// Whether the host has reported that it drains, or is not among the hosts any more: one that drains may
    /// lose its name.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        let Some(shared) = self.hosts.upgrade() else { return false };
        let region = shared.region.as_deref();
        let hosts = shared.hosts();
        hosts.get(&self.host).is_none_or(|host| {
            // Of a host that cannot be reached nothing is known. Its browsers end with their connections.
            host.current(region).is_some_and(|usage| usage.draining)
        })
    }
}

/// A host that may be asked for a browser.
struct Candidate {
    address: SocketAddr,
    /// Whether there is no other one.
    is_last: bool,
}

/// Returns how long a host may take, this long after the first one was asked.
fn time_limit(elapsed: Duration, is_last: bool) -> Duration {
    let own = if is_last { START_TIMEOUT } else { SHORT_START_TIMEOUT };
    own.min(MAX_SELECTION_TIME.saturating_sub(elapsed))
}

impl Shared {
    fn hosts(&self) -> MutexGuard<'_, HashMap<SocketAddr, KnownHost>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the host that is used least, and counts the browser that will be asked for. Those that are
    /// left out come after all others, the one whose time ends first before the next.
    fn next_candidate(&self, tried: &[SocketAddr]) -> Option<Candidate> {
        let (now, region) = (Instant::now(), self.region.as_deref());
        let mut hosts = self.hosts();
        let untried = hosts.iter().filter(|(address, _)| !tried.contains(address));
        let free = untried.filter_map(|(address, host)| {
            Some((host.back_off.until(now), host.load(region)?, *address))
        });
        let mut order: Vec<_> = free.collect();
        order.sort_unstable();
        let (_, _, address) = *order.first()?;
        let host = hosts.get_mut(&address)?;
        host.asked = host.asked.saturating_add(1);
        Some(Candidate { address, is_last: order.len() == 1 })
    }

    /// Whether a host that is not left out has no free slot.
    fn is_any_full(&self) -> bool {
        let (now, region) = (Instant::now(), self.region.as_deref());
        let is_full = |host: &KnownHost| {
            let is_serving = host.current(region).is_some_and(|usage| !usage.draining);
            is_serving && host.load(region).is_none() && host.back_off.until(now).is_none()
        };
        self.hosts().values().any(is_full)
    }

    fn none_free(&self) -> OpenError {
        let hosts = self.hosts();
        let is_any = hosts.values().any(|host| host.current(self.region.as_deref()).is_some());
        if is_any {
            return OpenError::Full;
        }
        OpenError::Unavailable(format!("none of {} can be reached", self.names.join(", ")))
    }

    /// Looks the names up, watches new hosts, and forgets those that are gone. If a name cannot be looked
    /// up, nothing is forgotten.
    async fn look_up(self: &Arc<Self>) {
        let (mut found, mut is_complete) = (vec![], true);
        for name in &self.names {
            let looked_up =
                tokio::time::timeout(CONNECT_TIMEOUT, tokio::net::lookup_host(name)).await;
            match looked_up {
                Ok(Ok(addresses)) => found.extend(addresses),
                Ok(Err(_)) | Err(_) => is_complete = false,
            }
        }
        found.truncate(MAX_HOSTS);
        let mut hosts = self.hosts();
        if is_complete {
            hosts.retain(|address, _| found.contains(address));
        }
        for address in found {
            hosts.entry(address).or_insert_with(|| KnownHost {
                usage: None,
                asked: 0,
                back_off: BackOff::default(),
                watch: tokio::spawn(watch(Arc::downgrade(self), address)),
            });
        }
    }

    async fn start(
        self: &Arc<Self>,
        address: SocketAddr,
        scale: u8,
        time_limit: Duration,
    ) -> Result<OpenedBrowser, OpenError> {
        let started = async {
            let (multiplexer, mut control) =
                request(&self.identity, address, &Request::Browser { scale }).await?;
            let response: Response = read_line(&mut control).await?;
            Ok::<_, io::Error>((multiplexer, control, response))
        };
        let started = tokio::time::timeout(time_limit, started).await;
        let started = started.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let (multiplexer, devtools, response) =
            started.map_err(|error| OpenError::Unavailable(error.to_string()))?;
        match response {
            Response::Started => {
                let (connections, driver) = multiplexer.into_parts();
                let hosts = Arc::downgrade(self);
                let guard = BrowserGuard { host: address, hosts, _driver: driver };
                Ok(OpenedBrowser { host: address, devtools, connections, guard })
            }
            Response::Full => Err(OpenError::Full),
            Response::Failed { reason } => Err(OpenError::Unavailable(reason)),
        }
    }

    /// Reads the reports of a host until the connection ends.
    async fn read_reports(&self, address: SocketAddr) -> io::Result<()> {
        let (_multiplexer, mut control) = request(&self.identity, address, &Request::Usage).await?;
        loop {
            let report = tokio::time::timeout(REPORT_TTL, read_line::<Usage>(&mut control)).await;
            let usage = report.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
            let mut hosts = self.hosts();
            let Some(host) = hosts.get_mut(&address) else { return Ok(()) };
            if host.usage.is_none() {
                let Usage { slots, version, region, .. } = &usage;
                tracing::info!(host = %address, slots, version, region, "a browser host is reached");
            }
            host.usage = Some((usage, Instant::now()));
            host.asked = 0;
        }
    }
}

/// Connects to a host and sends a request.
async fn request(
    identity: &InstanceIdentity,
    address: SocketAddr,
    request: &Request,
) -> io::Result<(Multiplexer, ByteStream)> {
    let opening = async {
        let stream = TcpStream::connect(address).await?;
        prepare(&stream)?;
        let mut tls = (*identity.current().client).clone();
        tls.alpn_protocols = vec![PROTOCOL.to_vec()];
        let connector = TlsConnector::from(Arc::new(tls));
        let tls = connector.connect(identity.peer().clone(), stream).await?;
        if tls.get_ref().1.alpn_protocol() != Some(PROTOCOL) {
            return Err(io::Error::other("the host speaks another protocol"));
        }
        let multiplexer = Multiplexer::client(tls);
        let control = multiplexer.open().await;
        let mut control = control.ok_or(io::ErrorKind::ConnectionAborted)?;
        write_line(&mut control, request).await?;
        Ok((multiplexer, control))
    };
    let opened = tokio::time::timeout(CONNECT_TIMEOUT, opening).await;
    opened.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Returns the next report of a host.
pub(crate) async fn report(identity: &InstanceIdentity, address: SocketAddr) -> io::Result<Usage> {
    let (_multiplexer, mut control) = request(identity, address, &Request::Usage).await?;
    let report = tokio::time::timeout(CONNECT_TIMEOUT, read_line(&mut control)).await;
    report.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn look_up_again(shared: Weak<Shared>) {
    loop {
        tokio::time::sleep(LOOKUP_INTERVAL).await;
        let Some(shared) = shared.upgrade() else { return };
        shared.look_up().await;
    }
}

/// Watches a host until it is forgotten.
async fn watch(shared: Weak<Shared>, address: SocketAddr) {
    let mut was_reached = true;
    loop {
        let Some(known) = shared.upgrade() else { return };
        let ended = known.read_reports(address).await;
        if let Some(host) = known.hosts().get_mut(&address) {
            let is_lost = host.usage.take().is_some();
            if let Err(error) = ended
                && (is_lost || was_reached)
            {
                tracing::warn!(host = %address, %error, "a browser host cannot be reached");
            }
            was_reached = is_lost;
        }
        drop(known);
        tokio::time::sleep(RETRY_DELAY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_hang_take_less_time_together_than_the_job_has() {
        assert_eq!(time_limit(Duration::ZERO, true), START_TIMEOUT);
        for count in 1..10 {
            let spent = (1..=count)
                .fold(Duration::ZERO, |spent, number| spent + time_limit(spent, number == count));
            assert!(spent <= MAX_SELECTION_TIME, "{count} hosts: {spent:?}");
        }
    }
}
