//! Chooses a value of a body that an attestation could state.

use serde_json::Value;

/// Returns the JSON pointer to the shortest string, number, boolean or null within an object or list:
/// it is the least likely to repeat a value of the request.
pub(crate) fn shortest_value(value: &Value) -> Option<String> {
    shortest_member(value).map(|(_, pointer)| pointer)
}

/// Returns the length of the shortest value, and the pointer to it.
fn shortest_member(value: &Value) -> Option<(usize, String)> {
    let entry = |name: String, value: &Value| match value {
        // The depth is bounded by the reader of the text.
        Value::Object(_) | Value::Array(_) => {
            shortest_member(value).map(|(length, pointer)| (length, format!("/{name}{pointer}")))
        }
        Value::String(text) => Some((text.len(), format!("/{name}"))),
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            Some((value.to_string().len(), format!("/{name}")))
        }
    };
    let length = |(length, _): &(usize, String)| *length;
    match value {
        Value::Object(members) => {
            let escaped = |name: &String| name.replace('~', "~0").replace('/', "~1");
            let entries = members.iter().filter_map(|(name, value)| entry(escaped(name), value));
            entries.min_by_key(length)
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.filter_map(|(at, value)| entry(at.to_string(), value)).min_by_key(length)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_value_has_a_pointer() {
        for (text, pointer) in [
            (r#"{"id":1}"#, Some("/id")),
            (r#"{"a":[],"a/~b":[{},{"c":null}]}"#, Some("/a~1~0b/1/c")),
            ("[[],true]", Some("/1")),
            (r#"{"a":{"b":"four"},"c":[false,"","x"]}"#, Some("/c/1")),
            ("{}", None),
            ("[{}]", None),
            ("7", None),
        ] {
            let value = serde_json::from_str(text).unwrap();
            let found = shortest_value(&value);
            assert_eq!(found.as_deref(), pointer, "{text}");
            assert!(found.is_none_or(|found| value.pointer(&found).is_some()), "{text}");
        }
    }
}
