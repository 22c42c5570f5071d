//! Which devices join a session, and in what role.

use chrono::TimeDelta;
use domain::{
    api_key::Environment,
    branding::BrandName,
    id::{PlatformId, SessionId},
    session::{Event, History, State, Status},
    worker_region::WorkerRegion,
};
use ports::{
    authoring::DraftStore as _,
    brand_store::BrandStore as _,
    browser::Device,
    driving::{ApplicantError, ApplicantService as _, JoinRequest, LinkState, ServerEvent},
    key_store::{KeyStore as _, TeamStore as _},
};
use testkit::sample::{INSTANCE, OTHER_INSTANCE, noon};
use uuid::Uuid;

use super::{Setup, joining, next, view};
use crate::{live::Applicants, settings::Addresses, urls::Urls};

#[tokio::test(start_paused = true)]
async fn the_first_device_owns_the_session_and_starts_it() {
    let setup = Setup::new().await;
    let id = setup.world.session().await;
    let viewer = setup.join(id, 'a').await;
    let State::Initializing { lease, history: History { losses: 0, .. } } =
        setup.read(id).await.state
    else {
        panic!("no browser was requested")
    };
    assert_eq!(lease.node, INSTANCE);
    let shown = view(&viewer).await;
    assert_eq!((shown.status, shown.platform.as_str()), (Status::Initializing, "Sample"));
    let again = setup.join(id, 'a').await;
    assert!(matches!(next(&again).await, Some(ServerEvent::View(_))), "the same device again");
    assert!(matches!(next(&setup.join(id, 'b').await).await, Some(ServerEvent::Guest(_))));
}

