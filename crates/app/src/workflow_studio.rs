//! `avouch workflow studio`: the authoring studio of one definition, in a service of its own that is
//! removed afterwards.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use application::{
    administration::TrialSession,
    live::{AuthorTools, FixtureCapture},
};
use async_trait::async_trait;
use authoring::{Studio, StudioParts, TraceSink, new_definition, text_of};
use command_line::{CommandError, DefinitionFiles, read_document};
use domain::{
    api_key::Environment,
    id::SessionId,
    request::NewSession,
    workflow::{Definition, Fixture},
};
use ports::{
    authoring::{AuthoringError, AuthoringRuns},
    browser::Browser,
    catalogue::Catalogue as _,
    clock::Clock as _,
    driving::{Caller, SessionService},
    random::RandomSource as _,
};
use serde_json::json;
use store::Store;
use studio::LocalStudio;
use system::{
    clock::{SystemClock, SystemRandom},
    data_dir::TemporaryFolder,
};
use tokio::sync::{Mutex, watch};

use crate::{
    admin::definitions,
    config::Config,
    service::{Overrides, Service},
    storage::{error_chain, open_store},
    workflow_run::{stop_signal, trial_config},
};

/// The time that a run has to end when another one is to begin in a new browser.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the text of the definition in a file, or that of a new one, and whether it is in the file.
pub(crate) fn document(
    file: &Path,
    login_url: Option<&str>,
    name: Option<&str>,
) -> Result<(String, bool), CommandError> {
    if file.exists() {
        if login_url.is_some() {
            let file = file.display();
            return Err(format!("{file} exists already: leave --login-url out to change it").into());
        }
        return Ok((read_document(file)?, true));
    }
    let url = login_url.ok_or("a new definition needs --login-url")?;
    let host = url.split("://").nth(1).and_then(|rest| rest.split(['/', ':']).next());
    let name = name.or(host).unwrap_or(url);
    let is_local = host.is_some_and(|host| host == "localhost" || host.ends_with(".localhost"));
    let environment = if is_local { Environment::Development } else { Environment::Production };
    Ok((text_of(&new_definition(url, name, environment)?), false))
}

/// Serves the studio until a signal asks the process to end.
pub(crate) async fn studio(
    config: Config,
    file: &Path,
    (document, is_saved): (String, bool),
) -> Result<(), CommandError> {
    let folder = TemporaryFolder::new("avouch-studio").map_err(error_chain)?;
    let config = trial_config(config, &folder)?;
    let trace = Arc::new(TraceSink::new(Arc::new(SystemClock)));
    let first = serde_json::from_str::<Definition>(&document)
        .map_err(|error| format!("{} is no definition: {error}", file.display()))?;
    let runs = Arc::new(LocalRuns::new(&trace, first));
    let validation = Arc::new(definitions());
    let parts = StudioParts {
        syntax: validation.syntax.clone(),
        definitions: validation,
        runs: runs.clone(),
        storage: Arc::new(DefinitionFiles {
            definition: file.to_owned(),
            fixture: fixture_of(file),
        }),
        clock: Arc::new(SystemClock),
    };
    let studio = Arc::new(Studio::new(parts, &trace, document, is_saved));
    let hex = |text: String, byte: u8| text + &format!("{byte:02x}");
    let token = SystemRandom.random_bytes().into_iter().fold(String::new(), hex);
    let local = LocalStudio { studio: studio.clone(), token: token.as_str().into() };
    let overrides = Overrides {
        author: Some(runs.author.clone()),
        pages: Some(Arc::new(move |config| {
            config.configure(studio::routes(local.clone()));
        })),
        ..Overrides::default()
    };
    let store = open_store(&config).await?.store;
    let service = Service::start(&config, overrides).await?;
    let sources = (&SystemClock, &SystemRandom);
    let caller = |environment| {
        TrialSession::create_caller((&*store, &*store), (sources.0, sources.1), environment)
    };
    let callers = [
        caller(Environment::Development).await.map_err(error_chain)?,
        caller(Environment::Production).await.map_err(error_chain)?,
    ];
    let parts = ServiceParts { sessions: service.partners.clone(), store: store.clone(), callers };
    if runs.service.set(parts).is_err() {
        return Err("the studio was started twice".into());
    }
    let result = if let Err(error) = studio.open().await {
        Err(error_chain(error))
    } else {
        eprintln!("open the studio: {}/studio/{token}/", config.addresses.public);
        tokio::select! {
            () = studio.watch() => Ok(()),
            signal = stop_signal() => signal.map(drop),
        }
    };
    service.stop().await;
    result
}

