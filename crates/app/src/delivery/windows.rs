//! How many calls may be under way to each receiver, so that one that hangs holds up no other.
//!
//! Each begins with a few at once and is given one more with each success, half as many when it
//! does not keep up, as a sender of TCP does (RFC 5681): who answers quickly is soon sent much, who
//! hangs keeps a single place. A refusal that comes quickly holds nobody up and changes nothing.
//!
//! Who answers quickly is also claimed ahead for: three times as many as may be under way wait
//! here, so that the next call begins as soon as one has landed, not when the database has been
//! asked.
//!
//! All share so many places, of which nobody gets more than half of those that are left (the
//! dynamic threshold of switches with one memory, Choudhury and Hahne 1998), and the last of which
//! are for receivers with few: where many that were quick hang at once, there are some for the
//! others.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use domain::id::WebhookId;
use ports::delivery::{Ask, Room};

/// Deliveries that this process has in hand: under way, or waiting for it.
const IN_ALL: u32 = 2048;
/// Those of them that are kept for receivers with no more than the first few.
const RESERVE: u32 = 512;
/// The part of the others still free that one receiver may be given.
const PART: u32 = 2;
/// The largest batch of one claim.
const BATCH: u32 = 256;
/// What a receiver begins with, and the most of one.
const FIRST: u16 = 4;
const MOST: u16 = 128;
/// So many times as many as may be under way to one that is quick, it may have in hand: what waits
/// lasts until the next claim has come.
const AHEAD: u16 = 4;
/// An answer within this time is quick.
const QUICK: Duration = Duration::from_millis(250);
/// What has waited for so long is let go: its claim would run out during the call. It is handed out
/// again when the claim has run out.
const STALE: Duration = Duration::from_secs(5);
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

/// What this process has claimed, `T` each: calls under way are counted, the others wait in it.
pub(super) struct Windows<T> {
    by: HashMap<WebhookId, Window<T>>,
    flying: u32,
    waiting: u32,
}

struct Window<T> {
    size: u16,
    flying: u16,
    /// Whether the last call was a success and quick.
    quick: bool,
    /// Since when, the oldest first.
    waiting: VecDeque<(Instant, T)>,
}

impl<T> Default for Windows<T> {
    fn default() -> Self {
        Self { by: HashMap::new(), flying: 0, waiting: 0 }
    }
}

impl<T> Default for Window<T> {
    fn default() -> Self {
        Self { size: FIRST, flying: 0, quick: false, waiting: VecDeque::new() }
    }
}

impl<T> Window<T> {
    /// How many more it may be given where nobody may have more than `most`, or than the first few.
    fn room(&self, most: u16) -> u16 {
        let wanted = if self.quick { self.size.saturating_mul(AHEAD) } else { self.size };
        wanted.min(most.max(FIRST)).saturating_sub(self.in_hand())
    }

    fn in_hand(&self) -> u16 {
        let waiting = u16::try_from(self.waiting.len()).unwrap_or(u16::MAX);
        self.flying.saturating_add(waiting)
    }
}

impl<T> Windows<T> {
    /// What there is room for; none where all places are taken.
    pub(super) fn ask(&self, now: DateTime<Utc>, after: Option<WebhookId>) -> Option<Ask> {
        let free = IN_ALL.saturating_sub(self.flying).saturating_sub(self.waiting);
        let limit = u16::try_from(free.min(BATCH)).ok().filter(|limit| *limit > 0)?;
        let most = u16::try_from(free.saturating_sub(RESERVE) / PART).unwrap_or(u16::MAX);
        let room = |(webhook, window): (&WebhookId, &Window<T>)| Room {
            webhook: *webhook,
            most: window.room(most),
            busy: window.in_hand() > 0,
        };
        let room = self.by.iter().map(room).collect();
        Some(Ask { now, after, limit, each: FIRST, room })
    }

    /// Keeps what was claimed until [`Self::next`] hands it out.
    pub(super) fn took(&mut self, webhook: WebhookId, one: T, now: Instant) {
        self.by.entry(webhook).or_default().waiting.push_back((now, one));
        self.waiting = self.waiting.saturating_add(1);
    }

    /// What is to be sent to this receiver now: there is a place for it. To be asked until there is
    /// none, whenever something was taken or has landed; so what waits, waits for a call.
    pub(super) fn next(&mut self, webhook: WebhookId, now: Instant) -> Option<T> {
        let window = self.by.get_mut(&webhook)?;
        while window.flying < window.size {
            let (since, one) = window.waiting.pop_front()?;
            self.waiting = self.waiting.saturating_sub(1);
            if now.saturating_duration_since(since) < STALE {
                window.flying = window.flying.saturating_add(1);
                self.flying = self.flying.saturating_add(1);
                return Some(one);
            }
        }
        None
    }

    pub(super) fn landed(&mut self, webhook: WebhookId, how: Landing, took: Duration) {
        self.flying = self.flying.saturating_sub(1);
        let Some(window) = self.by.get_mut(&webhook) else { return };
        window.flying = window.flying.saturating_sub(1);
        window.quick = how == Landing::Success && took < QUICK;
        window.size = match how {
            Landing::Success => window.size.saturating_add(1).min(MOST),
            Landing::Refused => window.size,
            Landing::Overrun => (window.size / 2).max(1),
        };
        if self.by.len() > REMEMBERED {
            self.by.retain(|_, window| window.in_hand() > 0);
        }
    }

