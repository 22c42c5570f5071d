//! `avouch workflow run`: one session of a definition, in a service of its own that is removed
//! afterwards.

use std::{net::TcpListener, path::Path, sync::Arc, time::Duration};

use application::{
    administration::{TrialEnd, TrialProgress, TrialSession},
    live::{AuthorTools, FixtureCapture},
    settings::Addresses,
};
use authoring::missing_columns;
use command_line::{CommandError, read_definition, write_fixture};
use domain::{
    id::PlatformId,
    webhook::wire_time,
    workflow::{Definition, TraceEvent},
};
use objects::ObjectStorage;
use ports::{
    catalogue::Catalogue as _, clock::Clock as _, driving::Caller, workflow_trace::WorkflowTrace,
};
use serde_json::{Value, json};
use store::{DatabaseUrl, SchemaPolicy};
use system::{
    clock::{SystemClock, SystemRandom},
    data_dir::TemporaryFolder,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{Mutex, watch},
};

use crate::{
    admin::definitions,
    config::Config,
    service::{Overrides, Service},
    storage::{error_chain, open_store},
};

/// How often the file of a definition is checked for changes.
const WATCH_INTERVAL: Duration = Duration::from_millis(300);

/// Runs a definition once to its end. A signal that asks the process to end is an error, so that the
/// folder is removed as well.
///
/// With `fixture`, what the run saw is written to that file, and the result says how many access tokens
/// were masked in it.
pub(crate) async fn run(
    config: Config,
    file: &Path,
    fixture: Option<&Path>,
) -> Result<TrialEnd, CommandError> {
    let definition = Arc::new(read_definition(&definitions(), file)?);
    let capture = fixture.map(|_| FixtureCapture::default());
    let author = Arc::new(AuthorTools {
        trace: Arc::new(PrintedTrace),
        capture,
        reloads: None,
        browser: None,
    });
    let trial = Trial::start(config, &definition, author.clone()).await?;
    let mut result = tokio::select! {
        result = trial.session.run(&print_progress) => result.map_err(error_chain),
        signal = stop_signal() => Err(format!("stopped by {}", signal?).into()),
    };
    trial.service.stop().await;
    if let Ok(end) = &mut result {
        add_missing_columns(&mut end.payload, &definition);
    }
    if let Some((capture, fixture)) = author.capture.as_ref().zip(fixture) {
        let captured =
            capture.finish(&definition).ok_or("the run did not end, or was too large")?;
        let written = write_fixture(&definitions(), &definition, captured, fixture)?;
        eprintln!("{}", written.text);
        if let Some(printed) = result.as_mut().ok().and_then(|end| end.payload.as_object_mut()) {
            let counts = json!({
                "maskedTokens": written.masked_tokens, "keptTokens": written.kept_tokens,
            });
            printed.insert("fixture".to_owned(), counts);
        }
    }
    result
}

/// Adds to the printed result of a run that has shared data the columns of lists that some rows lack.
fn add_missing_columns(printed: &mut Value, definition: &Definition) {
    let Some(data) = printed.get("extractedData") else { return };
    let columns = json!(missing_columns(definition, data));
    if let Some(printed) = printed.as_object_mut() {
        printed.insert("missingColumns".to_owned(), columns);
    }
}

/// Runs a definition until a signal asks the process to end, and begins anew in the same browser each
/// time that the file has changed.
pub(crate) async fn watch(config: Config, file: &Path) -> Result<(), CommandError> {
    let definition = Arc::new(read_definition(&definitions(), file)?);
    let (changes, reloads) = watch::channel(None);
    let reloads = Some(Mutex::new(reloads));
    let author =
        AuthorTools { trace: Arc::new(PrintedTrace), capture: None, reloads, browser: None };
    let trial = Trial::start(config, &definition, Arc::new(author)).await?;
    let result = tokio::select! {
        result = trial.session.run(&print_progress) => result.map(drop).map_err(error_chain),
        () = send_changes(file, &definition, &changes) => Ok(()),
        signal = stop_signal() => signal.map(drop),
    };
    trial.service.stop().await;
    result
}

