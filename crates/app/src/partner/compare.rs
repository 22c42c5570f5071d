//! Holds data against an attestation.

use std::collections::BTreeMap;

use attestation::{
    attest::Disclosure,
    json::same_value,
    signed::{AttestationError, decode_unverified},
};
use domain::{id::SessionId, request::GivenData, session::ProofHash};
use ports::{
    StoreError,
    attestor::Package,
    driving::{Caller, Comparison, Coverage, Held, SessionError},
};

use super::Partners;

impl Partners {
    pub(super) async fn compare_data(
        &self,
        caller: &Caller,
        proof: &ProofHash,
        data: &GivenData,
    ) -> Result<Comparison, SessionError> {
        let found = self.core.witness.attestations.attested(caller.id, proof).await?;
        let (session, package) = found.ok_or(SessionError::NotFound)?;
        let held = self.core.sessions.find(caller.id, session).await?;
        let outcome = held.as_ref().and_then(|session| session.state.outcome());
        // One that was made while the session ended in another way is none of its.
        if outcome.and_then(|outcome| outcome.proof()) != Some(proof) {
            return Err(SessionError::NotFound);
        }
        let claims = match claims(&package) {
            Ok(claims) => claims.ok_or_else(|| unfit("it does not open"))?,
            Err(error) if is_outdated(&error) => {
                tell_outdated(session, &error);
                return Err(SessionError::NotFound);
            }
            Err(error) => return Err(unfit(error).into()),
        };
        let (fields, coverage) = compared(&claims, data);
        let matches = holds(&fields);
        Ok(Comparison { session, matches, coverage, fields })
    }
}

/// Whether an attestation that is kept is of a version that is no longer read. It is as if there were
/// none.
pub(super) const fn is_outdated(error: &AttestationError) -> bool {
    matches!(error, AttestationError::UnsupportedVersion(..))
}

pub(super) fn tell_outdated(session: SessionId, error: &AttestationError) {
    tracing::warn!(
        session.id = %session, %error,
        "the attestation of session {session} is neither compared nor handed out: it is of an earlier version"
    );
}

pub(super) fn unfit(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    StoreError::new("read an attestation", error)
}

/// How each attested field and each given one compares, and whether the comparison speaks for all
/// that was given.
fn compared(claims: &Claims, data: &GivenData) -> (Vec<(String, Held)>, Coverage) {
    let attested = claims.iter().map(|(field, value)| {
        let held = match data.get(field) {
            None => Held::Missing,
            Some(given) if same_value(given, value) => Held::Matches,
            Some(_) => Held::Differs,
        };
        (field.clone(), held)
    });
    let mut fields: Vec<_> = attested.collect();
    let others = data.keys().filter(|field| !claims.contains_key(*field));
    fields.extend(others.map(|field| (field.clone(), Held::NotAttested)));
    let coverage = if fields.iter().any(|(_, held)| *held == Held::NotAttested) {
        Coverage::AttestedFieldsOnly
    } else {
        Coverage::AllGivenFields
    };
    (fields, coverage)
}

/// Whether every attested field was given with its attested value.
fn holds(fields: &[(String, Held)]) -> bool {
    let attested = fields.iter().filter(|(_, held)| *held != Held::NotAttested);
    attested.into_iter().all(|(_, held)| *held == Held::Matches)
}

/// Attested values by field, as JSON text.
type Claims = BTreeMap<String, String>;

/// The attested values; none where the package is not whole.
fn claims(package: &Package) -> Result<Option<Claims>, AttestationError> {
    let (body, _) = decode_unverified(&package.attestation)?;
    let disclosure = Disclosure::read(&package.disclosure).ok();
    let opens = disclosure.filter(|disclosure| disclosure.verify(&body).is_ok());
    Ok(opens.and_then(|disclosure| disclosure.claim_texts(&body)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use Coverage::{AllGivenFields, AttestedFieldsOnly};
    use Held::{Differs, Matches, Missing, NotAttested};

    fn object(value: &Value) -> GivenData {
        let members = value.as_object().unwrap().iter();
        members.map(|(name, value)| (name.clone(), value.to_string())).collect()
    }

    /// An attestation of an earlier version is none, and no fault of the store's.
    #[test]
    fn an_attestation_of_an_earlier_version_is_told_from_a_broken_one() {
        let body = [&[0x85, 1, 0x50][..], &[1; 16], &[0x58, 32], &[2; 32], &[1, 0xf6]].concat();
        let attestation = [&[0x82, 0x58, 55][..], &body, &[0x58, 64], &[0; 64]].concat();
        let package = |attestation: Vec<u8>| Package {
            mode: domain::workflow::AttestMode::ZktlsRequest,
            salt: [0; 32],
            attestation,
            disclosure: vec![],
            evidence: None,
            inclusion: None,
            issuer: ports::attestor::Issuer { public_key: [0; 32], valid_from: 0, valid_to: 0 },
        };
        assert!(is_outdated(&claims(&package(attestation)).unwrap_err()));
        assert!(!is_outdated(&claims(&package(vec![0x82])).unwrap_err()));
    }

    /// Numbers of more digits than a double holds are two accounts, and not one.
    #[test]
    fn numbers_are_compared_digit_by_digit() {
        let given = |text: &str| GivenData::from([("accountId".to_owned(), text.to_owned())]);
        let claims = given("18446744073709551616");
        assert!(holds(&compared(&claims, &given("18446744073709551616")).0));
        assert!(holds(&compared(&claims, &given("18446744073709551616.0")).0));
        assert!(!holds(&compared(&claims, &given("18446744073709551617")).0));
        assert!(!holds(&compared(&claims, &given("\"18446744073709551616\"")).0));
    }

    #[test]
    fn a_field_without_a_proof_never_passes_for_a_proved_one() {
        let claims = object(&json!({ "accountId": "4711", "name": "Ada" }));
        let result = |data: Value| {
            let (fields, coverage) = compared(&claims, &object(&data));
            (holds(&fields), coverage, fields.into_iter().map(|(_, held)| held).collect::<Vec<_>>())
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
