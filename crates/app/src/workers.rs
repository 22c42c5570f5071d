//! The workers of a process, wired to their adapters: one function for each group.

use std::{path::Path, sync::Arc};

use application::{
    api_keys::KeyUses,
    definition_statistics::RunStatistics,
    delivery::{DeliveryGiveUp, WebhookDispatcher},
    live::AuthorTools,
    workers::{
        AccountLinkMails, AccountNoticeMails, BrowserStarter, JobExecutor, KeyUseRecorder,
        LinkComposer, LinkNotifications, LinkSender, LoadReporter, OutboxWorker, Recordings,
        Retention, RetryPolicy, SessionSweeper, StatisticsRecorder, Worker,
    },
};
use objects::Ffmpeg;
use ports::{
    browser::BrowserPool,
    notifier::{Mailer, Notifier},
    places::Places,
    recording::RecordingVault,
};
use store::Store;
use tokio::sync::Mutex;
use tokio_util::task::TaskTracker;
use webhooks::HyperWebhookSender;

use crate::{config::Config, engine::SharedParts, storage::StartupError};

/// The parts that only workers use.
pub(crate) struct WorkerParts<'a> {
    pub(crate) config: &'a Config,
    pub(crate) shared: &'a SharedParts,
    pub(crate) store: &'a Arc<Store>,
    pub(crate) pool: Arc<dyn BrowserPool>,
    pub(crate) places: Arc<dyn Places>,
    pub(crate) vault: Arc<dyn RecordingVault>,
    pub(crate) notifier: Arc<dyn Notifier>,
    pub(crate) mailer: Arc<dyn Mailer>,
    /// The folder of this process for temporary files; after its end the next process removes it.
    pub(crate) folder: &'a Path,
    pub(crate) uses: Arc<KeyUses>,
    pub(crate) runs: Arc<RunStatistics>,
    pub(crate) author: Option<Arc<AuthorTools>>,
    pub(crate) tasks: TaskTracker,
}

