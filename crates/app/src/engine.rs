//! The parts that the use cases and the workers of one process share.

use std::sync::Arc;

use application::{
    advance::{SessionEngine, Wakeups},
    attestations::Attestations,
    browser_turns::BrowserTurns,
    drafts::{DraftCatalogue, DraftSessions},
    live::{SessionDevices, SessionHub, SessionStarter},
    session_traces::SessionTraces,
    urls::Urls,
};
use chromium::JpegRedactor;
use domain::id::InstanceId;
use ports::{
    attestor::Attestor, browser::FrameRedactor, clock::Clock, random::RandomSource,
    refusals::RefusalLog, tokens::TokenIssuer,
};
use prover::PackageReader;
use store::Store;
use system::{clock::SystemRandom, refusals::ProcessRefusals};
use tokio::runtime::Handle;

use crate::config::Config;

/// The parts that use cases and workers share.
#[derive(Clone)]
pub(crate) struct SharedParts {
    pub(crate) node: InstanceId,
    pub(crate) runtime: Handle,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn RandomSource>,
    pub(crate) tokens: Arc<dyn TokenIssuer>,
    pub(crate) frames: Arc<dyn FrameRedactor>,
    pub(crate) refusals: Arc<dyn RefusalLog>,
    pub(crate) wakeups: Wakeups,
    pub(crate) engine: Arc<SessionEngine>,
    pub(crate) starter: Arc<SessionStarter>,
    pub(crate) devices: Arc<SessionDevices>,
    pub(crate) urls: Arc<Urls>,
    pub(crate) turns: Arc<BrowserTurns>,
    pub(crate) attestations: Arc<Attestations>,
    pub(crate) drafts: Arc<DraftSessions>,
    /// The catalogue with the drafts of this process.
    pub(crate) catalogue: Arc<DraftCatalogue>,
    /// The store over a pipelined connection, for the statements that applicants wait for.
    pub(crate) pipelined: Arc<Store>,
}

impl SharedParts {
    pub(crate) fn new(
        config: &Config,
        node: InstanceId,
        clock: Arc<dyn Clock>,
        tokens: Arc<dyn TokenIssuer>,
        pipelined: Arc<Store>,
        attestor: Arc<dyn Attestor>,
        traces: SessionTraces,
    ) -> Self {
        let random: Arc<dyn RandomSource> = Arc::new(SystemRandom);
        let wakeups = Wakeups::default();
        let engine = Arc::new(SessionEngine {
            sessions: pipelined.clone(),
            leases: pipelined.clone(),
            clock: clock.clone(),
            hub: Arc::new(SessionHub::default()),
            wakeups: wakeups.clone(),
            traces,
        });
        let region = config.addresses.own;
        let starter =
            SessionStarter { engine: engine.clone(), random: random.clone(), node, region };
        let devices = SessionDevices {
            store: pipelined.clone(),
            tokens: tokens.clone(),
            random: random.clone(),
            clock: clock.clone(),
        };
        let urls = Urls {
            addresses: config.addresses.clone(),
            tokens: tokens.clone(),
            clock: clock.clone(),
        };
        let attestations = Attestations {
            attestor,
            store: pipelined.clone(),
            reader: Arc::new(PackageReader),
            keys: pipelined.clone(),
        };
        let drafts = Arc::<DraftSessions>::default();
        let catalogue = DraftCatalogue { published: pipelined.clone(), drafts: drafts.clone() };
        Self {
            drafts,
            catalogue: Arc::new(catalogue),
            node,
            runtime: Handle::current(),
            clock,
            random,
            tokens,
            frames: Arc::new(JpegRedactor),
            refusals: Arc::new(ProcessRefusals),
            wakeups,
            engine,
            starter: Arc::new(starter),
            devices: Arc::new(devices),
            urls: Arc::new(urls),
            turns: Arc::new(BrowserTurns::new(config.quotas)),
            attestations: Arc::new(attestations),
            pipelined,
        }
    }
}
