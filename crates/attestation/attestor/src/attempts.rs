//! Counts attestation attempts per challenge or session. The attestor counts them itself and states
//! the number in the attestation, so that a prover that retries until the result suits it shows how
//! often it tried.
//!
//! **Invariant:** an attempt count expires by time only. When the maximum number of challenges is
//! counted, a new challenge is refused: otherwise a client could evict its first challenge by
//! opening many others.

use std::collections::HashMap;

use sha2::{Digest as _, Sha256};

use crate::clients::AllowedClient;

/// Maximum number of counted challenges, over all clients and per client.
const MAX_CHALLENGES: usize = 262_144;
const MAX_CHALLENGES_PER_CLIENT: usize = 65_536;
/// Maximum number of counted sessions without a challenge. The sessions with the oldest last
/// attempt are evicted above it: a client that would gain by the eviction could as well use another
/// session.
const MAX_SESSIONS: usize = 65_536;
/// Time without another attempt after which a count expires: a day.
const ATTEMPT_TTL_MILLIS: u64 = 24 * 60 * 60 * 1000;
/// Minimum time between two searches for expired challenges.
const EVICTION_INTERVAL_MILLIS: u64 = 60 * 1000;

/// Attempt counts, in memory: a restart begins with none.
#[derive(Debug, Default)]
pub(crate) struct AttemptCounter {
    challenges: HashMap<[u8; 32], ChallengeAttempts>,
    /// Number of counted challenges per client that used them first.
    challenges_by_client: HashMap<AllowedClient, usize>,
    /// Number of attempts and time of the last one, in milliseconds since 1970.
    sessions: HashMap<[u8; 32], (u32, u64)>,
    /// Time of the last search for expired challenges, in milliseconds since 1970.
    last_eviction: u64,
}

#[derive(Debug)]
struct ChallengeAttempts {
    attempts: u32,
    last: u64,
    /// The client that used the challenge first.
    client: AllowedClient,
}

impl AttemptCounter {
    /// Returns the number of this attempt, counting from 1: for this challenge, independent of
    /// session and client, or without a challenge for this session. Returns `None` for a new
    /// challenge when the maximum number of challenges is counted.
    pub(crate) fn count(
        &mut self,
        client: AllowedClient,
        challenge: &[u8],
        session: &[u8; 32],
        now: u64,
    ) -> Option<u32> {
        if challenge.is_empty() {
            return Some(self.count_session(session, now));
        }
        let key: [u8; 32] = Sha256::digest(challenge).into();
        if let Some(known) = self.challenges.get_mut(&key) {
            if is_expired(known.last, now) {
                known.attempts = 0;
            }
            (known.attempts, known.last) = (known.attempts.saturating_add(1), now);
            return Some(known.attempts);
        }
        if self.is_full(client) {
            self.evict_expired(now);
            if self.is_full(client) {
                return None;
            }
        }
        self.challenges.insert(key, ChallengeAttempts { attempts: 1, last: now, client });
        *self.challenges_by_client.entry(client).or_default() += 1;
        Some(1)
    }

    fn is_full(&self, client: AllowedClient) -> bool {
        let own = self.challenges_by_client.get(&client).copied().unwrap_or_default();
        self.challenges.len() >= MAX_CHALLENGES || own >= MAX_CHALLENGES_PER_CLIENT
    }

    /// Removes challenges without an attempt for a day. Runs rarely, because it visits all of them.
    fn evict_expired(&mut self, now: u64) {
        if now.saturating_sub(self.last_eviction) < EVICTION_INTERVAL_MILLIS {
            return;
        }
        self.last_eviction = now;
        self.challenges.retain(|_, challenge| !is_expired(challenge.last, now));
        self.challenges_by_client.clear();
        for challenge in self.challenges.values() {
            *self.challenges_by_client.entry(challenge.client).or_default() += 1;
        }
    }

    fn count_session(&mut self, session: &[u8; 32], now: u64) -> u32 {
        if self.sessions.len() >= MAX_SESSIONS && !self.sessions.contains_key(session) {
            self.evict_oldest_sessions(now);
        }
        let (count, last) = self.sessions.entry(*session).or_default();
        if is_expired(*last, now) {
            *count = 0;
        }
        (*count, *last) = (count.saturating_add(1), now);
        *count
    }

