//! Configuration in, running service out.

use std::{
    fs, io,
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use actix_web::dev::{Server, ServerHandle};
use application::{
    api_keys::KeyUses,
    definition_statistics::PlatformHealthReader,
    draining::Draining,
    instances::{InstanceDirectory, InstanceReports},
    live::{Applicants, AuthorTools, Observers, SessionHub},
    mail_preferences::MailPreferences,
    sessions::{KeyAuthenticator, LookupUseCases, SessionUseCases},
    trusted_keys::TrustedKeys,
    workers::{ClockAdjuster, Worker, read_reference},
};
use async_trait::async_trait;
use authoring::Studios;
use chromium::ChromiumPool;
use chrono::{DateTime, Utc};
use domain::id::InstanceId;
use http_api::{InstanceServices, Metrics, RequestSpans, Services, TrustedProxies};
use objects::RecordingFiles;
use ports::{
    catalogue::Catalogue, clock::Clock, driving::Readiness, random::RandomSource,
    rate_limiter::RateLimiter,
};
use sandbox::SandboxPlatform;
use store::Store;
use studio::StudioAccess;
use system::{
    clock::{SystemClock, SystemRandom},
    data_dir::browsers_folder,
    deployment_clock::DeploymentClock,
};
use tokio::task::JoinHandle;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    attestor_setup::attestor,
    browsers::browser_pool,
    channels::{channels, mail},
    config::Config,
    engine::SharedParts,
    instances::{Instances, instances as wire_instances},
    limiters::limiters,
    portal_wiring::portal as wire_portal,
    storage::{OpenedStorage, StartupError, error_chain, open_store, recordings},
    studio_wiring::studios as wire_studios,
    traces::Traces,
    wiring::partners as wire_partners,
    workers::WorkerParts,
};

const DRAIN_TIMEOUT: Duration = Duration::from_secs(8);

/// Replacements that a program which embeds the service may provide.
pub struct Overrides {
    /// Instead of the clock of the database.
    pub clock: Option<Arc<dyn Clock>>,
    /// The `avouch` program, which also starts the sandbox of each browser.
    pub program: PathBuf,
    /// For runs of authors.
    pub author: Option<Arc<AuthorTools>>,
}

impl Default for Overrides {
    fn default() -> Self {
        // Whatever became of the file since we were started.
        Self { clock: None, program: "/proc/self/exe".into(), author: None }
    }
}

/// A running service.
pub struct Service {
    pub address: SocketAddr,
    pub(crate) partners: Arc<SessionUseCases>,
    pub(crate) studios: Studios,
    draining: Draining,
    reports: Option<Arc<InstanceReports>>,
    stop: CancellationToken,
    tasks: TaskTracker,
    pool: Arc<ChromiumPool>,
    browsers: PathBuf,
    traces: Traces,
    servers: Vec<(ServerHandle, JoinHandle<io::Result<()>>)>,
}

/// The parts of which the services of each HTTP worker are made.
#[derive(Clone)]
struct HttpParts {
    shared: SharedParts,
    store: Arc<Store>,
    partners: Arc<SessionUseCases>,
    portal: portal::Portal,
    uses: Arc<KeyUses>,
    limiter: Arc<dyn RateLimiter>,
    config: Config,
    metrics: Metrics,
    spans: Option<RequestSpans>,
    films: RecordingFiles,
    studios: Studios,
    instances: Option<Instances>,
}

impl HttpParts {
    /// Returns what the handlers of one HTTP worker call. Single reads go over a pipelined
    /// connection of the worker's own.
    fn services(&self) -> Services {
        let store = Arc::new(self.store.with_pipelined_connection());
        Services {
            gate: Arc::new(self.authenticator(&store)),
            sessions: self.partners.clone(),
            lookups: Arc::new(self.lookups(&store)),
            applicants: Arc::new(self.applicants(&store)),
            watchers: Arc::new(self.observers()),
            mails: Arc::new(self.mail_preferences(&store)),
            ready: Arc::new(UntilDraining {
                database: self.store.clone(),
                hub: self.shared.engine.hub.clone(),
            }),
            films: Some(Arc::new(self.films.clone())),
            refusals: self.shared.refusals.clone(),
            router: self.instances.as_ref().map(|instances| instances.router.clone()),
            studios: self.instances.as_ref().map(|instances| instances.studios.clone()),
            pages: Some(self.pages()),
            public_url: self.config.addresses.public.clone(),
            https: self.config.addresses.public.starts_with("https://"),
            trusted_proxies: TrustedProxies(self.config.trusted_proxies.clone()),
            metrics: Some(self.metrics.clone()).filter(|_| self.config.metrics_listen.is_none()),
            spans: self.spans.clone(),
        }
    }

