//! The studio: one definition, one author, one browser.

mod addresses;
mod choices;
mod edits;
mod filter;
mod further_pages;
mod missing;
mod paging;
mod publisher;
mod readings;
mod responses;
mod screens;
mod shown;
mod state;
#[cfg(test)]
mod tests;
mod view;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::{
    platform::CanaryShare,
    workflow::{Definition, Fixture, MaskedFixture, PageTree, TraceEvent, mask_tokens},
};
use ports::{
    authoring::{
        AttestationProbe, AuthoringError, AuthoringRuns, DefinitionStorage, HostAssessment,
        RunPurpose, Stored,
    },
    browser::{BrowserError, Input},
    clock::Clock,
    definition_syntax::{DefinitionSyntax, MAX_DEFINITION_BYTES},
    driving::{DefinitionService, SignedInUser},
    workflow_trace::WorkflowTrace,
};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::watch;

use self::filter::Searches;
use self::readings::Sample;
use self::state::{Inspection, RunState, State, TokenCounts};
use self::view::Surroundings;
pub use self::{
    addresses::AddressView,
    choices::{ElementView, SuggestedConditions},
    edits::{ChosenSource, Edit},
    filter::FoundElements,
    missing::{MissingColumn, missing_columns},
    publisher::{DefinitionPublisher, PublicationError},
    readings::{ReadingView, TriedReading},
    view::{InspectionView, StudioView},
};
use crate::{
    draft::{DraftError, FieldSource},
    explore::exploring,
    signals::KnownPage,
    studios::StudioDocument,
};

/// How often the page is observed.
const OBSERVE_INTERVAL: Duration = Duration::from_millis(250);
/// The time that a request for a change waits.
const MAX_WAIT: Duration = Duration::from_secs(20);
/// The hosts that are probed at most.
const MAX_PROBED: usize = 5;
/// Why a definition in files is not published here.
const NO_PUBLISHER: &str = "save it, and publish the file with avouch admin publish-platform";

/// What a studio works with.
pub struct StudioParts {
    pub definitions: Arc<dyn DefinitionService>,
    pub syntax: Arc<dyn DefinitionSyntax>,
    pub runs: Arc<dyn AuthoringRuns>,
    pub storage: Arc<dyn DefinitionStorage>,
    /// `None` where nothing can be published.
    pub publisher: Option<Arc<dyn DefinitionPublisher>>,
    pub clock: Arc<dyn Clock>,
    /// `None` where no host can be probed.
    pub probe: Option<Arc<dyn AttestationProbe>>,
    /// The path of the page that the author comes from.
    pub home: Option<String>,
    /// The IANA time zone of the browsers; `None` for the machine's own.
    pub time_zone: Option<String>,
}

/// The studio of one definition.
pub struct Studio {
    parts: StudioParts,
    shared: Arc<Shared>,
    /// Held from when the definition and its fixture are read until they are changed by what was read:
    /// of two changes at once, one would be lost. Never held while something is awaited.
    changing: Mutex<()>,
    searches: Searches,
    /// Held while a page is looked at on the other kind of screen.
    looking: tokio::sync::Mutex<()>,
}

/// What the studio and the trace of its runs share.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// The number of the last change.
    changes: watch::Sender<u64>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes those who wait for a change if `change` returns true.
    fn change(&self, change: impl FnOnce(&mut State) -> bool) {
        if change(&mut self.state()) {
            self.changes.send_modify(|number| *number = number.saturating_add(1));
        }
    }
}

/// Receives the trace of the runs of a studio.
pub struct TraceSink {
    shared: Arc<Shared>,
    clock: Arc<dyn Clock>,
}

impl TraceSink {
    /// Creates a trace for a studio to come.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { shared: Arc::default(), clock }
    }
}

impl WorkflowTrace for TraceSink {
    fn record(&self, event: &TraceEvent) {
        let now = self.clock.now();
        self.shared.change(|state| state.traced(event, now));
    }
}

