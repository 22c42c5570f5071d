//! A connection whose secrets the attacker has: for any modification of the server's flight or
//! data, encrypted correctly, the findings are those of the server's actual data.
#![no_main]

#[path = "../../tests/attacks/any_certificate.rs"]
mod any_certificate;
#[expect(dead_code, reason = "the attacks use the other items")]
#[path = "../../tests/attacks/forge.rs"]
mod forge;
#[expect(dead_code, reason = "the attacks use the other items")]
#[path = "../../tests/attacks/setup.rs"]
mod setup;

use std::sync::LazyLock;

use attestation::full_reveal::Findings;
use libfuzzer_sys::fuzz_target;

use crate::{
    forge::Inner,
    setup::{Session, Setup},
};

static HONEST: LazyLock<(Session, Findings)> = LazyLock::new(|| {
    let session = Setup::default().play();
    let found = session.examine().unwrap();
    (session, found)
});

fuzz_target!(|bytes: &[u8]| {
    let [place, at, kind, rest @ ..] = bytes else { return };
    let (session, honest) = &*HONEST;
    let changed = session.with(|parts| {
        let place = usize::from(*place % 8);
        match parts.flight.get_mut(place) {
            // Overwrites a message from some position on, or adds one.
            Some(message) => {
                let at = usize::from(*at).min(message.len());
                message.truncate(at);
                message.extend(rest);
            }
            None if place < 6 => parts.flight.insert(place - 4, rest.to_vec()),
            None if place == 6 => parts.server.insert(0, Inner::new(*kind, rest)),
            None => parts.server.push(Inner::new(*kind, rest)),
        }
        // The Finished is corrected, except if it is the modified message.
        parts.finish = place != 3 && parts.flight.last().is_some_and(|message| message.len() >= 4);
    });
    if let Ok(found) = changed.examine() {
        // Tickets are allowed and skipped.
        assert_eq!((&found.claims, &found.response), (&honest.claims, &honest.response));
    }
});
