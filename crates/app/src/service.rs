//! Configuration in, running service out.

use std::{
    collections::HashMap,
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
    live::{Applicants, AuthorTools, Observers},
    mail_preferences::MailPreferences,
    sessions::{KeyAuthenticator, LookupUseCases, SessionUseCases},
};
use chromium::ChromiumPool;
use chrono::{DateTime, Utc};
use domain::id::InstanceId;
use http_api::{Metrics, Services, TrustedProxies};
use objects::RecordingFiles;
use ports::{clock::Clock, random::RandomSource, rate_limiter::RateLimiter};
use sandbox::SandboxPlatform;
use store::Store;
use system::{
    clock::{SystemClock, SystemRandom},
    data_dir::browsers_folder,
};
use tokio::task::JoinHandle;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    attestor_setup::attestor,
    browsers::browser_pool,
    channels::{channels, mail},
    config::Config,
    engine::SharedParts,
    limiters::limiters,
    portal_wiring::portal as wire_portal,
    storage::{OpenedStorage, StartupError, error_chain, open_store, recordings},
    wiring::partners as wire_partners,
    workers::WorkerParts,
};

const DRAIN_TIMEOUT: Duration = Duration::from_secs(8);

/// Replacements that a program which embeds the service may provide.
pub struct Overrides {
    pub clock: Arc<dyn Clock>,
    /// The `avouch` program, which also starts the sandbox of each browser.
    pub program: PathBuf,
    /// For runs of authors.
    pub author: Option<Arc<AuthorTools>>,
    /// Pages in addition to those of the service.
    pub pages: Option<http_api::Pages>,
}

impl Default for Overrides {
    fn default() -> Self {
        // Whatever became of the file since we were started.
        Self {
            clock: Arc::new(SystemClock),
            program: "/proc/self/exe".into(),
            author: None,
            pages: None,
        }
    }
}

/// A running service.
pub struct Service {
    pub address: SocketAddr,
    pub(crate) partners: Arc<SessionUseCases>,
    stop: CancellationToken,
    tasks: TaskTracker,
    pool: Arc<ChromiumPool>,
    browsers: PathBuf,
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
    films: RecordingFiles,
    pages: Option<http_api::Pages>,
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
            ready: self.store.clone(),
            films: Some(Arc::new(self.films.clone())),
            refusals: self.shared.refusals.clone(),
            pages: Some(pages(&self.portal, self.pages.clone())),
            public_url: self.config.addresses.public.clone(),
            https: self.config.addresses.public.starts_with("https://"),
            trusted_proxies: TrustedProxies(self.config.trusted_proxies.clone()),
            metrics: Some(self.metrics.clone()).filter(|_| self.config.metrics_listen.is_none()),
        }
    }

    fn authenticator(&self, store: &Arc<Store>) -> KeyAuthenticator {
        KeyAuthenticator {
            clock: self.shared.clock.clone(),
            urls: self.shared.urls.clone(),
            keys: store.clone(),
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
            catalogue: shared.pipelined.clone(),
            keys: shared.pipelined.clone(),
            brands: store.clone(),
            notifications: store.clone(),
            refusals: shared.refusals.clone(),
            runtime: shared.runtime.clone(),
        }
    }

    fn observers(&self) -> Observers {
        Observers {
            engine: self.shared.engine.clone(),
            tokens: self.shared.tokens.clone(),
            frames: self.shared.frames.clone(),
            runtime: self.shared.runtime.clone(),
        }
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

/// Returns what adds the portal's pages, and further ones, to a server.
fn pages(portal: &portal::Portal, further: Option<http_api::Pages>) -> http_api::Pages {
    let portal = portal.clone();
    Arc::new(move |config| {
        config.configure(portal::routes(portal.clone(), http_api::address));
        if let Some(further) = &further {
            further(config);
        }
    })
}

/// Opens the sandbox platform, whose certificate is in the data folder.
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

/// Everything that listens.
fn servers(
    site: SandboxPlatform,
    socket: TcpListener,
    parts: HttpParts,
) -> Result<Vec<Server>, StartupError> {
    let (elsewhere, metrics) = (parts.config.metrics_listen, parts.metrics.clone());
    let mut servers = vec![site.serve()?, http_api::serve(socket, move || parts.services())?];
    if let Some(address) = elsewhere {
        servers.push(http_api::serve_metrics(bind(address)?, metrics)?);
    }
    Ok(servers)
}

impl Service {
    /// Starts everything; answers once requests are served.
    pub async fn start(config: &Config, overrides: Overrides) -> Result<Self, StartupError> {
        let OpenedStorage { store, keys, stable_key } = open_store(config).await?;
        let site = sandbox_platform(config, &store, overrides.clock.now()).await?;
        let routes = HashMap::from([(sandbox::HOST.to_owned(), site.address()?)]);
        let node = InstanceId::from_u128(SystemRandom.new_id());
        let browsers = browsers_folder(node)?;
        let pool = browser_pool(config, &overrides.program, &browsers, routes).await?;
        let (socket, metrics) = (bind(config.listen)?, Metrics::install().map_err(error_chain)?);
        let address = socket.local_addr()?;
        let laned = Arc::new(store.with_pipelined_connection());
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let clock = overrides.clock;
        let attestor =
            attestor(config, &overrides.program, &site, clock.clone(), stop.clone(), &tasks)
                .await?;
        let tokens = Arc::new(keys.token_issuer(stable_key));
        let shared = SharedParts::new(config, node, clock.clone(), tokens, laned, attestor);
        let (vault, films) = recordings(config, &keys, clock)?;
        let (uses, limiters, mail) = (Arc::<KeyUses>::default(), limiters(config)?, mail(config)?);
        let partners = Arc::new(wire_partners(config, &shared, &store, vault.clone(), &limiters));
        let portal = wire_portal(&keys, &shared, config, &store, &limiters, partners.clone())?;
        let workers = WorkerParts {
            config,
            shared: &shared,
            store: &store,
            pool: pool.clone(),
            places: partners.places.clone(),
            vault,
            notifier: Arc::new(channels(config, mail.clone())?),
            mailer: mail,
            uses: uses.clone(),
            runs: Arc::default(),
            author: overrides.author,
            tasks: tasks.clone(),
        };
        application::workers::spawn(workers.workers()?, &stop, &tasks);
        let parts = HttpParts {
            shared,
            store,
            partners: partners.clone(),
            portal,
            uses,
            limiter: limiters.0,
            config: config.clone(),
            metrics: metrics.clone(),
            films,
            pages: overrides.pages,
        };
        let ends = stop.clone();
        tokio::spawn(async move { ends.run_until_cancelled(metrics.upkeep()).await });
        let servers = servers(site, socket, parts)?.into_iter();
        let servers = servers.map(|server| (server.handle(), tokio::spawn(server))).collect();
        tracing::info!("serving on http://{address}");
        Ok(Self { address, partners, stop, tasks, pool, browsers, servers })
    }

    /// Ends gracefully: requests in flight are answered, browsers end, nothing new begins.
    pub async fn stop(self) {
        for (handle, task) in self.servers {
            handle.stop(true).await;
            let _ = task.await;
        }
        self.stop.cancel();
        self.pool.end_all().await;
        self.tasks.close();
        if tokio::time::timeout(DRAIN_TIMEOUT, self.tasks.wait()).await.is_err() {
            tracing::warn!("some tasks did not end in time");
        }
        // A folder that cannot be removed now is removed at the next start.
        let _ = fs::remove_dir_all(&self.browsers);
    }
}