/// Where a run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RunFrom {
    /// Nothing is run: the author looks around in a new browser.
    Explore,
    /// In the browser that runs, in which the author is signed in.
    Here,
    /// In a new browser, signed out. A run that completes is captured as a fixture.
    Start,
}

/// Why the studio does not do something.
#[derive(Debug, thiserror::Error)]
pub enum StudioError {
    #[error(transparent)]
    Draft(#[from] DraftError),
    #[error("no browser is open: press Start on the left, or open a new browser")]
    NoBrowser,
    #[error("the page has changed: choose the element again")]
    NoInspection,
    #[error("another search has begun since")]
    NewerSearch,
    #[error("the response is not kept any more: load the page again")]
    NoResponse,
    #[error("the page could not be read: {0}")]
    Page(#[from] BrowserError),
    #[error("the text is no definition: correct the errors first")]
    NoDefinition,
    #[error("the definition shares a sign-in with others: change it as text")]
    SharesSignIn,
    #[error("the definition has errors: correct them first")]
    HasErrors,
    /// What the check of the definition found.
    #[error("{message} (`{path}`)")]
    Invalid { path: String, message: String },
    #[error("a definition has at most 1 MiB")]
    TooLong,
    #[error("hosts are probed with avouch attest probe")]
    NoProbe,
    #[error("the version cannot be published: {0}")]
    Unpublishable(&'static str),
    #[error("the share must be from 1 to 99 percent")]
    InvalidShare,
    #[error(transparent)]
    Storage(#[from] AuthoringError),
    /// What the author has written is stored, but not where it was before.
    #[error(
        "another author has changed or deleted the draft: your text is stored as a draft of its own, \
         which is open here now"
    )]
    StoredAsCopy,
    #[error(
        "the draft is stored without the recorded run, which is too large: record a shorter one"
    )]
    StoredWithoutFixture,
    #[error(transparent)]
    Publication(#[from] PublicationError),
}

impl Studio {
    /// Creates the studio of a definition, whose runs report to `trace`.
    #[must_use]
    pub fn new(parts: StudioParts, trace: &TraceSink, document: StudioDocument) -> Self {
        let StudioDocument { document, fixture, is_saved, .. } = document;
        let studio = Self {
            parts,
            shared: trace.shared.clone(),
            changing: Mutex::default(),
            searches: Searches::default(),
            looking: tokio::sync::Mutex::default(),
        };
        {
            let mut state = studio.shared.state();
            state.saved_document = is_saved.then(|| document.clone());
            (state.is_fixture_saved, state.fixture) = (fixture.is_some(), fixture);
        }
        studio.replace(document);
        studio
    }

    /// Opens a browser in which the author looks around.
    ///
    /// # Errors
    /// No browser can be started, or the document is no definition.
    pub async fn open(&self) -> Result<(), StudioError> {
        let definition = self.definition()?;
        self.begin(&exploring(&definition, true), RunState::Exploring).await
    }

    async fn begin(&self, definition: &Definition, run: RunState) -> Result<(), StudioError> {
        let is_recorded = run == RunState::Running;
        let purpose = if is_recorded { RunPurpose::Capture } else { RunPurpose::Explore };
        let url = self.parts.runs.open(definition, purpose).await?;
        self.shared.change(|state| {
            state.embed_url = Some(url);
            state.forget_pages();
            let recorded = is_recorded.then(|| Arc::new(definition.clone()));
            state.began(run, recorded);
            true
        });
        Ok(())
    }

    /// Observes the page, and goes on after each run. Never returns.
    pub async fn watch(&self) {
        loop {
            tokio::time::sleep(OBSERVE_INTERVAL).await;
            self.settle().await;
            let Some(browser) = self.parts.runs.browser() else {
                // The session was cancelled, or has ended.
                self.shared.change(|state| state.page.take().is_some());
                continue;
            };
            if let Ok(seen) = browser.observe().await {
                self.shared.change(|state| state.seen(seen));
            }
        }
    }

