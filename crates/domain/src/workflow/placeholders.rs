//! Placeholders for collected values, `{name}`, in URLs and in the bodies of requests.

use std::fmt::Write as _;

use serde_json::Value;

const MAX_VALUE_CHARS: usize = 512;

/// Returns the names of the placeholders in a text; an error if a brace is not closed or not opened.
pub(super) fn names(text: &str) -> Result<Vec<&str>, &'static str> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        if before.contains('}') {
            return Err("a brace is closed that was not opened");
        }
        let (name, after) = after.split_once('}').ok_or("a brace is not closed")?;
        names.push(name);
        rest = after;
    }
    if rest.contains('}') { Err("a brace is closed that was not opened") } else { Ok(names) }
}

/// Returns a URL with values in place of the names, encoded so that none changes its structure (RFC
/// 6570, level 1). `None` if a value is missing, or is no text, number or boolean of 1 to 512
/// characters.
pub(super) fn expand_url<'a>(
    url: &str,
    value: impl Fn(&str) -> Option<&'a Value>,
) -> Option<String> {
    let mut expanded = String::with_capacity(url.len());
    let mut rest = url;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}')?;
        expanded.push_str(before);
        let text = match value(name)? {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(boolean) => boolean.to_string(),
            // The first page of a list has no cursor.
            Value::Null => {
                rest = after;
                continue;
            }
            Value::Array(_) | Value::Object(_) => return None,
        };
        // A dot segment would lead to another path (RFC 3986, section 5.2.4).
        let is_dots = matches!(text.as_str(), "." | "..");
        if text.is_empty() || is_dots || text.chars().count() > MAX_VALUE_CHARS {
            return None;
        }
        for byte in text.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                expanded.push(char::from(byte));
            } else {
                write!(expanded, "%{byte:02X}").ok()?;
            }
        }
        rest = after;
    }
    expanded.push_str(rest);
    Some(expanded)
}

/// Returns the name if a text is a placeholder and nothing else.
fn whole_name(text: &str) -> Option<&str> {
    let name = text.strip_prefix('{')?.strip_suffix('}')?;
    (!name.is_empty() && !name.contains(['{', '}'])).then_some(name)
}

/// Returns the names that stand in place of values in a body.
pub(super) fn body_names(body: &Value) -> Vec<&str> {
    match body {
        Value::String(text) => whole_name(text).into_iter().collect(),
        Value::Array(items) => items.iter().flat_map(body_names).collect(),
        Value::Object(members) => members.values().flat_map(body_names).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => vec![],
    }
}

/// Returns a body with values in place of the names; `None` if one is missing.
pub(super) fn expand_body<'a>(
    body: &Value,
    value: &impl Fn(&str) -> Option<&'a Value>,
) -> Option<Value> {
    Some(match body {
        Value::String(text) => match whole_name(text) {
            Some(name) => value(name)?.clone(),
            None => body.clone(),
        },
        Value::Array(items) => {
            let items = items.iter().map(|item| expand_body(item, value));
            items.collect::<Option<Vec<_>>>()?.into()
        }
        Value::Object(members) => {
            let members = members.iter();
            let members =
                members.map(|(name, member)| Some((name.clone(), expand_body(member, value)?)));
            Value::Object(members.collect::<Option<_>>()?)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => body.clone(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_cannot_change_the_structure_of_a_url() {
        let expand = |value: Value| {
            expand_url("https://a.test/u/{id}/x?y={id}", |name| (name == "id").then_some(&value))
        };
        for (value, text) in [
            (json!("ada"), "ada"),
            (json!(7), "7"),
            (json!(null), ""),
            (json!("a/b?c#d"), "a%2Fb%3Fc%23d"),
            (json!("../x"), "..%2Fx"),
            (json!("é {id}"), "%C3%A9%20%7Bid%7D"),
        ] {
            assert_eq!(expand(value).unwrap(), format!("https://a.test/u/{text}/x?y={text}"));
        }
        for value in [json!(""), json!("."), json!(".."), json!({}), json!([1])] {
            assert_eq!(expand(value.clone()), None, "{value}");
        }
        assert_eq!(expand(json!("a".repeat(513))), None);
        assert_eq!(expand_url("https://a.test/{other}", |_| None), None);
    }

    #[test]
    fn a_value_stands_within_a_parameter_or_a_segment() {
        let expand = |url: &str, value: Value| {
            expand_url(url, |name| (name == "user").then_some(&value)).unwrap()
        };
        let url = "https://a.test/by:{user}/posts?filter=status%3Aopen%2Bauthors%3A{user}&limit=30";
        assert_eq!(expand(url, json!("ada")), url.replace("{user}", "ada"));
        assert_eq!(expand(url, json!("a+b,c d&e")), url.replace("{user}", "a%2Bb%2Cc%20d%26e"));
    }

    #[test]
    fn names_are_found_and_braces_must_match() {
        assert_eq!(names("/a/{b}/{c}"), Ok(vec!["b", "c"]));
        for wrong in ["/{a", "/a}", "/{a}}", "/{a}/{"] {
            assert!(names(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn values_stand_in_bodies_for_whole_strings_only() {
        let id = json!(5);
        let value = |name: &str| (name == "id").then_some(&id);
        let body =
            json!({ "query": "query($id: ID) { me { id } }", "variables": [{ "id": "{id}" }] });
        assert_eq!(body_names(&body), ["id"]);
        let expanded = expand_body(&body, &value).unwrap();
        assert_eq!(expanded["variables"], json!([{ "id": 5 }]));
        assert_eq!(expanded["query"], body["query"]);
        assert_eq!(expand_body(&json!(["{other}"]), &value), None);
    }
}
