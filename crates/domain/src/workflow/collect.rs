//! Converts the values that were read from a page to fields of the output.

use serde_json::Value;

use super::{Field, FieldType};

const MAX_STRING_CHARS: usize = 4096;

/// Returns the value of a field if it is present and of the field's type.
pub(super) fn take(field: &Field, value: Option<&Value>) -> Option<Value> {
    let value = value?;
    let fits = match field.kind {
        FieldType::String => {
            value.as_str().is_some_and(|text| text.chars().count() <= MAX_STRING_CHARS)
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