    /// After a run has ended, keeps its fixture, and lets the author look around again.
    async fn settle(&self) {
        let Some((recorded, fixture)) = self.ended_run() else { return };
        let definitions = self.parts.definitions.clone();
        // Tens of replays of a large fixture would hold up the thread's other tasks.
        let masked = move || without_tokens(definitions.as_ref(), &recorded, fixture);
        if let Ok(masked) = tokio::task::spawn_blocking(masked).await {
            self.keep(masked);
        }
    }

    /// Lets the author look around again if a run has ended. Returns its fixture and the definition with
    /// which it was recorded; `None` if it was not recorded to its end.
    fn ended_run(&self) -> Option<(Arc<Definition>, Fixture)> {
        let _changing = self.changing();
        let definition = self.definition().ok()?;
        if !std::mem::take(&mut self.shared.state().has_ended) {
            return None;
        }
        let recorded = self.shared.state().recorded_definition.clone();
        let fixture = recorded.and_then(|recorded| {
            let fixture = self.parts.runs.fixture(&recorded)?;
            // Nothing was shared in a run that failed or was declined.
            (fixture.expected.error.is_none() && !fixture.expected.data.is_empty())
                .then_some((recorded, fixture))
        });
        self.parts.runs.reload(Arc::new(exploring(&definition, false)));
        fixture
    }

    /// Keeps a fixture, and compares it with the definition, which the author may have changed meanwhile.
    fn keep(&self, MaskedFixture { fixture, masked, kept }: MaskedFixture) {
        let _changing = self.changing();
        let definition = self.definition().ok();
        let differences = definition.map(|definition| {
            let replayed = self.parts.definitions.replay(&definition, &fixture).result;
            fixture.expected.differences(&replayed)
        });
        self.shared.change(|state| {
            state.recorded(fixture, differences);
            state.tokens = Some(TokenCounts { masked, kept });
            true
        });
    }

    /// Runs the definition.
    ///
    /// # Errors
    /// It has errors, or no browser can be started.
    pub async fn run(&self, from: RunFrom) -> Result<(), StudioError> {
        if from == RunFrom::Explore {
            return self.open().await;
        }
        let definition = self.definition()?;
        if self.shared.state().has_errors() {
            return Err(StudioError::HasErrors);
        }
        match from {
            RunFrom::Explore => Ok(()),
            RunFrom::Start => self.begin(&definition, RunState::Running).await,
            RunFrom::Here => {
                self.parts.runs.browser().ok_or(StudioError::NoBrowser)?;
                self.shared.change(|state| {
                    state.began_here();
                    true
                });
                self.parts.runs.reload(definition);
                Ok(())
            }
        }
    }

    /// Stores the document and its fixture, and returns the names of what was stored.
    ///
    /// # Errors
    /// They cannot be stored.
    pub async fn save(&self) -> Result<Vec<String>, StudioError> {
        let (document, recorded, fixture) = {
            let state = self.shared.state();
            (state.document.clone(), state.fixture.clone(), state.stored_fixture())
        };
        let Stored { is_copy, has_fixture } =
            self.parts.storage.save(&document, fixture.as_ref()).await?;
        let (definition, capture) = self.parts.storage.names();
        self.shared.change(|state| {
            state.saved_document = Some(document);
            // Another run may have been recorded meanwhile.
            state.is_fixture_saved = has_fixture && state.fixture == recorded;
            true
        });
        if is_copy {
            return Err(StudioError::StoredAsCopy);
        }
        if fixture.is_some() && !has_fixture {
            return Err(StudioError::StoredWithoutFixture);
        }
        Ok([definition].into_iter().chain(fixture.map(|_| capture)).collect())
    }

