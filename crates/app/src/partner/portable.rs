//! Hands an attestation out as a file that can be verified without this service.

use attestation::portable::{AttestationBundle, PortableError, Subject};
use domain::id::SessionId;
use ports::{
    attestor::Package,
    driving::{Caller, PortableAttestation, SessionError},
};

use super::{
    Partners,
    compare::{is_outdated, tell_outdated, unfit},
};

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
        let Package { attestation, disclosure, evidence, inclusion, .. } = package;
        let portable =
            AttestationBundle::from_parts(subject, attestation, &disclosure, evidence, inclusion);
        match portable.and_then(|portable| portable.write()) {
            Ok(file) => Ok(Some(PortableAttestation { proof: proof.clone(), file })),
            Err(PortableError::Malformed(error)) if is_outdated(&error) => {
                tell_outdated(id, &error);
                Ok(None)
            }
            Err(error) => Err(unfit(error).into()),
        }
    }
}
