//! Studios of drafts: what becomes of changes, and what is published by whom.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use chrono::TimeDelta;
use definition_syntax::Syntax;
use domain::{
    account::Role,
    audit::AuditEvent,
    id::{DraftId, PlatformId, SignInId, TeamId, UserId},
    platform::{ActiveVersions, CanaryShare, Platform, PublishedVersion, VersionChange},
    reauthentication::AuthenticationTimes,
    secret::Secret,
    session::DefinitionVersion,
    workflow::{Definition, Fixture, FixtureEvent, Replayed, RunResult},
};
use memory_store::MemoryStore;
use ports::{
    StoreError,
    account_store::RequestOrigin,
    audit_log::AuditLog as _,
    authoring::{AuthoringError, Draft, DraftContent, DraftStore as _, MAX_DRAFTS, RunPurpose},
    browser::{Browser, Locale},
    catalogue::{Catalogue as _, ChooseVersionError, PublishError},
    driving::{
        AuthoringService as _, DefinitionReport, MockDefinitionService, PortalError, SignedInUser,
        VersionChoice,
    },
    key_store::TeamStore as _,
    places::Country,
    workflow_trace::WorkflowTrace,
};
use serde_json::json;
use testkit::{
    clock::FakeClock,
    sample::{INSTANCE, definition, noon},
};

use super::*;
use crate::{Edit, PublicationError, text_of};

const TEAM: TeamId = TeamId::from_u128(0xA);
const ANNA: u128 = 1;
const BERT: u128 = 2;

#[tokio::test]
async fn what_was_not_stored_is_kept_beside_the_changes_of_another_author() {
    let world = World::new().await;
    let (anna, draft) = (author(ANNA), world.draft("1.0.0").await);
    let (_, studio) = world.open(&anna, draft).await;
    write(&studio, "2.0.0").await;
    world.change(draft, "3.0.0").await;
    world.studios.close_all().await;
    assert_eq!(world.versions_of_drafts().await, ["2.0.0", "3.0.0"]);
    assert_eq!(world.draft_version(draft).await.as_deref(), Some("3.0.0"));
    assert_eq!(world.actions().await, ["draft.open Sample 1.0.0", "draft.create Sample"]);
}

#[tokio::test]
async fn what_was_not_stored_outlives_a_draft_that_another_author_has_deleted() {
    let world = World::new().await;
    let (anna, draft) = (author(ANNA), world.draft("1.0.0").await);
    let (_, studio) = world.open(&anna, draft).await;
    write(&studio, "2.0.0").await;
    world.studios.delete_draft(&author(BERT), draft).await.unwrap();
    world.studios.close_all().await;
    assert_eq!(world.versions_of_drafts().await, ["2.0.0"]);
}

#[tokio::test]
async fn a_draft_that_its_author_deletes_does_not_come_back() {
    let world = World::new().await;
    let (anna, draft) = (author(ANNA), world.draft("1.0.0").await);
    let (key, studio) = world.open(&anna, draft).await;
    write(&studio, "2.0.0").await;
    world.studios.delete_draft(&anna, draft).await.unwrap();
    assert!(world.studios.find(&key, Some(anna.user)).is_none());
    world.studios.close_all().await;
    assert!(world.versions_of_drafts().await.is_empty());
}

#[tokio::test]
async fn a_studio_goes_on_with_the_copy_that_it_has_stored() {
    let world = World::new().await;
    let (anna, draft) = (author(ANNA), world.draft("1.0.0").await);
    let (key, studio) = world.open(&anna, draft).await;
    write(&studio, "2.0.0").await;
    world.change(draft, "3.0.0").await;
    let stored = studio.save().await;
    assert!(matches!(stored, Err(StudioError::StoredAsCopy)), "{stored:?}");
    write(&studio, "2.0.1").await;
    studio.save().await.unwrap();
    assert_eq!(world.versions_of_drafts().await, ["2.0.1", "3.0.0"]);
    // What was opened is closed by now: it opens with the changes of the other author.
    assert_eq!(world.studios.studio_of_draft(&anna, draft).await.unwrap(), None);
    let drafts = world.store.drafts(TEAM).await.unwrap();
    let copy = drafts.iter().find(|other| other.id != draft).expect("a copy");
    assert_eq!(world.studios.studio_of_draft(&anna, copy.id).await.unwrap(), Some(key.clone()));
    let (other, studio) = world.open(&anna, draft).await;
    assert_ne!(other, key);
    assert!(studio.view().document.contains("3.0.0"));
    assert!(world.studios.find(&key, Some(anna.user)).is_none());
}