    /// Stores the document and its fixture if they have changed, wherever they can be stored.
    ///
    /// # Errors
    /// The document is not stored.
    pub(crate) async fn save_changes(&self) -> Result<(), StudioError> {
        if self.shared.state().is_saved() {
            return Ok(());
        }
        match self.save().await {
            Err(error @ (StudioError::StoredAsCopy | StudioError::StoredWithoutFixture)) => {
                tracing::info!(%error, "the changes in a studio were stored when it was closed");
                Ok(())
            }
            saved => saved.map(drop),
        }
    }

    /// Stores the definition, and publishes it for all new sessions, or for a share of them in percent,
    /// in the name of an author. Returns its version.
    ///
    /// # Errors
    /// Its recorded run has another end now, or there is none; the author has to re-authenticate first;
    /// or it cannot be stored or published.
    pub async fn publish(
        &self,
        author: Option<&SignedInUser>,
        percent: Option<u8>,
    ) -> Result<String, StudioError> {
        let canary = match percent {
            Some(percent) => Some(CanaryShare::percent(percent).ok_or(StudioError::InvalidShare)?),
            None => None,
        };
        let (obstacle, definition) = {
            let state = self.shared.state();
            (state.publishing_obstacle(), state.definition.clone())
        };
        if let Some(obstacle) = obstacle {
            return Err(StudioError::Unpublishable(obstacle));
        }
        let definition = definition.ok_or(StudioError::NoDefinition)?;
        let publisher = self.parts.publisher.as_ref().zip(author);
        let (publisher, author) = publisher.ok_or(StudioError::Unpublishable(NO_PUBLISHER))?;
        // Another author may have changed or deleted the draft.
        self.save().await?;
        publisher.publish(author, &definition, canary).await?;
        self.shared.change(|state| {
            state.published = Some(definition.clone());
            true
        });
        Ok(definition.version.clone())
    }

    /// Assesses the hosts of the definition, at most five: whether their answers can be
    /// attested.
    ///
    /// # Errors
    /// Nothing can be probed here, or the document is no definition.
    pub async fn probe(&self) -> Result<Vec<HostAssessment>, StudioError> {
        let probe = self.parts.probe.as_ref().ok_or(StudioError::NoProbe)?;
        let definition = self.definition()?;
        let mut found = vec![];
        for host in definition.hosts.iter().take(MAX_PROBED) {
            let base = format!("https://{host}/");
            // A request that is the same for each applicant shows more than the first page.
            let mut urls = definition.requests.values().map(|request| request.url.as_str());
            let url = urls.find(|url| url.starts_with(&base) && !url.contains('{'));
            found.push(probe.assess(host, url.unwrap_or(&base)).await);
        }
        Ok(found)
    }

    /// Waits until there is a newer state than that with number `after`, for at most 20 seconds.
    pub async fn changed(&self, after: u64) {
        let mut changes = self.shared.changes.subscribe();
        let newer = changes.wait_for(|number| *number > after);
        // Without a change, the same state is returned.
        let _ = tokio::time::timeout(MAX_WAIT, newer).await;
    }

    /// Returns the state of the studio.
    #[must_use]
    pub fn view(&self) -> StudioView {
        let number = *self.shared.changes.borrow();
        let (file, _) = self.parts.storage.names();
        let state = self.shared.state();
        let obstacle = if self.parts.publisher.is_some() {
            state.publishing_obstacle()
        } else {
            Some(NO_PUBLISHER)
        };
        let around = Surroundings {
            file: &file,
            obstacle,
            home: self.parts.home.as_deref(),
            time_zone: self.parts.time_zone.as_deref(),
            can_probe: self.parts.probe.is_some(),
        };
        StudioView::of(&state, number, &around)
    }

