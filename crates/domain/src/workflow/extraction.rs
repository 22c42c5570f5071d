//! Where the value of a field is read, and how it is converted.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, value::MapAccessDeserializer},
};

use super::{Converter, JsonPath};

/// Where a value is read, and how it is converted. Written as a string if it is a place alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extraction {
    /// A JSON pointer (RFC 6901), or for the page a CSS selector.
    pub at: String,
    pub read: ElementContent,
    pub element: ElementChoice,
    /// Applied in order, each to the result of the one before: at most 10.
    pub convert: Vec<Converter>,
    /// For a list in the page: the selector of its rows, in the element at `at`.
    pub each: Option<String>,
    /// For a list in the page: the selector of what the page shows in place of the list if it has no
    /// rows. The list is empty if a visible element matches this selector, and nothing matches `at` or
    /// the only row there has nothing at the place of a required member.
    pub empty_when: Option<String>,
    /// For an object or a list: the members, with places in the object or row. An empty place is that
    /// of the object or row itself. None of them has members.
    pub members: BTreeMap<String, Self>,
}

/// What is read of an element.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ElementContent {
    /// Its text, without spaces around it.
    #[default]
    Text,
    /// The value of a form field; of a list of options, the one that is chosen. Fields for passwords
    /// and one-time codes have none.
    Value,
    /// The attribute with this name.
    Attribute(String),
}

/// Which of the elements that match a selector is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ElementChoice {
    /// The first in the order of the document.
    #[default]
    First,
    Last,
}

/// An extraction in full.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FullExtraction {
    /// A JSON pointer (RFC 6901), or for the page a CSS selector.
    at: String,
    /// What is read of the element; the text if it is left out.
    #[serde(default, skip_serializing_if = "is_default")]
    read: ElementContent,
    /// Which of several elements is read; the first if it is left out.
    #[serde(default, skip_serializing_if = "is_default")]
    element: ElementChoice,
    /// Applied in order, each to the result of the one before: at most 10.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    convert: Vec<Converter>,
    /// For a list in the page: the selector of its rows, in the element at `at`.
    #[serde(default, skip_serializing_if = "is_default")]
    each: Option<String>,
    /// For a list in the page: the selector of what the page shows in place of the list if it has no
    /// rows. The list is empty if a visible element matches this selector, and nothing matches `at` or
    /// the only row there has nothing at the place of a required member.
    #[serde(default, skip_serializing_if = "is_default")]
    empty_when: Option<String>,
    /// For an object or a list: the members, with places in the object or row. An empty place is that
    /// of the object or row itself. None of them has members.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    members: BTreeMap<String, Extraction>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Extraction {
    /// Whether it is a place alone, which is written as a string.
    fn is_place(&self) -> bool {
        is_default(&self.read)
            && is_default(&self.element)
            && self.convert.is_empty()
            && self.each.is_none()
            && self.empty_when.is_none()
            && self.members.is_empty()
    }

    /// Adds the selectors, with their places, if the extraction is at `path`. A place that is empty has
    /// none.
    pub(super) fn selector_paths<'a>(
        &'a self,
        path: &JsonPath,
        selectors: &mut Vec<(JsonPath, &'a str)>,
    ) {
        if !self.at.is_empty() {
            selectors.push((self.at_path(path), &self.at));
        }
        selectors.extend(self.each.iter().map(|each| (path.member("each"), each.as_str())));
        let empty_when = self.empty_when.iter();
        selectors.extend(empty_when.map(|shown| (path.member("emptyWhen"), shown.as_str())));
        for (name, member) in &self.members {
            member.selector_paths(&path.member("members").member(name), selectors);
        }
    }

    /// Returns where the place stands in the document, if the extraction is at `path`.
    pub(super) fn at_path(&self, path: &JsonPath) -> JsonPath {
        if self.is_place() { path.clone() } else { path.member("at") }
    }
}

impl From<&str> for Extraction {
    fn from(at: &str) -> Self {
        Self { at: at.to_owned(), ..Self::default() }
    }
}

impl Serialize for Extraction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_place() {
            return serializer.serialize_str(&self.at);
        }
        let Self { at, read, element, convert, each, empty_when, members } = self.clone();
        FullExtraction { at, read, element, convert, each, empty_when, members }
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Extraction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ExtractionReader;

        impl<'de> de::Visitor<'de> for ExtractionReader {
            type Value = Extraction;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a place, or an object with the member `at`")
            }

            fn visit_str<E: de::Error>(self, at: &str) -> Result<Extraction, E> {
                Ok(at.into())
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Extraction, A::Error> {
                let full = FullExtraction::deserialize(MapAccessDeserializer::new(map))?;
                let FullExtraction { at, read, element, convert, each, empty_when, members } = full;
                Ok(Extraction { at, read, element, convert, each, empty_when, members })
            }
        }

        deserializer.deserialize_any(ExtractionReader)
    }
}

impl JsonSchema for Extraction {
    fn schema_name() -> Cow<'static, str> {
        "Extraction".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let full = generator.subschema_for::<FullExtraction>();
        json_schema!({
            "description": "Where a value is read: a JSON pointer, or for the page a CSS selector; \
                            or an object that also says how it is converted.",
            "anyOf": [{ "type": "string" }, full],
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn an_extraction_keeps_its_form() {
        for document in [
            json!("/id"),
            json!({ "at": "h1", "element": "last" }),
            json!({ "at": "a", "read": { "attribute": "href" }, "convert": ["trim"] }),
            json!({ "at": "input", "read": "value" }),
            json!({ "at": "table", "each": "tr", "members": { "id": "td", "row": "" } }),
            json!({ "at": "table", "emptyWhen": ".none" }),
        ] {
            let read: Extraction = serde_json::from_value(document.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), document);
        }
        let plain: Extraction = serde_json::from_value(json!({ "at": "/id" })).unwrap();
        assert_eq!(serde_json::to_value(&plain).unwrap(), json!("/id"));
        for document in [json!(1), json!({}), json!({ "at": "a", "reed": "value" }), Value::Null] {
            assert!(serde_json::from_value::<Extraction>(document).is_err());
        }
    }
}