#[tokio::test(start_paused = true)]
async fn of_devices_that_come_at_once_one_is_the_first() {
    let setup = Setup::new().await;
    let id = setup.world.session().await;
    let (one, other) = tokio::join!(setup.join(id, 'a'), setup.join(id, 'b'));
    let views = [next(&one).await, next(&other).await].into_iter().flatten();
    assert_eq!(views.filter(|event| matches!(event, ServerEvent::View(_))).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_wrong_token_a_malformed_secret_and_an_unknown_session_are_all_not_found() {
    let setup = Setup::new().await;
    let id = setup.world.session().await;
    let unknown = SessionId::from_uuid(Uuid::nil());
    let wrong = [
        (id, JoinRequest { token: "guessed".into(), ..joining(id, 'a') }),
        (id, JoinRequest { secret: "short".into(), ..joining(id, 'a') }),
        (unknown, joining(unknown, 'a')),
    ];
    for (id, joining) in wrong {
        let refused = setup.try_join(id, joining).await.err();
        assert!(matches!(refused, Some(ApplicantError::NotFound)));
    }
    assert_eq!(setup.read(id).await.status(), Status::Created);
}

#[tokio::test(start_paused = true)]
async fn the_link_of_a_revoked_key_starts_no_session_but_a_started_one_goes_on() {
    let setup = Setup::new().await;
    let (started, fresh) = (setup.world.session().await, setup.world.session().await);
    drop(setup.join(started, 'a').await);
    let revoked_at = noon() - TimeDelta::hours(1);
    assert!(setup.world.store.revoke_key(setup.world.key.id, revoked_at).await.unwrap());
    let refused = setup.try_join(fresh, joining(fresh, 'a')).await.err();
    assert!(matches!(refused, Some(ApplicantError::NotFound)));
    assert!(setup.try_join(started, joining(started, 'a')).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_session_of_another_region_is_opened_there() {
    let setup = Setup::new().await;
    let region = WorkerRegion::closest_to("US", None);
    let addresses = Addresses {
        public: "https://avouch.test".into(),
        regions: [(region, "https://us.avouch.test".to_owned())].into(),
        own: None,
    };
    let urls =
        Urls { addresses, tokens: setup.world.tokens.clone(), clock: setup.world.clock.clone() };
    let id = setup.world.session().await;
    // The studio of a draft shows it on a page of the portal, in a frame of the same origin.
    let mut draft = setup.world.read(id).await;
    draft.terms.platform = PlatformId::of_drafts(Environment::Development);
    assert!(urls.embed_url(&draft).starts_with("https://avouch.test/embed/"));
    let applicants = Applicants { urls: urls.into(), ..setup.applicants };
    let refused = applicants.join(id, joining(id, 'a')).await.err();
    let Some(ApplicantError::Elsewhere(url)) = refused else { panic!("joined here") };
    assert_eq!(url, format!("https://us.avouch.test/embed/{id}?token=embed-{id}"));
    setup.world.apply(id, [Event::TerminatedByPartner]).await;
    assert!(applicants.join(id, joining(id, 'a')).await.is_ok(), "its outcome is shown anywhere");
    // An instance there has sent it here: the team has to allow it.
    let relayed = Applicants { regions: Some(setup.world.store.clone()), ..applicants };
    let id = setup.world.session().await;
    let refused = relayed.join(id, joining(id, 'a')).await.err();
    assert!(matches!(refused, Some(ApplicantError::Elsewhere(_))));
    setup.world.store.set_other_regions(setup.world.team, true).await.unwrap();
    let viewer = relayed.join(id, joining(id, 'a')).await.unwrap();
    let begun = setup.world.read(id).await;
    assert!(matches!(begun.state, State::Initializing { .. }));
    assert!(matches!(next(&viewer).await, Some(ServerEvent::View(_))));
    // It begins again where its link leads to.
    setup.world.apply(id, [Event::BrowserLost]).await;
    while next(&viewer).await.is_some() {}
    assert!(matches!(setup.world.read(id).await.state, State::Created { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_draft_begins_at_the_instance_of_its_studio_only() {
    let setup = Setup::new().await;
    for (studio, begins) in [(INSTANCE, true), (OTHER_INSTANCE, false)] {
        let id = setup.world.insert(|session| session.terms.studio = Some(studio)).await;
        let viewer = setup.join(id, 'a').await;
        assert!(matches!(next(&viewer).await, Some(ServerEvent::View(_))));
        let is_begun = !matches!(setup.read(id).await.state, State::Created { .. });
        assert_eq!(is_begun, begins, "{studio}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_code_lets_one_more_device_join() {
    let setup = Setup::new().await;
    let (id, viewer) = setup.live().await;
    let handover = viewer.handover().await.unwrap();
    assert!(viewer.handover().await.is_none(), "one code a second");
    let (_, code) = handover.link.split_once("#code=").unwrap();
    let with_code = |device| JoinRequest { code: Some(code.to_owned()), ..joining(id, device) };
    let second = setup.try_join(id, with_code('b')).await.unwrap();
    assert!(matches!(next(&second).await, Some(ServerEvent::View(_))));
    assert_eq!(next(&viewer).await, Some(ServerEvent::Replaced));
    assert!(viewer.handover().await.is_none(), "only the active viewer hands over");
    let third = setup.try_join(id, with_code('c')).await.unwrap();
    assert!(matches!(next(&third).await, Some(ServerEvent::Guest(_))), "a code is used once");
}

#[tokio::test(start_paused = true)]
async fn the_outcome_of_a_closed_session_is_shown_once() {
    let setup = Setup::new().await;
    let id = setup.world.session().await;
    setup.world.apply(id, [Event::ApplicantCancelled]).await;
    let connection = setup.join(id, 'a').await;
    let outcome = view(&connection).await.outcome.unwrap();
    assert_eq!(outcome.text, "You cancelled. No data was shared.");
    assert_eq!(next(&connection).await, None);
    assert_eq!(setup.timeline(id).await, ["SessionCreated", "ApplicantCancelled"], "nothing bound");
}

#[tokio::test(start_paused = true)]
async fn the_page_looks_as_its_team_does_for_those_who_have_the_link() {
    let setup = Setup::new().await;
    let id = setup.world.invited().await;
    let name: BrandName = "Lender".parse().unwrap();
    setup.world.store.set_brand(setup.world.team, Some(&name), None, None).await.unwrap();
    let languages = ["xx".to_owned(), "de-AT".to_owned()];
    let token = format!("embed-{id}");
    let shown = setup.applicants.appearance(id, &token, &languages).await.unwrap();
    assert_eq!(shown.brand.name, Some(name));
    assert_eq!(shown.link, LinkState::New);
    let introduction = shown.introduction.unwrap();
    assert_eq!(
        (introduction.partner.as_str(), introduction.platform.as_str()),
        ("Lender", "Sample")
    );
    let hidden = setup.applicants.appearance(id, "guessed", &languages).await.unwrap();
    assert_eq!(hidden, ports::driving::PageAppearance::default());
}

#[tokio::test(start_paused = true)]
async fn the_page_of_a_draft_is_for_an_author() {
    let setup = Setup::new().await;
    let environment = Environment::Development;
    setup.world.store.prepare_platform_of_drafts(environment).await.unwrap();
    let drafts = PlatformId::of_drafts(environment);
    for (platform, is_draft) in [(drafts, true), (setup.world.platform, false)] {
        let id = setup.world.insert(|session| session.terms.platform = platform).await;
        let token = format!("embed-{id}");
        let shown = setup.applicants.appearance(id, &token, &[]).await.unwrap();
        assert_eq!(shown.is_draft, is_draft, "{platform:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_link_says_what_it_can_do_before_anything_is_offered() {
    let setup = Setup::new().await;
    let id = setup.world.session().await;
    let link = async || {
        let token = format!("embed-{id}");
        setup.applicants.appearance(id, &token, &[]).await.unwrap().link
    };
    assert_eq!(link().await, LinkState::New);
    setup.world.run(id).await;
    assert_eq!(link().await, LinkState::Begun);
    setup.world.apply(id, [Event::ApplicantCancelled]).await;
    assert_eq!(link().await, LinkState::Over);

    let id = setup.world.session().await;
    let token = format!("embed-{id}");
    setup.world.store.revoke_key(setup.world.key.id, noon()).await.unwrap();
    let shown = setup.applicants.appearance(id, &token, &[]).await.unwrap();
    assert_eq!(shown.link, LinkState::Invalid, "its key starts nothing any more");
    setup.world.clock.forward(chrono::TimeDelta::days(8));
    let shown = setup.applicants.appearance(id, &token, &[]).await.unwrap();
    assert_eq!(shown.link, LinkState::Over);
    assert_eq!(shown.introduction.unwrap().partner, "Lender", "the team, where it has no brand");
}

#[tokio::test(start_paused = true)]
async fn the_browser_takes_the_size_of_the_device_that_comes_last() {
    let setup = Setup::new().await;
    let (id, viewer) = setup.live().await;
    let before = setup.browser.inputs().len();
    drop(viewer);
    let device = Device { touch: true, ..Device::default() };
    let viewer = setup.try_join(id, JoinRequest { device, ..joining(id, 'a') }).await.unwrap();
    assert_eq!(setup.browser.inputs().len(), before + 1);
    assert!(setup.live_session(id).state.borrow().device.touch);
    drop(viewer);
}