    /// Takes the page as it is now, for the author to choose elements of it.
    ///
    /// # Errors
    /// There is no browser, or the page is too large.
    pub async fn inspect(&self) -> Result<InspectionView, StudioError> {
        let browser = self.parts.runs.browser().ok_or(StudioError::NoBrowser)?;
        let url = browser.observe().await?.url;
        let page = browser.inspect().await?;
        // The newest frame is there at once.
        let frame = tokio::time::timeout(Duration::from_secs(1), browser.frame(0)).await;
        let image = frame.ok().flatten().map(|frame| STANDARD.encode(&frame.jpeg));
        let known = KnownPage { url, tree: page.tree };
        let mut state = self.shared.state();
        let number = state.add_inspection(known.clone());
        drop(state);
        Ok(InspectionView::of(number, &known, (&page.boxes, page.size), image))
    }

    /// Goes back to the page before, if there is one.
    ///
    /// # Errors
    /// There is no browser.
    pub fn back(&self) -> Result<(), StudioError> {
        self.parts.runs.browser().ok_or(StudioError::NoBrowser)?.input(Input::Back);
        Ok(())
    }

    /// Returns the JSON Schema of definitions.
    #[must_use]
    pub fn schema(&self) -> String {
        self.parts.definitions.schema()
    }

    /// Returns a response of the page with its body, and the address of the page that is shown now. It stays
    /// as it is while the author chooses in it, and is one of the five that were opened last.
    ///
    /// # Errors
    /// It is not kept.
    pub fn response(&self, number: u64) -> Result<Value, StudioError> {
        let mut state = self.shared.state();
        let page_url = state.page.as_ref().map(|(url, _)| url.clone());
        let response = state.open_response(number).ok_or(StudioError::NoResponse)?;
        Ok(view::response_body(response, page_url.as_deref()))
    }

    /// Changes the definition, whose running version follows while the author looks around.
    ///
    /// # Errors
    /// The change cannot be made.
    pub async fn edit(&self, edit: Edit) -> Result<(), StudioError> {
        if let Edit::Replace { document } = edit {
            if document.len() > MAX_DEFINITION_BYTES {
                return Err(StudioError::TooLong);
            }
            self.replace(document);
            return self.follow().await;
        }
        // Nothing is asked of the page for a change that is refused anyway.
        self.changeable()?;
        // What was seen may not be kept any more once the page has answered.
        let sample = self.sample_of(&edit);
        let further_page = self.further_page_of(&edit);
        let source = self.source_of(&edit).await?;
        self.apply(edit, source, sample)?;
        if let Some((list, next)) = further_page {
            self.shared.change(|state| state.goes_on(list, next));
        }
        self.follow().await
    }

    /// Changes the definition as it is now, which may be another one than before its page was asked for
    /// the `source` of a new field. `sample` has the name of that field and the text that it had before.
    fn apply(
        &self,
        edit: Edit,
        source: Option<FieldSource>,
        sample: Option<Sample>,
    ) -> Result<(), StudioError> {
        let _changing = self.changing();
        let mut definition = (*self.changeable()?).clone();
        let (is_checked, renamed) = (edit.is_checked(), edit.renaming());
        edits::apply(&mut definition, edit, source, &self.shared)?;
        let document = text_of(&definition);
        if is_checked {
            let report = self.parts.definitions.validate(&document);
            if let Some(error) = edits::new_error(&self.shared.state().findings, &report.findings) {
                let (path, message) = (error.path.to_string(), error.message.clone());
                return Err(StudioError::Invalid { path, message });
            }
        }
        self.write(document, renamed.as_ref());
        if let Some(Sample { name, text, browser }) = sample {
            self.shared.change(|state| {
                // In another browser, another account may be signed in.
                let is_here = state.browser == browser;
                if is_here {
                    state.samples.insert(name, text);
                }
                is_here
            });
        }
        Ok(())
    }

