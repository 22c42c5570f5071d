//! Which instance has a studio, and requests that are forwarded there.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering};

use async_trait::async_trait;
use domain::id::{InstanceId, UserId};
use ports::{
    driving::{
        ForwardError, ForwardPermit, ForwardSender, OtherInstance, StudioOwner, StudioRouter,
    },
    instances::{ForwardedRequest, ForwardedResponse, LinkError},
};
use tokio::time::Instant;

use super::{InstanceDirectory, InstanceRouter};
use crate::digest::sha256;

/// The maximum number of requests that an instance forwards at once. With their responses, which count until
/// their senders have taken them, they have at most 2.2 GiB.
pub const MAX_FORWARDED_AT_ONCE: usize = 64;
/// The maximum number of them of one author, so that no single one shuts out all others; also of all pages in
/// frames together. The page of a studio asks for some 14 files at once when it is opened, and waits for changes by
/// another request, which stays for up to 20 s after the page was left.
pub const MAX_FORWARDED_OF_AUTHOR: usize = 32;

/// The places for the requests that an instance forwards at once.
#[derive(Default)]
pub struct ForwardPlaces(Arc<TakenPlaces>);

impl ForwardPlaces {
    /// Takes a place; `None` if there is none for this sender.
    fn take(&self, sender: ForwardSender) -> Option<ForwardPlace> {
        let mut senders = self.0.senders();
        let of_sender = senders.iter().filter(|other| **other == sender).count();
        if senders.len() >= MAX_FORWARDED_AT_ONCE || of_sender >= MAX_FORWARDED_OF_AUTHOR {
            return None;
        }
        senders.push(sender);
        Some(ForwardPlace { taken: self.0.clone(), sender })
    }
}

/// Who has the places that are taken: each sender once for each of their places.
#[derive(Default)]
struct TakenPlaces(Mutex<Vec<ForwardSender>>);

impl TakenPlaces {
    fn senders(&self) -> MutexGuard<'_, Vec<ForwardSender>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place that is taken until it is dropped.
struct ForwardPlace {
    taken: Arc<TakenPlaces>,
    sender: ForwardSender,
}

impl Drop for ForwardPlace {
    fn drop(&mut self) {
        let mut senders = self.taken.senders();
        if let Some(at) = senders.iter().position(|sender| *sender == self.sender) {
            senders.swap_remove(at);
        }
    }
}

/// Returns which of these instances has the studios of an author: the one whose identifier, hashed together
/// with that of the author, has the greatest value (rendezvous hashing). An instance that joins takes over
/// the authors for whom it is the greatest, and the authors of one that leaves are distributed among the
/// others; all other authors stay where they are.
fn studio_instance(
    author: UserId,
    instances: impl Iterator<Item = InstanceId>,
) -> Option<InstanceId> {
    let weight = |instance: &InstanceId| {
        let author = author.as_uuid().as_bytes();
        sha256(&[author.as_slice(), instance.as_uuid().as_bytes().as_slice()].concat())
    };
    instances.max_by_key(weight)
}

impl InstanceDirectory {
    /// Returns the instance with this identifier, unless it is this one.
    fn instance(&self, id: InstanceId) -> Result<Option<OtherInstance>, ForwardError> {
        if id == self.own.id {
            return Ok(None);
        }
        let is_informed = self.is_informed.load(Ordering::Acquire);
        let now = Instant::now();
        let known = self.known();
        match known.get(&id) {
            Some(known) if known.is_running(now) => {
                Ok(Some(OtherInstance { id, address: known.last.instance.address.clone() }))
            }
            // It was killed, or the database does not answer: its entry is there for a while.
            Some(_) => Err(ForwardError::Unreachable),
            None if is_informed => Err(ForwardError::Ended),
            None => Err(ForwardError::Unreachable),
        }
    }

    /// Returns the instance that has the studios of an author, unless it is this one. Only instances that
    /// begin sessions have studios, and this one does once it has reported: before, the others would say that
    /// a studio of it has ended. While there are none, this one has them.
    fn instance_of_author(&self, author: UserId) -> Option<OtherInstance> {
        let (own, others) = (self.own(), Self::running(&self.known()));
        let has_reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        let all = Some(&own).filter(|_| has_reported).into_iter().chain(&others);
        let begin = all.filter(|instance| instance.begins_sessions());
        let chosen = studio_instance(author, begin.map(|instance| instance.id))?;
        let chosen = others.into_iter().find(|other| other.id == chosen)?;
        Some(OtherInstance { id: chosen.id, address: chosen.address })
    }
}

#[async_trait]
impl StudioRouter for InstanceRouter {
    fn locate(&self, owner: StudioOwner) -> Result<Option<OtherInstance>, ForwardError> {
        match owner {
            StudioOwner::Instance(id) => self.directory.instance(id),
            StudioOwner::Author(author) => Ok(self.directory.instance_of_author(author)),
        }
    }

