//! Configuration in, running service out.

use std::{
    collections::HashMap,
    fs, io,
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use ::webhooks::HyperWebhookSender;
use actix_web::dev::{Server, ServerHandle};
use application::{
    advance::{Attestations, Core},
    api_keys::KeyUses,
    delivery::WebhookDispatcher,
    live::{Applicants, Observers, SessionHub},
    mail_preferences::MailPreferences,
    sessions::{KeyAuthenticator, LookupUseCases, SessionUseCases},
    workers::Workers,
};
use cdp::ChromiumPool;
use cdp::JpegRedactor;
use domain::{fairness::BrowserQueue, id::InstanceId};
use http_api::{Metrics, Services, TrustedProxies};
use objects::{Ffmpeg, RecordingFiles};
use ports::{attestor::Attestor, clock::Clock, random::RandomSource, rate_limiter::RateLimiter};
use prover::PackageReader;
use store::Store;
use system::clock::{HmacTokenIssuer, SystemClock, SystemRandom};
use system::refusals::ProcessRefusals;
use tokio::{runtime::Handle, sync::Notify, task::JoinHandle};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use uuid::Uuid;

use crate::{
    attestor_setup::attestor,
    browsers::browser_pool,
    channels::{channels, mail},
    config::Config,
    data_dir::browsers_folder,
    limiters::limiters,
    portal_wiring::portal as wire_portal,
    site::SandboxSite,
    storage::{OpenedStorage, StartupError, error_chain, open_store, recordings},
    wiring::partners as wire_partners,
};

const DRAIN_TIMEOUT: Duration = Duration::from_secs(8);

/// What an embedder may put in the place of the real thing.
pub struct Overrides {
    pub clock: Arc<dyn Clock>,
    /// A program that is `avouch`: it becomes each browser's jail.
    pub program: PathBuf,
}

impl Default for Overrides {
    fn default() -> Self {
        // Whatever became of the file since we were started.
        Self { clock: Arc::new(SystemClock), program: "/proc/self/exe".into() }
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

/// What every worker's services are made of.
#[derive(Clone)]
struct WorkerServices {
    core: Arc<Core>,
    store: Arc<Store>,
    partners: Arc<SessionUseCases>,
    portal: portal::Portal,
    uses: Arc<KeyUses>,
    limiter: Arc<dyn RateLimiter>,
    config: Config,
    metrics: Metrics,
    films: RecordingFiles,
}

impl WorkerServices {
    /// What one worker's handlers call. Single reads go over a connection of the worker's own.
    fn services(&self) -> Services {
        let store = Arc::new(self.store.with_lane());
        let gate = Arc::new(KeyAuthenticator {
            core: self.core.clone(),
            keys: store.clone(),
            sessions: store.clone(),
            limiter: self.limiter.clone(),
            limits: self.config.limits,
            uses: self.uses.clone(),
        });
        let offers = Arc::new(LookupUseCases {
            catalogue: store.clone(),
            templates: store.clone(),
            places: self.partners.places.clone(),
            channels: self.partners.channels.clone(),
        });
        let applicants = Applicants {
            core: self.core.clone(),
            brands: store.clone(),
            notifications: store.clone(),
        };
        let mailboxes = MailPreferences {
            core: self.core.clone(),
            brands: store.clone(),
            suppressions: store.clone(),
        };
        Services {
            gate,
            sessions: self.partners.clone(),
            lookups: offers,
            applicants: Arc::new(applicants),
            watchers: Arc::new(Observers { core: self.core.clone() }),
            mails: Arc::new(mailboxes),
            ready: self.store.clone(),
            films: Some(Arc::new(self.films.clone())),
            refusals: self.core.refusals.clone(),
            pages: Some(pages(&self.portal)),
            https: self.config.addresses.public.starts_with("https://"),
            trusted_proxies: TrustedProxies(self.config.trusted_proxies.clone()),
            metrics: Some(self.metrics.clone()).filter(|_| self.config.metrics_listen.is_none()),
        }
    }
}

/// Returns what adds the portal's pages to a server.
fn pages(portal: &portal::Portal) -> http_api::Pages {
    let portal = portal.clone();
    Arc::new(move |config| {
        config.configure(portal::routes(portal.clone(), http_api::address));
    })
}

fn core(
    config: &Config,
    parts: Overrides,
    node: InstanceId,
    tokens: HmacTokenIssuer,
    store: Arc<Store>,
    attestor: Arc<dyn Attestor>,
) -> Core {
    Core {
        node,
        runtime: Handle::current(),
        addresses: config.addresses.clone(),
        sessions: store.clone(),
        devices: store.clone(),
        attestations: Attestations {
            attestor,
            attestations: store.clone(),
            reader: Arc::new(PackageReader),
            keys: store.clone(),
        },
        catalogue: store,
        clock: parts.clock,
        random: Arc::new(SystemRandom),
        tokens: Arc::new(tokens),
        frames: Arc::new(JpegRedactor),
        refusals: Arc::new(ProcessRefusals),
        hub: SessionHub::default(),
        queue: Arc::new(Mutex::new(BrowserQueue::new(config.quotas))),
        effects: Notify::new(),
        deliveries: Arc::default(),
    }
}

fn dispatcher(
    config: &Config,
    core: Arc<Core>,
    store: &Store,
    tasks: TaskTracker,
) -> Result<WebhookDispatcher, StartupError> {
    let sender = HyperWebhookSender::new(config.egress.clone(), &config.egress_roots)?;
    Ok(WebhookDispatcher {
        core,
        queue: Arc::new(store.with_lane()),
        log: Arc::new(store.with_lane()),
        sender: Arc::new(sender),
        backoff: config.webhook_backoff,
        tasks,
    })
}

pub(crate) fn bind(address: SocketAddr) -> Result<TcpListener, StartupError> {
    TcpListener::bind(address)
        .map_err(|error| format!("cannot listen on {address}: {error}").into())
}

/// Everything that listens.
fn servers(
    site: SandboxSite,
    socket: TcpListener,
    shared: WorkerServices,
) -> Result<Vec<Server>, StartupError> {
    let (for_browsers, over_tls, identity) = site.into_parts();
    let (elsewhere, metrics) = (shared.config.metrics_listen, shared.metrics.clone());
    let mut servers = vec![
        sandbox::serve(for_browsers, over_tls, identity)?,
        http_api::serve(socket, move || shared.services())?,
    ];
    if let Some(address) = elsewhere {
        servers.push(http_api::serve_metrics(bind(address)?, metrics)?);
    }
    Ok(servers)
}

impl Service {
    /// Starts everything; answers once requests are served.
    pub async fn start(config: &Config, parts: Overrides) -> Result<Self, StartupError> {
        let OpenedStorage { store, keys, lasting } = open_store(config).await?;
        let site = SandboxSite::open(config, &store, parts.clock.now()).await?;
        let routes = HashMap::from([(sandbox::HOST.to_owned(), site.address()?)]);
        let node = InstanceId::from_uuid(Uuid::from_u128(SystemRandom.new_id()));
        let browsers = browsers_folder(node)?;
        let pool = browser_pool(config, &parts.program, &browsers, routes).await?;
        let (socket, metrics) = (bind(config.listen)?, Metrics::install().map_err(error_chain)?);
        let address = socket.local_addr()?;
        let laned = Arc::new(store.with_lane());
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let clock = parts.clock.clone();
        let attestor = attestor(config, &parts.program, &site, clock, stop.clone(), &tasks).await?;
        let core = Arc::new(core(config, parts, node, keys.tokens(lasting), laned, attestor));
        let (vault, films) = recordings(config, &keys, core.clock.clone())?;
        let (uses, limiters, mail) = (Arc::<KeyUses>::default(), limiters(config)?, mail(config)?);
        let partners = Arc::new(wire_partners(config, &core, &store, vault.clone(), &limiters));
        let portal = wire_portal(&keys, &core, config, &store, &limiters, partners.clone())?;
        let workers = Workers {
            core: core.clone(),
            outbox: store.clone(),
            log: store.clone(),
            dispatcher: dispatcher(config, core.clone(), &store, tasks.clone())?,
            pool: pool.clone(),
            queue_patience: config.queue_patience,
            places: partners.places.clone(),
            recordings: store.clone(),
            vault,
            encoder: Arc::new(Ffmpeg::default()),
            notifications: store.clone(),
            notifier: Arc::new(channels(config, mail.clone())?),
            account_links: store.clone(),
            notices: store.clone(),
            mailer: mail,
            link_backoff: config.mailing.backoff,
            keys: store.clone(),
            templates: store.clone(),
            brands: store.clone(),
            suppressions: store.clone(),
            uses: uses.clone(),
            sign_ins: store.clone(),
            browsers: store.clone(),
            retention: config.retention,
            stop,
            tasks,
        };
        workers.start();
        let shared = WorkerServices {
            core,
            store,
            partners: partners.clone(),
            portal,
            uses,
            limiter: limiters.0,
            config: config.clone(),
            metrics: metrics.clone(),
            films,
        };
        let ends = workers.stop.clone();
        tokio::spawn(async move { ends.run_until_cancelled(metrics.upkeep()).await });
        let servers = servers(site, socket, shared)?.into_iter();
        let servers = servers.map(|server| (server.handle(), tokio::spawn(server))).collect();
        tracing::info!("serving on http://{address}");
        let (stop, tasks) = (workers.stop, workers.tasks);
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
        // What cannot be removed now is removed at the next start.
        let _ = fs::remove_dir_all(&self.browsers);
    }
}
