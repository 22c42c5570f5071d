//! Warm browsers, started before a session needs them: a start takes longer than loading a page.

use std::{
    collections::{HashMap, VecDeque},
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use domain::{egress::Egress, egress_proxy::EgressProxies, request::Location};
use futures_util::future::join_all;
use ports::browser::{BrowserSpec, Scale, StartError};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::{
    browser::RemoteBrowser,
    factory::{BrowserFactory, WarmBrowser},
    pool::PoolOptions,
    route::EgressRoute,
    slots::{Slot, Slots},
    upstream::tunnel,
};

/// The time after a request for a browser of scale 2 during which such browsers are kept warm.
const HIDPI_DEMAND_TTL: Duration = Duration::from_secs(3600);

/// The options of the egress of all browsers of the pool.
struct EgressOptions {
    egress: Egress,
    proxies: EgressProxies,
    country_check_url: Option<String>,
    local_hosts: HashMap<String, SocketAddr>,
}

/// Starts browsers, some of them ahead of time, within the slots of the pool.
pub(crate) struct WarmPool {
    factory: BrowserFactory,
    egress: EgressOptions,
    /// Warm browsers to keep of each scale.
    target: usize,
    slots: Slots,
    browsers: Mutex<VecDeque<WarmBrowser>>,
    /// When a browser of scale 2 was last requested: such browsers are kept warm only then.
    hidpi_requested_at: Mutex<Option<Instant>>,
    /// Whether no more browsers are kept warm.
    is_draining: AtomicBool,
    /// Notified when a warm browser was assigned or a slot may have become free.
    pub(crate) refill: Notify,
}

impl WarmPool {
    pub(crate) fn new(options: PoolOptions) -> Self {
        Self {
            slots: Slots::new(options.capacity),
            factory: BrowserFactory::new(options.source),
            egress: EgressOptions {
                egress: options.egress,
                proxies: options.egress_proxies,
                country_check_url: options.country_check_url,
                local_hosts: options.local_hosts,
            },
            target: options.warm,
            browsers: Mutex::default(),
            hidpi_requested_at: Mutex::default(),
            is_draining: AtomicBool::new(false),
            refill: Notify::new(),
        }
    }

    fn browsers(&self) -> MutexGuard<'_, VecDeque<WarmBrowser>> {
        self.browsers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a browser for a session: a responsive warm one, or else a new one.
    pub(crate) async fn acquire(
        &self,
        mut spec: BrowserSpec,
    ) -> Result<(RemoteBrowser, Slot), StartError> {
        spec.device.scale = self.factory.supported_scale(spec.device.scale);
        let scale = spec.device.scale;
        if scale == Scale::Two {
            *self.hidpi_requested_at() = Some(Instant::now());
        }
        while let Some(warm) = self.take(Some(scale)) {
            self.refill.notify_one();
            if warm.browser.is_responsive().await {
                return self.assign(warm, spec).await;
            }
            tracing::warn!(
                "a warm browser did not respond; it is dropped, and another one is used"
            );
        }
        let started = match self.create(scale).await {
            // A warm browser of another scale gives up its slot to a session.
            Err(StartError::NoRoom) => match self.take(None) {
                Some(other) => {
                    other.browser.end().await;
                    drop(other);
                    self.create(scale).await?
                }
                None => return Err(StartError::NoRoom),
            },
            created => created?,
        };
        self.refill.notify_one();
        self.assign(started, spec).await
    }

    /// Assigns a browser to a session, with its egress.
    async fn assign(
        &self,
        warm: WarmBrowser,
        spec: BrowserSpec,
    ) -> Result<(RemoteBrowser, Slot), StartError> {
        let route = Arc::new(EgressRoute {
            egress: self.egress.egress.clone(),
            local_hosts: self.egress.local_hosts.clone(),
            via_proxy: self.egress.proxies.are_used(),
            proxy: Mutex::default(),
        });
        warm.egress.set_route(route.clone());
        // The sandbox and the hosts that the operator names are connected to without an egress proxy.
        let external_host = spec.hosts.iter().find(|host| !route.is_direct(host, 443)).cloned();
        let place = spec.place.clone();
        let browser = warm.browser.assign(spec, warm.egress);
        if route.via_proxy
            && let Some(host) = external_host
            && let Err(error) = self.select_proxy(&browser, &route, &place, &host).await
        {
            browser.end().await;
            return Err(error);
        }
        Ok((browser, warm.slot))
    }

    /// Selects an egress proxy that works and is in the right country.
    async fn select_proxy(
        &self,
        browser: &RemoteBrowser,
        route: &EgressRoute,
        place: &Location,
        host: &str,
    ) -> Result<(), StartError> {
        // The proxy's session lasts as long as the browser, and its id is never used again.
        let session = Uuid::new_v4().simple().to_string();
        let mut wrong_country = false;
        for proxy in self.egress.proxies.at(place, session.get(..16).unwrap_or_default()) {
            route.use_proxy(proxy.clone());
            let Some(check_url) = &self.egress.country_check_url else {
                if tunnel(&proxy, host, 443).await.is_ok() {
                    return Ok(());
                }
                continue;
            };
            match browser.egress_country(check_url).await {
                Some(country) if country == place.country => return Ok(()),
                Some(country) => {
                    tracing::warn!(
                        wanted = place.country,
                        country,
                        "an egress proxy is in another country; the next one is tried"
                    );
                    wrong_country = true;
                }
                None => tracing::warn!(
                    country = place.country,
                    "an egress proxy does not work; the next one is tried"
                ),
            }
        }
        Err(if wrong_country { StartError::Elsewhere } else { StartError::NoEgress })
    }

    /// Starts one browser if there are fewer warm ones than the target and a slot is free. Returns
    /// whether another one may have to be started.
    pub(crate) async fn fill(&self) -> Result<bool, StartError> {
        if self.is_draining.load(Ordering::SeqCst) {
            return Ok(false);
        }
        self.browsers().retain(|warm| !warm.browser.is_closed());
        let hidpi = self.hidpi_requested_at().is_some_and(|at| at.elapsed() < HIDPI_DEMAND_TTL);
        let scales = [Scale::One].into_iter().chain(hidpi.then_some(Scale::Two));
        let below_target = |scale: &Scale| {
            let browsers = self.browsers();
            let warm = browsers.iter().filter(|warm| warm.scale == *scale && !warm.is_draining());
            warm.count() < self.target
        };
        let Some(scale) = scales.into_iter().find(below_target) else { return Ok(false) };
        match self.create(scale).await {
            Ok(warm) => self.browsers().push_back(warm),
            Err(StartError::NoRoom) => return Ok(false),
            Err(error) => return Err(error),
        }
        if self.is_draining.load(Ordering::SeqCst) {
            // It was started while the pool began to drain.
            self.end().await;
        }
        Ok(true)
    }

    /// Returns the number of warm browsers.
    pub(crate) fn count(&self) -> usize {
        self.browsers().len()
    }

    /// Ends all warm browsers.
    pub(crate) async fn end(&self) {
        end_browsers(self.remove(|_| true)).await;
    }

    /// Ends all warm browsers, and starts no more of them.
    pub(crate) async fn drain(&self) {
        self.is_draining.store(true, Ordering::SeqCst);
        self.end().await;
    }

    /// Ends the warm browsers of hosts that drain: such a host waits for them, and a session would soon lose
    /// one.
    pub(crate) async fn end_draining(&self) {
        let ending = self.remove(WarmBrowser::is_draining);
        if !ending.is_empty() {
            end_browsers(ending).await;
            self.refill.notify_one();
        }
    }

    /// Removes the warm browsers for which this holds.
    fn remove(&self, is_removed: impl Fn(&WarmBrowser) -> bool) -> VecDeque<WarmBrowser> {
        let mut browsers = self.browsers();
        let all = std::mem::take(&mut *browsers);
        let (removed, kept): (VecDeque<_>, VecDeque<_>) = all.into_iter().partition(is_removed);
        *browsers = kept;
        removed
    }

    /// Removes a warm browser that is not closed: one of this scale that may be assigned, or any for its
    /// slot.
    fn take(&self, scale: Option<Scale>) -> Option<WarmBrowser> {
        let mut browsers = self.browsers();
        let fits = |warm: &WarmBrowser| {
            let is_assignable = |scale: Scale| warm.scale == scale && !warm.is_draining();
            !warm.browser.is_closed() && scale.is_none_or(is_assignable)
        };
        let index = browsers.iter().position(fits)?;
        browsers.remove(index)
    }

    fn hidpi_requested_at(&self) -> MutexGuard<'_, Option<Instant>> {
        self.hidpi_requested_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn create(&self, scale: Scale) -> Result<WarmBrowser, StartError> {
        let slot = self.slots.take().ok_or(StartError::NoRoom)?;
        self.factory.create(scale, slot).await
    }
}

async fn end_browsers(mut browsers: VecDeque<WarmBrowser>) {
    browsers.retain(|warm| !warm.browser.is_closed());
    join_all(browsers.iter().map(|warm| warm.browser.end())).await;
}
