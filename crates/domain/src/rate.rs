//! Rate limits: a number of requests in a window of fixed length.

use std::{
    net::{IpAddr, Ipv6Addr},
    str::FromStr,
};

use chrono::{DateTime, TimeDelta, Utc};

/// A limit of `count` requests in a window of `seconds`, which begins with the first request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    pub count: u32,
    pub seconds: u32,
}

impl RateLimit {
    /// The limit of requests of a key, unless the operator sets another.
    pub const STANDARD: Self = Self { count: 120, seconds: 60 };

    #[must_use]
    pub fn span(self) -> TimeDelta {
        TimeDelta::seconds(self.seconds.into())
    }
}

/// Parses `COUNT/SECONDS`: 1 to 1,000,000 requests in 1 to 86,400 seconds.
impl FromStr for RateLimit {
    type Err = InvalidLimit;

    fn from_str(text: &str) -> Result<Self, InvalidLimit> {
        let (count, seconds) = text.split_once('/').ok_or(InvalidLimit)?;
        let read = |text: &str| text.trim().parse::<u32>().map_err(|_| InvalidLimit);
        let (count, seconds) = (read(count)?, read(seconds)?);
        let in_range = (1..=1_000_000).contains(&count) && (1..=86_400).contains(&seconds);
        if in_range { Ok(Self { count, seconds }) } else { Err(InvalidLimit) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be COUNT/SECONDS such as 120/60, or `off`")]
pub struct InvalidLimit;

/// The window of a subject, including the current request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateWindow {
    pub limit: RateLimit,
    /// The number of requests so far, refused ones included.
    pub used: u32,
    pub resets_at: DateTime<Utc>,
}

impl RateWindow {
    /// Returns whether the latest counted request is within the limit.
    #[must_use]
    pub const fn admits(&self) -> bool {
        self.used <= self.limit.count
    }

    #[must_use]
    pub const fn remaining(&self) -> u32 {
        self.limit.count.saturating_sub(self.used)
    }

    /// Returns the seconds until a new window begins, rounded up, at least 1.
    #[must_use]
    pub fn retry_after(&self, now: DateTime<Utc>) -> i64 {
        let remaining = (self.resets_at - now).num_milliseconds().max(0);
        remaining.saturating_add(999).checked_div(1000).unwrap_or(1).max(1)
    }

    /// Returns the start of the new window in Unix seconds, rounded up so that no client retries
    /// too early.
    #[must_use]
    pub fn reset(&self) -> i64 {
        let millis = self.resets_at.timestamp_millis();
        millis.saturating_add(999).div_euclid(1000)
    }
}

/// Returns the network of an address that rate limits count by: for IPv6 the /64 prefix, since a
/// customer is assigned at least that much (RFC 6177).
#[must_use]
pub fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(ip) => match ip.to_ipv4_mapped() {
            Some(v4) => IpAddr::V4(v4),
            None => IpAddr::V6(Ipv6Addr::from(u128::from(ip) >> 64 << 64)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_parsed_within_their_bounds() {
        assert_eq!("120/60".parse(), Ok(RateLimit { count: 120, seconds: 60 }));
        for bad in ["", "120", "0/60", "1/0", "1/86401", "1000001/1", "-1/60", "a/b"] {
            assert_eq!(bad.parse::<RateLimit>(), Err(InvalidLimit), "{bad}");
        }
    }

    #[test]
    fn the_last_request_of_a_window_is_within_it() {
        let limit = RateLimit { count: 2, seconds: 60 };
        let start = DateTime::from_timestamp_millis(1_700_000_000_001).unwrap();
        let window = |used| RateWindow { limit, used, resets_at: start + limit.span() };
        assert!(window(2).admits() && !window(3).admits());
        assert_eq!((window(1).remaining(), window(3).remaining()), (1, 0));
        assert_eq!(window(1).reset(), 1_700_000_061);
        assert_eq!(window(1).retry_after(start), 60);
        assert_eq!(window(1).retry_after(start + limit.span()), 1);
    }
}
