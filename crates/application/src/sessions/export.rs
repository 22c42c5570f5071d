//! Hands an attestation out as a file that can be verified without this service.

use domain::id::SessionId;
use ports::{
    attestation_reader::ReadError,
    driving::{Caller, PortableAttestation, SessionError},
};

use super::{
    SessionUseCases,
    compare::{tell_outdated, unfit},
};

impl SessionUseCases {
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
        let kept = self.core.attestations.attestations.attestation(id).await?;
        // One that was kept while the session ended in another way is not its attestation.
        let Some((_, package)) = kept.filter(|(kept, _)| kept == proof) else { return Ok(None) };
        match self.core.attestations.reader.portable(id, caller.team, package) {
            Ok(file) => Ok(Some(PortableAttestation { proof: proof.clone(), file })),
            Err(error @ ReadError::Outdated(_)) => {
                tell_outdated(id, &error);
                Ok(None)
            }
            Err(error) => Err(unfit(error).into()),
        }
    }
}
