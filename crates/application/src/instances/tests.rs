//! Which instance serves a session, as instances report, stop and do not answer.

use std::sync::atomic::{AtomicU32, Ordering};

use domain::{
    id::BrowserId,
    session::{Event, Lease},
};
use ports::{StoreError, instances::SocketKind};

use super::*;
use crate::testing::World;

const OWN: u128 = 1;
const OTHER: u128 = 2;

/// Links of which those to some addresses fail.
#[derive(Default)]
struct Links {
    opened: AtomicU32,
    failure: Mutex<Option<LinkError>>,
}

#[async_trait]
impl InstanceLinks for Links {
    async fn open(&self, _: &str, _: SocketRequest) -> Result<RelayedSocket, LinkError> {
        self.opened.fetch_add(1, Ordering::Relaxed);
        match self.failure.lock().unwrap().clone() {
            Some(failure) => Err(failure),
            None => Ok(RelayedSocket {
                headers: vec![],
                reader: Box::new(NoBytes),
                writer: Box::new(NoBytes),
            }),
        }
    }
}

struct NoBytes;

#[async_trait]
impl ports::instances::ByteReader for NoBytes {
    async fn read(&mut self) -> Option<Vec<u8>> {
        None
    }
}

#[async_trait]
impl ports::instances::ByteWriter for NoBytes {
    async fn write(&mut self, _: &[u8]) -> bool {
        false
    }
}

struct Setup {
    world: World,
    links: Arc<Links>,
    reports: InstanceReports,
    router: InstanceRouter,
}

impl Setup {
    /// An instance with this many browsers.
    async fn new(slots: u32) -> Self {
        let world = World::new().await;
        let hub = world.engine.hub.clone();
        let own = InstanceId::from_u128(OWN);
        let directory = InstanceDirectory::new(own, "10.0.0.1:1".into(), None, slots, hub);
        let directory = Arc::new(directory);
        let links = Arc::<Links>::default();
        let router = InstanceRouter {
            directory: directory.clone(),
            links: links.clone(),
            sessions: world.store.clone(),
            runtime: Handle::current(),
        };
        let reports = InstanceReports { directory, registry: world.store.clone() };
        Self { world, links, reports, router }
    }

    /// Another instance reports that it has four browsers and these sessions.
    async fn other_reports(&self, sessions: u32) {
        let other = Instance {
            id: InstanceId::from_u128(OTHER),
            address: "10.0.0.2:1".into(),
            region: None,
            slots: 4,
            sessions,
            is_draining: false,
        };
        self.world.store.report(&other).await.unwrap();
        self.reports.exchange().await.unwrap();
    }

    /// A session whose browser the other instance holds.
    async fn session_of_other(&self) -> Session {
        let id = self.world.session().await;
        let lease = Lease { browser: BrowserId::from_u128(9), node: InstanceId::from_u128(OTHER) };
        self.world.apply(id, [Event::BrowserRequested { lease }]).await
    }

