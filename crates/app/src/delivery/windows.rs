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
    /// Whether there was no place at all when one was last looked for.
    full: bool,
}

struct Window<T> {
    size: u16,
    flying: u16,
    /// Whether the last call was a success and quick.
    quick: bool,
    /// Whether it may be owed more than it was given.
    starved: bool,
    /// Since when, the oldest first.
    waiting: VecDeque<(Instant, T)>,
}

impl<T> Default for Windows<T> {
    fn default() -> Self {
        Self { by: HashMap::new(), flying: 0, waiting: 0, full: false }
    }
}

impl<T> Default for Window<T> {
    fn default() -> Self {
        Self { size: FIRST, flying: 0, quick: false, starved: false, waiting: VecDeque::new() }
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
    pub(super) fn ask(&mut self, now: DateTime<Utc>, after: Option<WebhookId>) -> Option<Ask> {
        let free = self.free();
        self.full = free == 0;
        let limit = u16::try_from(free.min(BATCH)).ok().filter(|limit| *limit > 0)?;
        let most = most(free);
        let room = |(webhook, window): (&WebhookId, &Window<T>)| Room {
            webhook: *webhook,
            most: window.room(most),
            busy: window.in_hand() > 0,
        };
        let room = self.by.iter().map(room).collect();
        Some(Ask { now, after, limit, each: FIRST, room })
    }

    const fn free(&self) -> u32 {
        IN_ALL.saturating_sub(self.flying).saturating_sub(self.waiting)
    }

    /// Notes who was given all that there was room for, and so may be owed more, of those that a
    /// claim looked at; after what was given has been taken. Whether there is room again for one
    /// of them.
    pub(super) fn note_starved(
        &mut self,
        ask: &Ask,
        given: &HashMap<WebhookId, u16>,
        next: Option<WebhookId>,
    ) -> bool {
        let most = most(self.free());
        let asked: HashMap<_, _> = ask.room.iter().map(|room| (room.webhook, room.most)).collect();
        let seen = |webhook: &WebhookId| {
            ask.after.is_none_or(|after| *webhook > after)
                && next.is_none_or(|next| *webhook <= next)
        };
        self.by.iter_mut().filter(|(webhook, _)| seen(webhook)).fold(false, |again, one| {
            let (webhook, window) = one;
            let given = given.get(webhook).copied().unwrap_or_default();
            window.starved = given >= asked.get(webhook).copied().unwrap_or(ask.each);
            again || window.starved && window.room(most) > 0
        })
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

    /// Whether the place that gets free is one that somebody waits for.
    pub(super) fn landed(&mut self, webhook: WebhookId, how: Landing, took: Duration) -> bool {
        self.flying = self.flying.saturating_sub(1);
        let Some(window) = self.by.get_mut(&webhook) else { return self.full };
        let wanted = self.full || window.starved;
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
        wanted
    }

    pub(super) const fn flying(&self) -> u32 {
        self.flying
    }
}

/// The most that one receiver may have of so many places.
fn most(free: u32) -> u16 {
    u16::try_from(free.saturating_sub(RESERVE) / PART).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests;