impl WorkerParts<'_> {
    /// Returns the workers of the process's roles.
    pub(crate) fn workers(&self) -> Result<Vec<Box<dyn Worker>>, StartupError> {
        let roles = self.config.roles;
        let mut workers = self.reporting_workers();
        if roles.api {
            workers.extend(self.session_workers());
        }
        if roles.delivery {
            workers.extend(self.delivery_workers()?);
            workers.extend(self.mail_workers());
            workers.push(Box::new(self.retention()));
        }
        Ok(workers)
    }

    fn session_workers(&self) -> Vec<Box<dyn Worker>> {
        let (shared, store) = (self.shared, self.store);
        let sweeper = SessionSweeper {
            engine: shared.engine.clone(),
            outbox: store.clone(),
            node: shared.node,
        };
        let recordings = Recordings {
            queue: store.clone(),
            vault: self.vault.clone(),
            encoder: Arc::new(Ffmpeg::new(self.folder.to_owned())),
            sessions: shared.pipelined.clone(),
            clock: shared.clock.clone(),
        };
        vec![Box::new(self.jobs()), Box::new(sweeper), Box::new(recordings)]
    }

    fn jobs(&self) -> OutboxWorker {
        let (shared, store) = (self.shared, self.store);
        let browsers = BrowserStarter {
            engine: shared.engine.clone(),
            catalogue: shared.catalogue.clone(),
            keys: store.clone(),
            places: self.places.clone(),
            pool: self.pool.clone(),
            turns: shared.turns.clone(),
            attestations: shared.attestations.clone(),
            vault: self.vault.clone(),
            recordings: store.clone(),
            frames: shared.frames.clone(),
            queue_timeout: self.config.queue_patience,
            author: self.author.clone(),
            drafts: shared.drafts.clone(),
            statistics: self.runs.clone(),
            tasks: self.tasks.clone(),
        };
        let executor = JobExecutor {
            outbox: store.clone(),
            clock: shared.clock.clone(),
            pool: self.pool.clone(),
            turns: shared.turns.clone(),
            vault: self.vault.clone(),
            browsers,
        };
        OutboxWorker {
            node: shared.node,
            outbox: store.clone(),
            clock: shared.clock.clone(),
            wakeup: shared.wakeups.jobs.clone(),
            executor: Arc::new(executor),
            tasks: self.tasks.clone(),
        }
    }

    fn delivery_workers(&self) -> Result<[Box<dyn Worker>; 2], StartupError> {
        let (config, shared) = (self.config, self.shared);
        let sender = HyperWebhookSender::new(config.egress.clone(), &config.egress_roots)?;
        let dispatcher = WebhookDispatcher {
            clock: shared.clock.clone(),
            random: shared.random.clone(),
            wakeup: shared.wakeups.deliveries.clone(),
            queue: Arc::new(self.store.with_pipelined_connection()),
            log: Arc::new(self.store.with_pipelined_connection()),
            sender: Arc::new(sender),
            backoff: config.webhook_backoff,
            tasks: self.tasks.clone(),
            traces: shared.engine.traces.clone(),
        };
        let give_up =
            DeliveryGiveUp { queue: dispatcher.queue.clone(), clock: shared.clock.clone() };
        Ok([Box::new(dispatcher), Box::new(give_up)])
    }

    fn mail_workers(&self) -> [Box<dyn Worker>; 3] {
        let (shared, store) = (self.shared, self.store);
        let retries = RetryPolicy {
            backoff: self.config.mailing.backoff,
            random: shared.random.clone(),
            clock: shared.clock.clone(),
        };
        let composer = LinkComposer {
            sessions: shared.pipelined.clone(),
            catalogue: shared.pipelined.clone(),
            keys: store.clone(),
            templates: store.clone(),
            brands: store.clone(),
            urls: shared.urls.clone(),
            devices: shared.devices.clone(),
        };
        let sender = LinkSender {
            queue: store.clone(),
            composer,
            suppressions: store.clone(),
            notifier: self.notifier.clone(),
            retries: retries.clone(),
            traces: shared.engine.traces.clone(),
        };
        let links = LinkNotifications {
            queue: store.clone(),
            sender: Arc::new(sender),
            tasks: self.tasks.clone(),
        };
        let origin = self.config.addresses.public.clone();
        let account_links = AccountLinkMails {
            links: store.clone(),
            mailer: self.mailer.clone(),
            tokens: shared.tokens.clone(),
            retries: retries.clone(),
            origin: origin.clone(),
        };
        let notices = AccountNoticeMails {
            notices: store.clone(),
            mailer: self.mailer.clone(),
            retries,
            origin,
        };
        [Box::new(links), Box::new(account_links), Box::new(notices)]
    }

    fn retention(&self) -> Retention {
        let (shared, store) = (self.shared, self.store);
        Retention {
            engine: shared.engine.clone(),
            devices: shared.pipelined.clone(),
            sessions: shared.pipelined.clone(),
            sign_ins: store.clone(),
            account_links: store.clone(),
            known_browsers: store.clone(),
            deliveries: store.clone(),
            retention: self.config.retention,
            session_retention: self.config.session_retention,
        }
    }

    /// Returns the workers that write down what this process counts.
    fn reporting_workers(&self) -> Vec<Box<dyn Worker>> {
        let (shared, store) = (self.shared, self.store);
        let key_uses = KeyUseRecorder { keys: store.clone(), uses: self.uses.clone() };
        let statistics = StatisticsRecorder {
            runs: self.runs.clone(),
            statistics: store.clone(),
            catalogue: shared.pipelined.clone(),
            clock: shared.clock.clone(),
            watched: Mutex::default(),
        };
        let load = LoadReporter {
            hub: shared.engine.hub.clone(),
            turns: shared.turns.clone(),
            store: store.clone(),
            clock: shared.clock.clone(),
            node: shared.node,
            answered_at: std::sync::Mutex::default(),
        };
        vec![Box::new(key_uses), Box::new(statistics), Box::new(load)]
    }
}
