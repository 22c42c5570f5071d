//! The store of attestations, which are deleted when the data of their sessions is erased.

use std::collections::BTreeMap;

use async_trait::async_trait;
use domain::{
    id::{ApiKeyId, SessionId},
    session::ProofHash,
};
use ports::{
    Reencrypted, StoreError,
    attestor::{AttestationPackage, AttestationStore},
};

use crate::{MemoryStore, resealed};

/// At most one attestation for each session.
#[derive(Default)]
pub(crate) struct AttestationState(BTreeMap<SessionId, (ProofHash, AttestationPackage)>);

impl AttestationState {
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
        package: &AttestationPackage,
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
    ) -> Result<Option<(ProofHash, AttestationPackage)>, StoreError> {
        Ok(self.state().attestations.0.get(&session).cloned())
    }

    async fn reencrypt_attestations(
        &self,
        after: Option<SessionId>,
        limit: u16,
    ) -> Result<Reencrypted<SessionId>, StoreError> {
        Ok(resealed(self.state().attestations.0.keys().copied(), after, limit))
    }

    async fn attested(
        &self,
        owner: ApiKeyId,
        proof: &ProofHash,
    ) -> Result<Option<(SessionId, AttestationPackage)>, StoreError> {
        let state = self.state();
        let all = state.attestations.0.iter();
        let mut found = all.filter(|(_, (known, _))| known == proof);
        let its = found.find(|(session, _)| state.sessions.owner(**session) == Some(owner));
        Ok(its.map(|(session, (_, package))| (*session, package.clone())))
    }
}
