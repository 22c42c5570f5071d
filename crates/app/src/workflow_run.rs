//! `avouch workflow run`: one session of a definition, in a service of its own that is removed
//! afterwards.

use std::{net::TcpListener, path::Path, sync::Arc};

use application::{
    administration::{TrialEnd, TrialProgress, TrialSession},
    live::{AuthorTools, FixtureCapture},
    settings::Addresses,
};
use command_line::{CommandError, read_definition, trace_line, write_fixture};
use domain::{
    id::PlatformId,
    webhook::wire_time,
    workflow::{Definition, TraceEvent},
};
use ports::{
    catalogue::Catalogue as _, clock::Clock as _, driving::Caller, workflow_trace::WorkflowTrace,
};
use store::DatabaseUrl;
use system::{
    clock::{SystemClock, SystemRandom},
    data_dir::TemporaryFolder,
};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    admin::definitions,
    config::Config,
    service::{Overrides, Service},
    storage::{error_chain, open_store},
};

/// Runs a definition once to its end. A signal that asks the process to end is an error, so that the
/// folder is removed as well.
///
/// With `fixture`, what the run saw is written to that file.
pub(crate) async fn run(
    config: Config,
    file: &Path,
    fixture: Option<&Path>,
) -> Result<TrialEnd, CommandError> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let folder = TemporaryFolder::new("avouch-trial").map_err(error_chain)?;
    // The port was free a moment ago; no other program is expected to take it.
    let listen = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let config = Config {
        listen,
        addresses: Addresses { public: format!("http://{listen}"), ..Addresses::default() },
        data_dir: folder.path().to_owned(),
        database_url: DatabaseUrl::Sqlite(folder.path().join("avouch.db").display().to_string()),
        ..config
    };
    let definition = Arc::new(read_definition(&definitions(), file)?);
    let (caller, platform) = prepare(&config, &definition).await?;
    let capture = fixture.map(|_| FixtureCapture::default());
    let author = Arc::new(AuthorTools { trace: Arc::new(PrintedTrace), capture });
    let overrides = Overrides { author: Some(author.clone()), ..Overrides::default() };
    let service = Service::start(&config, overrides).await?;
    let sessions = service.partners.clone();
    let trial = TrialSession { sessions, clock: Arc::new(SystemClock), caller, platform };
    let result = tokio::select! {
        result = trial.run(&print_progress) => result.map_err(error_chain),
        _ = terminate.recv() => Err("stopped by SIGTERM".into()),
        _ = hangup.recv() => Err("stopped by SIGHUP".into()),
        _ = interrupt.recv() => Err("stopped by SIGINT".into()),
    };
    service.stop().await;
    if let Some((capture, fixture)) = author.capture.as_ref().zip(fixture) {
        let captured = capture.finish(&definition).ok_or("the run did not end, or was too long")?;
        eprintln!("{}", write_fixture(&definitions(), &definition, captured, fixture)?);
    }
    result
}

/// Publishes the definition, and creates a caller that may use it.
async fn prepare(
    config: &Config,
    definition: &Definition,
) -> Result<(Caller, PlatformId), CommandError> {
    let store = open_store(config).await?.store;
    let (platform, _) =
        store.publish(definition, None, SystemClock.now()).await.map_err(error_chain)?;
    let sources = (&SystemClock, &SystemRandom);
    let caller = TrialSession::create_caller(
        (&*store, &*store),
        (sources.0, sources.1),
        definition.environment,
    );
    Ok((caller.await.map_err(error_chain)?, platform))
}

/// Prints the trace on standard error, with the time.
struct PrintedTrace;

impl WorkflowTrace for PrintedTrace {
    fn record(&self, event: &TraceEvent) {
        eprintln!("{} {}", wire_time(SystemClock.now()), trace_line(event));
    }
}

fn print_progress(progress: TrialProgress) {
    match progress {
        TrialProgress::Created { embed_url } => {
            eprintln!("open this and play the applicant: {embed_url}");
        }
        TrialProgress::Changed { at, status } => eprintln!("{} {status}", wire_time(at)),
    }
}
