//! Compares a partner's data with an attestation.

use std::collections::BTreeMap;

use domain::{id::SessionId, request::GivenData, session::ProofHash};
use ports::{
    StoreError,
    attestation_reader::{AttestationReader, ReadError},
    driving::{Caller, Comparison, Coverage, FieldMatch, SessionError},
};

use super::SessionUseCases;

impl SessionUseCases {
    pub(super) async fn compare_data(
        &self,
        caller: &Caller,
        proof: &ProofHash,
        data: &GivenData,
    ) -> Result<Comparison, SessionError> {
        let found = self.attestations.store.attested(caller.id, proof).await?;
        let (session, package) = found.ok_or(SessionError::NotFound)?;
        let stored = self.sessions.find(caller.id, session).await?;
        let outcome = stored.as_ref().and_then(|session| session.state.outcome());
        // An attestation that was stored while the session ended in another way is not the session's.
        if outcome.and_then(|outcome| outcome.proof()) != Some(proof) {
            return Err(SessionError::NotFound);
        }
        let reader = &self.attestations.reader;
        let claims = match reader.claims(&package) {
            Ok(claims) => claims,
            Err(error @ ReadError::Outdated(_)) => {
                warn_outdated(session, &error);
                return Err(SessionError::NotFound);
            }
            Err(error) => return Err(unreadable(error).into()),
        };
        let (fields, coverage) = compared(reader.as_ref(), &claims, data);
        let matches = all_match(&fields);
        Ok(Comparison { session, matches, coverage, fields })
    }
}

pub(super) fn warn_outdated(session: SessionId, error: &ReadError) {
    tracing::warn!(
        session.id = %session, %error,
        "the attestation of session {session} is neither compared nor exported: its format is of an earlier version"
    );
}

pub(super) fn unreadable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    StoreError::new("read an attestation", error)
}

/// Compares each attested and each given field, and tells whether all given fields are attested.
fn compared(
    reader: &dyn AttestationReader,
    claims: &Claims,
    data: &GivenData,
) -> (Vec<(String, FieldMatch)>, Coverage) {
    let attested = claims.iter().map(|(field, value)| {
        let result = match data.get(field) {
            None => FieldMatch::Missing,
            Some(given) if reader.is_same_value(given, value) => FieldMatch::Matches,
            Some(_) => FieldMatch::Differs,
        };
        (field.clone(), result)
    });
    let mut fields: Vec<_> = attested.collect();
    let others = data.keys().filter(|field| !claims.contains_key(*field));
    fields.extend(others.map(|field| (field.clone(), FieldMatch::NotAttested)));
    let coverage = if fields.iter().any(|(_, result)| *result == FieldMatch::NotAttested) {
        Coverage::AttestedFieldsOnly
    } else {
        Coverage::AllGivenFields
    };
    (fields, coverage)
}

/// Returns whether every attested field was given with its attested value.
fn all_match(fields: &[(String, FieldMatch)]) -> bool {
    let attested = fields.iter().filter(|(_, result)| *result != FieldMatch::NotAttested);
    attested.into_iter().all(|(_, result)| *result == FieldMatch::Matches)
}

/// Attested values by field, as JSON text.
type Claims = BTreeMap<String, String>;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::fakes::TextReader;
    use Coverage::{AllGivenFields, AttestedFieldsOnly};
    use FieldMatch::{Differs, Matches, Missing, NotAttested};

    fn object(value: &Value) -> GivenData {
        let members = value.as_object().unwrap().iter();
        members.map(|(name, value)| (name.clone(), value.to_string())).collect()
    }

    #[test]
    fn a_field_that_is_not_attested_never_counts_as_a_match() {
        let claims = object(&json!({ "accountId": "4711", "name": "Ada" }));
        let result = |data: Value| {
            let (fields, coverage) = compared(&TextReader, &claims, &object(&data));
            (
                all_match(&fields),
                coverage,
                fields.into_iter().map(|(_, result)| result).collect::<Vec<_>>(),
            )
        };
        let table = [
            (
                json!({ "accountId": "4711", "name": "Ada" }),
                (true, AllGivenFields, vec![Matches, Matches]),
            ),
            (
                json!({ "accountId": "4711", "name": "Ada", "tier": "whatever" }),
                (true, AttestedFieldsOnly, vec![Matches, Matches, NotAttested]),
            ),
            (
                json!({ "accountId": "4712", "name": "Ada", "tier": "gold" }),
                (false, AttestedFieldsOnly, vec![Differs, Matches, NotAttested]),
            ),
            (json!({ "name": "Ada" }), (false, AllGivenFields, vec![Missing, Matches])),
            (
                json!({ "tier": "gold" }),
                (false, AttestedFieldsOnly, vec![Missing, Missing, NotAttested]),
            ),
        ];
        for (data, expected) in table {
            assert_eq!(result(data.clone()), expected, "{data}");
        }
    }
}
