//! When a page is looked at on another kind of screen.

use std::sync::atomic::Ordering;

use ports::browser::Screen;

use super::overlapping::World;
use crate::{signals::KnownPage, studio::state::RunState, tests::page};

#[tokio::test]
async fn a_page_is_looked_at_once_and_only_while_it_is_shown() {
    let world = World::new();
    let show = |path: &str| {
        let url = format!("https://shop.example/{path}");
        *world.browser.url.lock().unwrap() = url.clone();
        let mut state = world.studio.shared.state();
        state.add_inspection(KnownPage { url, tree: page("html\n body") })
    };
    let looks = || world.browser.looks.load(Ordering::SeqCst);
    let orders = show("orders");
    for _ in 0..2 {
        let seen = world.studio.other_screen(orders).await.unwrap();
        assert_eq!((seen.screen, seen.name(), looks()), (Screen::Phone, "phone", 1));
        assert_eq!(seen.page.url, "https://shop.example/orders");
    }
    let settings = show("settings");
    // The browser shows another page now.
    *world.browser.url.lock().unwrap() = "https://shop.example/orders".to_owned();
    assert!(world.studio.other_screen(settings).await.is_none());
    assert!(world.studio.other_screen(99).await.is_none());
    // The run would see the page at the other size.
    let profile = show("profile");
    world.studio.shared.state().run = RunState::Running;
    assert!(world.studio.other_screen(profile).await.is_none());
    world.studio.shared.state().run = RunState::Exploring;
    // In another browser, another account may be signed in.
    world.studio.shared.state().forget_pages();
    assert!(world.studio.other_screen(profile).await.is_none());
    assert_eq!(looks(), 1);
    let again = show("profile");
    assert!(world.studio.other_screen(again).await.is_some());
    assert_eq!(looks(), 2);
}

#[tokio::test]
async fn those_who_ask_at_once_share_one_look() {
    let world = World::new();
    *world.browser.url.lock().unwrap() = "https://shop.example/orders".to_owned();
    let looks = || world.browser.looks.load(Ordering::SeqCst);
    let asked_twice = async || {
        let (studio, inspection) = (&world.studio, 1);
        let (first, second) =
            tokio::join!(studio.other_screen(inspection), studio.other_screen(inspection));
        (first.is_some(), second.is_some())
    };
    world.browser.is_busy.store(true, Ordering::SeqCst);
    assert_eq!((asked_twice().await, looks()), ((false, false), 1));
    // What failed once is tried again.
    world.browser.is_busy.store(false, Ordering::SeqCst);
    assert_eq!((asked_twice().await, looks()), ((true, true), 2));
}

#[tokio::test]
async fn a_look_during_which_a_run_begins_says_nothing() {
    let world = World::new();
    *world.browser.url.lock().unwrap() = "https://shop.example/orders".to_owned();
    let begins = async { world.studio.shared.state().run = RunState::Running };
    let (seen, ()) = tokio::join!(world.studio.other_screen(1), begins);
    assert_eq!((seen.is_none(), world.browser.looks.load(Ordering::SeqCst)), (true, 1));
    world.studio.shared.state().run = RunState::Exploring;
    assert!(world.studio.other_screen(1).await.is_some(), "it is looked at again");
}
