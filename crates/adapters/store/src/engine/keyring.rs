//! Finds the key that encrypts a team's columns and those that decrypt them. Unwrapped keys are
//! cached in memory for a while.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use ::diesel::prelude::*;
use diesel_async::RunQueryDsl;
use ports::StoreError;
use zeroize::Zeroizing;

use crate::engine::column::Id;
use crate::engine::data_key::{Column, DataKey, DecryptError, Encrypted, fresh, wrapping};
use crate::engine::database::{Store, failed, with_conn};
use crate::engine::schema::{api_keys, data_keys, webhooks};

/// The maximum number of entries of each map. A full map is emptied; entries are loaded again by a
/// query.
const MAX_CACHED_KEYS: usize = 4096;
/// How long the current key of a team is cached: another process may have given the team a new one.
const WRITE_KEY_TTL: Duration = Duration::from_secs(60);
/// The maximum number of a team's keys that a search by blind index tries.
const MAX_KEYS_OF_TEAM: i64 = 16;

/// Whether values are encrypted, and whether plaintext is accepted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Encryption {
    /// Writes plaintext and reads both, as long as processes of a release that cannot decrypt are
    /// running too.
    Prepare,
    /// Writes ciphertext and reads both.
    #[default]
    On,
    /// Writes ciphertext, and refuses plaintext in encrypted columns.
    Required,
}

#[derive(Default)]
pub(crate) struct Keyring {
    pub(crate) mode: Encryption,
    cached: Mutex<CachedKey>,
}

#[derive(Default)]
struct CachedKey {
    keys: HashMap<i64, Arc<DataKey>>,
    current: HashMap<Id, (Arc<DataKey>, Instant)>,
    /// The teams of API keys and webhooks; they do not change.
    teams: HashMap<Id, Id>,
}

fn put<K: Eq + Hash, V>(map: &mut HashMap<K, V>, key: K, value: V) {
    if map.len() >= MAX_CACHED_KEYS {
        map.clear();
    }
    map.insert(key, value);
}

impl Keyring {
    pub(crate) fn new(mode: Encryption) -> Self {
        Self { mode, cached: Mutex::default() }
    }

    fn cached(&self) -> MutexGuard<'_, CachedKey> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn current(&self, team: Id) -> Option<Arc<DataKey>> {
        let cached = self.cached();
        let (key, since) = cached.current.get(&team)?;
        (since.elapsed() < WRITE_KEY_TTL).then(|| key.clone())
    }

    /// Clears the cache of current keys, so that a new key is used from the next write on.
    pub(crate) fn forget_current(&self) {
        self.cached().current.clear();
    }
}

/// Encrypts the values of one team, or leaves them as they are with [`Encryption::Prepare`].
#[derive(Clone)]
pub(crate) struct WriteKey(Option<Arc<DataKey>>);

impl WriteKey {
    pub(crate) fn encrypt(
        &self,
        column: Column,
        row: Id,
        plain: &str,
    ) -> Result<String, StoreError> {
        match &self.0 {
            Some(key) => key.encrypt(column, row, plain).map_err(failed("encrypt a value")),
            None => Ok(plain.to_owned()),
        }
    }

    pub(crate) fn encrypt_some(
        &self,
        column: Column,
        row: Id,
        plain: Option<&str>,
    ) -> Result<Option<String>, StoreError> {
        plain.map(|plain| self.encrypt(column, row, plain)).transpose()
    }

    /// Returns whether a value has the form that this writes: encrypted with its key, or plaintext
    /// if it has none.
    pub(crate) fn is_current(&self, value: &str) -> bool {
        let key = self.0.as_ref().map(|key| key.number);
        Encrypted::of(value).map(|value| value.key) == key
    }

    /// Returns the blind index of a value.
    pub(crate) fn index(&self, column: &str, plain: &str) -> String {
        self.0.as_ref().map_or_else(|| plain.to_owned(), |key| key.index(column, plain))
    }
}

type WrappedKey = (i64, Id, Vec<u8>);

impl Store {
    /// Returns the team of an API key.
    pub(crate) async fn team_of_key(&self, key: Id) -> Result<Id, StoreError> {
        if let Some(team) = self.keyring.cached().teams.get(&key) {
            return Ok(*team);
        }
        let team: QueryResult<Id> = with_conn!(self, |conn| {
            api_keys::table.find(key).select(api_keys::team).first(conn).await
        });
        let team = team.map_err(failed("find a key's team"))?;
        put(&mut self.keyring.cached().teams, key, team);
        Ok(team)
    }

    /// Returns the team of a webhook.
    pub(crate) async fn team_of_webhook(&self, webhook: Id) -> Result<Id, StoreError> {
        if let Some(team) = self.keyring.cached().teams.get(&webhook) {
            return Ok(*team);
        }
        let team: QueryResult<Id> = with_conn!(self, |conn| {
            webhooks::table.find(webhook).select(webhooks::team).first(conn).await
        });
        let team = team.map_err(failed("find a webhook's team"))?;
        put(&mut self.keyring.cached().teams, webhook, team);
        Ok(team)
    }

