//! A page as it is on the other kind of screen: an applicant may have another one than the author.

use std::sync::Arc;

use super::{Studio, state::RunState};
use crate::signals::{KnownPage, OtherScreen};

impl Studio {
    /// Returns an inspected page as it is on the other kind of screen than that of the author's browser, which
    /// takes a few seconds the first time; who asks meanwhile gets the same. `None` if the browser shows another
    /// page now, or one that cannot be looked at, or if a run is in progress or begins meanwhile.
    pub async fn other_screen(&self, inspection: u64) -> Option<Arc<OtherScreen>> {
        let (_only, has_waited) = match self.looking.try_lock() {
            Ok(only) => (only, false),
            Err(_) => (self.looking.lock().await, true),
        };
        let page = {
            let state = self.shared.state();
            let seen = state.other_screen.as_ref().filter(|(number, _)| *number == inspection);
            // A look that failed is made again, but not once for each who waited for it.
            if let Some((_, seen)) = seen.filter(|(_, seen)| has_waited || seen.is_some()) {
                return seen.clone();
            }
            if state.run == RunState::Running {
                return None;
            }
            state.inspection_here(inspection)?
        };
        let seen = self.look_at(&page).await;
        let mut state = self.shared.state();
        // A run that has begun meanwhile may have opened another page.
        let seen = seen.filter(|_| state.run != RunState::Running);
        state.other_screen = Some((inspection, seen.clone()));
        seen
    }

    /// Looks at the page that the browser shows if it is this one.
    async fn look_at(&self, page: &KnownPage) -> Option<Arc<OtherScreen>> {
        let browser = self.parts.runs.browser()?;
        if browser.observe().await.ok()?.url != page.url {
            return None;
        }
        let (screen, seen) = browser.inspect_on_other_screen().await.ok()?;
        // Some pages lead elsewhere on a phone.
        let url = browser.observe().await.ok()?.url;
        Some(Arc::new(OtherScreen { screen, page: KnownPage { url, tree: seen.tree } }))
    }
}
