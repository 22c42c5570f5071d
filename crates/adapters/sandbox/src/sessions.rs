//! What a site keeps for a time by an identifier that cannot be guessed: sessions by their cookies,
//! and one-time codes.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
};

use actix_web::HttpRequest;
use uuid::Uuid;

/// The maximum number of sessions of a site; beyond it the oldest is deleted.
const MAX_SESSIONS: usize = 10_000;

/// The sessions of a site.
pub(crate) struct Sessions<V> {
    kept: Mutex<Kept<V>>,
}

struct Kept<V> {
    /// Each with its number.
    by_id: HashMap<Uuid, (u64, V)>,
    /// The identifiers by number: the oldest first.
    by_age: BTreeMap<u64, Uuid>,
    created: u64,
}

impl<V> Default for Sessions<V> {
    fn default() -> Self {
        let kept = Kept { by_id: HashMap::new(), by_age: BTreeMap::new(), created: 0 };
        Self { kept: Mutex::new(kept) }
    }
}

impl<V: Clone> Sessions<V> {
    fn kept(&self) -> MutexGuard<'_, Kept<V>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a session, and returns its identifier.
    pub(crate) fn create(&self, value: V) -> Uuid {
        let id = Uuid::new_v4();
        let mut kept = self.kept();
        if kept.by_id.len() >= MAX_SESSIONS
            && let Some((_, oldest)) = kept.by_age.pop_first()
        {
            kept.by_id.remove(&oldest);
        }
        kept.created += 1;
        let number = kept.created;
        kept.by_age.insert(number, id);
        kept.by_id.insert(id, (number, value));
        id
    }

    /// Returns the session that a cookie of the request names, with its identifier.
    pub(crate) fn of_cookie(&self, request: &HttpRequest, cookie: &str) -> Option<(Uuid, V)> {
        let id = request.cookie(cookie)?.value().parse::<Uuid>().ok()?;
        self.kept().by_id.get(&id).map(|(_, value)| (id, value.clone()))
    }

    /// Changes a session, if it still exists.
    pub(crate) fn update(&self, id: Uuid, value: V) {
        if let Some((_, kept)) = self.kept().by_id.get_mut(&id) {
            *kept = value;
        }
    }

    /// Removes a session, and returns it.
    pub(crate) fn take(&self, id: Uuid) -> Option<V> {
        let mut kept = self.kept();
        let (number, value) = kept.by_id.remove(&id)?;
        kept.by_age.remove(&number);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_session_is_deleted_first() {
        let sessions = Sessions::default();
        let ids: Vec<_> = (0..MAX_SESSIONS).map(|number| sessions.create(number)).collect();
        assert_eq!(sessions.take(ids[1]), Some(1));
        assert_eq!(sessions.take(ids[1]), None);
        for number in [MAX_SESSIONS, MAX_SESSIONS + 1] {
            sessions.create(number);
        }
        assert_eq!(sessions.take(ids[0]), None);
        assert_eq!(sessions.take(ids[2]), Some(2));
        let kept = sessions.kept();
        assert_eq!((kept.by_id.len(), kept.by_age.len()), (MAX_SESSIONS - 1, MAX_SESSIONS - 1));
    }
}
