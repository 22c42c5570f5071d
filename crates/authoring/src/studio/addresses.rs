//! The addresses at which values are read, as the author sees them.

use std::collections::BTreeSet;

use domain::workflow::{Definition, Method, Node, Source};
use serde::Serialize;
use serde_json::Value;

use super::{Studio, StudioError, edits::ChosenSource, state::State};
use crate::draft::{
    AddressPart, FieldSource, KnownValues, address_parts, proposed_with_fields, read_address,
};

/// The address of the page or the request that has a value.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AddressView {
    source: &'static str,
    method: &'static str,
    url: String,
    /// The pattern of the path of the response that the page receives.
    watched: Option<AddressPattern>,
    parts: Vec<AddressPart>,
    /// The places of the parts that may be those of the author's account, and stay as they are.
    own: Vec<String>,
    /// The names of all fields and values that are read at the address.
    names: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct AddressPattern {
    pattern: String,
    /// The places of the parts that may be those of the author's account.
    own: Vec<String>,
}

impl Studio {
    /// Returns the address at which a chosen value would be read.
    ///
    /// # Errors
    /// The page or the response is not kept, there is no browser, or the address has too many parts.
    pub async fn address(&self, from: &ChosenSource) -> Result<AddressView, StudioError> {
        let source = self.field_source(from, None).await?;
        let definition = self.definition()?;
        AddressView::of_source(&source, &definition, &self.shared.state())
    }
}

impl AddressView {
    pub(super) fn of_source(
        source: &FieldSource,
        definition: &Definition,
        state: &State,
    ) -> Result<Self, StudioError> {
        let (known, read) = (known_values(definition, state), read_values(state));
        let (name, watched) = match source {
            FieldSource::Page { .. } => ("page", None),
            FieldSource::Request { .. } => ("request", None),
            FieldSource::Response { pattern, .. } => ("response", Some(pattern.clone())),
        };
        let url = source.url().to_owned();
        let parts = proposed_with_fields(&url, &known, &known_fields(definition, state), &read)?;
        let watched = watched.map(|pattern| AddressPattern::of(pattern, &read));
        let (method, own) = (Method::Get.as_str(), own_places(&parts));
        Ok(Self { source: name, method, url, watched, parts, own, names: vec![] })
    }

    /// Returns the address of what a node reads, as the definition has it; `None` if it has none.
    pub(super) fn of_node(definition: &Definition, state: &State, node: &str) -> Option<Self> {
        let Node::Collect { via, .. } = definition.nodes.get(node)? else { return None };
        let address = read_address(definition, node)?;
        let (known, read) = (offered_values(definition, state), read_values(state));
        let offered = address.offered(&known);
        // Of an address with too many parts, none can be changed.
        let parts = address_parts(&address.url, &offered, &read).unwrap_or_default();
        let own = own_places(&parts);
        Some(Self {
            source: source_name(via),
            method: address.method.as_str(),
            url: address.url,
            watched: address.watched.map(|pattern| AddressPattern::of(pattern, &read)),
            parts,
            own,
            names: address.names,
        })
    }
}

impl AddressPattern {
    fn of(pattern: String, read: &KnownValues) -> Self {
        let parts = address_parts(&pattern, &KnownValues::new(), read).unwrap_or_default();
        let own = own_places(&parts);
        Self { pattern, own }
    }
}

fn own_places(parts: &[AddressPart]) -> Vec<String> {
    parts.iter().filter(|part| part.stays_own()).map(|part| part.place.clone()).collect()
}

pub(super) const fn source_name(source: &Source) -> &'static str {
    match source {
        Source::Dom {} => "page",
        Source::Fetch(_) => "request",
        Source::Response(_) => "response",
    }
}

/// Returns the values of variables that runs have read, or that were seen when these were added.
pub(super) fn known_values(definition: &Definition, state: &State) -> KnownValues {
    let variables = definition.nodes.values().filter_map(|node| {
        let Node::Collect { variables, .. } = node else { return None };
        Some(variables.keys())
    });
    let values =
        variables.flatten().filter_map(|name| Some((name.clone(), known_text(state, name)?)));
    values.collect()
}

/// Returns the fields that can stand in addresses, as [`known_values`]. Without an optional one, a run
/// could not open the page.
fn known_fields(definition: &Definition, state: &State) -> KnownValues {
    let fields = definition.output.iter();
    let fields = fields.filter(|(_, field)| field.required && !field.kind.has_members());
    fields.filter_map(|(name, _)| Some((name.clone(), known_text(state, name)?))).collect()
}

/// Returns the values and the fields that an author may choose for parts of an address.
pub(super) fn offered_values(definition: &Definition, state: &State) -> KnownValues {
    let mut offered = known_values(definition, state);
    offered.extend(known_fields(definition, state));
    offered
}

/// Returns all texts that are known of the author's account and that may stand in an address: those of
/// fields and values by their names, and those that fields had before they were changed.
pub(super) fn read_values(state: &State) -> KnownValues {
    let mut known = known_texts(state);
    // No field has such a name, since names have no control characters.
    let former = state.former.iter().enumerate();
    known.extend(former.map(|(index, text)| (format!("\n{index}"), text.clone())));
    known
}

/// Returns all values that runs have read and that may stand in an address, and those that were seen when
/// they were added.
pub(super) fn known_texts(state: &State) -> KnownValues {
    let names: BTreeSet<&String> = state.values.keys().chain(state.samples.keys()).collect();
    let values = names.into_iter().filter_map(|name| {
        let text = known_text(state, name)?;
        (!text.is_empty()).then(|| (name.clone(), text))
    });
    values.collect()
}

/// Returns the text of a field or a value of the author's account, as the run has read it. One that the
/// run has not read, such as one that was added since, has the text that was seen before.
fn known_text(state: &State, name: &str) -> Option<String> {
    match state.values.get(name) {
        Some(Ok(value)) => scalar_text(value),
        Some(Err(_)) | None => state.samples.get(name).cloned(),
    }
}

/// Returns the text that a value has in an address; `None` if it can stand in none.
pub(super) fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}
