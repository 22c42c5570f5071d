//! How many calls may be under way to each receiver, so that one that hangs holds up no other.
//!
//! Each begins with a few at once and is given one more with each success, half as many when it
//! does not keep up, as a sender of TCP does (RFC 5681): who answers quickly is soon sent much, who
//! hangs keeps a single place. A refusal that comes quickly holds nobody up and changes nothing.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use domain::id::WebhookId;
use ports::delivery::Ask;

/// Calls under way in this process.
const IN_ALL: u32 = 1024;
/// The largest batch of one claim.
const BATCH: u32 = 256;
/// What a receiver begins with, and the most of one.
const FIRST: u16 = 4;
const MOST: u16 = 128;
/// Receivers that are remembered though nothing is under way to them.
const REMEMBERED: usize = 1024;

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Landing {
    Success,
    Refused,
    /// No answer in time, or one that says that it is too much.
    Overrun,
}

#[derive(Default)]
pub(super) struct Windows {
    by: HashMap<WebhookId, Window>,
    flying: u32,
}

#[derive(Clone, Copy)]
struct Window {
    size: u16,
    flying: u16,
}

impl Window {
    const FIRST: Self = Self { size: FIRST, flying: 0 };

    const fn room(self) -> u16 {
        self.size.saturating_sub(self.flying)
    }
}

impl Windows {
    /// What there is room for; none where all places are taken.
    pub(super) fn ask(&self, now: DateTime<Utc>, after: Option<WebhookId>) -> Option<Ask> {
        let free = IN_ALL.saturating_sub(self.flying).min(BATCH);
        let limit = u16::try_from(free).ok().filter(|limit| *limit > 0)?;
        let room = self.by.iter().map(|(webhook, window)| (*webhook, window.room())).collect();
        Some(Ask { now, after, limit, each: FIRST, room })
    }

    pub(super) fn took(&mut self, webhook: WebhookId) {
        let window = self.by.entry(webhook).or_insert(Window::FIRST);
        window.flying = window.flying.saturating_add(1);
        self.flying = self.flying.saturating_add(1);
    }

    pub(super) fn landed(&mut self, webhook: WebhookId, how: Landing) {
        self.flying = self.flying.saturating_sub(1);
        let Some(window) = self.by.get_mut(&webhook) else { return };
        window.flying = window.flying.saturating_sub(1);
        window.size = match how {
            Landing::Success => window.size.saturating_add(1).min(MOST),
            Landing::Refused => window.size,
            Landing::Overrun => (window.size / 2).max(1),
        };
        if self.by.len() > REMEMBERED {
            self.by.retain(|_, window| window.flying > 0);
        }
    }

    pub(super) const fn flying(&self) -> u32 {
        self.flying
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn hook(number: u128) -> WebhookId {
        WebhookId::from_uuid(Uuid::from_u128(number))
    }

    fn room(windows: &Windows, webhook: WebhookId) -> u16 {
        let ask = windows.ask(DateTime::UNIX_EPOCH, None).unwrap();
        ask.room.iter().find(|(id, _)| *id == webhook).map_or(ask.each, |(_, room)| *room)
    }

    #[test]
    fn who_answers_is_sent_more_and_who_hangs_keeps_one_place() {
        let (mut windows, quick, dead) = (Windows::default(), hook(1), hook(2));
        let refusing = hook(3);
        assert_eq!(room(&windows, quick), FIRST);
        for _ in 0..1000 {
            for (webhook, how) in
                [(quick, Landing::Success), (dead, Landing::Overrun), (refusing, Landing::Refused)]
            {
                windows.took(webhook);
                windows.landed(webhook, how);
            }
        }
        assert_eq!((room(&windows, quick), room(&windows, dead)), (MOST, 1));
        assert_eq!(room(&windows, refusing), FIRST);
        windows.took(dead);
        assert_eq!((room(&windows, quick), room(&windows, dead)), (MOST, 0));
        windows.landed(dead, Landing::Success);
        assert_eq!(room(&windows, dead), 2);
    }

    #[test]
    fn there_are_only_so_many_places() {
        let mut windows = Windows::default();
        for number in 0..IN_ALL {
            windows.took(hook(number.into()));
        }
        assert_eq!(windows.ask(DateTime::UNIX_EPOCH, None), None);
        windows.landed(hook(0), Landing::Success);
        assert_eq!(windows.ask(DateTime::UNIX_EPOCH, None).map(|ask| ask.limit), Some(1));
    }

    #[test]
    fn few_are_remembered() {
        let mut windows = Windows::default();
        for number in 0..10_000 {
            windows.took(hook(number));
            windows.landed(hook(number), Landing::Success);
        }
        assert!(windows.by.len() <= REMEMBERED + 1, "{}", windows.by.len());
        assert_eq!(windows.flying(), 0);
    }
}
