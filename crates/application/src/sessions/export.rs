//! Exports an attestation as a file that can be verified without this service.

use domain::id::SessionId;
use ports::{
    attestation_reader::ReadError,
    driving::{Caller, PortableAttestation, SessionError},
};

use super::{
    SessionUseCases,
    compare::{unreadable, warn_outdated},
};

impl SessionUseCases {
    pub(super) async fn portable(
        &self,
        caller: &Caller,
        id: SessionId,
    ) -> Result<Option<PortableAttestation>, SessionError> {
        let found = self.sessions.find(caller.id, id).await?;
        let session = found.ok_or(SessionError::NotFound)?;
        let Some(proof) = session.state.outcome().and_then(|outcome| outcome.proof()) else {
            return Ok(None);
        };
        let stored = self.attestations.store.attestation(id).await?;
        // An attestation that was stored while the session ended in another way is not the session's.
        let Some((_, package)) = stored.filter(|(stored, _)| stored == proof) else {
            return Ok(None);
        };
        match self.attestations.reader.portable(id, caller.team, package) {
            Ok(file) => Ok(Some(PortableAttestation { proof: proof.clone(), file })),
            Err(error @ ReadError::Outdated(_)) => {
                warn_outdated(id, &error);
                Ok(None)
            }
            Err(error) => Err(unreadable(error).into()),
        }
    }
}
