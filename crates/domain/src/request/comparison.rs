//! Parses data to be compared with an attestation.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{InvalidRequest, read::Reader};
use crate::session::ProofHash;

const MAX_FIELDS: usize = 100;

/// The values to compare with the attested ones, by field, each as its JSON text: a number type of
/// a fixed size would round numbers of many digits.
pub type GivenData = BTreeMap<String, String>;

/// Parses `{proofHash, extractedData}`.
///
/// # Errors
/// All findings at once.
pub fn read_comparison(text: &[u8]) -> Result<(ProofHash, GivenData), InvalidRequest> {
    let invalid_json = |_| InvalidRequest::one("the body must be valid JSON");
    let body: Value = serde_json::from_slice(text).map_err(invalid_json)?;
    let object =
        body.as_object().ok_or_else(|| InvalidRequest::one("the body must be an object"))?;
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
    } else if data.is_some_and(|data| data.len() > MAX_FIELDS) {
        reader.finding("extractedData", &format!("must have at most {MAX_FIELDS} fields"));
    }
    let findings = reader.into_findings();
    match proof.flatten() {
        Some(proof) if findings.is_empty() => {
            let RawData { extracted_data } = serde_json::from_slice(text).map_err(invalid_json)?;
            let given = extracted_data.into_iter();
            Ok((proof, given.map(|(field, value)| (field, value.get().to_owned())).collect()))
        }
        Some(_) | None => Err(InvalidRequest(findings)),
    }
}

/// The body with its values as unparsed JSON.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawData {
    extracted_data: BTreeMap<String, Box<RawValue>>,
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    #[test]
    fn a_comparison_requires_a_hash_and_data() {
        let hash = "0a".repeat(32);
        let read = |body: &Value| read_comparison(body.to_string().as_bytes());
        let given = read(&json!({ "proofHash": hash, "extractedData": { "a": 1 } }));
        assert_eq!(given.unwrap().1["a"], "1");
        let findings = |body: Value| read(&body).unwrap_err().0;
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
        let many: Map<_, _> = (0..101).map(|n| (n.to_string(), json!(n))).collect();
        let many = json!({ "proofHash": hash, "extractedData": many });
        assert_eq!(findings(many), ["extractedData must have at most 100 fields"]);
    }

    #[test]
    fn values_keep_their_json_text() {
        let hash = "0a".repeat(32);
        for value in ["18446744073709551617", "0.10000000000000000001", "1.0", "\"a\"", "[1 ,2]"] {
            let body =
                format!("{{\"proofHash\":\"{hash}\",\"extractedData\":{{\"a\": {value} }}}}");
            assert_eq!(read_comparison(body.as_bytes()).unwrap().1["a"], value);
        }
        let duplicate =
            format!("{{\"proofHash\":\"{hash}\",\"extractedData\":{{}},\"extractedData\":{{}}}}");
        for invalid in ["", "{", "{}x", &duplicate] {
            let findings = read_comparison(invalid.as_bytes()).unwrap_err().0;
            assert_eq!(findings, ["the body must be valid JSON"]);
        }
    }
}
