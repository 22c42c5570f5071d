//! A guest's request to the active viewer to let it join.

use std::time::Duration;

use ports::driving::GuestAnswer;
use tokio::time::Instant;

use super::GuestConnection;
use crate::live::hub::JoinAttempt;

/// How long the active viewer has to decide about a guest.
const DECISION_TIMEOUT: Duration = Duration::from_secs(60);
/// How many guests of a session may ask its active viewer.
const MAX_JOIN_REQUESTS: u64 = 5;

impl GuestConnection {
    /// Takes in the active viewer's decision, or that there was none in time.
    pub(super) fn check_decision(&self) {
        let Some((asking, since)) = self.with(|state| state.asking.clone()) else { return };
        let live = self.services.engine.hub.find(self.id);
        let decided = live.and_then(|live| live.state.borrow().decided);
        let decided = decided.filter(|(id, _)| *id == asking.id).map(|(_, allowed)| allowed);
        let is_late = since.elapsed() > DECISION_TIMEOUT;
        if decided.is_none() && !is_late {
            return;
        }
        self.withdraw();
        if decided == Some(true) {
            self.admitted();
        } else {
            self.answered(GuestAnswer::NotApproved);
        }
    }

    /// Withdraws the request to the active viewer.
    pub(super) fn withdraw(&self) {
        let asking = self.with(|state| state.asking.take());
        let (Some((asking, _)), Some(live)) = (asking, self.services.engine.hub.find(self.id))
        else {
            return;
        };
        live.state.send_if_modified(|state| {
            let is_own = state.guest.as_ref().is_some_and(|guest| guest.id == asking.id);
            if is_own {
                state.guest = None;
            }
            is_own
        });
    }

    /// Asks the active viewer to let this device join.
    pub(super) fn ask(&self) {
        if self.with(|state| state.asking.is_some()) {
            return;
        }
        let number = self.services.devices.two_digits();
        let mut asking = None;
        if let Some(live) = self.services.engine.hub.find(self.id) {
            live.state.send_if_modified(|state| {
                if !state.present || state.guest.is_some() || state.asked >= MAX_JOIN_REQUESTS {
                    return false;
                }
                state.asked = state.asked.saturating_add(1);
                let secret = self.secret.clone();
                let guest = JoinAttempt { id: state.asked, number, secret };
                state.guest = Some(guest.clone());
                asking = Some(guest);
                true
            });
        }
        match asking {
            Some(asking) => {
                self.with(|state| {
                    state.asking = Some((asking, Instant::now()));
                    state.answer = None;
                });
                self.changed.notify_one();
            }
            None => self.answered(GuestAnswer::NotApproved),
        }
    }
}