    /// Returns the current encryption of a team. Creates the team's first key if it has none.
    pub(crate) async fn writer(&self, team: Id) -> Result<WriteKey, StoreError> {
        if self.keyring.mode == Encryption::Prepare {
            return Ok(WriteKey(None));
        }
        if let Some(key) = self.keyring.current(team) {
            return Ok(WriteKey(Some(key)));
        }
        let newest: QueryResult<Option<WrappedKey>> = with_conn!(self, |conn| {
            data_keys::table
                .filter(data_keys::team.eq(team))
                .order(data_keys::number.desc())
                .select((data_keys::number, data_keys::team, data_keys::wrapped))
                .first(conn)
                .await
                .optional()
        });
        let key = match newest.map_err(failed("find a team's data key"))? {
            Some(wrapped) => self.unwrapped(wrapped)?,
            None => self.add_data_key(team).await?,
        };
        put(&mut self.keyring.cached().current, team, (key.clone(), Instant::now()));
        Ok(WriteKey(Some(key)))
    }

    /// Gives a team a new key, which encrypts all later writes. If two processes do so
    /// concurrently, there are two keys: both decrypt, and the later one encrypts.
    pub(crate) async fn add_data_key(&self, team: Id) -> Result<Arc<DataKey>, StoreError> {
        let secret = fresh().map_err(failed("make a data key"))?;
        let wrapped = self.cipher.encrypt(&wrapping(team.0), secret.as_slice());
        let wrapped = wrapped.map_err(failed("wrap a data key"))?;
        let row = (data_keys::team.eq(team), data_keys::wrapped.eq(wrapped));
        let number: QueryResult<i64> = with_conn!(self, |conn| {
            ::diesel::insert_into(data_keys::table)
                .values(row)
                .returning(data_keys::number)
                .get_result(conn)
                .await
        });
        let number = number.map_err(failed("keep a data key"))?;
        let key = Arc::new(DataKey::new(number, team, secret));
        put(&mut self.keyring.cached().keys, key.number, key.clone());
        Ok(key)
    }

    fn unwrapped(&self, (number, team, wrapped): WrappedKey) -> Result<Arc<DataKey>, StoreError> {
        if let Some(key) = self.keyring.cached().keys.get(&number) {
            return Ok(key.clone());
        }
        let plain = self.cipher.decrypt(&wrapping(team.0), &wrapped);
        let plain = Zeroizing::new(plain.map_err(failed("unwrap a data key"))?);
        let secret = <[u8; 32]>::try_from(plain.as_slice()).map_err(failed("read a data key"))?;
        let key = Arc::new(DataKey::new(number, team, Zeroizing::new(secret)));
        put(&mut self.keyring.cached().keys, number, key.clone());
        Ok(key)
    }

    async fn data_key(&self, number: i64) -> Result<Arc<DataKey>, StoreError> {
        if let Some(key) = self.keyring.cached().keys.get(&number) {
            return Ok(key.clone());
        }
        let found: QueryResult<Option<WrappedKey>> = with_conn!(self, |conn| {
            data_keys::table
                .find(number)
                .select((data_keys::number, data_keys::team, data_keys::wrapped))
                .first(conn)
                .await
                .optional()
        });
        let found = found.map_err(failed("find a data key"))?;
        self.unwrapped(found.ok_or(DecryptError::NoKey(number)).map_err(failed("decrypt a value"))?)
    }

    /// Decrypts a value of a team. Plaintext is returned as it is, unless the configuration refuses
    /// it.
    pub(crate) async fn opened(
        &self,
        team: Id,
        column: Column,
        row: Id,
        value: String,
    ) -> Result<String, StoreError> {
        let unfit = failed("decrypt a value");
        let Some(parts) = Encrypted::of(&value) else {
            return match self.keyring.mode {
                Encryption::Required => Err(unfit(DecryptError::Plaintext)),
                Encryption::Prepare | Encryption::On => Ok(value),
            };
        };
        let key = self.data_key(parts.key).await?;
        if key.team != team {
            return Err(unfit(DecryptError::Damaged));
        }
        key.decrypt(column, row, parts).map_err(unfit)
    }

    /// Like [`Store::opened`], for an optional value.
    pub(crate) async fn opened_some(
        &self,
        team: Id,
        column: Column,
        row: Id,
        value: Option<String>,
    ) -> Result<Option<String>, StoreError> {
        match value {
            Some(value) => self.opened(team, column, row, value).await.map(Some),
            None => Ok(None),
        }
    }

    /// Returns all values that a blind index may have for this value.
    pub(crate) async fn indexed(
        &self,
        team: Id,
        column: &str,
        plain: &str,
    ) -> Result<Vec<String>, StoreError> {
        let wrapped: QueryResult<Vec<WrappedKey>> = with_conn!(self, |conn| {
            data_keys::table
                .filter(data_keys::team.eq(team))
                .order(data_keys::number.desc())
                .limit(MAX_KEYS_OF_TEAM)
                .select((data_keys::number, data_keys::team, data_keys::wrapped))
                .load(conn)
                .await
        });
        let mut marks = vec![];
        for wrapped in wrapped.map_err(failed("find a team's data keys"))? {
            marks.push(self.unwrapped(wrapped)?.index(column, plain));
        }
        if self.keyring.mode != Encryption::Required {
            marks.push(plain.to_owned());
        }
        Ok(marks)
    }
}
