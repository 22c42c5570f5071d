//! The fields and variables that a run reads.

use std::collections::{BTreeMap, BTreeSet};

use domain::workflow::{Converter, Definition, ElementContent, Extraction, Field, FieldType, Node};
use serde::Deserialize;

use super::{
    DraftError, FieldSource, KnownValues, MAX_PARTS, MAX_PLACE_CHARS, NewField, capitalized,
    is_label, is_name, remove_text,
    steps::{reading_node, remove_empty_steps},
    unused_name,
};

/// Returns the names of all fields and variables that nodes read.
fn read_names(definition: &Definition) -> BTreeSet<&str> {
    let names = definition.nodes.values().flat_map(|node| match node {
        Node::Collect { fields, variables, .. } => {
            fields.keys().chain(variables.keys()).map(String::as_str).collect()
        }
        Node::Goto { .. }
        | Node::Act { .. }
        | Node::Branch { .. }
        | Node::AwaitUser { .. }
        | Node::Review { .. }
        | Node::Done
        | Node::Fail { .. } => vec![],
    });
    names.collect()
}

/// Adds a field that is shared. Values that were read before take the place of their text in the address
/// of its page.
///
/// # Errors
/// A name or label is not allowed or taken, or the definition has another form than that of
/// [`new_definition`].
pub fn add_field(
    definition: &mut Definition,
    field: NewField,
    source: &FieldSource,
    known: &KnownValues,
) -> Result<(), DraftError> {
    let NewField { name, label, kind, format, currency, required, pii, convert, list } = field;
    let names_given = list.iter().map(|list| (&list.name, &list.label)).chain([(&name, &label)]);
    for (name, label) in names_given {
        if !is_name(name) {
            return Err(DraftError::Name);
        }
        if !is_label(label) {
            return Err(DraftError::Label);
        }
    }
    if definition.output.len() >= MAX_PARTS {
        return Err(DraftError::TooMany);
    }
    let own = Field {
        kind,
        required,
        label_key: String::new(),
        format,
        currency,
        pii,
        ..empty_field(kind)
    };
    let Some(list) = list else {
        if read_names(definition).contains(name.as_str()) {
            return Err(DraftError::NameTaken(name));
        }
        let (at, read) = place(source);
        let extraction = Extraction { at, read, convert, ..Extraction::default() };
        let node = reading_node(definition, source, known)?;
        insert_read(definition, &node, &name, extraction, false)?;
        let label_key = text_for(definition, &name, &label);
        definition.output.insert(name.clone(), Field { label_key, ..own });
        definition.output_order.push(name);
        return Ok(());
    };
    let key = format!("{}{}", list.name, capitalized(&name));
    let label_key = text_for(definition, &key, &label);
    let member = Field { label_key, ..own };
    let (_, read) = place(source);
    let extraction =
        Extraction { at: list.rows.member.clone(), read, convert, ..Extraction::default() };
    if let Some(existing) = definition.output.get_mut(&list.name) {
        if existing.kind != FieldType::List {
            return Err(DraftError::NoList(list.name));
        }
        if existing.members.contains_key(&name) {
            return Err(DraftError::NameTaken(name));
        }
        existing.members.insert(name.clone(), member);
        existing.member_order.push(name.clone());
        let reads = definition.nodes.values_mut().find_map(|node| {
            let Node::Collect { fields, .. } = node else { return None };
            fields.get_mut(&list.name)
        });
        reads.ok_or(DraftError::OtherForm)?.members.insert(name, extraction);
        return Ok(());
    }
    if read_names(definition).contains(list.name.as_str()) {
        return Err(DraftError::NameTaken(list.name));
    }
    let node = reading_node(definition, source, known)?;
    let rows = Extraction {
        at: list.rows.at,
        each: list.rows.each,
        members: [(name.clone(), extraction)].into(),
        ..Extraction::default()
    };
    insert_read(definition, &node, &list.name, rows, false)?;
    let label_key = text_for(definition, &list.name, &list.label);
    let whole = Field {
        label_key,
        members: [(name.clone(), member)].into(),
        member_order: vec![name],
        ..empty_field(FieldType::List)
    };
    definition.output.insert(list.name.clone(), whole);
    definition.output_order.push(list.name);
    Ok(())
}

/// Adds a value that later addresses use and that is not shared.
///
/// # Errors
/// As [`add_field`].
pub fn add_variable(
    definition: &mut Definition,
    name: &str,
    convert: Vec<Converter>,
    source: &FieldSource,
    known: &KnownValues,
) -> Result<(), DraftError> {
    if !is_name(name) {
        return Err(DraftError::Name);
    }
    if read_names(definition).contains(name) {
        return Err(DraftError::NameTaken(name.to_owned()));
    }
    let (at, read) = place(source);
    let extraction = Extraction { at, read, convert, ..Extraction::default() };
    let node = reading_node(definition, source, known)?;
    insert_read(definition, &node, name, extraction, true)
}

fn empty_field(kind: FieldType) -> Field {
    Field {
        kind,
        required: false,
        label_key: String::new(),
        format: None,
        currency: None,
        pii: false,
        value_keys: BTreeMap::new(),
        members: BTreeMap::new(),
        member_order: vec![],
        max_rows: None,
    }
}

