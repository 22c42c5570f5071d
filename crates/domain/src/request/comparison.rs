//! Data to be held against an attestation.

use serde_json::Value;

use super::{Invalid, read::Reader};
use crate::session::{ExtractedData, ProofHash};

const MOST_FIELDS: usize = 100;

/// Reads `{proofHash, extractedData}`.
///
/// # Errors
/// Every finding at once.
pub fn read_comparison(body: &Value) -> Result<(ProofHash, ExtractedData), Invalid> {
    let object = body.as_object().ok_or_else(|| Invalid::one("the body must be an object"))?;
    let mut reader = Reader::new(object, "");
    let proof = reader.text("proofHash", 64).map(ProofHash::new);
    if !reader.has("proofHash") {
        reader.finding("proofHash", "is required");
    } else if matches!(proof, Some(None)) {
        reader.finding("proofHash", "must be 64 lower-case hexadecimal digits");
    }
    let data = reader.object("extractedData");
    if !reader.has("extractedData") {
        reader.finding("extractedData", "is required");
    } else if data.is_some_and(|data| data.len() > MOST_FIELDS) {
        reader.finding("extractedData", &format!("must have at most {MOST_FIELDS} fields"));
    }
    let findings = reader.into_findings();
    match (proof.flatten(), data) {
        (Some(proof), Some(data)) if findings.is_empty() => Ok((proof, data.clone())),
        _ => Err(Invalid(findings)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_comparison_has_a_hash_and_data() {
        let hash = "0a".repeat(32);
        let read = read_comparison(&json!({ "proofHash": hash, "extractedData": { "a": 1 } }));
        assert_eq!(read.unwrap().1["a"], 1);
        let findings = |body: Value| read_comparison(&body).unwrap_err().0;
        assert_eq!(findings(json!([])), ["the body must be an object"]);
        assert_eq!(findings(json!({})), ["proofHash is required", "extractedData is required"]);
        let upper = json!({ "proofHash": hash.to_uppercase(), "extractedData": [] });
        assert_eq!(
            findings(upper),
            [
                "proofHash must be 64 lower-case hexadecimal digits",
                "extractedData must be an object"
            ]
        );
        let long = json!({ "proofHash": "0".repeat(65), "extractedData": {} });
        assert_eq!(findings(long), ["proofHash must be at most 64 characters long"]);
        let many: ExtractedData = (0..101).map(|n| (n.to_string(), json!(n))).collect();
        let many = json!({ "proofHash": hash, "extractedData": many });
        assert_eq!(findings(many), ["extractedData must have at most 100 fields"]);
    }
}
