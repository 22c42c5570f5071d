//! Holds data against an attestation.

use attestation::{attest::Disclosure, signed::unverified};
use domain::session::{ExtractedData, ProofHash};
use ports::{
    StoreError,
    attestor::Package,
    driving::{Caller, Comparison, Held, SessionError},
};

use super::Partners;

impl Partners {
    pub(super) async fn compare_data(
        &self,
        caller: &Caller,
        proof: &ProofHash,
        data: &ExtractedData,
    ) -> Result<Comparison, SessionError> {
        let found = self.core.witness.attestations.attested(caller.id, proof).await?;
        let (session, package) = found.ok_or(SessionError::NotFound)?;
        let held = self.core.sessions.find(caller.id, session).await?;
        let outcome = held.as_ref().and_then(|session| session.state.outcome());
        // One that was made while the session ended in another way is none of its.
        if outcome.and_then(|outcome| outcome.proof()) != Some(proof) {
            return Err(SessionError::NotFound);
        }
        let claims = claims(&package)
            .ok_or_else(|| StoreError::new("read an attestation", "it does not open"))?;
        let compared = claims.iter().map(|(field, value)| {
            let held = match data.get(field) {
                None => Held::Missing,
                Some(given) if given == value => Held::Matches,
                Some(_) => Held::Differs,
            };
            (field.clone(), held)
        });
        let mut fields: Vec<_> = compared.collect();
        let matches = fields.iter().all(|(_, held)| *held == Held::Matches);
        let others = data.keys().filter(|field| !claims.contains_key(*field));
        fields.extend(others.map(|field| (field.clone(), Held::NotAttested)));
        Ok(Comparison { session, matches, fields })
    }
}

/// The attested values; none where the package is not whole.
fn claims(package: &Package) -> Option<ExtractedData> {
    let (body, _) = unverified(&package.attestation).ok()?;
    let disclosure = Disclosure::read(&package.disclosure).ok()?;
    disclosure.opens(&body).ok()?;
    disclosure.claims(&body)
}
