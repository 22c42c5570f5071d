//! How guesses at passwords and codes are slowed down: each wrong attempt after the first few makes
//! the next one wait longer, up to a bound; nobody is locked out for good.

use chrono::{DateTime, TimeDelta, Utc};

/// How attempts are spread out over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delays {
    /// Wrong attempts that are followed by no delay.
    pub free: u32,
    /// Seconds after the first one beyond them; twice as long after each further one.
    pub first: u32,
    /// The longest delay, in seconds.
    pub longest: u32,
    /// Seconds without an attempt after which the earlier ones are forgotten.
    pub forgotten_after: u32,
}

/// For one account from one network: at most 125 attempts a day.
pub const DELAYS_PER_ACCOUNT_AND_NETWORK: Delays =
    Delays { free: 5, first: 15, longest: 900, forgotten_after: 7200 };
/// For one account from all browsers that it does not know: at most 360 attempts a day, from however
/// many networks.
pub const DELAYS_PER_ACCOUNT: Delays =
    Delays { free: 20, first: 1, longest: 300, forgotten_after: 7200 };
/// For one account from one browser that it knows, or in one sign-in: at most 125 attempts a day.
pub const DELAYS_PER_KNOWN_BROWSER: Delays = DELAYS_PER_ACCOUNT_AND_NETWORK;
/// For all accounts from one network: at most 1,800 attempts a day.
pub const DELAYS_PER_NETWORK: Delays =
    Delays { free: 50, first: 1, longest: 60, forgotten_after: 7200 };

/// Attempts that were counted, and what follows from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempts {
    pub count: u32,
    /// The next one is refused before then.
    pub next_at: DateTime<Utc>,
    pub forgotten_at: DateTime<Utc>,
}

impl Delays {
    /// How long the attempt after this many wrong ones has to wait.
    #[must_use]
    pub fn after(self, count: u32) -> TimeDelta {
        let Some(beyond) = count.checked_sub(self.free + 1) else { return TimeDelta::zero() };
        let factor = 1_u32.checked_shl(beyond).unwrap_or(u32::MAX);
        TimeDelta::seconds(self.first.saturating_mul(factor).min(self.longest).into())
    }

    /// The attempts with one more, counted as a wrong one until it is forgiven.
    ///
    /// # Errors
    /// It comes too soon, and is not counted; the moment from which on the next one may be made.
    pub fn count(
        self,
        before: Option<Attempts>,
        now: DateTime<Utc>,
    ) -> Result<Attempts, DateTime<Utc>> {
        let before = before.filter(|before| now < before.forgotten_at);
        if let Some(before) = before.filter(|before| now < before.next_at) {
            return Err(before.next_at);
        }
        let count = before.map_or(0, |before| before.count).saturating_add(1);
        let next_at = now + self.after(count);
        let forgotten_at = next_at + TimeDelta::seconds(self.forgotten_after.into());
        Ok(Attempts { count, next_at, forgotten_at })
    }
}

impl Attempts {
    /// Without the latest attempt, which was right.
    #[must_use]
    pub fn forgiven(self, now: DateTime<Utc>) -> Self {
        Self { count: self.count.saturating_sub(1), next_at: self.next_at.min(now), ..self }
    }

    /// Whether the next attempt has to wait, or will have to.
    #[must_use]
    pub const fn is_delayed(&self, delays: Delays) -> bool {
        self.count > delays.free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: TimeDelta = TimeDelta::days(1);

    fn start() -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000, 0).unwrap()
    }

    #[test]
    fn delays_grow_up_to_a_bound() {
        let delays = |count| DELAYS_PER_ACCOUNT_AND_NETWORK.after(count).num_seconds();
        let grown: Vec<_> = (4..14).map(delays).collect();
        assert_eq!(grown, [0, 0, 15, 30, 60, 120, 240, 480, 900, 900]);
        assert_eq!(delays(u32::MAX), 900);
    }

    /// Attempts that somebody gets who tries as soon as may be, and rests after each `round` of them
    /// until they are forgotten.
    fn in_a_day(delays: Delays, round: u32) -> u32 {
        let (mut now, mut made, mut attempts) = (start(), 0, None);
        while now < start() + DAY {
            match delays.count(attempts, now) {
                Ok(counted) => {
                    made += 1;
                    attempts = Some(counted);
                    if counted.count >= round {
                        now = counted.forgotten_at;
                    }
                }
                Err(next) => now = next,
            }
        }
        made
    }

    #[test]
    fn guesses_in_a_day_are_bounded_however_they_are_spread() {
        for (delays, most) in [
            (DELAYS_PER_ACCOUNT_AND_NETWORK, 125),
            (DELAYS_PER_ACCOUNT, 360),
            (DELAYS_PER_KNOWN_BROWSER, 125),
            (DELAYS_PER_NETWORK, 1800),
        ] {
            let rounds = (1..100).chain([u32::MAX]);
            let made = rounds.map(|round| in_a_day(delays, round)).max().unwrap();
            assert!(made <= most && made > most / 2, "{made} of {most}: {delays:?}");
        }
    }

    #[test]
    fn who_waits_is_let_in_and_who_was_right_is_not_counted() {
        let mut attempts = None;
        for _ in 0..6 {
            attempts = Some(DELAYS_PER_ACCOUNT_AND_NETWORK.count(attempts, start()).unwrap());
        }
        let next = start() + TimeDelta::seconds(15);
        assert_eq!(DELAYS_PER_ACCOUNT_AND_NETWORK.count(attempts, start()), Err(next));
        let right = DELAYS_PER_ACCOUNT_AND_NETWORK.count(attempts, next).unwrap().forgiven(next);
        assert_eq!((right.count, right.next_at), (6, next));
        let late = right.forgotten_at;
        assert_eq!(DELAYS_PER_ACCOUNT_AND_NETWORK.count(Some(right), late).unwrap().count, 1);
    }
}