/// Sends the definition each time that its file has changed. What cannot be published is printed and
/// not sent.
async fn send_changes(
    file: &Path,
    first: &Definition,
    changes: &watch::Sender<Option<Arc<Definition>>>,
) {
    let mut last = std::fs::read(file).unwrap_or_default();
    loop {
        tokio::time::sleep(WATCH_INTERVAL).await;
        // An editor may just be replacing the file.
        let Ok(text) = std::fs::read(file) else { continue };
        if text == last {
            continue;
        }
        last = text;
        match read_definition(&definitions(), file) {
            Ok(new) if new.hosts != first.hosts || new.sso_hosts != first.sso_hosts => {
                eprintln!("the hosts have changed: stop the command and start it again");
            }
            Ok(new) => drop(changes.send_replace(Some(Arc::new(new)))),
            Err(error) => eprintln!("{error}"),
        }
    }
}

/// Waits for a signal that asks the process to end, and returns its name.
pub(crate) async fn stop_signal() -> Result<&'static str, CommandError> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = hangup.recv() => "SIGHUP",
        _ = interrupt.recv() => "SIGINT",
    })
}

/// A service in a temporary folder, with one session of the definition.
struct Trial {
    service: Service,
    session: TrialSession,
    /// Removed when the trial is dropped.
    _folder: TemporaryFolder,
}

impl Trial {
    async fn start(
        config: Config,
        definition: &Definition,
        author: Arc<AuthorTools>,
    ) -> Result<Self, CommandError> {
        let folder = TemporaryFolder::new("avouch-trial").map_err(error_chain)?;
        let config = trial_config(config, &folder)?;
        let (caller, platform) = prepare(&config, definition).await?;
        let overrides = Overrides { author: Some(author), ..Overrides::default() };
        let service = Service::start(&config, overrides).await?;
        let sessions = service.partners.clone();
        let session = TrialSession { sessions, clock: Arc::new(SystemClock), caller, platform };
        Ok(Self { service, session, _folder: folder })
    }
}

/// Returns the configuration of a service that has its data in a temporary folder.
pub(crate) fn trial_config(
    config: Config,
    folder: &TemporaryFolder,
) -> Result<Config, CommandError> {
    // The port was free a moment ago; no other program is expected to take it.
    let listen = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let database = folder.path().join("avouch.db").display().to_string();
    Ok(Config {
        listen,
        addresses: Addresses { public: format!("http://{listen}"), ..Addresses::default() },
        data_dir: folder.path().to_owned(),
        storage: ObjectStorage::Folder(folder.path().join("objects")),
        database_url: DatabaseUrl::Sqlite(database),
        schema: SchemaPolicy::default(),
        ..config
    })
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
        eprintln!("{} {}", wire_time(SystemClock.now()), event);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_result_has_the_columns_that_rows_lack() {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../domain/platforms/sandbox-shop.json");
        let definition = read_definition(&definitions(), &file).unwrap();
        let mut lists =
            definition.output.iter().filter(|(_, field)| !field.member_order.is_empty());
        let (list, field) = lists.next().unwrap();
        let column = field.member_order.first().unwrap();
        let (list, column) = (list.as_str(), column.as_str());
        let other = json!({ "extractedData": { list: [{ column: "1" }, {}, {}] }, "status": "x" });
        let mut printed = other.clone();
        add_missing_columns(&mut printed, &definition);
        let columns = printed["missingColumns"].as_array().unwrap();
        let expected = json!({ "list": list, "column": column, "missing": 2, "rows": 3 });
        assert!(columns.contains(&expected), "{columns:?}");
        printed.as_object_mut().unwrap().remove("missingColumns");
        assert_eq!(printed, other);
        // Nothing was shared.
        let mut failed = json!({ "status": "ERROR" });
        add_missing_columns(&mut failed, &definition);
        assert_eq!(failed, json!({ "status": "ERROR" }));
    }
}
