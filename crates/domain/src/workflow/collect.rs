//! Converts the values that were read from a page to fields of the output.

use serde_json::Value;

use super::{Field, FieldType};

const MAX_STRING_CHARS: usize = 4096;

/// Returns the value of a field if it is present and of the field's type. A text without a visible
/// character is no value.
pub(super) fn take(field: &Field, value: Option<&Value>) -> Option<Value> {
    let value = value?;
    let fits = match field.kind {
        FieldType::String => {
            let filled =
                |text: &str| !text.trim().is_empty() && text.chars().count() <= MAX_STRING_CHARS;
            value.as_str().is_some_and(filled)
        }
        FieldType::Integer => value.is_i64() || value.is_u64(),
        FieldType::Number => value.is_number(),
        FieldType::Boolean => value.is_boolean(),
    };
    if fits {
        return Some(value.clone());
    }
    // The DOM contains only text.
    let text = value.as_str()?.trim();
    match field.kind {
        FieldType::String => None,
        FieldType::Integer => text.parse::<i64>().ok().map(Value::from),
        FieldType::Number => text.parse::<f64>().ok().map(Value::from),
        FieldType::Boolean => text.parse::<bool>().ok().map(Value::from),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_empty_text_is_no_value() {
        let field = |kind| Field {
            kind,
            required: true,
            label_key: String::new(),
            format: None,
            currency: None,
            value_keys: std::collections::BTreeMap::new(),
        };
        for kind in [FieldType::String, FieldType::Integer, FieldType::Boolean] {
            for text in ["", " ", "\n\t\u{a0}"] {
                assert_eq!(take(&field(kind), Some(&json!(text))), None, "{kind:?} {text:?}");
            }
        }
        assert_eq!(take(&field(FieldType::String), Some(&json!("0"))), Some(json!("0")));
    }
}
