//! Concurrency limits: how many calls may run to each endpoint, so that a hanging endpoint delays no
//! other.
//!
//! An endpoint starts with a few concurrent calls. Its limit grows by one with each success and is
//! halved when it does not keep up (additive increase, multiplicative decrease, as in RFC 5681): a
//! fast endpoint soon gets many calls, a hanging one keeps a single call. A quick refusal blocks
//! nothing and changes nothing.
//!
//! For an endpoint that replies quickly, three times as many deliveries as its limit are claimed
//! ahead, so that the next call starts when one completes, without asking the database.
//!
//! All endpoints share a fixed capacity. One endpoint gets at most half of the capacity that is
//! still free (dynamic threshold, Choudhury and Hahne 1998), and the last part is reserved for
//! endpoints with few calls: capacity remains for others when many fast endpoints hang at once.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use domain::id::WebhookId;
use ports::delivery::{ClaimRequest, EndpointCapacity};

/// Maximum number of deliveries that this process holds: running or claimed ahead.
const MAX_IN_HAND: u32 = 2048;
/// Part of [`MAX_IN_HAND`] that is reserved for endpoints below their initial limit.
const RESERVED_PLACES: u32 = 512;
/// One endpoint may get the free unreserved capacity divided by this.
const SHARE_DIVISOR: u32 = 2;
/// Maximum number of deliveries in one claim.
const MAX_CLAIM: u32 = 256;
/// Concurrent calls to an endpoint at first, and at most.
const INITIAL_LIMIT: u16 = 4;
const MAX_LIMIT: u16 = 128;
/// An endpoint that replies quickly may hold this multiple of its limit, which covers the time until
/// the next claim returns.
const PREFETCH_FACTOR: u16 = 4;
/// A response within this time is quick.
const QUICK_REPLY: Duration = Duration::from_millis(250);
/// A delivery that was claimed ahead for longer is dropped, so that another process can send it once its
/// lease has expired.
const PREFETCH_TTL: Duration = Duration::from_secs(5);
/// Endpoints that are kept although they have no delivery in hand.
const MAX_IDLE_ENDPOINTS: usize = 1024;

/// How a call to an endpoint ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallResult {
    Success,
    Refused,
    /// No response in time, or one that reports overload (429, 502, 503, 504).
    Overloaded,
}

/// The limits of all endpoints, and the deliveries `T` that are claimed and wait for their call.
pub(super) struct ConcurrencyLimits<T> {
    by: HashMap<WebhookId, EndpointLimit<T>>,
    in_flight: u32,
    waiting: u32,
    /// Whether all capacity was in use at the last claim.
    full: bool,
}

struct EndpointLimit<T> {
    size: u16,
    in_flight: u16,
    /// Whether the last call succeeded quickly.
    quick: bool,
    /// Whether more may be due than the last claim returned.
    may_be_owed_more: bool,
    /// Claimed ahead, with the time of the claim, oldest first.
    waiting: VecDeque<(Instant, T)>,
}

impl<T> Default for ConcurrencyLimits<T> {
    fn default() -> Self {
        Self { by: HashMap::new(), in_flight: 0, waiting: 0, full: false }
    }
}

impl<T> Default for EndpointLimit<T> {
    fn default() -> Self {
        Self {
            size: INITIAL_LIMIT,
            in_flight: 0,
            quick: false,
            may_be_owed_more: false,
            waiting: VecDeque::new(),
        }
    }
}

impl<T> EndpointLimit<T> {
    /// How many more deliveries it may hold if no endpoint may hold more than `most` or the initial
    /// limit, whichever is higher.
    fn room(&self, most: u16) -> u16 {
        let wanted = if self.quick { self.size.saturating_mul(PREFETCH_FACTOR) } else { self.size };
        wanted.min(most.max(INITIAL_LIMIT)).saturating_sub(self.in_hand())
    }

    fn in_hand(&self) -> u16 {
        let waiting = u16::try_from(self.waiting.len()).unwrap_or(u16::MAX);
        self.in_flight.saturating_add(waiting)
    }
}

