//! The outline of the remote page, which the active viewer may ask for.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ports::browser::PageOutline;
use tokio::{sync::watch, time::Instant};

use super::ActiveViewer;

/// Time between two outlines that one connection asks for.
const MIN_OUTLINE_INTERVAL: Duration = Duration::from_secs(1);

/// The outlines that one connection has asked for.
#[derive(Default)]
pub(super) struct OutlineRequests {
    last: Mutex<Option<Instant>>,
    newest: watch::Sender<OutlineAnswer>,
}

/// The answer to a request.
#[derive(Clone, Default)]
pub(super) struct OutlineAnswer {
    /// Counts the answers of the connection.
    pub(super) number: u64,
    /// `None` if the page had no outline.
    pub(super) outline: Option<Arc<PageOutline>>,
}

impl OutlineRequests {
    /// Returns whether an outline may be asked for now, and notes that it is.
    fn may_ask(&self) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_early = last.is_some_and(|last| last.elapsed() < MIN_OUTLINE_INTERVAL);
        if !is_early {
            *last = Some(Instant::now());
        }
        !is_early
    }

    /// Waits for the answer after the one with this number.
    pub(super) async fn answer(&self, after: u64) -> Option<OutlineAnswer> {
        let mut answers = self.newest.subscribe();
        let answer = answers.wait_for(|answer| answer.number > after).await;
        answer.ok().map(|answer| answer.clone())
    }
}

impl ActiveViewer {
    /// Asks the browser for the outline of its page. The answer is an event of the connection: it may
    /// take seconds, and frames and input must not wait for it.
    pub(super) fn request_outline(&self) {
        let browser = {
            let state = self.live.state.borrow();
            state.browser.as_ref().filter(|_| state.shows_page()).cloned()
        };
        let Some(browser) = browser.filter(|_| self.outlines.may_ask()) else { return };
        let (newest, id) = (self.outlines.newest.clone(), self.id);
        self.services.runtime.spawn(async move {
            let outline = match browser.outline().await {
                Ok(outline) => Some(Arc::new(outline)),
                Err(error) => {
                    let error: &dyn std::error::Error = &error;
                    tracing::debug!(session.id = %id, error, "failed to read the outline of a page; the applicant can ask again");
                    None
                }
            };
            newest.send_modify(|answer| {
                let number = answer.number.saturating_add(1);
                *answer = OutlineAnswer { number, outline };
            });
        });
    }
}