/// Returns the file of a definition's fixture: that of `shop.json` is `shop.fixture.json`.
fn fixture_of(file: &Path) -> PathBuf {
    file.with_extension("fixture.json")
}

/// Runs in the service of this process.
struct LocalRuns {
    author: Arc<AuthorTools>,
    definitions: watch::Sender<Arc<Definition>>,
    browser: watch::Receiver<Option<Arc<dyn Browser>>>,
    /// Set once the service runs.
    service: OnceLock<ServiceParts>,
    /// The session, and the number of those before it.
    session: Mutex<(Option<(Caller, SessionId)>, u64)>,
}

struct ServiceParts {
    sessions: Arc<dyn SessionService>,
    store: Arc<Store>,
    /// For development and for production.
    callers: [Caller; 2],
}

impl LocalRuns {
    fn new(trace: &Arc<TraceSink>, first: Definition) -> Self {
        let (definitions, reloads) = watch::channel(Arc::new(first));
        let (running, browser) = watch::channel(None);
        let author = AuthorTools {
            trace: trace.clone(),
            capture: Some(FixtureCapture::default()),
            reloads: Some(Mutex::new(reloads)),
            browser: Some(running),
        };
        Self {
            author: Arc::new(author),
            definitions,
            browser,
            service: OnceLock::new(),
            session: Mutex::default(),
        }
    }
}

fn failed(error: impl std::error::Error + 'static) -> AuthoringError {
    AuthoringError(application::error_chain(&error))
}

#[async_trait]
impl AuthoringRuns for LocalRuns {
    async fn open(&self, definition: &Definition) -> Result<String, AuthoringError> {
        let service = self.service.get();
        let service = service.ok_or_else(|| AuthoringError("the service is starting".into()))?;
        let mut session = self.session.lock().await;
        if let Some((caller, id)) = session.0.take() {
            service.sessions.terminate(&caller, id).await.map_err(failed)?;
            let mut browser = self.browser.clone();
            let ended = browser.wait_for(Option::is_none);
            // If it does not end, the new run begins all the same.
            let _ = tokio::time::timeout(END_TIMEOUT, ended).await;
        }
        if let Some(reloads) = &self.author.reloads {
            reloads.lock().await.mark_unchanged();
        }
        session.1 = session.1.saturating_add(1);
        // A published version never changes, and each try is another definition.
        let tried = Definition { version: format!("0.0.{}", session.1), ..definition.clone() };
        let now = SystemClock.now();
        let (platform, _) = service.store.publish(&tried, None, now).await.map_err(failed)?;
        let [development, production] = &service.callers;
        let caller = match definition.environment {
            Environment::Development => development,
            Environment::Production => production,
        };
        let body = json!({ "platformId": platform.0, "location": { "country": "US" } });
        let request = NewSession::read(&body).map_err(failed)?;
        let created = service.sessions.create(caller, request, None).await.map_err(failed)?.view;
        session.0 = Some((caller.clone(), created.session.id));
        Ok(created.embed_url)
    }

    fn reload(&self, definition: Arc<Definition>) {
        self.definitions.send_replace(definition);
    }

    fn browser(&self) -> Option<Arc<dyn Browser>> {
        self.browser.borrow().clone()
    }

    fn fixture(&self, definition: &Definition) -> Option<Fixture> {
        self.author.capture.as_ref()?.finish(definition)
    }
}