/// Stores the text of a label, and returns its key.
fn text_for(definition: &mut Definition, name: &str, label: &str) -> String {
    let english = definition.texts.entry("en".to_owned()).or_default();
    let key = unused_name(&format!("label{}", capitalized(name)), |key| english.contains_key(key));
    english.insert(key.clone(), label.trim().to_owned());
    key
}

fn place(source: &FieldSource) -> (String, ElementContent) {
    match source {
        FieldSource::Page { at, read, .. } => (at.clone(), read.clone()),
        FieldSource::Request { pointer, .. } | FieldSource::Response { pointer, .. } => {
            (pointer.clone(), ElementContent::default())
        }
    }
}

fn insert_read(
    definition: &mut Definition,
    node: &str,
    name: &str,
    extraction: Extraction,
    is_variable: bool,
) -> Result<(), DraftError> {
    let places = extraction.members.values().chain([&extraction]).map(|one| one.at.chars().count());
    if places.max().unwrap_or_default() > MAX_PLACE_CHARS {
        return Err(DraftError::PlaceTooLong);
    }
    let Some(Node::Collect { fields, variables, .. }) = definition.nodes.get_mut(node) else {
        return Err(DraftError::OtherForm);
    };
    let reads = if is_variable { variables } else { fields };
    reads.insert(name.to_owned(), extraction);
    Ok(())
}

/// What an author changes of a field.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    pub name: String,
    pub new_name: String,
    pub label: String,
    pub required: bool,
    pub pii: bool,
}

/// Changes the name, the label and the marks of a field.
///
/// # Errors
/// There is no such field, or the new name or label is not allowed or taken.
pub fn edit_field(definition: &mut Definition, change: FieldChange) -> Result<(), DraftError> {
    let FieldChange { name, new_name, label, required, pii } = change;
    if !is_name(&new_name) {
        return Err(DraftError::Name);
    }
    if !is_label(&label) {
        return Err(DraftError::Label);
    }
    let is_renamed = name != new_name;
    if is_renamed && read_names(definition).contains(new_name.as_str()) {
        return Err(DraftError::NameTaken(new_name));
    }
    let mut field =
        definition.output.remove(&name).ok_or_else(|| DraftError::NoField(name.clone()))?;
    (field.required, field.pii) = (required, pii);
    let english = definition.texts.entry("en".to_owned()).or_default();
    english.insert(field.label_key.clone(), label.trim().to_owned());
    definition.output.insert(new_name.clone(), field);
    for listed in definition.output_order.iter_mut().filter(|listed| **listed == name) {
        new_name.clone_into(listed);
    }
    for node in definition.nodes.values_mut() {
        if let Node::Collect { fields, .. } = node
            && let Some(extraction) = fields.remove(&name)
        {
            fields.insert(new_name.clone(), extraction);
        }
    }
    if is_renamed {
        rename_in_urls(definition, &name, &new_name);
        if let Some(attest) = &mut definition.attest
            && let Some(pointer) = attest.fields.remove(&name)
        {
            attest.fields.insert(new_name, pointer);
        }
    }
    Ok(())
}

fn rename_in_urls(definition: &mut Definition, name: &str, new_name: &str) {
    let (old, new) = (format!("{{{name}}}"), format!("{{{new_name}}}"));
    for node in definition.nodes.values_mut() {
        if let Node::Goto { url, .. } = node {
            *url = url.replace(&old, &new);
        }
    }
    for request in definition.requests.values_mut() {
        request.url = request.url.replace(&old, &new);
    }
}

/// Removes a field, and the nodes that read nothing any more.
///
/// # Errors
/// There is no such field.
pub fn remove_field(definition: &mut Definition, name: &str) -> Result<(), DraftError> {
    let field = definition.output.remove(name);
    let field = field.ok_or_else(|| DraftError::NoField(name.to_owned()))?;
    let members = field.members.values().map(|member| member.label_key.clone());
    for key in members.chain([field.label_key.clone()]).collect::<Vec<_>>() {
        remove_text(definition, &key);
    }
    definition.output_order.retain(|listed| listed != name);
    if let Some(attest) = &mut definition.attest {
        attest.fields.remove(name);
    }
    for node in definition.nodes.values_mut() {
        if let Node::Collect { fields, .. } = node {
            fields.remove(name);
        }
    }
    remove_empty_steps(definition);
    Ok(())
}

/// Moves a field one place up or down in the order in which applicants read the fields.
///
/// # Errors
/// There is no such field.
pub fn move_field(definition: &mut Definition, name: &str, down: bool) -> Result<(), DraftError> {
    let mut order: Vec<_> = definition.ordered_output().map(|(name, _)| name.clone()).collect();
    let at = order.iter().position(|listed| listed == name);
    let at = at.ok_or_else(|| DraftError::NoField(name.to_owned()))?;
    let to = if down { at.checked_add(1) } else { at.checked_sub(1) };
    if let Some(to) = to.filter(|to| *to < order.len()) {
        order.swap(at, to);
    }
    definition.output_order = order;
    Ok(())
}
