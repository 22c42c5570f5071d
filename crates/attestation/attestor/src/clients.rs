//! Clients that an attestor serves, and how many conversations each may have at once, so that no
//! client can use all of the capacity.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Mutex, MutexGuard, PoisonError},
};

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// The clients that an attestor serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedClients {
    /// Clients that hold one of these tokens, given by their SHA-256.
    Tokens(Vec<[u8; 32]>),
    /// All clients: an explicit decision of the operator, never a default.
    Everyone,
}

/// A client, as limits distinguish them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum AllowedClient {
    /// By the SHA-256 of its token.
    Token([u8; 32]),
    Address(IpAddr),
}

impl AllowedClient {
    /// Returns the client of an address. For IPv6 only the upper 64 bits count, which is what a
    /// network usually assigns to one customer.
    pub(crate) fn from_address(address: IpAddr) -> Self {
        Self::Address(match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(ip) => match ip.to_ipv4_mapped() {
                Some(ip) => ip.into(),
                None => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
            },
        })
    }
}

impl AllowedClients {
    /// Returns the client that presents this token from this address, or `None` if it is not
    /// served.
    pub(crate) fn authenticate(&self, token: &str, address: IpAddr) -> Option<AllowedClient> {
        match self {
            Self::Everyone => Some(AllowedClient::from_address(address)),
            Self::Tokens(tokens) => {
                let shown: [u8; 32] = Sha256::digest(token.as_bytes()).into();
                let mut tokens = tokens.iter();
                let known = tokens.find(|known| bool::from(known.ct_eq(&shown)));
                known.map(|token| AllowedClient::Token(*token))
            }
        }
    }
}

/// Counts the permits that each client holds. Has no more entries than there are permits.
#[derive(Debug, Default)]
pub(crate) struct ConcurrencyLimiter(Mutex<HashMap<AllowedClient, usize>>);

/// A permit of a client, released when it is dropped.
#[derive(Debug)]
pub(crate) struct Permit<'a>(&'a ConcurrencyLimiter, AllowedClient);

impl Permit<'_> {
    /// Returns the client that holds the permit.
    pub(crate) const fn client(&self) -> AllowedClient {
        self.1
    }
}

impl ConcurrencyLimiter {
    /// Takes a permit if the client holds fewer than `limit`.
    pub(crate) fn try_acquire(&self, client: AllowedClient, most: usize) -> Option<Permit<'_>> {
        let mut counts = self.counts();
        let count = counts.get(&client).copied().unwrap_or_default();
        if count >= most {
            return None;
        }
        counts.insert(client, count + 1);
        Some(Permit(self, client))
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<AllowedClient, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut counts = self.0.counts();
        if let Some(count) = counts.get_mut(&self.1) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                counts.remove(&self.1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_are_limited_per_client_and_released_on_drop() {
        let tally = ConcurrencyLimiter::default();
        let [one, other] = [AllowedClient::Token([1; 32]), AllowedClient::Token([2; 32])];
        let first = tally.try_acquire(one, 2).unwrap();
        let second = tally.try_acquire(one, 2).unwrap();
        assert!(tally.try_acquire(one, 2).is_none());
        let third = tally.try_acquire(other, 2).unwrap();
        drop(first);
        let again = tally.try_acquire(one, 2).unwrap();
        drop((second, third, again));
        assert!(tally.counts().is_empty(), "released permits leave no entry behind");
    }

    #[test]
    fn clients_are_distinguished_by_token_or_network() {
        let token: [u8; 32] = Sha256::digest(b"known").into();
        let known = AllowedClients::Tokens(vec![[0; 32], token]);
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let here = address("192.0.2.1");
        assert_eq!(known.authenticate("known", here), Some(AllowedClient::Token(token)));
        assert_eq!(known.authenticate("other", here), None);
        assert_eq!(AllowedClients::Tokens(vec![]).authenticate("", here), None);
        let everyone =
            |text: &str| AllowedClients::Everyone.authenticate("any", address(text)).unwrap();
        assert_eq!(everyone("2001:db8::1"), everyone("2001:db8::2:0:0:0"));
        assert_ne!(everyone("2001:db8::1"), everyone("2001:db8:0:1::1"));
        assert_eq!(everyone("::ffff:192.0.2.1"), everyone("192.0.2.1"));
    }
}
