//! The page as it is on the other kind of screen than the applicant's, for authors.

use std::{
    sync::{MutexGuard, PoisonError},
    time::Duration,
};

use ports::browser::{
    BrowserError, Device, Input, InspectedPage, MouseKind, Scale, Screen, TouchKind,
};
use serde_json::json;
use tokio::time::Instant;

use super::{
    frames::Wanted,
    pages::Pages,
    scripts::{KEEP_FOCUS, RESTORE_FOCUS},
    setup,
};

/// The time between two looks at the page.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// The time after which a page is taken as it is, also if it still changes.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(1);
/// The time that all of it may take: a page that is busy is not waited for longer.
const LOOK_TIMEOUT: Duration = Duration::from_secs(5);
/// The time within which the page must give the focus back.
const FOCUS_TIMEOUT: Duration = Duration::from_secs(1);

/// The time in which a page has the size of another screen.
struct Look<'a> {
    pages: &'a Pages,
    session: String,
}

impl<'a> Look<'a> {
    /// Gives the active page the size of a screen. Frames show it as it was until the look ends.
    fn begin(pages: &'a Pages, screen: Screen) -> Result<Self, BrowserError> {
        let (session, _) = pages.active().ok_or(BrowserError::Gone)?;
        let spec = pages.spec.get().ok_or(BrowserError::Gone)?;
        // From here on, the size is put back however it ends.
        let look = Self { pages, session };
        // Until all is sent: a size that comes meanwhile is for the page afterwards.
        let mut looked_at = pages.looked_at();
        *looked_at = Some(look.session.clone());
        let touch = screen == Screen::Phone;
        let device =
            Device { viewport: screen.viewport(), scale: Scale::One, touch, ..spec.device };
        let [(method, params), _] = setup::viewport_commands(device);
        let client = &pages.client;
        client.send_no_reply(Some(&look.session), "Page.stopScreencast", json!({}));
        client.send_no_reply(Some(&look.session), method, params);
        drop(looked_at);
        Ok(look)
    }

    /// Returns whether the page is still the active one.
    fn is_active(&self) -> bool {
        self.pages.active().is_some_and(|(session, _)| session == self.session)
    }
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        // First, so that a size that comes from now on is applied.
        *self.pages.looked_at() = None;
        // Another page has the size of the applicant's viewport, and this one gets it when it is active again.
        if self.is_active() {
            self.pages.start_screencast(&self.session);
        }
    }
}

impl Pages {
    /// Returns the active page as it is on the other kind of screen.
    pub(super) async fn inspect_on_other_screen(
        &self,
    ) -> Result<(Screen, InspectedPage), BrowserError> {
        let deadline = Instant::now() + LOOK_TIMEOUT;
        let locked = tokio::time::timeout_at(deadline, self.look_lock.write()).await;
        let _only = locked.map_err(|_| BrowserError::TimedOut)?;
        let focused = tokio::time::timeout_at(deadline, self.keep_focus()).await;
        let focused = focused.map_err(|_| BrowserError::TimedOut)?;
        let found = tokio::time::timeout_at(deadline, Box::pin(self.look())).await;
        // The page has its own size again. What was typed meanwhile waits until it has its focus, too.
        if let Ok((session, context)) = focused {
            let restored = self.call_function(&session, context, RESTORE_FOCUS, vec![]);
            let _ = tokio::time::timeout(FOCUS_TIMEOUT, restored).await;
        }
        // What was reported meanwhile may be all that the page reports.
        self.publish_active_page();
        found.unwrap_or(Err(BrowserError::TimedOut))
    }

    /// Remembers in the active page which element has the focus, and returns the DevTools session and the
    /// execution context that know it.
    async fn keep_focus(&self) -> Result<(String, i64), BrowserError> {
        let (session, target) = self.active().ok_or(BrowserError::Gone)?;
        let context = self.isolated_world(&session, &target).await?;
        self.call_function(&session, context, KEEP_FOCUS, vec![]).await?;
        Ok((session, context))
    }

    /// Gives the active page the size of the other kind of screen, and returns it as it is there.
    async fn look(&self) -> Result<(Screen, InspectedPage), BrowserError> {
        let screen = Screen::other_than(self.viewport());
        let look = Look::begin(self, screen)?;
        let page = self.settled_inspection().await?;
        if look.is_active() {
            return Ok((screen, page));
        }
        Err(BrowserError::Refused("another window was opened or closed".into()))
    }

    /// Inspects the page until two looks find the same.
    async fn settled_inspection(&self) -> Result<InspectedPage, BrowserError> {
        let began = Instant::now();
        let wanted = Wanted { has_boxes: true, ..Wanted::default() };
        let mut before: Option<InspectedPage> = None;
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            let page = Box::pin(self.capture(&wanted)).await?.page?;
            if before.as_ref() == Some(&page) || began.elapsed() >= SETTLE_TIMEOUT {
                return Ok(page);
            }
            before = Some(page);
        }
    }

    /// Returns the DevTools session of the page that has the size of another screen.
    pub(super) fn looked_at(&self) -> MutexGuard<'_, Option<String>> {
        self.looked_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a page has the size of another screen.
    pub(super) fn is_looked_at(&self, session: &str) -> bool {
        self.looked_at().as_deref() == Some(session)
    }

    /// Returns whether an input is for a place that the page does not have where its frame shows it. The end of
    /// what began before is not.
    pub(super) fn is_misplaced(&self, session: &str, input: &Input) -> bool {
        let has_place = matches!(
            input,
            Input::Mouse { kind: MouseKind::Moved | MouseKind::Pressed, .. }
                | Input::Wheel { .. }
                | Input::Touch { kind: TouchKind::Started | TouchKind::Moved, .. }
        );
        has_place && self.is_looked_at(session)
    }
}
