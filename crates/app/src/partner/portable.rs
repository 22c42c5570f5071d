//! Hands an attestation out as a file that can be verified without this service.

use attestation::portable::{Portable, Subject};
use domain::id::SessionId;
use ports::{
    StoreError,
    attestor::Package,
    driving::{Caller, PortableAttestation, SessionError},
};

use super::Partners;

impl Partners {
    pub(super) async fn portable(
        &self,
        caller: &Caller,
        id: SessionId,
    ) -> Result<Option<PortableAttestation>, SessionError> {
        let found = self.core.sessions.find(caller.id, id).await?;
        let session = found.ok_or(SessionError::NotFound)?;
        let Some(proof) = session.state.outcome().and_then(|outcome| outcome.proof()) else {
            return Ok(None);
        };
        let kept = self.core.witness.attestations.attestation(id).await?;
        // One that was kept while the session ended in another way is not its attestation.
        let Some((_, package)) = kept.filter(|(kept, _)| kept == proof) else { return Ok(None) };
        let subject = Subject {
            session: *id.as_uuid().as_bytes(),
            partner: *caller.team.as_uuid().as_bytes(),
            salt: package.salt,
        };
        let unfit = |error| StoreError::new("read an attestation", error);
        let Package { attestation, disclosure, evidence, inclusion, .. } = package;
        let portable = Portable::of(subject, attestation, &disclosure, evidence, inclusion);
        let file = portable.and_then(|portable| portable.write()).map_err(unfit)?;
        Ok(Some(PortableAttestation { proof: proof.clone(), file }))
    }
}