#[tokio::test]
async fn no_studio_is_opened_in_a_process_that_is_about_to_stop() {
    let world = World::new().await;
    let (anna, draft) = (author(ANNA), world.draft("1.0.0").await);
    let (key, studio) = world.open(&anna, draft).await;
    write(&studio, "2.0.0").await;
    world.browsers.is_stopping.store(true, Ordering::Relaxed);
    let other = world.draft("1.0.0").await;
    let refused = world.studios.open_studio(&anna, other, "US").await;
    assert!(matches!(refused, Err(PortalError::Restarting)), "{refused:?}");
    // What is open stays so, with what the author has written.
    assert_eq!(world.studios.open_studio(&anna, draft, "US").await.unwrap(), key);
    assert!(studio.view().document.contains("2.0.0"));
}

#[tokio::test]
async fn a_studio_whose_changes_cannot_be_stored_stays_open() {
    let world = World::new().await;
    let (anna, draft) = (author(ANNA), world.draft("1.0.0").await);
    let (key, studio) = world.open(&anna, draft).await;
    write(&studio, "2.0.0").await;
    world.change(draft, "3.0.0").await;
    let mut other = draft;
    for _ in 1..MAX_DRAFTS {
        other = world.draft("9.0.0").await;
    }
    let refused = world.studios.open_studio(&anna, other, "US").await;
    let why = "the changes in your other studio can't be stored: open it, and copy them first";
    assert_eq!(refused.unwrap_err().to_string(), why);
    assert!(world.studios.find(&key, Some(anna.user)).is_some());
    assert!(studio.save().await.unwrap_err().to_string().contains("too many drafts"));
    world.store.delete_draft(TEAM, other).await.unwrap();
    world.studios.close_all().await;
    assert!(world.versions_of_drafts().await.contains(&"2.0.0".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_studio_whose_page_is_not_open_is_stored_and_closed() {
    let world = World::new().await;
    let (anna, draft) = (author(ANNA), world.draft("1.0.0").await);
    let (key, studio) = world.open(&anna, draft).await;
    assert_eq!(Studios::instance_of(&key), Some(INSTANCE));
    write(&studio, "2.0.0").await;
    tokio::time::sleep(IDLE_TIMEOUT / 2).await;
    assert!(world.studios.find(&key, Some(anna.user)).is_some());
    tokio::time::sleep(IDLE_TIMEOUT + IDLE_INTERVAL * 2).await;
    assert!(world.studios.find(&key, Some(anna.user)).is_none());
    assert_eq!(world.draft_version(draft).await.as_deref(), Some("2.0.0"));
}

#[tokio::test]
async fn a_publication_is_recorded_once_it_has_succeeded_with_the_address_of_its_request() {
    let world = World::new().await;
    let (anna, draft) = (author(ANNA), world.draft("1.0.0").await);
    let (_, studio) = world.open(&anna, draft).await;
    let elsewhere = IpAddr::from([198, 51, 100, 7]);
    let from = RequestOrigin { address: elsewhere, ..anna.from.clone() };
    let anna = SignedInUser { from, ..anna };
    let version = studio.publish(Some(&anna), None).await.unwrap();
    assert_eq!(version, "1.0.0");
    let entries = world.store.entries(TEAM, None, 10).await.unwrap();
    let AuditEvent { action, subject, address, .. } = &entries.first().expect("an entry").event;
    assert_eq!((action.as_str(), subject.as_str()), ("platform.publish", "sample 1.0.0"));
    assert_eq!(*address, Some(elsewhere));

    // Nobody has published what another author did before.
    let (_, studio) = world.open(&author(BERT), world.draft("1.0.0").await).await;
    let mut other = definition("sample", "1.0.0");
    "Other".clone_into(&mut other.description);
    studio.edit(Edit::Replace { document: text_of(&other) }).await.unwrap();
    let refused = studio.publish(Some(&author(BERT)), None).await.unwrap_err();
    assert!(refused.to_string().contains("already published"), "{refused}");
    let published = world.actions().await.into_iter();
    assert_eq!(published.filter(|line| line.starts_with("platform.publish")).count(), 1);
}

#[tokio::test]
async fn a_fixture_is_stored_with_the_responses_that_the_definition_watches() {
    let world = World::new().await;
    let (anna, draft) = (author(ANNA), world.draft("1.0.0").await);
    world.record_responses(draft, &["/me", "/ads"]).await;
    let (_, studio) = world.open(&anna, draft).await;
    let watching = |path: &str| {
        let mut document = serde_json::to_value(definition("sample", "1.0.0")).unwrap();
        document["signals"]["seen"] = json!({ "response": { "url": path, "status": 200 } });
        document.to_string()
    };
    // The studio still has what an earlier definition did not watch.
    for path in ["/me", "/ads"] {
        studio.edit(Edit::Replace { document: watching(path) }).await.unwrap();
        studio.save().await.unwrap();
        let view = serde_json::to_value(studio.view()).unwrap();
        assert_eq!(view["saved"]["fixture"], true, "{path}");
        assert_eq!(
            world.recorded_responses(draft).await,
            [format!("https://sample.example{path}")]
        );
    }
    // An author is still writing it.
    studio.edit(Edit::Replace { document: "{".to_owned() }).await.unwrap();
    studio.save().await.unwrap();
    assert_eq!(world.recorded_responses(draft).await, ["https://sample.example/ads"]);
}

#[tokio::test]
async fn an_author_sees_the_time_zone_of_the_browser() {
    let world = World::new().await;
    let draft = world.draft("1.0.0").await;
    let (_, studio) = world.open(&author(ANNA), draft).await;
    let view = serde_json::to_value(studio.view()).unwrap();
    assert_eq!(view["timeZone"], "America/New_York");
}

#[tokio::test]
async fn publishing_requires_a_recent_authentication_and_the_role() {
    let world = World::new().await;
    let (anna, draft) = (author(ANNA), world.draft("1.0.0").await);
    let (key, studio) = world.open(&anna, draft).await;
    let refused = studio.publish(Some(&old(anna.clone())), None).await;
    let Err(StudioError::Publication(PublicationError::Unconfirmed { page })) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(page, format!("/portal/drafts/{draft}/studio/{INSTANCE}"));
    assert_eq!(world.studios.studio_of_draft(&anna, draft).await.unwrap(), Some(key));
    let member = SignedInUser { role: Role::Member, ..anna.clone() };
    assert!(studio.publish(Some(&member), None).await.is_err());
    assert!(studio.publish(None, None).await.is_err());
    assert_eq!(world.store.platform(PlatformId(1)).await.unwrap(), None);
    studio.publish(Some(&anna), None).await.unwrap();
}

#[tokio::test]
async fn an_author_chooses_among_published_versions() {
    let world = World::new().await;
    let (anna, share) = (author(ANNA), CanaryShare::percent(10).unwrap());
    let platform = world.publish("1.0.0", None).await;
    let first = world.active(platform).await;
    world.publish("1.1.0", None).await;
    world.publish("1.2.0", Some(share)).await;
    let seen = world.active(platform).await;
    let choose = async |version: &str, seen: &ActiveVersions| {
        let choice = VersionChoice { version: version.to_owned(), seen: seen.clone() };
        world.studios.choose_version(&anna, platform, choice).await
    };
    let error = async |version: &str, seen: &ActiveVersions| {
        choose(version, seen).await.unwrap_err().to_string()
    };
    assert!(error("1.0.0", &first).await.starts_with("all new sessions run this version"));
    let changed =
        "another author has changed the versions meanwhile: look at them, and choose again";
    assert_eq!(error("1.1.0", &first).await, changed);
    assert_eq!(error("7.0.0", &seen).await, "version not found");
    assert_eq!(world.active(platform).await, seen);

    // The share is taken back, made the version of all, and all go back to an earlier version.
    choose("1.1.0", &seen).await.unwrap();
    let without = ActiveVersions { version: "1.1.0".to_owned(), canary: None };
    assert_eq!(world.active(platform).await, without);
    choose("1.2.0", &without).await.unwrap();
    let all = ActiveVersions { version: "1.2.0".to_owned(), canary: None };
    choose("1.0.0", &all).await.unwrap();
    assert_eq!(world.active(platform).await, first);
    assert_eq!(
        world.actions().await,
        [
            "platform.choose-version sample 1.1.0, before 1.1.0 and 1.2.0 for 10 %",
            "platform.choose-version sample 1.2.0, before 1.1.0",
            "platform.choose-version sample 1.0.0, before 1.2.0",
        ]
    );
    let (_, versions) = world.studios.versions(&anna, platform).await.unwrap();
    assert_eq!(versions.len(), 3);
}

#[tokio::test]
async fn choosing_a_version_requires_the_role_and_a_recent_authentication() {
    let world = World::new().await;
    let platform = world.publish("1.0.0", None).await;
    world.publish("1.1.0", None).await;
    let seen = world.active(platform).await;
    let choose = async |user: &SignedInUser, platform| {
        let choice = VersionChoice { version: "1.0.0".to_owned(), seen: seen.clone() };
        world.studios.choose_version(user, platform, choice).await
    };
    let anna = author(ANNA);
    for role in [Role::Viewer, Role::Member, Role::Owner] {
        let other = SignedInUser { role, ..anna.clone() };
        let refused = choose(&other, platform).await;
        assert!(matches!(refused, Err(PortalError::Forbidden)), "{role:?}: {refused:?}");
        let refused = world.studios.versions(&other, platform).await;
        assert!(matches!(refused, Err(PortalError::Forbidden)), "{role:?}");
    }
    let refused = choose(&old(anna.clone()), platform).await;
    assert!(matches!(refused, Err(PortalError::Unconfirmed)), "{refused:?}");
    for unknown in [PlatformId(99), PlatformId(-1)] {
        let refused = choose(&anna, unknown).await;
        assert!(matches!(refused, Err(PortalError::NotFound("platform"))), "{refused:?}");
    }
    assert_eq!(world.active(platform).await, seen);
    assert!(world.actions().await.is_empty());
    choose(&SignedInUser { role: Role::Operator, ..anna }, platform).await.unwrap();
}

/// Returns a user who has authenticated an hour ago.
fn old(user: SignedInUser) -> SignedInUser {
    let at = Some(noon() - TimeDelta::hours(1));
    let authenticated = AuthenticationTimes { signed_in_at: at, confirmed_at: at };
    SignedInUser { authenticated, ..user }
}

/// Changes the version of the definition in a studio.
async fn write(studio: &Studio, version: &str) {
    let document = text_of(&definition("sample", version));
    studio.edit(Edit::Replace { document }).await.unwrap();
}

/// Returns an author who has just signed in.
fn author(number: u128) -> SignedInUser {
    let now = Some(noon());
    SignedInUser {
        user: UserId::from_u128(number),
        email: format!("author-{number}@lender.example"),
        role: Role::Author,
        team: TEAM,
        team_name: "Lender".to_owned(),
        sign_in: SignInId::from_u128(number),
        passed: true,
        has_codes: false,
        has_passkey: false,
        authenticated: AuthenticationTimes { signed_in_at: now, confirmed_at: None },
        password_until: None,
        required_action: None,
        form_token: Secret::new(String::new()),
        from: RequestOrigin { address: IpAddr::from([192, 0, 2, 1]), agent: String::new() },
    }
}

/// Studios over a store in memory, of one team.
struct World {
    store: Arc<MemoryStore>,
    browsers: Arc<NoBrowsers>,
    studios: Studios,
}

impl World {
    async fn new() -> Self {
        let store = Arc::new(MemoryStore::new());
        store.add_team(TEAM, "Lender", noon()).await.unwrap();
        let mut definitions = MockDefinitionService::new();
        definitions.expect_validate().returning(|document| DefinitionReport {
            definition: serde_json::from_str(document).ok(),
            findings: vec![],
        });
        definitions.expect_replay().returning(|_, fixture| Replayed {
            result: fixture.expected.clone(),
            trace: vec![],
            unrecorded: vec![],
        });
        let browsers = Arc::<NoBrowsers>::default();
        let studios = Studios::new(StudiosParts {
            definitions: Arc::new(definitions),
            syntax: Arc::new(Syntax),
            browsers: browsers.clone(),
            drafts: store.clone(),
            catalogue: store.clone(),
            platforms: Arc::new(Platforms(store.clone())),
            audit: store.clone(),
            places: Arc::new(OneCountry),
            clock: Arc::new(FakeClock::at(noon())),
            random: Arc::new(Counter::default()),
            instance: Some(INSTANCE),
            runtime: Handle::current(),
        });
        Self { store, browsers, studios }
    }

    /// Adds a draft with a recorded run.
    async fn draft(&self, version: &str) -> DraftId {
        let id = DraftId::from_u128(self.studios.parts.random.new_id());
        let draft = Draft {
            id,
            team: TEAM,
            name: "Sample".to_owned(),
            version: version.to_owned(),
            revision: 1,
            updated_by: "author@lender.example".to_owned(),
            updated_at: noon(),
        };
        let expected =
            RunResult { data: [("tier".to_owned(), json!("gold"))].into(), ..RunResult::default() };
        let fixture = Fixture {
            schema: Fixture::SCHEMA.to_owned(),
            platform: "sample".to_owned(),
            version: version.to_owned(),
            expected,
            events: vec![],
            pages: vec![],
        };
        let content = DraftContent {
            document: text_of(&definition("sample", version)),
            fixture: Some(serde_json::to_string(&fixture).unwrap()),
        };
        assert!(self.store.add_draft(&draft, &content).await.unwrap());
        id
    }

    /// Stores a draft as another author does.
    async fn change(&self, id: DraftId, version: &str) {
        let (draft, content) = self.store.draft(TEAM, id).await.unwrap().expect("a draft");
        let revision = draft.revision + 1;
        let draft = Draft { revision, version: version.to_owned(), ..draft };
        let document = text_of(&definition("sample", version));
        let content = DraftContent { document, ..content };
        assert!(self.store.replace_draft(&draft, &content).await.unwrap());
    }

    /// Adds responses to the recorded run of a draft.
    async fn record_responses(&self, id: DraftId, paths: &[&str]) {
        let (draft, content) = self.store.draft(TEAM, id).await.unwrap().expect("a draft");
        let mut fixture: Fixture = serde_json::from_str(&content.fixture.unwrap()).unwrap();
        fixture.events.extend((1..).zip(paths).map(|(number, path)| FixtureEvent::Response {
            number,
            url: format!("https://sample.example{path}"),
            status: 200,
            body: Some(json!({ "id": number })),
        }));
        let fixture = Some(serde_json::to_string(&fixture).unwrap());
        let content = DraftContent { document: content.document, fixture };
        let revised = Draft { revision: draft.revision + 1, ..draft };
        assert!(self.store.replace_draft(&revised, &content).await.unwrap());
    }

    /// Returns the addresses of the responses in the recorded run of a draft.
    async fn recorded_responses(&self, id: DraftId) -> Vec<String> {
        let (_, content) = self.store.draft(TEAM, id).await.unwrap().expect("a draft");
        let fixture: Fixture = serde_json::from_str(&content.fixture.unwrap()).unwrap();
        let url = |event: FixtureEvent| {
            if let FixtureEvent::Response { url, .. } = event { Some(url) } else { None }
        };
        fixture.events.into_iter().filter_map(url).collect()
    }

    async fn open(&self, user: &SignedInUser, id: DraftId) -> (String, Arc<Studio>) {
        let key = self.studios.open_studio(user, id, "US").await.unwrap();
        let studio = self.studios.find(&key, Some(user.user)).expect("a studio");
        (key, studio)
    }

    /// Returns the version in the document of a draft.
    async fn draft_version(&self, id: DraftId) -> Option<String> {
        let (_, content) = self.store.draft(TEAM, id).await.unwrap()?;
        Some(serde_json::from_str::<Definition>(&content.document).unwrap().version)
    }

    async fn versions_of_drafts(&self) -> Vec<String> {
        let mut found = vec![];
        for draft in self.store.drafts(TEAM).await.unwrap() {
            found.extend(self.draft_version(draft.id).await);
        }
        found.sort();
        found
    }

    async fn publish(&self, version: &str, canary: Option<CanaryShare>) -> PlatformId {
        self.store.publish(&definition("sample", version), canary, noon()).await.unwrap().0
    }

    async fn active(&self, platform: PlatformId) -> ActiveVersions {
        self.store.platform(platform).await.unwrap().expect("a platform").active_versions()
    }

    /// Returns the actions and subjects in the log of the team, the oldest first.
    async fn actions(&self) -> Vec<String> {
        let entries = self.store.entries(TEAM, None, 100).await.unwrap().into_iter().rev();
        entries.map(|entry| format!("{} {}", entry.event.action, entry.event.subject)).collect()
    }
}

/// Publishes as the use case of the command line does.
struct Platforms(Arc<MemoryStore>);

#[async_trait]
impl PlatformAdminService for Platforms {
    async fn publish(
        &self,
        definition: &Definition,
        canary: Option<CanaryShare>,
    ) -> Result<(PlatformId, DefinitionVersion), PublishError> {
        self.0.publish(definition, canary, noon()).await
    }

    async fn versions(
        &self,
        id: PlatformId,
    ) -> Result<Option<(Platform, Vec<PublishedVersion>)>, StoreError> {
        let Some(platform) = self.0.platform(id).await? else { return Ok(None) };
        Ok(Some((platform, self.0.versions(id).await?)))
    }

    async fn choose_version(
        &self,
        id: PlatformId,
        change: &VersionChange,
    ) -> Result<(), ChooseVersionError> {
        self.0.choose_version(id, change, noon()).await
    }
}

/// Runs nothing.
#[derive(Default)]
struct NoBrowsers {
    is_stopping: AtomicBool,
}

impl AuthoringBrowsers for NoBrowsers {
    fn runs(&self, _: Arc<dyn WorkflowTrace>, _: &str) -> Arc<dyn AuthoringRuns> {
        Arc::new(NoRuns)
    }

    fn begins_runs(&self) -> bool {
        !self.is_stopping.load(Ordering::Relaxed)
    }
}

struct NoRuns;

#[async_trait]
impl AuthoringRuns for NoRuns {
    async fn open(&self, _: &Definition, _: RunPurpose) -> Result<String, AuthoringError> {
        Ok("https://avouch.example/embed/".to_owned())
    }

    fn reload(&self, _: Arc<Definition>) {}

    fn browser(&self) -> Option<Arc<dyn Browser>> {
        None
    }

    fn fixture(&self, _: &Definition) -> Option<Fixture> {
        None
    }

    async fn close(&self) {}
}

struct OneCountry;

static COUNTRIES: [Country; 1] = [Country { code: "US", name: "United States", regions: &[] }];

impl Places for OneCountry {
    fn countries(&self) -> &'static [Country] {
        &COUNTRIES
    }

    fn country(&self, code: &str) -> Option<&'static Country> {
        COUNTRIES.iter().find(|country| country.code == code)
    }

    fn locale(&self, country: &str) -> Locale {
        let time_zone = (country == "US").then(|| "America/New_York".to_owned());
        Locale { time_zone, ..Locale::default() }
    }
}

/// Counts in place of chance.
#[derive(Default)]
struct Counter(Mutex<u16>);

impl Counter {
    fn next(&self) -> u16 {
        let mut last = self.0.lock().unwrap();
        *last += 1;
        *last
    }
}

impl RandomSource for Counter {
    fn new_id(&self) -> u128 {
        u128::from(self.next())
    }

    fn random_u16(&self) -> u16 {
        self.next()
    }

    fn random_bytes(&self) -> [u8; 32] {
        [self.next().to_le_bytes()[0]; 32]
    }
}