impl<T> ConcurrencyLimits<T> {
    /// The claim that fits into the free capacity; `None` if all capacity is in use.
    pub(super) fn ask(
        &mut self,
        now: DateTime<Utc>,
        after: Option<WebhookId>,
    ) -> Option<ClaimRequest> {
        let free = self.free();
        self.full = free == 0;
        let limit = u16::try_from(free.min(MAX_CLAIM)).ok().filter(|limit| *limit > 0)?;
        let most = most(free);
        let room = |(webhook, window): (&WebhookId, &EndpointLimit<T>)| EndpointCapacity {
            webhook: *webhook,
            most: window.room(most),
            busy: window.in_hand() > 0,
        };
        let room = self.by.iter().map(room).collect();
        Some(ClaimRequest { now, after, limit, each: INITIAL_LIMIT, capacities: room })
    }

    const fn free(&self) -> u32 {
        MAX_IN_HAND.saturating_sub(self.in_flight).saturating_sub(self.waiting)
    }

    /// Notes which endpoints a claim has filled, for which more may be due. Call it after
    /// [`Self::on_claimed`]. Returns whether one of them has room again.
    pub(super) fn note_claimed(
        &mut self,
        ask: &ClaimRequest,
        given: &HashMap<WebhookId, u16>,
        next: Option<WebhookId>,
    ) -> bool {
        let most = most(self.free());
        let asked: HashMap<_, _> =
            ask.capacities.iter().map(|room| (room.webhook, room.most)).collect();
        let seen = |webhook: &WebhookId| {
            ask.after.is_none_or(|after| *webhook > after)
                && next.is_none_or(|next| *webhook <= next)
        };
        self.by.iter_mut().filter(|(webhook, _)| seen(webhook)).fold(false, |again, one| {
            let (webhook, window) = one;
            let given = given.get(webhook).copied().unwrap_or_default();
            window.may_be_owed_more = given >= asked.get(webhook).copied().unwrap_or(ask.each);
            again || window.may_be_owed_more && window.room(most) > 0
        })
    }

    /// Stores a claimed delivery until [`Self::next`] returns it.
    pub(super) fn on_claimed(&mut self, webhook: WebhookId, one: T, now: Instant) {
        self.by.entry(webhook).or_default().waiting.push_back((now, one));
        self.waiting = self.waiting.saturating_add(1);
    }

    /// The next delivery to send to this endpoint, if its limit allows one more call. Call it until
    /// it returns `None` whenever a delivery was claimed or a call has completed.
    pub(super) fn next(&mut self, webhook: WebhookId, now: Instant) -> Option<T> {
        let window = self.by.get_mut(&webhook)?;
        while window.in_flight < window.size {
            let (since, one) = window.waiting.pop_front()?;
            self.waiting = self.waiting.saturating_sub(1);
            if now.saturating_duration_since(since) < PREFETCH_TTL {
                window.in_flight = window.in_flight.saturating_add(1);
                self.in_flight = self.in_flight.saturating_add(1);
                return Some(one);
            }
        }
        None
    }

    /// Updates the limit after a call. Returns whether a claim can use the capacity that is now free.
    pub(super) fn on_completed(
        &mut self,
        webhook: WebhookId,
        result: CallResult,
        took: Duration,
    ) -> bool {
        self.in_flight = self.in_flight.saturating_sub(1);
        let Some(window) = self.by.get_mut(&webhook) else { return self.full };
        let is_needed = self.full || window.may_be_owed_more;
        window.in_flight = window.in_flight.saturating_sub(1);
        window.quick = result == CallResult::Success && took < QUICK_REPLY;
        window.size = match result {
            CallResult::Success => window.size.saturating_add(1).min(MAX_LIMIT),
            CallResult::Refused => window.size,
            CallResult::Overloaded => (window.size / 2).max(1),
        };
        if self.by.len() > MAX_IDLE_ENDPOINTS {
            self.by.retain(|_, window| window.in_hand() > 0);
        }
        is_needed
    }

    pub(super) const fn in_flight(&self) -> u32 {
        self.in_flight
    }
}

/// The maximum that one endpoint may get of this free capacity.
fn most(free: u32) -> u16 {
    u16::try_from(free.saturating_sub(RESERVED_PLACES) / SHARE_DIVISOR).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests;
