//! What partners may know of a definition: the data that it collects, how applicants sign in, and what
//! can be attested.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Attest, AttestMode, Definition, Field, FieldFormat, FieldType, Node, PromptKind};

/// The longest string that is collected.
const MAX_STRING_CHARS: u32 = 4096;

/// What partners may know of a definition.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlatformProfile {
    /// A pattern for the path of `customUrl`; `None` if sessions have no address of their own.
    pub custom_url_pattern: Option<String>,
    /// The JSON Schema (draft 2020-12) of the data of a session.
    pub data_schema: Value,
    /// What applicants may be asked to do, in the order of [`PromptKind::ALL`].
    pub prompts: Vec<PromptKind>,
    /// How data is attested, and which fields; `None` if nothing can be attested.
    pub attestation: Option<(AttestMode, Vec<String>)>,
    /// The languages of its texts, as BCP 47 tags.
    pub languages: Vec<String>,
}

impl Definition {
    /// Returns what partners may know of this definition.
    #[must_use]
    pub fn profile(&self) -> PlatformProfile {
        let asked = |kind: &&PromptKind| match kind {
            PromptKind::CustomUrl => self.custom_url.is_some(),
            PromptKind::Consent => {
                self.nodes.values().any(|node| matches!(node, Node::Review { .. }))
            }
            PromptKind::Login
            | PromptKind::Otp
            | PromptKind::Push
            | PromptKind::SecurityQuestion
            | PromptKind::AccountPicker
            | PromptKind::Captcha => {
                let asks = |node: &Node| matches!(node, Node::AwaitUser { kind: asked, .. } if asked == *kind);
                self.nodes.values().any(asks)
            }
        };
        let attestation = self
            .attest
            .as_ref()
            .and_then(|attest| Some((attest.mode()?, attest.fields.keys().cloned().collect())));
        PlatformProfile {
            custom_url_pattern: self.custom_url.as_ref().map(|custom| custom.pattern.clone()),
            data_schema: self.data_schema(),
            prompts: PromptKind::ALL.iter().filter(asked).copied().collect(),
            attestation,
            languages: self.texts.keys().cloned().collect(),
        }
    }

    /// Returns the JSON Schema (draft 2020-12) of the data of a session. `x-pii` marks what identifies
    /// or describes a person, `x-attested` what can be attested, and `x-currency` the currency of an
    /// amount (ISO 4217).
    #[must_use]
    pub fn data_schema(&self) -> Value {
        let mut schema = self.members_schema(&self.output, self.attest.as_ref());
        schema.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
        Value::Object(schema)
    }

    fn members_schema(
        &self,
        fields: &BTreeMap<String, Field>,
        attest: Option<&Attest>,
    ) -> Map<String, Value> {
        let properties: Map<_, _> = fields
            .iter()
            .map(|(name, field)| {
                let is_attested = attest.is_some_and(|attest| attest.fields.contains_key(name));
                (name.clone(), self.field_schema(field, is_attested))
            })
            .collect();
        let required: Vec<_> = fields.iter().filter(|(_, field)| field.required).collect();
        let required: Vec<_> = required.into_iter().map(|(name, _)| name.as_str()).collect();
        let mut schema = Map::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), Value::Object(properties));
        schema.insert("required".to_owned(), json!(required));
        schema.insert("additionalProperties".to_owned(), json!(false));
        schema
    }

    fn field_schema(&self, field: &Field, is_attested: bool) -> Value {
        let members = || Value::Object(self.members_schema(&field.members, None));
        let mut schema = match field.kind {
            FieldType::String => json!({ "type": "string", "maxLength": MAX_STRING_CHARS }),
            FieldType::Integer => json!({ "type": "integer" }),
            FieldType::Number => json!({ "type": "number" }),
            FieldType::Boolean => json!({ "type": "boolean" }),
            FieldType::Object => members(),
            FieldType::List => {
                json!({ "type": "array", "maxItems": field.row_limit(), "items": members() })
            }
        };
        let Some(schema_members) = schema.as_object_mut() else { return schema };
        let mut add = |name: &str, value: Value| schema_members.insert(name.to_owned(), value);
        add("title", json!(self.text(None, &field.label_key)));
        match field.format {
            Some(FieldFormat::DateTime) => drop(add("format", json!("date-time"))),
            Some(FieldFormat::Date | FieldFormat::Plain) | None => (),
        }
        if let Some(currency) = &field.currency {
            add("x-currency", json!(currency));
        }
        if field.pii {
            add("x-pii", json!(true));
        }
        if is_attested {
            add("x-attested", json!(true));
        }
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partners_learn_the_data_of_the_sandbox_platform() {
        let sandbox = include_str!("../../platforms/sandbox.json");
        let definition: Definition = serde_json::from_str(sandbox).unwrap();
        let profile = definition.profile();
        let schema = &profile.data_schema;
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["required"], json!(["accountId", "displayName"]));
        assert_eq!(schema["properties"]["accountId"]["x-attested"], true);
        assert_eq!(schema["properties"]["displayName"]["x-pii"], true);
        assert_eq!(schema["properties"]["memberSince"]["title"], "Member since");
        assert!(profile.prompts.contains(&PromptKind::Otp));
        assert!(profile.prompts.contains(&PromptKind::Consent));
        assert!(!profile.prompts.contains(&PromptKind::CustomUrl));
        assert!(
            profile.attestation.is_some_and(|(_, fields)| fields.contains(&"accountId".into()))
        );
        assert!(profile.languages.contains(&"en".to_owned()));
    }
}