    fn authenticator(&self, store: &Arc<Store>) -> KeyAuthenticator {
        KeyAuthenticator {
            clock: self.shared.clock.clone(),
            urls: self.shared.urls.clone(),
            keys: Arc::new(TrustedKeys::new(store.clone())),
            sessions: store.clone(),
            limiter: self.limiter.clone(),
            limits: self.config.limits,
            uses: self.uses.clone(),
        }
    }

    fn lookups(&self, store: &Arc<Store>) -> LookupUseCases {
        LookupUseCases {
            catalogue: store.clone(),
            templates: store.clone(),
            places: self.partners.places.clone(),
            channels: self.partners.channels.clone(),
            health: PlatformHealthReader {
                statistics: store.clone(),
                clock: self.shared.clock.clone(),
            },
        }
    }

    fn applicants(&self, store: &Arc<Store>) -> Applicants {
        let shared = &self.shared;
        Applicants {
            engine: shared.engine.clone(),
            starter: shared.starter.clone(),
            devices: shared.devices.clone(),
            urls: shared.urls.clone(),
            catalogue: shared.catalogue.clone(),
            keys: shared.pipelined.clone(),
            brands: store.clone(),
            notifications: store.clone(),
            refusals: shared.refusals.clone(),
            instances: self.directory(),
            regions: None,
            runtime: shared.runtime.clone(),
        }
    }

    fn observers(&self) -> Observers {
        Observers {
            engine: self.shared.engine.clone(),
            tokens: self.shared.tokens.clone(),
            frames: self.shared.frames.clone(),
            instances: self.directory(),
            runtime: self.shared.runtime.clone(),
        }
    }

    fn directory(&self) -> Option<Arc<InstanceDirectory>> {
        self.instances.as_ref().map(|instances| instances.directory.clone())
    }

    /// Returns what other instances call.
    fn instance_services(&self) -> InstanceServices {
        InstanceServices {
            applicants: Arc::new(Applicants {
                regions: Some(self.store.clone()),
                ..self.applicants(&self.shared.pipelined)
            }),
            watchers: Arc::new(self.observers()),
            refusals: self.shared.refusals.clone(),
            pages: self.studio_pages(),
        }
    }

    /// Returns what adds the pages of the portal and of studios to a server.
    fn pages(&self) -> http_api::Pages {
        let (portal, studios) = (self.portal.clone(), self.studios.clone());
        let router = self.instances.as_ref().map(|instances| instances.studios.clone());
        Arc::new(move |config| {
            let forward = http_api::forward;
            let elsewhere = router.clone().map(|router| studio::Elsewhere { router, forward });
            // The portal's pages answer what nothing else does.
            config.configure(studio::routes(studio_access(&studios, elsewhere)));
            let elsewhere = router.clone().map(|router| portal::Elsewhere { router, forward });
            config.configure(portal::routes(portal.clone(), http_api::address, elsewhere));
        })
    }

    /// Returns what adds the pages that need the process of a studio to the server for other instances.
    fn studio_pages(&self) -> http_api::Pages {
        let (portal, studios) = (self.portal.clone(), self.studios.clone());
        Arc::new(move |config| {
            // What another instance has forwarded is answered here, whatever it is about.
            config.configure(studio::routes(studio_access(&studios, None)));
            config.configure(portal::studio_routes(portal.clone(), http_api::address));
        })
    }

    fn mail_preferences(&self, store: &Arc<Store>) -> MailPreferences {
        MailPreferences {
            tokens: self.shared.tokens.clone(),
            clock: self.shared.clock.clone(),
            brands: store.clone(),
            suppressions: store.clone(),
        }
    }
}

/// The readiness of a process, which ends when the process drains.
struct UntilDraining {
    database: Arc<Store>,
    hub: Arc<SessionHub>,
}

#[async_trait]
impl Readiness for UntilDraining {
    async fn ready(&self) -> bool {
        !self.hub.is_draining() && self.database.ready().await
    }
}

fn studio_access(studios: &Studios, elsewhere: Option<studio::Elsewhere>) -> StudioAccess {
    StudioAccess {
        studios: studios.clone(),
        author: Arc::new(|request| Box::pin(async move { portal::author(&request).await })),
        elsewhere,
    }
}

