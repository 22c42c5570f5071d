//! Which instance serves a session, as instances report, stop and do not answer.

use std::sync::atomic::{AtomicU32, Ordering};

use domain::{
    api_key::Environment,
    fairness::{Quotas, Tenant, Turn},
    id::{BrowserId, PlatformId, UserId},
    session::{Event, Lease},
};
use ports::{
    StoreError,
    authoring::DraftStore as _,
    driving::{ForwardError, ForwardSender, OtherInstance, StudioOwner, StudioRouter as _},
    instances::{ForwardedMethod, ForwardedRequest, ForwardedResponse, SocketKind},
    key_store::TeamStore as _,
};

use super::*;
use crate::testing::{Counting, World};

const OWN: u128 = 1;
const OTHER: u128 = 2;

/// One browser runs at once.
const QUOTAS: Quotas = Quotas { total: 1, per_team: 1, development: 1, waiting_per_team: 10 };

const UNUSED: Instance = Instance {
    id: InstanceId::from_u128(OTHER),
    address: String::new(),
    region: None,
    slots: 4,
    sessions: 0,
    waiting: 0,
    leaving: 0,
    waited: 0,
    is_draining: false,
};

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

    async fn request(
        &self,
        address: &str,
        request: ForwardedRequest,
    ) -> Result<ForwardedResponse, LinkError> {
        assert_eq!((address, request.path.as_str()), ("10.0.0.2:1", "/studio/1/"));
        match self.failure.lock().unwrap().clone() {
            Some(failure) => Err(failure),
            None => Ok(ForwardedResponse { status: 200, headers: vec![], body: request.body }),
        }
    }

    async fn reach(&self, _: &str) -> Result<(), LinkError> {
        self.failure.lock().unwrap().clone().map_or(Ok(()), Err)
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
    mover: WaitMover,
}

impl Setup {
    /// An instance with this many browsers.
    async fn new(slots: u32) -> Self {
        Self::in_region(slots, None, &[]).await
    }

    /// An instance of a region, in a deployment that has addresses for some regions.
    async fn in_region(
        slots: u32,
        region: Option<WorkerRegion>,
        addresses: &[WorkerRegion],
    ) -> Self {
        let world = World::new().await;
        let hub = world.engine.hub.clone();
        let own = InstanceId::from_u128(OWN);
        let turns = Arc::new(BrowserTurns::new(QUOTAS));
        let own = Instance { id: own, address: "10.0.0.1:1".into(), slots, region, ..UNUSED };
        let clock = world.engine.clock.clone();
        let addresses = Addresses {
            public: "https://avouch.test".into(),
            regions: addresses
                .iter()
                .map(|region| (*region, format!("https://{}.test", region.as_str())))
                .collect(),
            own: region,
        };
        let directory = InstanceDirectory::new(own, addresses, hub, turns.clone(), clock);
        let directory = Arc::new(directory);
        let links = Arc::<Links>::default();
        let router = InstanceRouter {
            directory: directory.clone(),
            links: links.clone(),
            sessions: world.store.clone(),
            regions: world.store.clone(),
            places: ForwardPlaces::default(),
            runtime: Handle::current(),
        };
        let mover = WaitMover {
            engine: world.engine.clone(),
            turns,
            directory: directory.clone(),
            links: links.clone(),
            random: Arc::new(Counting::default()),
        };
        let (registry, regions) = (world.store.clone(), world.store.clone());
        let reports = InstanceReports { directory, registry, regions };
        Self { world, links, reports, router, mover }
    }

    /// Another instance reports that it has four browsers and these sessions.
    async fn other_reports(&self, sessions: u32) {
        let other = Instance { address: "10.0.0.2:1".into(), sessions, ..UNUSED };
        self.world.store.report(&other).await.unwrap();
        self.reports.exchange().await.unwrap();
    }

    /// Another instance in Europe reports these sessions.
    async fn far_reports(&self, sessions: u32) {
        let region = Some(WorkerRegion::EuropeWest);
        let other = Instance { address: "10.0.0.2:1".into(), sessions, region, ..UNUSED };
        self.world.store.report(&other).await.unwrap();
        self.reports.exchange().await.unwrap();
    }

    async fn allow_other_regions(&self, allowed: bool) {
        assert!(self.world.store.set_other_regions(self.world.team, allowed).await.unwrap());
    }

