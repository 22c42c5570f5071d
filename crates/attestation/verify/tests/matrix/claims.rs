//! Tests of required claims, each in turn: not attested, not disclosed, or with another value.

use attestation::{attest::Disclosure, commitment::OpeningKind};

use super::*;

const FIELDS: [&str; 2] = ["user_id", "verified"];

/// An attestor that omits a claim deceives neither a verifier that requires the claim nor one that
/// has the evidence.
#[test]
fn an_omitted_claim_is_detected_by_a_requirement_and_by_the_evidence() {
    for (at, left_out) in FIELDS.into_iter().enumerate() {
        let files = Files::new();
        let mut body = ATTESTED.body.clone();
        body.claims.remove(at);
        files.attest(&body);
        let mut disclosure: Disclosure = ATTESTED.disclosure.clone();
        let index = u32::try_from(at).unwrap();
        disclosure
            .openings
            .retain(|opening| (opening.kind, opening.index) != (OpeningKind::Claim, index));
        for opening in &mut disclosure.openings {
            // Claims after the omitted one.
            opening.index -= u32::from(opening.kind == OpeningKind::Claim && opening.index > index);
        }
        // The commitment includes the index: the other claims do not match either.
        files.write("disclosure.cbor", &disclosure.write().unwrap());
        let opens = |code: i32| if at == 0 { 6 } else { code };
        for field in FIELDS {
            let required = ["--level", "signature", "--require-field", field];
            let expected = if field == left_out { 17 } else { 0 };
            assert_eq!(files.verify(&required).0, expected, "{field} without {left_out}");
            let (code, _, stderr) =
                files.verify(&[DISCLOSED, &["--require-field", field]].concat());
            assert_eq!(code, opens(expected), "{field} without {left_out}: {stderr}");
        }
        files.refused(EXAMINED, 7);
    }
}

#[test]
fn a_claim_with_another_value_is_detected_by_the_disclosure_and_by_the_evidence() {
    for at in 0..FIELDS.len() {
        let files = Files::new();
        let (mut body, mut disclosure) = (ATTESTED.body.clone(), ATTESTED.disclosure.clone());
        let index = u32::try_from(at).unwrap();
        let mut claims = disclosure.openings.iter_mut().filter(|it| it.kind == OpeningKind::Claim);
        let opening = claims.find(|opening| opening.index == index).unwrap();
        opening.value = b"\"another\"".to_vec();
        let commitment = opening.commitment();
        files.write("disclosure.cbor", &disclosure.write().unwrap());
        files.refused(DISCLOSED, 6);
        // A lying attestor commits to it.
        body.claims[at].commitment = commitment;
        files.attest(&body);
        assert_eq!(files.verify(DISCLOSED).1["claims"][at]["value"], "another");
        files.refused(&[&["--disclosure", "disclosure.cbor"], EXAMINED].concat(), 7);
    }
}

#[test]
fn an_undisclosed_field_does_not_satisfy_a_requirement() {
    for (index, missing) in (0..).zip(FIELDS) {
        let files = Files::new();
        let mut some: Disclosure = ATTESTED.disclosure.clone();
        some.openings
            .retain(|opening| (opening.kind, opening.index) != (OpeningKind::Claim, index));
        files.write("disclosure.cbor", &some.write().unwrap());
        for field in FIELDS {
            let (code, ..) = files.verify(&[DISCLOSED, &["--require-field", field]].concat());
            assert_eq!(code, if field == missing { 17 } else { 0 }, "{field} without {missing}");
        }
        let signature = ["--level", "signature", "--require-field", missing];
        assert_eq!(files.verify(&signature).0, 0, "only the attestation of the field is required");
    }
}
