//! Browsers that are up before anybody needs them: starting one takes longer than loading a page.

use std::{
    collections::{HashMap, VecDeque},
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use domain::{egress::Egress, egress_proxy::EgressProxies, request::Location};
use ports::browser::{BrowserSpec, Scale, StartError};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::{
    browser::RemoteBrowser,
    pool::PoolOptions,
    seats::{Seats, Taken},
    source::{Idle, Supply},
    upstream::tunnel,
    ways::Ways,
};

/// How long it is remembered what kind of browser was asked for.
const REMEMBERED: Duration = Duration::from_secs(3600);

/// Where browsers may go, and from where they leave.
struct Where {
    egress: Egress,
    exits: EgressProxies,
    exit_check: Option<String>,
    routes: HashMap<String, SocketAddr>,
}

/// Starts browsers, some of them ahead of time.
pub(crate) struct Starter {
    supply: Supply,
    ways: Where,
    warm: usize,
    seats: Seats,
    idle: Mutex<VecDeque<Idle>>,
    /// When a browser of two pixels for one was last asked for: such are kept ready only then.
    fine: Mutex<Option<Instant>>,
    /// Told whenever a browser was taken or a seat may have become free.
    pub(crate) wanted: Notify,
}

impl Starter {
    pub(crate) fn new(options: PoolOptions) -> Self {
        Self {
            seats: Seats::new(options.capacity),
            supply: Supply::new(options.source),
            ways: Where {
                egress: options.egress,
                exits: options.exits,
                exit_check: options.exit_check,
                routes: options.routes,
            },
            warm: options.warm,
            idle: Mutex::default(),
            fine: Mutex::default(),
            wanted: Notify::new(),
        }
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A browser for one session: a waiting one that is well, or else a new one.
    pub(crate) async fn browser(
        &self,
        mut spec: BrowserSpec,
    ) -> Result<(RemoteBrowser, Taken), StartError> {
        spec.device.scale = self.supply.scale(spec.device.scale);
        let scale = spec.device.scale;
        if scale == Scale::Two {
            *self.fine() = Some(Instant::now());
        }
        while let Some(idle) = self.take(Some(scale)) {
            self.wanted.notify_one();
            if idle.browser.answers().await {
                return self.adopt(idle, spec).await;
            }
            tracing::warn!("a browser that waited was not well");
        }
        let fresh = match self.make(scale).await {
            // Those that wait for others are not in the way of one who is here.
            Err(StartError::NoRoom) => match self.take(None) {
                Some(unfit) => {
                    unfit.browser.end().await;
                    drop(unfit);
                    self.make(scale).await?
                }
                None => return Err(StartError::NoRoom),
            },
            launched => launched?,
        };
        self.wanted.notify_one();
        self.adopt(fresh, spec).await
    }

    async fn adopt(
        &self,
        idle: Idle,
        spec: BrowserSpec,
    ) -> Result<(RemoteBrowser, Taken), StartError> {
        let ways = Arc::new(Ways {
            egress: self.ways.egress.clone(),
            routes: self.ways.routes.clone(),
            by_exit: self.ways.exits.are_used(),
            exit: Mutex::default(),
        });
        idle.way_out.lead(ways.clone());
        // The sandbox, and what the operator has named, is reached without an exit.
        let away = spec.hosts.iter().find(|host| !ways.is_direct(host, 443)).cloned();
        let place = spec.place.clone();
        let browser = idle.browser.assign(spec, idle.way_out);
        if ways.by_exit
            && let Some(host) = away
            && let Err(error) = self.leave(&browser, &ways, &place, &host).await
        {
            browser.end().await;
            return Err(error);
        }
        Ok((browser, idle.seat))
    }

    /// Finds the browser an exit that works and is in the right country.
    async fn leave(
        &self,
        browser: &RemoteBrowser,
        ways: &Ways,
        place: &Location,
        host: &str,
    ) -> Result<(), StartError> {
        // Sticky for as long as the browser lives, and never the same again.
        let session = Uuid::new_v4().simple().to_string();
        let mut elsewhere = false;
        for exit in self.ways.exits.at(place, session.get(..16).unwrap_or_default()) {
            ways.leave_by(exit.clone());
            let Some(check) = &self.ways.exit_check else {
                if tunnel(&exit, host, 443).await.is_ok() {
                    return Ok(());
                }
                continue;
            };
            match browser.country(check).await {
                Some(country) if country == place.country => return Ok(()),
                Some(country) => {
                    tracing::warn!(
                        wanted = place.country,
                        country,
                        "an exit is in another country"
                    );
                    elsewhere = true;
                }
                None => tracing::warn!(country = place.country, "an exit does not work"),
            }
        }
        Err(if elsewhere { StartError::Elsewhere } else { StartError::NoExit })
    }

    /// Starts a browser ahead of time if fewer wait than should and a seat is free; answers whether
    /// there may be another one to start.
    pub(crate) async fn fill(&self) -> Result<bool, StartError> {
        self.idle().retain(|idle| !idle.browser.is_gone());
        let fine = self.fine().is_some_and(|asked| asked.elapsed() < REMEMBERED);
        let scales = [Scale::One].into_iter().chain(fine.then_some(Scale::Two));
        let few = |scale: &Scale| {
            self.idle().iter().filter(|idle| idle.scale == *scale).count() < self.warm
        };
        let Some(scale) = scales.into_iter().find(few) else { return Ok(false) };
        match self.make(scale).await {
            Ok(idle) => self.idle().push_back(idle),
            Err(StartError::NoRoom) => return Ok(false),
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.idle().len()
    }

    /// Ends what waits.
    pub(crate) async fn end(&self) {
        while let Some(idle) = self.take(None) {
            idle.browser.end().await;
        }
    }

    /// One that waits; with a scale, one of it.
    fn take(&self, scale: Option<Scale>) -> Option<Idle> {
        let mut idle = self.idle();
        let fits =
            |one: &Idle| !one.browser.is_gone() && scale.is_none_or(|scale| one.scale == scale);
        let at = idle.iter().position(fits)?;
        idle.remove(at)
    }

    fn fine(&self) -> MutexGuard<'_, Option<Instant>> {
        self.fine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn make(&self, scale: Scale) -> Result<Idle, StartError> {
        let seat = self.seats.take().ok_or(StartError::NoRoom)?;
        self.supply.make(scale, seat).await
    }
}