    /// A session whose browser the other instance holds.
    async fn session_of_other(&self) -> Session {
        let id = self.world.session().await;
        let (browser, node) = (BrowserId::from_u128(9), InstanceId::from_u128(OTHER));
        let lease = Lease { browser, node, region: None };
        self.world.apply(id, [Event::BrowserRequested { lease }]).await
    }

    /// A session of an applicant who is connected here, which asks for its turn.
    async fn asks_here(&self, browser: u128) -> (SessionId, Turn) {
        let (id, now) = (self.world.session().await, self.world.clock.now());
        let (browser, node) = (BrowserId::from_u128(browser), InstanceId::from_u128(OWN));
        let lease = Lease { browser, node, region: None };
        let session = self.world.apply(id, [Event::BrowserRequested { lease }]).await;
        let tenant = Tenant { team: self.world.team, environment: Environment::Development };
        let turn = self.mover.turns.ask(lease.browser, tenant, now);
        let live = self.world.engine.hub.change(id, |state| {
            state.present = true;
            state.place = (turn != Turn::Now).then_some(1);
        });
        live.publish(&session);
        (id, turn)
    }

    async fn lease(&self, id: SessionId) -> Lease {
        self.world.read(id).await.state.lease().unwrap()
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
        known.values().map(|known| known.expected(Instant::now()).sessions).sum::<u32>()
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

#[tokio::test(start_paused = true)]
async fn a_session_that_waits_is_moved_once_another_instance_has_a_browser() {
    let setup = Setup::new(1).await;
    assert_eq!(setup.asks_here(11).await.1, Turn::Now);
    let since = setup.world.clock.now();
    let (second, turn) = setup.asks_here(12).await;
    assert_eq!(turn, Turn::Wait { place: 1, since });
    let (third, _) = setup.asks_here(13).await;

    setup.mover.move_waiting().await;
    setup.other_reports(4).await;
    setup.mover.move_waiting().await;
    assert_eq!(setup.lease(second).await.browser, BrowserId::from_u128(12), "it is full");

    setup.world.clock.forward(chrono::TimeDelta::seconds(2));
    setup.other_reports(3).await;
    *setup.links.failure.lock().unwrap() = Some(LinkError::Unreachable("no route".into()));
    setup.mover.move_waiting().await;
    *setup.links.failure.lock().unwrap() = None;
    setup.mover.move_waiting().await;
    assert_eq!(setup.lease(second).await.browser, BrowserId::from_u128(12), "it is left out");

    setup.router.directory.reachable(InstanceId::from_u128(OTHER));
    setup.mover.move_waiting().await;
    let moved = setup.world.read(second).await;
    assert_eq!(moved.state.lease().unwrap().node, InstanceId::from_u128(OTHER));
    assert_eq!(moved.state.waiting_since(), Some(since), "it keeps its place");
    assert!(runs_elsewhere(Some(&setup.router.directory), Some(&moved)));
    // It is not reported there yet, but the place is taken.
    setup.other_reports(3).await;
    setup.mover.move_waiting().await;
    assert_eq!(setup.lease(third).await.node, InstanceId::from_u128(OWN));
    tokio::time::advance(MOVED_TTL).await;
    setup.other_reports(3).await;
    setup.mover.move_waiting().await;
    assert_eq!(setup.lease(third).await.node, InstanceId::from_u128(OTHER));
    assert_eq!(setup.mover.turns.of_team(setup.world.team), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_drains_moves_a_session_where_it_keeps_its_place() {
    let setup = Setup::new(1).await;
    setup.asks_here(11).await;
    let (waiting, _) = setup.asks_here(12).await;
    let own = InstanceId::from_u128(OWN);
    let hub = &setup.world.engine.hub;
    hub.start_draining();
    let [session] = <[_; 1]>::try_from(hub.waiting(own)).ok().unwrap();
    assert!(!setup.mover.move_away(&session).await, "there is no other");
    setup.other_reports(9).await;
    assert!(setup.mover.move_away(&session).await, "however full it is");
    assert_eq!(setup.lease(waiting).await.node, InstanceId::from_u128(OTHER));
    assert!(!setup.mover.move_away(&session).await, "it waits here no longer");
}

/// A session that tries a draft, whose studio this instance has.
async fn draft(world: &World, studio: u128) -> SessionId {
    let environment = Environment::Development;
    world.store.prepare_platform_of_drafts(environment).await.unwrap();
    let of_draft = |session: &mut Session| {
        session.terms.platform = PlatformId::of_drafts(environment);
        session.terms.studio = Some(InstanceId::from_u128(studio));
    };
    world.insert(of_draft).await
}

#[tokio::test(start_paused = true)]
async fn sockets_of_a_draft_are_those_of_the_instance_with_its_studio() {
    let setup = Setup::new(1).await;
    let (here, there) = (draft(&setup.world, OWN).await, draft(&setup.world, OTHER).await);
    assert!(!setup.is_relayed(there, SocketKind::Applicant).await, "it is not known");
    setup.other_reports(4).await;
    setup.asks_here(11).await;
    let leases = [
        (here, OWN, false),
        // However full it is.
        (there, OTHER, true),
    ];
    for (id, node, relayed) in leases {
        let (browser, node) = (BrowserId::from_u128(node), InstanceId::from_u128(node));
        let lease = Lease { browser, node, region: None };
        let begins = Event::BrowserRequested { lease };
        for event in
            [None, Some(begins), Some(Event::BrowserLost), Some(Event::TerminatedByPartner)]
        {
            if let Some(event) = event {
                setup.world.apply(id, [event]).await;
            }
            let session = setup.world.read(id).await;
            let is_relayed = setup.is_relayed(id, SocketKind::Applicant).await;
            assert_eq!(is_relayed, relayed, "{:?}", session.status());
            let directory = Some(&*setup.router.directory);
            assert_eq!(runs_elsewhere(directory, Some(&session)), relayed);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_draft_that_waits_stays_at_its_studio() {
    let setup = Setup::new(1).await;
    setup.asks_here(11).await;
    let id = draft(&setup.world, OWN).await;
    let (browser, node) = (BrowserId::from_u128(12), InstanceId::from_u128(OWN));
    let lease = Lease { browser, node, region: None };
    let session = setup.world.apply(id, [Event::BrowserRequested { lease }]).await;
    let tenant = Tenant { team: setup.world.team, environment: Environment::Development };
    let turn = setup.mover.turns.ask(browser, tenant, setup.world.clock.now());
    assert!(matches!(turn, Turn::Wait { .. }));
    let live = setup.world.engine.hub.change(id, |state| {
        state.present = true;
        state.place = Some(1);
    });
    live.publish(&session);
    for _ in 0..2 {
        setup.other_reports(0).await;
        setup.mover.move_waiting().await;
    }
    assert_eq!(setup.lease(id).await.node, node);
}

#[tokio::test(start_paused = true)]
async fn a_studio_is_found_until_its_instance_has_stopped() {
    let setup = Setup::new(4).await;
    let locate = |id| setup.router.locate(StudioOwner::Instance(InstanceId::from_u128(id)));
    assert_eq!(locate(OWN), Ok(None));
    assert_eq!(locate(OTHER), Err(ForwardError::Unreachable), "nothing is known yet");
    setup.other_reports(0).await;
    let address = "10.0.0.2:1".to_owned();
    let other = OtherInstance { id: InstanceId::from_u128(OTHER), address };
    assert_eq!(locate(OTHER), Ok(Some(other)));
    assert_eq!(locate(3), Err(ForwardError::Ended));

    tokio::time::advance(REPORT_TTL + Duration::from_secs(1)).await;
    setup.reports.exchange().await.unwrap();
    assert_eq!(locate(OTHER), Err(ForwardError::Unreachable), "it may come back");
    setup.world.store.remove(InstanceId::from_u128(OTHER), None).await.unwrap();
    setup.reports.exchange().await.unwrap();
    assert_eq!(locate(OTHER), Err(ForwardError::Ended));
    assert_eq!(locate(OWN), Ok(None));
}

#[tokio::test(start_paused = true)]
async fn instances_without_browsers_have_no_studios() {
    let author = |number| StudioOwner::Author(UserId::from_u128(number));
    let api = Setup::new(0).await;
    assert_eq!(api.router.locate(author(1)), Ok(None), "there is no other");
    api.other_reports(4).await;
    for number in 0..20 {
        let located = api.router.locate(author(number)).unwrap().unwrap();
        assert_eq!(located.id, InstanceId::from_u128(OTHER));
    }
    let setup = Setup::new(4).await;
    setup.other_reports(0).await;
    let count = || {
        let located = (0..20).map(|number| setup.router.locate(author(number)).unwrap());
        located.flatten().count()
    };
    assert!((1..20).contains(&count()), "both have some");
    setup.world.engine.hub.start_draining();
    assert_eq!(count(), 20);
}

#[tokio::test(start_paused = true)]
async fn an_instance_has_studios_once_the_others_can_know_it() {
    let setup = Setup::new(4).await;
    let there = || {
        let authors = (0..20).map(UserId::from_u128);
        let located = authors.map(|author| setup.router.locate(StudioOwner::Author(author)));
        located.filter(|located| matches!(located, Ok(Some(_)))).count()
    };
    let other = Instance { address: "10.0.0.2:1".into(), ..UNUSED };
    let other = ReportedInstance { instance: other, count: 1 };
    setup.router.directory.update(vec![other], Instant::now());
    assert_eq!(there(), 20, "it has not reported");
    setup.other_reports(0).await;
    assert!((1..20).contains(&there()), "both have some");
}

#[tokio::test(start_paused = true)]
async fn a_bounded_number_of_requests_is_forwarded_at_once() {
    let setup = Setup::new(4).await;
    let permit = |author| setup.router.permit(ForwardSender::Author(UserId::from_u128(author)));
    let authors = (0_u128..).flat_map(|author| [author; MAX_FORWARDED_OF_AUTHOR]);
    let taken: Vec<_> = authors.take(MAX_FORWARDED_AT_ONCE).map(permit).collect();
    assert!(taken.iter().all(Result::is_ok));
    assert_eq!(permit(u128::MAX).err(), Some(ForwardError::Busy));
    drop(taken);
    setup.other_reports(0).await;
    let owner = StudioOwner::Instance(InstanceId::from_u128(OTHER));
    let other = setup.router.locate(owner).unwrap().unwrap();
    for _ in 0..2 * MAX_FORWARDED_AT_ONCE {
        let permit = permit(1).unwrap();
        let path = "/studio/1/".into();
        let (method, headers, body) = (ForwardedMethod::Get, vec![], vec![]);
        let request = ForwardedRequest { method, path, headers, body };
        assert!(setup.router.forward(&permit, &other, request).await.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_is_forwarded_unless_the_instance_does_not_answer() {
    let setup = Setup::new(4).await;
    setup.other_reports(0).await;
    let owner = StudioOwner::Instance(InstanceId::from_u128(OTHER));
    let other = setup.router.locate(owner).unwrap().unwrap();
    let request = || ForwardedRequest {
        method: ForwardedMethod::Get,
        path: "/studio/1/".into(),
        headers: vec![],
        body: b"body".to_vec(),
    };
    let forward = async || {
        let permit = setup.router.permit(ForwardSender::Frames).unwrap();
        let answered = setup.router.forward(&permit, &other, request()).await;
        answered.map(|answer| answer.body)
    };
    assert_eq!(forward().await, Ok(b"body".to_vec()));
    let fail = |failure| *setup.links.failure.lock().unwrap() = Some(failure);
    for (failure, error) in [
        (LinkError::TimedOut, ForwardError::TimedOut),
        (LinkError::Broken("reset".into()), ForwardError::TimedOut),
        (LinkError::Invalid("a header".into()), ForwardError::Unreadable),
        (LinkError::RequestTooLarge, ForwardError::TooLarge),
        (LinkError::ResponseTooLarge, ForwardError::ResponseTooLarge),
        (LinkError::Refused(400), ForwardError::Unreachable),
    ] {
        fail(failure);
        assert_eq!(forward().await, Err(error));
        assert!(setup.router.locate(owner).is_ok(), "applicants are not affected");
    }
    fail(LinkError::Unreachable("no route".into()));
    assert_eq!(forward().await, Err(ForwardError::Unreachable));
    assert_eq!(setup.router.locate(owner), Err(ForwardError::Unreachable));
    tokio::time::advance(UNREACHABLE_TTL + Duration::from_secs(1)).await;
    setup.other_reports(0).await;
    assert!(setup.router.locate(owner).is_ok_and(|located| located.is_some()));
}

const WEST: WorkerRegion = WorkerRegion::UsWest;
/// That of the sessions of these tests.
const CENTRAL: WorkerRegion = WorkerRegion::UsCentral;

#[tokio::test(start_paused = true)]
async fn a_session_begins_in_another_region_if_its_own_is_full_and_its_team_allows_it() {
    let setup = Setup::in_region(1, Some(WEST), &[]).await;
    let session = setup.world.session().await;
    setup.far_reports(0).await;
    assert!(!setup.is_relayed(session, SocketKind::Applicant).await, "there is room here");
    setup.asks_here(11).await;
    assert!(!setup.is_relayed(session, SocketKind::Applicant).await, "it is not allowed");
    setup.allow_other_regions(true).await;
    assert!(setup.is_relayed(session, SocketKind::Applicant).await);
    setup.far_reports(4).await;
    assert!(!setup.is_relayed(session, SocketKind::Applicant).await, "it is full there too");

    let api = Setup::in_region(0, Some(WEST), &[]).await;
    let session = api.world.session().await;
    api.far_reports(4).await;
    assert!(!api.is_relayed(session, SocketKind::Applicant).await, "it is not allowed");
    assert!(api.router.directory.others_begin_sessions(), "its page connects again");
    api.allow_other_regions(true).await;
    assert!(api.is_relayed(session, SocketKind::Applicant).await, "it waits there");
}

#[tokio::test(start_paused = true)]
async fn a_page_of_another_region_is_not_relayed_before_its_session_begins() {
    for (regions, relayed) in [(&[WEST][..], true), (&[WEST, CENTRAL], false)] {
        let setup =
            Setup::in_region(0, regions.first().copied().filter(|_| !relayed), regions).await;
        let session = setup.world.session().await;
        assert_eq!(setup.world.read(session).await.terms.worker_region, CENTRAL);
        let other = Instance { region: setup.router.directory.own.region, ..UNUSED };
        setup.world.store.report(&other).await.unwrap();
        setup.reports.exchange().await.unwrap();
        assert_eq!(setup.is_relayed(session, SocketKind::Applicant).await, relayed);
    }
}

#[tokio::test(start_paused = true)]
async fn sessions_that_wait_move_to_another_region_if_their_team_allows_it() {
    let setup = Setup::in_region(1, Some(WEST), &[]).await;
    setup.asks_here(11).await;
    let (stays, _) = setup.asks_here(12).await;
    setup.far_reports(0).await;
    setup.far_reports(0).await;
    setup.mover.move_waiting().await;
    assert_eq!(setup.lease(stays).await.node, InstanceId::from_u128(OWN));

    // It applies to sessions that begin to wait from now on.
    setup.allow_other_regions(true).await;
    let (moves, _) = setup.asks_here(13).await;
    setup.far_reports(0).await;
    setup.far_reports(0).await;
    setup.mover.move_waiting().await;
    assert_eq!(setup.lease(stays).await.node, InstanceId::from_u128(OWN));
    let there = setup.lease(moves).await;
    assert_eq!(there.node, InstanceId::from_u128(OTHER));
    assert_eq!(there.region, Some(WorkerRegion::EuropeWest));
    assert_eq!(setup.world.read(moves).await.region_in_use(), WorkerRegion::EuropeWest);
}

/// A session that waits in another region, where it may not stay, moves to its own at any time.
#[tokio::test(start_paused = true)]
async fn sessions_that_wait_in_another_region_move_home_without_permission() {
    let setup = Setup::in_region(1, Some(WEST), &[WEST, CENTRAL]).await;
    setup.asks_here(11).await;
    let (waits, _) = setup.asks_here(12).await;
    setup.far_reports(0).await;
    setup.far_reports(0).await;
    setup.mover.move_waiting().await;
    assert_eq!(setup.lease(waits).await.node, InstanceId::from_u128(OWN), "that is not its region");
    let home = Instance { address: "10.0.0.2:1".into(), region: Some(CENTRAL), ..UNUSED };
    setup.world.store.report(&home).await.unwrap();
    setup.reports.exchange().await.unwrap();
    setup.mover.move_waiting().await;
    assert_eq!(setup.lease(waits).await.region, Some(CENTRAL));
}
