//! Browsers that are up before anybody needs them: starting one takes longer than loading a page.

use std::{
    collections::VecDeque,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use domain::request::Location;
use ports::browser::{BrowserSpec, Scale, StartError};
use tokio::{
    net::TcpListener,
    sync::{Notify, mpsc},
};
use uuid::Uuid;

use crate::{
    browser::RemoteBrowser,
    client::Event,
    forwarder::{Forwarder, Ways},
    jail::WAY_OUT,
    launch::{Chromium, LaunchOptions, Launched},
    pool::PoolOptions,
    seats::{Seats, Taken},
    upstream::tunnel,
};

/// How long it is remembered what kind of browser was asked for.
const REMEMBERED: Duration = Duration::from_secs(3600);

/// A browser that no session has, and that none has had.
pub(crate) struct Idle {
    chromium: Chromium,
    events: mpsc::Receiver<Event>,
    way_out: TcpListener,
    seat: Taken,
    scale: Scale,
}

/// Starts browsers, some of them ahead of time.
pub(crate) struct Starter {
    options: PoolOptions,
    seats: Seats,
    idle: Mutex<VecDeque<Idle>>,
    /// When a browser of two pixels for one was last asked for: such are kept ready only then.
    fine: Mutex<Option<Instant>>,
    started: AtomicU64,
    /// Told whenever a browser was taken or a seat may have become free.
    pub(crate) wanted: Notify,
}

impl Starter {
    pub(crate) fn new(options: PoolOptions) -> Self {
        Self {
            seats: Seats::new(options.capacity),
            options,
            idle: Mutex::default(),
            fine: Mutex::default(),
            started: AtomicU64::new(0),
            wanted: Notify::new(),
        }
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A browser for one session: a waiting one that is well, or else a new one.
    pub(crate) async fn browser(
        &self,
        spec: BrowserSpec,
    ) -> Result<(RemoteBrowser, Taken), StartError> {
        let scale = spec.device.scale;
        if scale == Scale::Two {
            *self.fine() = Some(Instant::now());
        }
        while let Some(idle) = self.take(Some(scale)) {
            self.wanted.notify_one();
            match self.adopt(idle, spec.clone()).await {
                Ok(adopted) => return Ok(adopted),
                Err(error) => tracing::warn!(%error, "a browser that waited was not well"),
            }
        }
        let fresh = match self.launch(scale).await {
            // Those that wait for others are not in the way of one who is here.
            Err(StartError::NoRoom) => match self.take(None) {
                Some(unfit) => {
                    unfit.chromium.end().await;
                    drop(unfit);
                    self.launch(scale).await?
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
            egress: self.options.egress.clone(),
            routes: self.options.routes.clone(),
            by_exit: self.options.exits.are_used(),
            exit: Mutex::default(),
        });
        let forwarder = Forwarder::start(ways.clone(), idle.way_out);
        // The sandbox, and what the operator has named, is reached without an exit.
        let away = spec.hosts.iter().find(|host| !ways.is_direct(host, 443)).cloned();
        let place = spec.place.clone();
        let adopted = RemoteBrowser::adopt(idle.chromium, idle.events, spec, forwarder).await;
        let browser = adopted.map_err(|error| unavailable(&error))?;
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
        for exit in self.options.exits.at(place, session.get(..16).unwrap_or_default()) {
            ways.leave_by(exit.clone());
            let Some(check) = &self.options.exit_check else {
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
        self.idle().retain(|idle| !idle.chromium.client.is_closed());
        let fine = self.fine().is_some_and(|asked| asked.elapsed() < REMEMBERED);
        let scales = [Scale::One].into_iter().chain(fine.then_some(Scale::Two));
        let few = |scale: &Scale| {
            self.idle().iter().filter(|idle| idle.scale == *scale).count() < self.options.warm
        };
        let Some(scale) = scales.into_iter().find(few) else { return Ok(false) };
        match self.launch(scale).await {
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
            idle.chromium.end().await;
        }
    }

    /// One that waits; with a scale, one of it.
    fn take(&self, scale: Option<Scale>) -> Option<Idle> {
        let mut idle = self.idle();
        let fits = |one: &Idle| {
            !one.chromium.client.is_closed() && scale.is_none_or(|scale| one.scale == scale)
        };
        let at = idle.iter().position(fits)?;
        idle.remove(at)
    }

    fn fine(&self) -> MutexGuard<'_, Option<Instant>> {
        self.fine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn launch(&self, scale: Scale) -> Result<Idle, StartError> {
        let seat = self.seats.take().ok_or(StartError::NoRoom)?;
        // Outside of a jail the way out is in the network that we are in ourselves.
        let outside = match self.options.jail {
            Some(_) => None,
            None => Some(TcpListener::bind("127.0.0.1:0").await.map_err(|e| unavailable(&e))?),
        };
        let proxy = match &outside {
            Some(listener) => listener.local_addr().map_err(|error| unavailable(&error))?,
            None => WAY_OUT,
        };
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let options = LaunchOptions {
            executable: self.options.executable.clone(),
            // Short: Chromium binds a socket in it, whose path is bounded.
            folder: self.options.folder.join(Path::new(&format!("{number:x}"))),
            flags: vec![
                format!("--proxy-server=http://{proxy}"),
                // Without this, loopback addresses are reached around the proxy.
                "--proxy-bypass-list=<-loopback>".to_owned(),
                // Overriding it later does not make pictures any finer.
                format!("--force-device-scale-factor={}", scale.times()),
            ],
            jail: self.options.jail.clone(),
            seat: seat.seat,
        };
        let launched = Chromium::launch(&options).await.map_err(|error| unavailable(&error))?;
        let Launched { chromium, events, way_out } = launched;
        let way_out = way_out.or(outside);
        let way_out =
            way_out.ok_or_else(|| StartError::Unavailable("there is no way out".into()))?;
        Ok(Idle { chromium, events, way_out, seat, scale })
    }
}

fn unavailable(error: &dyn std::error::Error) -> StartError {
    let mut why = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        why.push_str(": ");
        why.push_str(&cause.to_string());
        source = cause.source();
    }
    StartError::Unavailable(why)
}