/// Opens the sandbox platforms, whose certificate is in the data folder.
async fn sandbox_platform(
    config: &Config,
    store: &Store,
    now: DateTime<Utc>,
) -> Result<SandboxPlatform, StartupError> {
    let listen = config.attesting.sandbox_listen;
    let opened = SandboxPlatform::open(&config.sandbox_folder(), listen, store, now).await;
    opened.map_err(error_chain)
}

fn bind(address: SocketAddr) -> Result<TcpListener, StartupError> {
    TcpListener::bind(address)
        .map_err(|error| format!("cannot listen on {address}: {error}").into())
}

/// Returns the socket of the API, for a process with this role, and the address that it has or would have.
fn api_socket(config: &Config) -> Result<(Option<TcpListener>, SocketAddr), StartupError> {
    if !config.roles.api {
        return Ok((None, config.listen));
    }
    let socket = bind(config.listen)?;
    let address = socket.local_addr()?;
    Ok((Some(socket), address))
}

fn announce(config: &Config, address: SocketAddr) {
    if config.roles.api {
        tracing::info!("serving on http://{address}");
    } else {
        tracing::info!("delivering webhooks and mails; nothing is served");
    }
}

/// Returns a clock that shows the time of the database.
pub(crate) async fn deployment_clock(store: &Store) -> Result<DeploymentClock, StartupError> {
    let now = read_reference(store, &SystemClock).await.map_err(error_chain)?;
    Ok(DeploymentClock::set_to(now))
}

/// Returns the clock of the process, and what adjusts it.
async fn clocks(
    store: &Arc<Store>,
    given: Option<Arc<dyn Clock>>,
) -> Result<(Arc<dyn Clock>, Option<ClockAdjuster>), StartupError> {
    if let Some(clock) = given {
        return Ok((clock, None));
    }
    let clock = Arc::new(deployment_clock(store).await?);
    let reference = store.clone();
    let adjuster =
        ClockAdjuster { clock: clock.clone(), reference, machine: Arc::new(SystemClock) };
    Ok((clock, Some(adjuster)))
}

/// Every background loop of the process.
fn all_workers(
    parts: &WorkerParts<'_>,
    instances: Option<&Instances>,
    adjuster: Option<ClockAdjuster>,
) -> Result<Vec<Box<dyn Worker>>, StartupError> {
    let mut workers = parts.workers()?;
    if let Some(adjuster) = adjuster {
        workers.push(Box::new(adjuster));
    }
    if let Some(instances) = instances {
        workers.push(Box::new(instances.reports.clone()));
        workers.push(Box::new(instances.mover.clone()));
    }
    Ok(workers)
}

/// Everything that listens; `socket` is that of the API, if the process has this role.
fn servers(
    site: SandboxPlatform,
    socket: Option<TcpListener>,
    parts: HttpParts,
) -> Result<Vec<Server>, StartupError> {
    let (elsewhere, metrics) = (parts.config.metrics_listen, parts.metrics.clone());
    let mut servers = vec![];
    if let Some(socket) = socket {
        let instances = parts.instances.clone();
        let for_instances = instances.as_ref().map(|_| parts.instance_services());
        servers.extend([site.serve()?, http_api::serve(socket, move || parts.services())?]);
        if let (Some(instances), Some(services)) = (instances, for_instances) {
            let tls = instances.identity.server_config()?;
            let listen = bind(instances.config.listen)?;
            servers.push(http_api::serve_instances(listen, tls, services)?);
        }
    }
    if let Some(address) = elsewhere {
        servers.push(http_api::serve_metrics(bind(address)?, metrics)?);
    }
    Ok(servers)
}

fn draining(shared: &SharedParts, instances: Option<&Instances>) -> Draining {
    Draining {
        engine: shared.engine.clone(),
        turns: shared.turns.clone(),
        node: shared.node,
        mover: instances.map(|instances| instances.mover.clone()),
    }
}

/// Runs servers, each in a task of its own.
fn running(servers: Vec<Server>) -> Vec<(ServerHandle, JoinHandle<io::Result<()>>)> {
    servers.into_iter().map(|server| (server.handle(), tokio::spawn(server))).collect()
}

