//! How often it was tried to have something attested, as the attestor counted it itself: who may
//! try until the answer pleases has to show how often that was.

use std::collections::HashMap;

use sha2::{Digest as _, Sha256};

/// What is counted at most; then the ones that were tried longest ago are forgotten.
const MOST: usize = 65_536;
/// After how many milliseconds without another attempt one is forgotten: a day.
const FORGOTTEN: u64 = 24 * 60 * 60 * 1000;

/// Numbers of attempts, in memory: a restart begins anew.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    /// The number of attempts, and the time of the last in milliseconds since 1970.
    counts: HashMap<[u8; 32], (u32, u64)>,
}

impl Attempts {
    /// The number of this attempt, from 1: at this challenge, whatever the session, or where there
    /// is none at this session's name.
    pub(crate) fn count(&mut self, challenge: &[u8], session: &[u8; 32], now: u64) -> u32 {
        let (kind, subject) =
            if challenge.is_empty() { (0, session.as_slice()) } else { (1, challenge) };
        let key: [u8; 32] = Sha256::digest([&[kind], subject].concat()).into();
        if self.counts.len() >= MOST && !self.counts.contains_key(&key) {
            self.make_room(now);
        }
        let (count, last) = self.counts.entry(key).or_default();
        if now.saturating_sub(*last) > FORGOTTEN {
            *count = 0;
        }
        (*count, *last) = (count.saturating_add(1), now);
        *count
    }

    fn make_room(&mut self, now: u64) {
        self.counts.retain(|_, (_, last)| now.saturating_sub(*last) <= FORGOTTEN);
        if self.counts.len() < MOST {
            return;
        }
        // A sixteenth at once, so that this is done rarely.
        let mut times: Vec<_> = self.counts.values().map(|(_, last)| *last).collect();
        let (_, limit, _) = times.select_nth_unstable(MOST / 16);
        let limit = *limit;
        self.counts.retain(|_, (_, last)| *last > limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_counted_by_challenge_or_by_session() {
        let mut attempts = Attempts::default();
        let sessions = [[1; 32], [2; 32]];
        let mut count = |challenge: &[u8], session: usize, now| {
            attempts.count(challenge, &sessions[session], now)
        };
        assert_eq!((count(b"c", 0, 10), count(b"c", 1, 11)), (1, 2), "sessions share a challenge");
        assert_eq!((count(b"d", 0, 12), count(b"", 0, 13), count(b"", 0, 14)), (1, 1, 2));
        assert_eq!(count(&[1; 32], 1, 15), 1, "a challenge is no session's name");
        assert_eq!(count(b"c", 0, 11 + FORGOTTEN), 3);
        assert_eq!(count(b"c", 0, 12 + 2 * FORGOTTEN), 1);
    }

    #[test]
    fn what_is_counted_is_bounded_and_the_newest_stay() {
        let mut attempts = Attempts::default();
        let many = u64::try_from(MOST).unwrap_or_default() + 10;
        for now in 0..many {
            assert_eq!(attempts.count(&now.to_be_bytes(), &[0; 32], now), 1);
            assert!(attempts.counts.len() <= MOST);
        }
        assert_eq!(attempts.count(&(many - 1).to_be_bytes(), &[0; 32], many), 2);
    }
}
