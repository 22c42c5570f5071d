//! The active viewer: what it is sent, and what it may do.

use std::sync::Arc;

use domain::{
    session::{Event, History, State, Status},
    workflow::PromptKind,
};
use ports::{
    browser::{BrowserError, Input, PageOutline, PageState, Viewport},
    driving::{ClientCommand, Prompt, ServerEvent},
};
use testkit::sample::{lease, noon};

use super::{Setup, next, nothing_for, pass, view};
use crate::testing::FakeBrowser;

#[tokio::test(start_paused = true)]
async fn a_viewer_is_sent_frames_it_wants_and_page_states() {
    let setup = Setup::new().await;
    let (_, viewer) = setup.live().await;
    view(&viewer).await;
    setup.browser.send_frame(1);
    let Some(ServerEvent::Frame(frame)) = next(&viewer).await else { panic!("no frame") };
    assert_eq!(frame.seq, 1);
    setup.browser.send_frame(2);
    setup.browser.send_state(PageState { seq: 1, ..PageState::default() });
    let event = viewer.next(false).await;
    assert!(matches!(event, Some(ServerEvent::Scene(_))), "{event:?}");
    assert!(matches!(next(&viewer).await, Some(ServerEvent::Frame(_))));
    nothing_for(30, &viewer).await;
    assert_eq!(viewer.now(), setup.world.engine.clock.now());
}

#[tokio::test(start_paused = true)]
async fn what_another_browser_shows_is_sent_from_its_first_frame() {
    let setup = Setup::new().await;
    let (id, viewer) = setup.live().await;
    view(&viewer).await;
    setup.browser.send_frame(5);
    assert!(matches!(next(&viewer).await, Some(ServerEvent::Frame(_))));
    setup.browser.send_state(PageState { seq: 7, ..PageState::default() });
    assert!(matches!(next(&viewer).await, Some(ServerEvent::Scene(_))));
    let other = Arc::new(FakeBrowser::default());
    other.send_frame(1);
    let browser = other.clone();
    setup.live_session(id).state.send_modify(|state| state.browser = Some(browser));
    let event = next(&viewer).await;
    assert!(matches!(&event, Some(ServerEvent::Frame(frame)) if frame.seq == 1), "{event:?}");
    other.send_state(PageState { seq: 1, ..PageState::default() });
    assert!(matches!(next(&viewer).await, Some(ServerEvent::Scene(_))));
    nothing_for(30, &viewer).await;
}

#[tokio::test(start_paused = true)]
async fn input_reaches_the_browser_of_an_open_session() {
    let setup = Setup::new().await;
    let (id, viewer) = setup.live().await;
    let mut typed = setup.live_session(id).text_input.subscribe();
    let inputs = setup.browser.inputs().len();
    viewer.handle(ClientCommand::Input(Input::ClosePage)).await;
    assert!(!typed.has_changed().unwrap());
    viewer.handle(ClientCommand::Input(Input::Text("a".into()))).await;
    assert!(typed.has_changed().unwrap());
    typed.mark_unchanged();
    let viewport = Viewport::within(400, 800);
    viewer.handle(ClientCommand::Input(Input::Resize(viewport))).await;
    assert_eq!(setup.live_session(id).state.borrow().device.viewport, viewport);
    assert_eq!(setup.browser.inputs().len(), inputs + 3);
    setup.world.apply(id, [Event::TerminatedByPartner]).await;
    viewer.handle(ClientCommand::Input(Input::Text("a".into()))).await;
    assert_eq!(setup.browser.inputs().len(), inputs + 3);
}

#[tokio::test(start_paused = true)]
async fn an_outline_is_made_on_request_and_once_a_second() {
    let setup = Setup::new().await;
    let (_, viewer) = setup.live().await;
    view(&viewer).await;
    let page = PageOutline { is_cut: true, ..PageOutline::default() };
    setup.browser.outlines.push(Ok(page.clone()));
    setup.browser.outlines.push(Err(BrowserError::TimedOut));
    viewer.handle(ClientCommand::Outline).await;
    viewer.handle(ClientCommand::Outline).await;
    assert_eq!(next(&viewer).await, Some(ServerEvent::Outline(Some(page.into()))));
    nothing_for(30, &viewer).await;
    viewer.handle(ClientCommand::Outline).await;
    assert_eq!(next(&viewer).await, Some(ServerEvent::Outline(None)), "the page has none");
}

