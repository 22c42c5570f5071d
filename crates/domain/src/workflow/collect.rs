//! Takes the output's fields out of what was read.

use serde_json::Value;

use super::{Field, FieldType};

const LONGEST_STRING: usize = 4096;

/// The value of a field, where it is there and of its type.
pub(super) fn take(field: &Field, value: Option<&Value>) -> Option<Value> {
    let value = value?;
    let fits = match field.kind {
        FieldType::String => {
            value.as_str().is_some_and(|text| text.chars().count() <= LONGEST_STRING)
        }
        FieldType::Integer => value.is_i64() || value.is_u64(),
        FieldType::Number => value.is_number(),
        FieldType::Boolean => value.is_boolean(),
    };
    if fits {
        return Some(value.clone());
    }
    // The DOM holds text alone.
    let text = value.as_str()?.trim();
    match field.kind {
        FieldType::String => None,
        FieldType::Integer => text.parse::<i64>().ok().map(Value::from),
        FieldType::Number => text.parse::<f64>().ok().map(Value::from),
        FieldType::Boolean => text.parse::<bool>().ok().map(Value::from),
    }
}
