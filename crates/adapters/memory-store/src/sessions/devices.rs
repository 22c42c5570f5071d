//! The devices of sessions, and the codes by which further devices join.

use std::collections::BTreeMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    binding::{DeviceNumber, JoinCode, JoinedBy, MAX_CODE_TRIES, MAX_DEVICES, SecretHash},
    id::SessionId,
};
use ports::{
    StoreError,
    device_store::{Binding, DeviceStore, RedeemOutcome},
};

use crate::{MemoryStore, notifications::Line};

/// The devices and codes of all sessions.
#[derive(Default)]
pub(super) struct Devices {
    /// In the order in which they joined.
    records: BTreeMap<SessionId, Vec<BoundDevice>>,
    codes: Vec<Code>,
}

struct BoundDevice {
    number: DeviceNumber,
    secret: SecretHash,
    joined_by: JoinedBy,
    joined_at: DateTime<Utc>,
    /// The answer to the request for consent that was given on it, and when.
    consent: Option<(bool, DateTime<Utc>)>,
}

/// A code, with the number of short codes that were tried since it was offered.
struct Code {
    offered: JoinCode,
    tries: i32,
}

impl Code {
    /// Counts a short code as tried and returns whether it is this one; also `false` after too many
    /// tries.
    fn try_short(&mut self, short: &SecretHash) -> bool {
        let Some(known) = &self.offered.short else { return false };
        if self.tries >= MAX_CODE_TRIES {
            return false;
        }
        self.tries = self.tries.saturating_add(1);
        known == short
    }
}

impl BoundDevice {
    fn lines(&self) -> impl Iterator<Item = Line> {
        let by = self.joined_by.as_str();
        let joined = (self.joined_at, "DeviceJoined", Some(format!("{}, {by}", self.number)));
        let consent = self.consent.map(|(agreed, at)| {
            let event = if agreed { "ConsentGiven" } else { "ConsentRefused" };
            (at, event, Some(self.number.to_string()))
        });
        std::iter::once(joined).chain(consent)
    }
}

impl Devices {
    fn of(&self, session: SessionId) -> &[BoundDevice] {
        self.records.get(&session).map_or(&[], Vec::as_slice)
    }

    /// Returns the timeline entries that show which devices joined and consented.
    pub(super) fn lines(&self, session: SessionId) -> impl Iterator<Item = Line> {
        self.of(session).iter().flat_map(BoundDevice::lines)
    }

    pub(super) fn delete_of(&mut self, session: SessionId) {
        self.records.remove(&session);
        self.codes.retain(|one| one.offered.session != session);
    }

    fn number_of(&self, session: SessionId, secret: &SecretHash) -> Option<DeviceNumber> {
        let mut devices = self.of(session).iter();
        devices.find(|device| device.secret == *secret).map(|device| device.number)
    }

    /// Adds a device to a session that has one. Returns `None` if it has none, or as many as it may
    /// have.
    fn add(
        &mut self,
        session: SessionId,
        secret: &SecretHash,
        joined_by: JoinedBy,
        joined_at: DateTime<Utc>,
    ) -> Option<DeviceNumber> {
        if let Some(known) = self.number_of(session, secret) {
            return Some(known);
        }
        let devices = self.records.get_mut(&session)?;
        let last = devices.last().filter(|last| last.number.0 < MAX_DEVICES)?;
        let number = DeviceNumber(last.number.0.saturating_add(1));
        let secret = secret.clone();
        devices.push(BoundDevice { number, secret, joined_by, joined_at, consent: None });
        Some(number)
    }

    /// Voids the session's code of this value, in its long or short form. Returns `None` if there
    /// is no such code.
    fn take_code(
        &mut self,
        session: SessionId,
        code: &SecretHash,
        now: DateTime<Utc>,
    ) -> Option<JoinedBy> {
        let is_live = |one: &Code| one.offered.session == session && one.offered.expires_at > now;
        let live = || self.codes.iter().enumerate().filter(|(_, one)| is_live(one));
        let by_long = live().find(|(_, one)| one.offered.long == *code).map(|(place, _)| place);
        let place = by_long.or_else(|| {
            let mut right = None;
            for (place, one) in self.codes.iter_mut().enumerate() {
                // The try counts for each code, even if an earlier one is right.
                if is_live(one) && one.try_short(code) {
                    right = right.or(Some(place));
                }
            }
            right
        })?;
        Some(self.codes.remove(place).offered.by)
    }

    fn redeem(
        &mut self,
        session: SessionId,
        (code, secret): (&SecretHash, &SecretHash),
        at: DateTime<Utc>,
    ) -> RedeemOutcome {
        let Some(by) = self.take_code(session, code, at) else {
            return RedeemOutcome::Refused;
        };
        let added = self.add(session, secret, by, at);
        added.map_or(RedeemOutcome::Full, |number| RedeemOutcome::Joined(number, by))
    }
}

#[async_trait]
impl DeviceStore for MemoryStore {
    async fn device(&self, session: SessionId, secret: &SecretHash) -> Result<Binding, StoreError> {
        let devices = &self.state().sessions.devices;
        Ok(match devices.number_of(session, secret) {
            Some(number) => Binding::Bound(number),
            None if devices.of(session).is_empty() => Binding::Unbound,
            None => Binding::Foreign,
        })
    }

    async fn bind(
        &self,
        session: SessionId,
        secret: &SecretHash,
        at: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let sessions = &mut self.state().sessions;
        let free = sessions.session(session).is_some() && sessions.devices.of(session).is_empty();
        if free {
            let (number, secret, joined_by) = (DeviceNumber(1), secret.clone(), JoinedBy::Start);
            let first = BoundDevice { number, secret, joined_by, joined_at: at, consent: None };
            sessions.devices.records.insert(session, vec![first]);
        }
        Ok(free)
    }

    async fn approve(
        &self,
        session: SessionId,
        secret: &SecretHash,
        at: DateTime<Utc>,
    ) -> Result<Option<DeviceNumber>, StoreError> {
        let devices = &mut self.state().sessions.devices;
        Ok(devices.add(session, secret, JoinedBy::Approval, at))
    }

    async fn offer_code(&self, code: &JoinCode) -> Result<(), StoreError> {
        let sessions = &mut self.state().sessions;
        if sessions.session(code.session).is_none() {
            return Err(StoreError::new("store a join code", "there is no such session"));
        }
        let codes = &mut sessions.devices.codes;
        codes.retain(|one| one.offered.session != code.session || one.offered.by != code.by);
        codes.push(Code { offered: code.clone(), tries: 0 });
        Ok(())
    }

    async fn redeem_code(
        &self,
        session: SessionId,
        code: &SecretHash,
        secret: &SecretHash,
        at: DateTime<Utc>,
    ) -> Result<RedeemOutcome, StoreError> {
        Ok(self.state().sessions.devices.redeem(session, (code, secret), at))
    }

    async fn record_consent(
        &self,
        session: SessionId,
        device: DeviceNumber,
        agreed: bool,
        at: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let devices = &mut self.state().sessions.devices;
        let its = devices.records.get_mut(&session).into_iter().flatten();
        for its in its.filter(|one| one.number == device) {
            its.consent = Some((agreed, at));
        }
        Ok(())
    }

    async fn delete_expired_codes(&self, now: DateTime<Utc>) -> Result<usize, StoreError> {
        let codes = &mut self.state().sessions.devices.codes;
        let known = codes.len();
        codes.retain(|one| one.offered.expires_at > now);
        Ok(known.saturating_sub(codes.len()))
    }
}