    fn permit(&self, sender: ForwardSender) -> Result<ForwardPermit, ForwardError> {
        self.places.take(sender).map(ForwardPermit::new).ok_or(ForwardError::Busy)
    }

    async fn forward(
        &self,
        _: &ForwardPermit,
        to: &OtherInstance,
        request: ForwardedRequest,
    ) -> Result<ForwardedResponse, ForwardError> {
        let error = match self.links.request(&to.address, request).await {
            Ok(response) => {
                self.directory.reachable(to.id);
                return Ok(response);
            }
            Err(error) => error,
        };
        tracing::warn!(instance.id = %to.id, %error, "failed to forward a request to another instance");
        Err(match error {
            LinkError::Unreachable(_) => {
                self.directory.unreachable(to.id);
                ForwardError::Unreachable
            }
            LinkError::Refused(_) => ForwardError::Unreachable,
            // The request of one author may be what is slow, large or wrong, or what ends the connection. An
            // instance that has stopped is noticed by those that connect to it.
            LinkError::TimedOut | LinkError::Broken(_) => ForwardError::TimedOut,
            LinkError::Invalid(_) => ForwardError::Unreadable,
            LinkError::RequestTooLarge => ForwardError::TooLarge,
            LinkError::ResponseTooLarge => ForwardError::ResponseTooLarge,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    const AUTHORS: u128 = 1_000;

    /// Returns the instance of each author.
    fn chosen(instances: &[u128]) -> HashMap<u128, u128> {
        let instances = || instances.iter().map(|id| InstanceId::from_u128(*id));
        let of = |author: u128| {
            studio_instance(UserId::from_u128(author), instances()).unwrap().as_uuid().as_u128()
        };
        (0..AUTHORS).map(|author| (author, of(author))).collect()
    }

    const fn author(number: u128) -> ForwardSender {
        ForwardSender::Author(UserId::from_u128(number))
    }

    #[test]
    fn no_sender_takes_the_places_of_the_others() {
        let places = ForwardPlaces::default();
        for sender in [author(1), ForwardSender::Frames] {
            let mut taken = vec![];
            while let Some(place) = places.take(sender) {
                taken.push(place);
            }
            assert_eq!(taken.len(), MAX_FORWARDED_OF_AUTHOR);
            assert!(places.take(author(2)).is_some(), "another author has places");
            drop(taken.pop());
            assert!(places.take(sender).is_some(), "one was given back");
        }
    }

    #[test]
    fn a_place_that_is_given_back_is_that_of_its_sender() {
        let places = ForwardPlaces::default();
        let senders = [author(1), author(2), author(1)];
        let [first, second, third] = senders.map(|sender| places.take(sender).unwrap());
        drop(second);
        assert_eq!(*places.0.senders(), [author(1), author(1)]);
        drop((first, third));
        assert!(places.0.senders().is_empty(), "nothing is left of them");
    }

    #[test]
    fn the_studios_of_an_author_are_at_one_instance_whoever_is_asked() {
        assert_eq!(studio_instance(UserId::from_u128(1), std::iter::empty()), None);
        let all = chosen(&[1, 2, 3]);
        assert_eq!(all, chosen(&[3, 1, 2]), "in any order");
        for instance in 1..=3 {
            let authors = all.values().filter(|chosen| **chosen == instance).count();
            assert!((250..420).contains(&authors), "{instance} has {authors} of {AUTHORS}");
        }
    }

    #[test]
    fn an_instance_that_joins_or_leaves_moves_its_own_authors_only() {
        let (few, many) = (chosen(&[1, 2, 3]), chosen(&[1, 2, 3, 4]));
        let mut moved = 0;
        for (author, before) in few {
            let after = many[&author];
            moved += usize::from(after != before);
            assert!(after == before || after == 4, "{author} moves from {before} to {after}");
        }
        assert!((170..330).contains(&moved), "{moved} of {AUTHORS} moved");
    }
}