impl Service {
    /// Starts everything; answers once requests are served.
    pub async fn start(config: &Config, overrides: Overrides) -> Result<Self, StartupError> {
        let OpenedStorage { store, keys, stable_key } = open_store(config).await?;
        let laned = Arc::new(store.with_pipelined_connection());
        let (clock, adjuster) = clocks(&laned, overrides.clock).await?;
        let site = sandbox_platform(config, &store, clock.now()).await?;
        let node = InstanceId::from_u128(SystemRandom.new_id());
        let browsers = browsers_folder(node)?;
        let pool = browser_pool(config, &overrides.program, &browsers, site.hosts()?).await?;
        let (socket, address) = api_socket(config)?;
        let metrics = Metrics::install().map_err(error_chain)?;
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let attestor =
            attestor(config, &overrides.program, &site, clock.clone(), stop.clone(), &tasks)
                .await?;
        let tokens = Arc::new(keys.token_issuer(stable_key));
        let traces = Traces::start(config, node)?;
        let recorded = traces.of_sessions(laned.clone());
        let shared =
            SharedParts::new(config, node, clock.clone(), tokens, laned, attestor, recorded);
        let instances = wire_instances(config, &shared, &store)?;
        let (vault, films) = recordings(config, &keys, clock.clone())?;
        let (uses, limiters, mail) = (Arc::<KeyUses>::default(), limiters(config)?, mail(config)?);
        let partners = |catalogue: Arc<dyn Catalogue>| {
            Arc::new(wire_partners(config, &shared, &store, catalogue, vault.clone(), &limiters))
        };
        let studios = wire_studios(&shared, config, &store, partners(shared.catalogue.clone()));
        let partners = partners(shared.pipelined.clone());
        let portal = wire_portal(&keys, &shared, config, &store, &limiters, (&partners, &studios))?;
        let workers = WorkerParts {
            config,
            shared: &shared,
            store: &store,
            pool: pool.clone(),
            places: partners.places.clone(),
            vault,
            notifier: Arc::new(channels(config, mail.clone())?),
            mailer: mail,
            folder: &browsers,
            uses: uses.clone(),
            runs: Arc::default(),
            author: overrides.author,
            tasks: tasks.clone(),
        };
        let serving = instances.as_ref().filter(|_| config.roles.api);
        let reports = serving.map(|instances| instances.reports.clone());
        application::workers::spawn(all_workers(&workers, serving, adjuster)?, &stop, &tasks);
        let draining = draining(&shared, serving);
        let parts = HttpParts {
            shared,
            store,
            partners: partners.clone(),
            portal,
            uses,
            limiter: limiters.0,
            config: config.clone(),
            metrics: metrics.clone(),
            spans: traces.of_requests(clock),
            films,
            studios: studios.clone(),
            instances: instances.clone(),
        };
        let ends = stop.clone();
        tokio::spawn(async move { ends.run_until_cancelled(metrics.upkeep()).await });
        let servers = running(servers(site, socket, parts)?);
        announce(config, address);
        Ok(Self {
            address,
            partners,
            studios,
            draining,
            reports,
            stop,
            tasks,
            pool,
            browsers,
            traces,
            servers,
        })
    }

    /// Is not ready any more, begins no sessions, and answers requests until its sessions have ended, for
    /// at least and at most these times.
    pub async fn drain(&self, at_least: Duration, at_most: Duration) {
        let sessions = self.draining.drain(at_least, at_most);
        let (running, ()) = tokio::join!(sessions, self.pool.drain());
        if running > 0 {
            tracing::warn!(running, "{running} sessions did not end in time; their browsers end");
        }
    }

    /// Ends gracefully: requests in flight are answered, browsers end, nothing new begins.
    pub async fn stop(self) {
        self.studios.close_all().await;
        // All at once: the sockets of sessions that have not ended hold up each server as long as it allows.
        let stopped: Vec<_> = self.servers.iter().map(|(handle, _)| handle.stop(true)).collect();
        for (stopped, (_, task)) in stopped.into_iter().zip(self.servers) {
            stopped.await;
            let _ = task.await;
        }
        self.stop.cancel();
        self.pool.end_all().await;
        self.tasks.close();
        if tokio::time::timeout(DRAIN_TIMEOUT, self.tasks.wait()).await.is_err() {
            tracing::warn!("some tasks did not end in time");
        }
        if let Some(reports) = self.reports {
            reports.leave().await;
        }
        self.traces.finish().await;
        // A folder that cannot be removed now is removed at the next start.
        let _ = fs::remove_dir_all(&self.browsers);
    }
}