    pub(super) const fn flying(&self) -> u32 {
        self.flying
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use uuid::Uuid;

    fn hook(number: u128) -> WebhookId {
        WebhookId::from_uuid(Uuid::from_u128(number))
    }

    fn now() -> Instant {
        static NOW: LazyLock<Instant> = LazyLock::new(Instant::now);
        *NOW
    }

    fn room(windows: &Windows<()>, webhook: WebhookId) -> u16 {
        let ask = windows.ask(DateTime::UNIX_EPOCH, None).unwrap();
        ask.room.iter().find(|room| room.webhook == webhook).map_or(ask.each, |room| room.most)
    }

    fn call(windows: &mut Windows<()>, webhook: WebhookId, how: Landing, took: Duration) {
        windows.took(webhook, (), now());
        windows.next(webhook, now()).unwrap();
        windows.landed(webhook, how, took);
    }

    #[test]
    fn who_answers_is_sent_more_and_who_hangs_keeps_one_place() {
        let (mut windows, able, dead) = (Windows::default(), hook(1), hook(2));
        let refusing = hook(3);
        assert_eq!(room(&windows, able), FIRST);
        for _ in 0..1000 {
            call(&mut windows, able, Landing::Success, QUICK);
            call(&mut windows, dead, Landing::Overrun, QUICK);
            call(&mut windows, refusing, Landing::Refused, Duration::ZERO);
        }
        assert_eq!((room(&windows, able), room(&windows, dead)), (MOST, 1));
        assert_eq!(room(&windows, refusing), FIRST);
        windows.took(dead, (), now());
        windows.next(dead, now()).unwrap();
        assert_eq!((room(&windows, able), room(&windows, dead)), (MOST, 0));
        windows.landed(dead, Landing::Success, QUICK);
        assert_eq!(room(&windows, dead), 2);
    }

    #[test]
    fn who_answers_quickly_is_claimed_ahead_for() {
        let (mut windows, quick) = (Windows::default(), hook(1));
        for _ in 0..MOST {
            call(&mut windows, quick, Landing::Success, Duration::ZERO);
        }
        assert_eq!(room(&windows, quick), AHEAD * MOST);
        for _ in 0..AHEAD * MOST {
            windows.took(quick, (), now());
        }
        assert_eq!(room(&windows, quick), 0);
        let begun = std::iter::from_fn(|| windows.next(quick, now())).count();
        assert_eq!(begun, usize::from(MOST));
        windows.landed(quick, Landing::Success, Duration::ZERO);
        assert!(windows.next(quick, now()).is_some());
        assert!(windows.next(quick, now()).is_none());
        assert_eq!(room(&windows, quick), 1);
        // One that is slow once is not claimed ahead for until it is quick again.
        windows.landed(quick, Landing::Success, QUICK);
        assert_eq!(room(&windows, quick), 0);
    }

    #[test]
    fn what_has_waited_for_too_long_is_let_go() {
        let (mut windows, slow) = (Windows::default(), hook(1));
        for _ in 0..2 * FIRST {
            windows.took(slow, (), now());
        }
        while windows.next(slow, now()).is_some() {}
        windows.landed(slow, Landing::Success, STALE);
        assert!(windows.next(slow, now() + STALE).is_none());
        assert_eq!((windows.flying(), windows.waiting), (u32::from(FIRST) - 1, 0));
    }

    #[test]
    fn where_many_that_were_quick_hang_at_once_there_are_places_for_others() {
        let mut windows = Windows::default();
        for number in 0..100 {
            for _ in 0..MOST {
                call(&mut windows, hook(number), Landing::Success, Duration::ZERO);
            }
        }
        for number in (0..100).cycle().take(1000) {
            for _ in 0..room(&windows, hook(number)) {
                windows.took(hook(number), (), now());
            }
            while windows.next(hook(number), now()).is_some() {}
        }
        assert_eq!(room(&windows, hook(100)), FIRST);
    }

    #[test]
    fn there_are_only_so_many_places() {
        let mut windows = Windows::default();
        for number in 0..IN_ALL {
            windows.took(hook(number.into()), (), now());
            windows.next(hook(number.into()), now()).unwrap();
        }
        assert_eq!(windows.ask(DateTime::UNIX_EPOCH, None), None);
        windows.landed(hook(0), Landing::Success, Duration::ZERO);
        assert_eq!(windows.ask(DateTime::UNIX_EPOCH, None).map(|ask| ask.limit), Some(1));
    }

    #[test]
    fn few_are_remembered() {
        let mut windows = Windows::default();
        for number in 0..10_000 {
            call(&mut windows, hook(number), Landing::Success, Duration::ZERO);
        }
        assert!(windows.by.len() <= REMEMBERED + 1, "{}", windows.by.len());
        assert_eq!(windows.flying(), 0);
    }
}