    /// Has the author look around with the signals of the changed definition.
    async fn follow(&self) -> Result<(), StudioError> {
        let Ok(definition) = self.definition() else { return Ok(()) };
        let (is_exploring, hosts) = {
            let state = self.shared.state();
            (state.run == RunState::Exploring || state.run.has_ended(), state.hosts.clone())
        };
        let wanted = state::hosts_of(&definition);
        if hosts != wanted {
            self.shared.state().hosts = wanted;
            // The hosts of a browser cannot be changed.
            if !hosts.is_empty() {
                return self.open().await;
            }
        } else if is_exploring {
            self.parts.runs.reload(Arc::new(exploring(&definition, false)));
        }
        Ok(())
    }

    /// Sets the text of the definition.
    fn replace(&self, document: String) {
        let _changing = self.changing();
        self.write(document, None);
    }

    /// Sets the text of the definition, checks it, and replays the fixture, while `changing` is held.
    /// `renamed` has the names of a field before and after the change, if it has another one.
    fn write(&self, document: String, renamed: Option<&(String, String)>) {
        let report = self.parts.definitions.validate(&document);
        let definition = report.definition.map(Arc::new);
        let fixture = self.shared.state().fixture.clone();
        let replayed = definition.as_ref().zip(fixture).map(|(definition, fixture)| {
            let replayed = self.parts.definitions.replay(definition, &fixture);
            fixture.expected.differences(&replayed.result)
        });
        self.shared.change(|state| {
            state.document = document;
            state.document_number = state.document_number.saturating_add(1);
            if let Some(definition) = &definition {
                state.defined(definition, renamed);
            }
            state.definition = definition;
            state.findings = report.findings;
            state.differences = replayed;
            if let Some(definition) = &state.definition
                && state.hosts.is_empty()
            {
                state.hosts = state::hosts_of(definition);
            }
            true
        });
    }

    fn changing(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the definition if it can be changed otherwise than as text.
    fn changeable(&self) -> Result<Arc<Definition>, StudioError> {
        // What is changed would be written with the sign-in in place of its name.
        if shares_sign_in(&self.shared.state().document) {
            return Err(StudioError::SharesSignIn);
        }
        self.definition()
    }

    fn definition(&self) -> Result<Arc<Definition>, StudioError> {
        self.shared.state().definition.clone().ok_or(StudioError::NoDefinition)
    }

    fn inspection(&self, number: u64) -> Result<Inspection, StudioError> {
        self.shared.state().inspection(number).ok_or(StudioError::NoInspection)
    }

    /// Selects elements of a page as replays do.
    fn select<T>(&self, with: impl FnOnce(domain::workflow::Select<'_>) -> T) -> T {
        let syntax = &self.parts.syntax;
        with(&|page: &PageTree, scope: usize, selector: &str| syntax.select(page, scope, selector))
    }
}

/// Returns the text of a definition as the studio writes it.
#[must_use]
pub fn text_of(definition: &Definition) -> String {
    // A definition has no map with keys that are no strings, and can always be serialized.
    serde_json::to_string_pretty(definition).unwrap_or_default() + "\n"
}

/// Returns whether a document has sign-ins that its definition has written out.
fn shares_sign_in(document: &str) -> bool {
    serde_json::from_str::<Value>(document).is_ok_and(|value| value.get("signIns").is_some())
}

/// Returns how many events and pages a fixture has.
fn sizes(fixture: &Fixture) -> (usize, usize) {
    (fixture.events.len(), fixture.pages.len())
}

/// Returns the fixture of a run without access tokens.
fn without_tokens(
    definitions: &dyn DefinitionService,
    recorded: &Arc<Definition>,
    mut fixture: Fixture,
) -> MaskedFixture {
    let replayed = definitions.replay(recorded, &fixture).result;
    let run = &fixture.expected;
    // What was masked is not what the run has read: values may differ, and nothing else.
    if (&run.path, &run.missing, &run.error) == (&replayed.path, &replayed.missing, &replayed.error)
    {
        fixture.expected = replayed;
    }
    mask_tokens(fixture, &|fixture| definitions.replay(recorded, fixture))
}
