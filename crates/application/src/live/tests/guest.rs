//! Guests: how a device that has only the link joins, and how it is refused.

use std::sync::Arc;

use chrono::TimeDelta;
use domain::session::{Event, Status};
use ports::driving::{ApplicantConnection, ClientCommand, Guest, GuestAnswer, ServerEvent};

use super::{Setup, next, nothing_for, view};

#[tokio::test(start_paused = true)]
async fn a_guest_is_shown_how_the_session_stands_and_nothing_else() {
    let setup = Setup::new().await;
    let (id, _viewer) = setup.live().await;
    let guest = setup.join(id, 'b').await;
    let shown = guest_view(&guest).await;
    assert_eq!((shown.status, shown.platform.as_str()), (Status::Running, "Sample"));
    assert!(!shown.has_channel && shown.asking.is_none() && shown.answer.is_none());
    setup.browser.send_frame(1);
    for command in [
        ClientCommand::Cancel,
        ClientCommand::Outline,
        ClientCommand::SendLink,
        ClientCommand::Share { prompt: 1, agreed: true },
        ClientCommand::Admit { number: 10, allowed: true },
    ] {
        guest.handle(command).await;
    }
    nothing_for(10, &guest).await;
    assert!(guest.handover().await.is_none());
    assert_eq!(guest.now(), setup.world.engine.clock.now());
    setup.world.apply(id, [Event::TerminatedByPartner]).await;
    assert!(view(&guest).await.outcome.is_some());
    assert_eq!(next(&guest).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_guest_joins_with_a_code() {
    let setup = Setup::new().await;
    let (id, viewer) = setup.live().await;
    let guest = setup.join(id, 'b').await;
    guest_view(&guest).await;
    for wrong in ["nonsense", "00000000"] {
        guest.handle(ClientCommand::Redeem(wrong.into())).await;
    }
    assert_eq!(guest_view(&guest).await.answer, Some(GuestAnswer::WrongCode));
    let code = viewer.handover().await.unwrap().code;
    guest.handle(ClientCommand::Redeem(code)).await;
    assert_eq!(next(&guest).await, Some(ServerEvent::Admitted));
    assert_eq!(next(&guest).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_session_has_eight_devices() {
    let setup = Setup::new().await;
    let (id, viewer) = setup.live().await;
    for device in 'b'..='i' {
        let guest = setup.join(id, device).await;
        guest_view(&guest).await;
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        let code = viewer.handover().await.unwrap().code;
        guest.handle(ClientCommand::Redeem(code)).await;
        let event = next(&guest).await;
        if device < 'i' {
            assert_eq!(event, Some(ServerEvent::Admitted), "{device}");
        } else {
            let Some(ServerEvent::Guest(guest)) = event else { panic!("{event:?}") };
            assert_eq!(guest.answer, Some(GuestAnswer::TooManyDevices));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_guest_joins_where_the_active_viewer_lets_it() {
    let setup = Setup::new().await;
    let (id, viewer) = setup.live().await;
    view(&viewer).await;
    let guest = setup.join(id, 'b').await;
    guest_view(&guest).await;
    guest.handle(ClientCommand::Ask).await;
    guest.handle(ClientCommand::Ask).await;
    let number = guest_view(&guest).await.asking.unwrap();
    assert!((10..100).contains(&number));
    assert_eq!(view(&viewer).await.guest, Some(number));
    viewer.handle(ClientCommand::Admit { number: number ^ 1, allowed: true }).await;
    nothing_for(5, &guest).await;
    viewer.handle(ClientCommand::Admit { number, allowed: true }).await;
    assert_eq!(view(&viewer).await.guest, None);
    assert_eq!(next(&guest).await, Some(ServerEvent::Admitted));
}

#[tokio::test(start_paused = true)]
async fn a_guest_is_refused_or_waits_in_vain() {
    let setup = Setup::new().await;
    let (id, viewer) = setup.live().await;
    view(&viewer).await;
    let guest = setup.join(id, 'b').await;
    guest_view(&guest).await;
    guest.handle(ClientCommand::Ask).await;
    let number = guest_view(&guest).await.asking.unwrap();
    viewer.handle(ClientCommand::Admit { number, allowed: false }).await;
    assert_eq!(guest_view(&guest).await.answer, Some(GuestAnswer::NotApproved));
    guest.handle(ClientCommand::Ask).await;
    assert!(guest_view(&guest).await.asking.is_some());
    let waiting = setup.join(id, 'c').await;
    waiting.handle(ClientCommand::Ask).await;
    assert_eq!(guest_view(&waiting).await.answer, Some(GuestAnswer::NotApproved), "one at a time");
    tokio::time::sleep(std::time::Duration::from_secs(61)).await;
    assert_eq!(guest_view(&guest).await.answer, Some(GuestAnswer::NotApproved), "no decision");
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_leaves_withdraws_its_request() {
    let setup = Setup::new().await;
    let (id, viewer) = setup.live().await;
    view(&viewer).await;
    let guest = setup.join(id, 'b').await;
    guest.handle(ClientCommand::Ask).await;
    assert!(view(&viewer).await.guest.is_some());
    drop(guest);
    assert_eq!(view(&viewer).await.guest, None);
}

#[tokio::test(start_paused = true)]
async fn the_active_viewer_is_asked_only_so_often_and_only_while_it_is_there() {
    let setup = Setup::new().await;
    let (id, viewer) = setup.live().await;
    for attempt in 0..6 {
        let guest = setup.join(id, 'b').await;
        guest_view(&guest).await;
        guest.handle(ClientCommand::Ask).await;
        assert_eq!(guest_view(&guest).await.asking.is_some(), attempt < 5, "{attempt}");
    }
    let other = setup.live().await.0;
    setup.live_session(other).state.send_modify(|state| state.present = false);
    let guest = setup.join(other, 'b').await;
    guest.handle(ClientCommand::Ask).await;
    assert_eq!(guest_view(&guest).await.answer, Some(GuestAnswer::NotApproved));
    drop(viewer);
}

#[tokio::test(start_paused = true)]
async fn a_guest_asks_for_the_link_of_a_session_that_has_a_channel() {
    let setup = Setup::new().await;
    let id = setup.world.invited().await;
    drop(setup.join(id, 'a').await);
    let guest = setup.join(id, 'b').await;
    assert!(guest_view(&guest).await.has_channel);
    guest.handle(ClientCommand::SendLink).await;
    assert_eq!(guest_view(&guest).await.answer, Some(GuestAnswer::LinkNotSent), "too soon");
    setup.world.clock.forward(TimeDelta::minutes(1));
    guest.handle(ClientCommand::SendLink).await;
    assert_eq!(guest_view(&guest).await.answer, Some(GuestAnswer::LinkSent));
}

#[tokio::test(start_paused = true)]
async fn so_many_commands_of_a_guest_are_carried_out() {
    let setup = Setup::new().await;
    let (id, viewer) = setup.live().await;
    let guest = setup.join(id, 'b').await;
    for _ in 0..30 {
        guest.handle(ClientCommand::Redeem("nonsense".into())).await;
    }
    let code = viewer.handover().await.unwrap().code;
    guest.handle(ClientCommand::Redeem(code)).await;
    assert_eq!(guest_view(&guest).await.answer, Some(GuestAnswer::WrongCode));
    nothing_for(5, &guest).await;
}

#[tokio::test(start_paused = true)]
async fn a_device_that_joins_over_another_connection_is_admitted() {
    let setup = Setup::new().await;
    let (id, viewer) = setup.live().await;
    let (one, other) = (setup.join(id, 'b').await, setup.join(id, 'b').await);
    guest_view(&one).await;
    let code = viewer.handover().await.unwrap().code;
    other.handle(ClientCommand::Redeem(code)).await;
    assert_eq!(next(&one).await, Some(ServerEvent::Admitted));
}

async fn guest_view(connection: &Arc<dyn ApplicantConnection>) -> Guest {
    match next(connection).await {
        Some(ServerEvent::Guest(guest)) => guest,
        other => panic!("{other:?}"),
    }
}