    async fn is_relayed(&self, session: SessionId, kind: SocketKind) -> bool {
        let request = SocketRequest { session, kind, headers: vec![] };
        self.router.relay(request).await.is_some()
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_is_relayed_to_the_instance_that_holds_its_browser_while_that_runs() {
    let setup = Setup::new(4).await;
    setup.other_reports(0).await;
    let session = setup.session_of_other().await;
    for kind in [SocketKind::Applicant, SocketKind::Observer] {
        assert!(setup.is_relayed(session.id, kind).await, "{kind:?}");
    }
    assert!(runs_elsewhere(Some(&setup.router.directory), Some(&session)));

    // It does not report any more.
    tokio::time::advance(REPORT_TTL / 2).await;
    setup.reports.exchange().await.unwrap();
    assert!(setup.is_relayed(session.id, SocketKind::Applicant).await);
    tokio::time::advance(REPORT_TTL).await;
    setup.reports.exchange().await.unwrap();
    assert!(!setup.is_relayed(session.id, SocketKind::Applicant).await);
    assert!(!runs_elsewhere(Some(&setup.router.directory), Some(&session)));
    setup.other_reports(1).await;
    assert!(setup.is_relayed(session.id, SocketKind::Applicant).await);
}

#[tokio::test(start_paused = true)]
async fn an_applicant_without_a_browser_is_sent_to_the_least_used_instance() {
    let setup = Setup::new(4).await;
    let session = setup.world.session().await;
    assert!(!setup.is_relayed(session, SocketKind::Applicant).await, "there is no other");
    setup.other_reports(0).await;
    assert!(!setup.is_relayed(session, SocketKind::Applicant).await, "both are unused");

    let api = Setup::new(0).await;
    let session = api.world.session().await;
    api.other_reports(0).await;
    assert!(api.router.directory.others_begin_sessions());
    assert!(api.is_relayed(session, SocketKind::Applicant).await, "no browser runs here");
    assert!(!api.is_relayed(session, SocketKind::Observer).await, "there is nothing to see");
}

#[tokio::test(start_paused = true)]
async fn sessions_that_were_sent_count_until_the_next_report() {
    let setup = Setup::new(4).await;
    setup.world.engine.hub.start_draining();
    setup.other_reports(3).await;
    let session = setup.world.session().await;
    let expected = || {
        let known = setup.router.directory.known();
        known.values().map(|known| known.expected().sessions).sum::<u32>()
    };
    for sent in 1..=2 {
        assert!(setup.is_relayed(session, SocketKind::Applicant).await);
        assert_eq!(expected(), 3 + sent);
    }
    setup.other_reports(4).await;
    assert_eq!(expected(), 4);
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_does_not_answer_is_not_asked_again_at_once() {
    let setup = Setup::new(4).await;
    setup.other_reports(0).await;
    let session = setup.session_of_other().await;
    let fail = |failure| *setup.links.failure.lock().unwrap() = failure;
    let opened = || setup.links.opened.load(Ordering::Relaxed);

    fail(Some(LinkError::Refused(400)));
    for count in 1..=2 {
        assert!(!setup.is_relayed(session.id, SocketKind::Applicant).await);
        assert_eq!(opened(), count, "what one client sends wrongly does not affect others");
    }
    fail(Some(LinkError::Unreachable("no route".into())));
    for _ in 0..2 {
        assert!(!setup.is_relayed(session.id, SocketKind::Applicant).await);
        assert_eq!(opened(), 3);
    }
    fail(None);
    tokio::time::advance(UNREACHABLE_TTL + Duration::from_secs(1)).await;
    setup.other_reports(0).await;
    assert!(setup.is_relayed(session.id, SocketKind::Applicant).await);
}

#[tokio::test(start_paused = true)]
async fn the_entry_of_an_instance_that_is_gone_is_deleted() {
    let setup = Setup::new(4).await;
    setup.other_reports(0).await;
    let entries = async || setup.world.store.instances().await.unwrap().len();
    tokio::time::advance(ENTRY_TTL).await;
    setup.reports.exchange().await.unwrap();
    assert_eq!(entries().await, 2);
    tokio::time::advance(Duration::from_secs(1)).await;
    setup.reports.exchange().await.unwrap();
    assert_eq!(entries().await, 1);
    setup.reports.leave().await;
    assert_eq!(entries().await, 0);
}

#[tokio::test(start_paused = true)]
async fn without_the_store_no_instance_is_relayed_to() -> Result<(), StoreError> {
    let setup = Setup::new(4).await;
    setup.other_reports(0).await;
    let session = setup.session_of_other().await;
    // The reports of others are not read any more.
    tokio::time::advance(REPORT_TTL + Duration::from_secs(1)).await;
    assert!(!setup.is_relayed(session.id, SocketKind::Applicant).await);
    Ok(())
}
