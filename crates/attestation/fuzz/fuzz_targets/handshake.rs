//! A connection whose secrets the attacker has: whatever is encrypted into the server's flight and
//! after it, all of it fitting, nothing but what the server said is found.
#![no_main]

#[path = "../../tests/attacks/anybody.rs"]
mod anybody;
#[expect(dead_code, reason = "the attacks use the rest")]
#[path = "../../tests/attacks/forge.rs"]
mod forge;
#[expect(dead_code, reason = "the attacks use the rest")]
#[path = "../../tests/attacks/scene.rs"]
mod scene;

use std::sync::LazyLock;

use attestation::full_reveal::Findings;
use libfuzzer_sys::fuzz_target;

use crate::{
    forge::Inner,
    scene::{Scene, Session},
};

static HONEST: LazyLock<(Session, Findings)> = LazyLock::new(|| {
    let session = Scene::default().play();
    let found = session.examine().unwrap();
    (session, found)
});

fuzz_target!(|bytes: &[u8]| {
    let [place, at, kind, rest @ ..] = bytes else { return };
    let (session, honest) = &*HONEST;
    let changed = session.with(|parts| {
        let place = usize::from(*place % 8);
        match parts.flight.get_mut(place) {
            // Laid over a message from some place on, or one more.
            Some(message) => {
                let at = usize::from(*at).min(message.len());
                message.truncate(at);
                message.extend(rest);
            }
            None if place < 6 => parts.flight.insert(place - 4, rest.to_vec()),
            None if place == 6 => parts.server.insert(0, Inner::new(*kind, rest)),
            None => parts.server.push(Inner::new(*kind, rest)),
        }
        // The Finished is made to fit, but where it is what was changed.
        parts.finish = place != 3 && parts.flight.last().is_some_and(|message| message.len() >= 4);
    });
    if let Ok(found) = changed.examine() {
        // Tickets may come, and are passed over.
        assert_eq!((&found.claims, &found.response), (&honest.claims, &honest.response));
    }
});