    fn evict_oldest_sessions(&mut self, now: u64) {
        self.sessions.retain(|_, (_, last)| !is_expired(*last, now));
        if self.sessions.len() < MAX_SESSIONS {
            return;
        }
        // Evicts a sixteenth at once, so that this runs rarely.
        let mut times: Vec<_> = self.sessions.values().map(|(_, last)| *last).collect();
        let (_, limit, _) = times.select_nth_unstable(MAX_SESSIONS / 16);
        let limit = *limit;
        self.sessions.retain(|_, (_, last)| *last > limit);
    }
}

const fn is_expired(last: u64, now: u64) -> bool {
    now.saturating_sub(last) > ATTEMPT_TTL_MILLIS
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: AllowedClient = AllowedClient::Token([1; 32]);
    const OTHER: AllowedClient = AllowedClient::Token([2; 32]);

    #[test]
    fn attempts_are_counted_by_challenge_or_by_session() {
        let mut attempts = AttemptCounter::default();
        let sessions = [[1; 32], [2; 32]];
        let mut count = |challenge: &[u8], session: usize, now| {
            attempts.count(ONE, challenge, &sessions[session], now).unwrap()
        };
        assert_eq!((count(b"c", 0, 10), count(b"c", 1, 11)), (1, 2), "sessions share a challenge");
        assert_eq!((count(b"d", 0, 12), count(b"", 0, 13), count(b"", 0, 14)), (1, 1, 2));
        assert_eq!(count(&[1; 32], 1, 15), 1, "a challenge is not a session identifier");
        assert_eq!(count(b"c", 0, 11 + ATTEMPT_TTL_MILLIS), 3);
        assert_eq!(count(b"c", 0, 12 + 2 * ATTEMPT_TTL_MILLIS), 1);
    }

    /// F10: a client cannot evict its attempts at a challenge by opening others.
    #[test]
    fn other_challenges_do_not_evict_a_challenge() {
        let mut attempts = AttemptCounter::default();
        let session = [0; 32];
        assert_eq!(attempts.count(ONE, b"first", &session, 1), Some(1));
        let mut taken = 1;
        for number in 0..2 * MAX_CHALLENGES_PER_CLIENT {
            let now = 2 + u64::try_from(number).unwrap();
            let challenge = number.to_be_bytes();
            taken += usize::from(attempts.count(ONE, &challenge, &session, now).is_some());
        }
        assert_eq!(taken, MAX_CHALLENGES_PER_CLIENT, "the others were refused");
        let now = 500_000;
        assert_eq!(attempts.count(ONE, b"first", &session, now), Some(2));
        assert_eq!(attempts.count(ONE, b"new", &session, now), None);
        assert_eq!(
            attempts.count(ONE, b"", &session, now),
            Some(1),
            "a session without a challenge"
        );
        assert_eq!(attempts.count(OTHER, b"new", &session, now), Some(1), "another client");
        assert_eq!(attempts.count(OTHER, b"first", &session, now), Some(3));
        let tomorrow = now + ATTEMPT_TTL_MILLIS + 1;
        assert_eq!(attempts.count(ONE, b"newer", &session, tomorrow), Some(1));
        assert_eq!(
            attempts.challenges.len(),
            1,
            "challenges without an attempt for a day are removed"
        );
    }

    #[test]
    fn counted_challenges_are_bounded() {
        let mut attempts = AttemptCounter::default();
        for client in 0..6 {
            for number in 0..MAX_CHALLENGES_PER_CLIENT {
                let challenge = [[client].as_slice(), &number.to_be_bytes()].concat();
                let counted =
                    attempts.count(AllowedClient::Token([client; 32]), &challenge, &[0; 32], 7);
                assert_eq!(counted.is_some(), client < 4);
            }
        }
        assert_eq!(attempts.challenges.len(), MAX_CHALLENGES);
    }

    #[test]
    fn sessions_are_bounded_and_the_newest_stay() {
        let mut attempts = AttemptCounter::default();
        let session = |number: u64| {
            let mut name = [0; 32];
            name[..8].copy_from_slice(&number.to_be_bytes());
            name
        };
        let many = u64::try_from(MAX_SESSIONS).unwrap_or_default() + 10;
        for now in 0..many {
            assert_eq!(attempts.count(ONE, b"", &session(now), now), Some(1));
            assert!(attempts.sessions.len() <= MAX_SESSIONS);
        }
        assert_eq!(attempts.count(ONE, b"", &session(many - 1), many), Some(2));
    }
}
