//! Converts the values that were read from a page to fields of the output.

use serde_json::{Number, Value};

use super::{Extraction, Field, FieldType, ReadFailure};

const MAX_STRING_CHARS: usize = 4096;

/// Applies the converters of an extraction to the value that was read. Converters read texts of at most
/// [`MAX_STRING_CHARS`].
pub(super) fn convert(from: &Extraction, value: Option<&Value>) -> Result<Value, ReadFailure> {
    let mut value = value.ok_or(ReadFailure::NotFound)?.clone();
    let is_long = value.as_str().is_some_and(|text| text.chars().count() > MAX_STRING_CHARS);
    if is_long && !from.convert.is_empty() {
        return Err(ReadFailure::TooLong);
    }
    for (index, converter) in from.convert.iter().enumerate() {
        value = converter.apply(&value).ok_or(ReadFailure::Converter(index))?;
    }
    Ok(value)
}

/// Returns the value of a field if it is present and of the field's type. A text without a visible
/// character is no value.
pub(super) fn take(field: &Field, value: &Value) -> Option<Value> {
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
        // `inf` and `NaN` are no numbers of JSON (RFC 8259, section 6).
        FieldType::Number => text.parse().ok().and_then(Number::from_f64).map(Value::Number),
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
                assert_eq!(take(&field(kind), &json!(text)), None, "{kind:?} {text:?}");
            }
        }
        assert_eq!(take(&field(FieldType::String), &json!("0")), Some(json!("0")));
        for text in ["inf", "-Infinity", "NaN", "1e999"] {
            assert_eq!(take(&field(FieldType::Number), &json!(text)), None, "{text}");
        }
    }
}
