//! Attestation packages, which are kept until the data of their sessions are erased.

use std::collections::BTreeMap;

use async_trait::async_trait;
use domain::{
    id::{ApiKeyId, SessionId},
    session::ProofHash,
};
use ports::{
    Resealed, StoreError,
    attestor::{AttestationStore, Package},
};

use crate::{MemoryStore, resealed};

/// At most one attestation for each session.
#[derive(Default)]
pub(crate) struct Attestations(BTreeMap<SessionId, (ProofHash, Package)>);

impl Attestations {
    pub(crate) fn erase(&mut self, session: SessionId) {
        self.0.remove(&session);
    }
}

#[async_trait]
impl AttestationStore for MemoryStore {
    async fn keep(
        &self,
        session: SessionId,
        proof: &ProofHash,
        package: &Package,
    ) -> Result<bool, StoreError> {
        let mut state = self.state();
        let open = state.sessions.is_open(session);
        if open {
            state.attestations.0.insert(session, (proof.clone(), package.clone()));
        }
        Ok(open)
    }

    async fn attestation(
        &self,
        session: SessionId,
    ) -> Result<Option<(ProofHash, Package)>, StoreError> {
        Ok(self.state().attestations.0.get(&session).cloned())
    }

    async fn reseal_attestations(
        &self,
        after: Option<SessionId>,
        limit: u16,
    ) -> Result<Resealed<SessionId>, StoreError> {
        Ok(resealed(self.state().attestations.0.keys().copied(), after, limit))
    }

    async fn attested(
        &self,
        owner: ApiKeyId,
        proof: &ProofHash,
    ) -> Result<Option<(SessionId, Package)>, StoreError> {
        let state = self.state();
        let all = state.attestations.0.iter();
        let mut found = all.filter(|(_, (known, _))| known == proof);
        let its = found.find(|(session, _)| state.sessions.owner(**session) == Some(owner));
        Ok(its.map(|(session, (_, package))| (*session, package.clone())))
    }
}
