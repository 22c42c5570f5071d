//! The throttling of guesses at passwords and codes: each wrong attempt after the first few delays
//! the next one longer, up to a bound. No account is locked permanently.

use chrono::{DateTime, TimeDelta, Utc};

/// The delays between attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delays {
    /// The number of wrong attempts without a delay.
    pub free: u32,
    /// The delay in seconds after the first attempt beyond them; doubled after each further one.
    pub first: u32,
    /// The maximum delay, in seconds.
    pub longest: u32,
    /// The time in seconds without an attempt after which earlier attempts no longer count.
    pub forgotten_after: u32,
}

/// The delays for one account from one network: at most 125 attempts a day.
pub const DELAYS_PER_ACCOUNT_AND_NETWORK: Delays =
    Delays { free: 5, first: 15, longest: 900, forgotten_after: 7200 };
/// The delays for one account from all unknown browsers: at most 360 attempts a day, from any
/// number of networks.
pub const DELAYS_PER_ACCOUNT: Delays =
    Delays { free: 20, first: 1, longest: 300, forgotten_after: 7200 };
/// The delays for one account from one known browser, or in one sign-in: at most 125 attempts a
/// day.
pub const DELAYS_PER_KNOWN_BROWSER: Delays = DELAYS_PER_ACCOUNT_AND_NETWORK;
/// The delays for all accounts from one network: at most 1,800 attempts a day.
pub const DELAYS_PER_NETWORK: Delays =
    Delays { free: 50, first: 1, longest: 60, forgotten_after: 7200 };

/// The counted attempts, with the times that follow from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempts {
    pub count: u32,
    /// The time before which the next attempt is refused.
    pub next_at: DateTime<Utc>,
    pub forgotten_at: DateTime<Utc>,
}

impl Delays {
    /// Returns the delay of the attempt that follows this many wrong ones.
    #[must_use]
    pub fn after(self, count: u32) -> TimeDelta {
        let Some(beyond) = count.checked_sub(self.free + 1) else { return TimeDelta::zero() };
        let factor = 1_u32.checked_shl(beyond).unwrap_or(u32::MAX);
        TimeDelta::seconds(self.first.saturating_mul(factor).min(self.longest).into())
    }

    /// Counts one more attempt, as a wrong one until [`Attempts::forgiven`] takes it back.
    ///
    /// # Errors
    /// The attempt comes too early and is not counted; the error is the time from which the next
    /// one is allowed.
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
    /// Takes back the latest attempt, which was right.
    #[must_use]
    pub fn forgiven(self, now: DateTime<Utc>) -> Self {
        Self { count: self.count.saturating_sub(1), next_at: self.next_at.min(now), ..self }
    }

    /// Returns whether the next attempt is delayed, now or after a further wrong one.
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

    /// Returns the number of attempts in a day of an attacker who tries as early as possible, and
    /// pauses after each `round` of attempts until they no longer count.
    fn attempts_in_a_day(delays: Delays, round: u32) -> u32 {
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
        for (delays, max) in [
            (DELAYS_PER_ACCOUNT_AND_NETWORK, 125),
            (DELAYS_PER_ACCOUNT, 360),
            (DELAYS_PER_KNOWN_BROWSER, 125),
            (DELAYS_PER_NETWORK, 1800),
        ] {
            let rounds = (1..100).chain([u32::MAX]);
            let made = rounds.map(|round| attempts_in_a_day(delays, round)).max().unwrap();
            assert!(made <= max && made > max / 2, "{made} of {max}: {delays:?}");
        }
    }

    #[test]
    fn an_attempt_after_the_delay_is_allowed_and_a_right_one_is_not_counted() {
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