#[tokio::test(start_paused = true)]
async fn there_is_no_outline_and_no_activation_while_a_page_of_the_service_is_shown() {
    let setup = Setup::new().await;
    let (id, viewer) = setup.live().await;
    let live = setup.live_session(id);
    let activate = || ClientCommand::Input(Input::Activate(7));
    let activations = || {
        let inputs = setup.browser.inputs();
        inputs.iter().filter(|input| matches!(input, Input::Activate(7))).count()
    };
    view(&viewer).await;
    viewer.handle(activate()).await;
    assert_eq!(activations(), 1);
    // The question comes while the outline is made.
    setup.browser.outlines.push(Ok(PageOutline::default()));
    viewer.handle(ClientCommand::Outline).await;
    live.state.send_modify(|state| {
        state.ask(consent());
    });
    view(&viewer).await;
    nothing_for(5, &viewer).await;
    setup.browser.outlines.push(Ok(PageOutline::default()));
    viewer.handle(ClientCommand::Outline).await;
    viewer.handle(activate()).await;
    nothing_for(5, &viewer).await;
    assert!(setup.browser.outlines.next().is_some(), "the browser was not asked");
    setup.world.apply(id, [Event::TerminatedByPartner]).await;
    viewer.handle(activate()).await;
    assert_eq!(activations(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_later_connection_replaces_the_viewer() {
    let setup = Setup::new().await;
    let (id, first) = setup.live().await;
    let second = setup.join(id, 'a').await;
    assert_eq!(next(&first).await, Some(ServerEvent::Replaced));
    let inputs = setup.browser.inputs().len();
    setup.browser.outlines.push(Ok(PageOutline::default()));
    first.handle(ClientCommand::Input(Input::ClosePage)).await;
    first.handle(ClientCommand::Outline).await;
    first.handle(ClientCommand::Cancel).await;
    pass(2).await;
    assert!(setup.browser.outlines.next().is_some(), "the browser was not asked");
    assert_eq!(setup.browser.inputs().len(), inputs);
    assert_eq!(setup.read(id).await.status(), Status::Running);
    drop(first);
    assert!(setup.live_session(id).state.borrow().present, "the second one is still there");
    drop(second);
    assert!(!setup.live_session(id).state.borrow().present);
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_the_session_and_the_connection() {
    let setup = Setup::new().await;
    let (id, viewer) = setup.live().await;
    viewer.handle(ClientCommand::Cancel).await;
    assert_eq!(setup.read(id).await.status(), Status::Cancelled);
    viewer.handle(ClientCommand::Cancel).await;
    assert!(view(&viewer).await.outcome.is_some());
    assert_eq!(next(&viewer).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_consent_prompt_is_answered_once_and_recorded_with_the_device() {
    let setup = Setup::new().await;
    let (id, viewer) = setup.live().await;
    let live = setup.live_session(id);
    viewer.handle(ClientCommand::Share { prompt: 1, agreed: true }).await;
    live.state.send_modify(|state| {
        state.ask(consent());
    });
    viewer.handle(ClientCommand::Share { prompt: 1, agreed: true }).await;
    assert_eq!(live.state.borrow().consent(), None, "the prompt was not shown yet");
    assert_eq!(view(&viewer).await.prompt.unwrap().number, 1);
    viewer.handle(ClientCommand::Share { prompt: 2, agreed: true }).await;
    assert_eq!(live.state.borrow().consent(), None, "another number");
    viewer.handle(ClientCommand::Share { prompt: 1, agreed: false }).await;
    viewer.handle(ClientCommand::Share { prompt: 1, agreed: true }).await;
    assert_eq!(live.state.borrow().consent(), Some(false), "the first answer counts");
    let timeline = setup.timeline(id).await;
    let consents = timeline.iter().filter(|line| line.contains("Consent")).count();
    assert_eq!(consents, 1, "{timeline:?}");
}

#[tokio::test(start_paused = true)]
async fn commands_of_guests_do_nothing_here() {
    let setup = Setup::new().await;
    let (id, viewer) = setup.live().await;
    view(&viewer).await;
    for command in [
        ClientCommand::Redeem("12345678".into()),
        ClientCommand::SendLink,
        ClientCommand::Ask,
        ClientCommand::Admit { number: 10, allowed: true },
    ] {
        viewer.handle(command).await;
    }
    nothing_for(5, &viewer).await;
    assert_eq!(setup.read(id).await.status(), Status::Running);
}

#[tokio::test(start_paused = true)]
async fn transitions_of_other_processes_are_shown() {
    let setup = Setup::new().await;
    let (id, viewer) = setup.live().await;
    assert_eq!(view(&viewer).await.status, Status::Running);
    // Another process has a hub of its own.
    let other = crate::advance::SessionEngine {
        sessions: setup.world.store.clone(),
        leases: setup.world.store.clone(),
        clock: setup.world.clock.clone(),
        hub: std::sync::Arc::default(),
        wakeups: crate::advance::Wakeups::default(),
        traces: setup.world.engine.traces.clone(),
    };
    other.advance(id, None, Event::TerminatedByPartner).await.unwrap();
    assert_eq!(view(&viewer).await.status, Status::Terminated);
}

#[tokio::test(start_paused = true)]
async fn a_lost_browser_is_replaced_while_the_applicant_is_connected() {
    let setup = Setup::new().await;
    let id = setup.world.session().await;
    let lost = lease();
    setup.world.apply(id, [Event::BrowserRequested { lease: lost }]).await;
    let viewer = setup.join(id, 'a').await;
    view(&viewer).await;
    setup.world.apply(id, [Event::BrowserLost]).await;
    assert_eq!(view(&viewer).await.status, Status::Created);
    assert_eq!(view(&viewer).await.status, Status::Initializing);
    let State::Initializing { lease, history: History { losses: 1, .. } } =
        setup.read(id).await.state
    else {
        panic!("no browser was requested")
    };
    assert_ne!(lease, lost);
}

#[tokio::test(start_paused = true)]
async fn so_many_codes_are_handed_over() {
    let setup = Setup::new().await;
    let (_, viewer) = setup.live().await;
    for _ in 0..100 {
        assert!(viewer.handover().await.is_some());
        pass(1).await;
    }
    assert!(viewer.handover().await.is_none());
}

fn consent() -> Prompt {
    Prompt {
        number: 0,
        kind: PromptKind::Consent,
        text: "Share?".into(),
        translated: true,
        deadline: noon(),
        share: vec![],
        witnessed: false,
        unconfirmed: false,
    }
}
