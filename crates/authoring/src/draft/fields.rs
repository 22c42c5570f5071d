//! The fields and variables that a run reads.

use std::collections::{BTreeMap, BTreeSet};

use domain::workflow::{Converter, Definition, ElementContent, Extraction, Field, FieldType, Node};
use serde_json::Value;

use super::{
    DraftError, FieldSource, KnownValues, MAX_PARTS, MAX_PLACE_CHARS, NewField, NewList,
    capitalized,
    changes::moved,
    is_label, is_name, remove_text,
    steps::{reading_node, reads_of_source, remove_empty_steps},
    unused_name,
};
use crate::lists::ListProposal;

/// Returns the names of all fields and variables that nodes read.
pub(super) fn read_names(definition: &Definition) -> BTreeSet<&str> {
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

/// Adds a field that is shared. Known values take the place of the parts of the address of its source
/// that equal them.
///
/// # Errors
/// A name or label is not allowed or taken, the author has to choose what stands in the address, the
/// list is read at another place, or the definition has another form than that of [`new_definition`].
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
    let (_, read) = place(source);
    let extraction =
        Extraction { at: list.rows.member.clone(), read, convert, ..Extraction::default() };
    let column = Column { name, label, field: own, extraction };
    if definition.output.contains_key(&list.name) {
        return add_column(definition, column, &list, source, known);
    }
    add_list(definition, column, list, source, known)
}

/// A member of the rows of a list.
struct Column {
    name: String,
    label: String,
    field: Field,
    extraction: Extraction,
}

fn add_column(
    definition: &mut Definition,
    column: Column,
    list: &NewList,
    source: &FieldSource,
    known: &KnownValues,
) -> Result<(), DraftError> {
    let Column { name, label, field, extraction } = column;
    let existing = definition.output.get(&list.name);
    let existing = existing.filter(|existing| existing.kind == FieldType::List);
    let existing = existing.ok_or_else(|| DraftError::NoList(list.name.clone()))?;
    if existing.members.contains_key(&name) {
        return Err(DraftError::NameTaken(name));
    }
    // What is read there may be something else with a member of the same name.
    if !is_read_at(definition, &list.name, &list.rows, source, known) {
        return Err(DraftError::OtherPlace(list.name.clone()));
    }
    let label_key = text_for(definition, &column_key(list, &name), &label);
    if let Some(existing) = definition.output.get_mut(&list.name) {
        existing.members.insert(name.clone(), Field { label_key, ..field });
        existing.member_order.push(name.clone());
    }
    let reads = definition.nodes.values_mut().find_map(|node| {
        let Node::Collect { fields, .. } = node else { return None };
        fields.get_mut(&list.name)
    });
    reads.ok_or(DraftError::OtherForm)?.members.insert(name, extraction);
    Ok(())
}

fn add_list(
    definition: &mut Definition,
    column: Column,
    list: NewList,
    source: &FieldSource,
    known: &KnownValues,
) -> Result<(), DraftError> {
    let Column { name, label, field, extraction } = column;
    if read_names(definition).contains(list.name.as_str()) {
        return Err(DraftError::NameTaken(list.name));
    }
    let node = reading_node(definition, source, known)?;
    let key = column_key(&list, &name);
    let rows = Extraction {
        at: list.rows.at,
        each: list.rows.each,
        members: [(name.clone(), extraction)].into(),
        ..Extraction::default()
    };
    insert_read(definition, &node, &list.name, rows, false)?;
    let member = Field { label_key: text_for(definition, &key, &label), ..field };
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

/// Returns the name of the text of a column.
fn column_key(list: &NewList, name: &str) -> String {
    format!("{}{}", list.name, capitalized(name))
}

/// Returns the names of the lists that a member of these rows can be a column of: those that are read at
/// the same place of the same source.
pub(crate) fn lists_at(
    definition: &Definition,
    rows: &ListProposal,
    source: &FieldSource,
    known: &KnownValues,
) -> Vec<String> {
    let lists = definition.ordered_output().filter(|(name, field)| {
        field.kind == FieldType::List && is_read_at(definition, name, rows, source, known)
    });
    lists.map(|(name, _)| name.clone()).collect()
}

fn is_read_at(
    definition: &Definition,
    list: &str,
    rows: &ListProposal,
    source: &FieldSource,
    known: &KnownValues,
) -> bool {
    let read = definition.nodes.iter().find_map(|(node, content)| {
        let Node::Collect { fields, .. } = content else { return None };
        Some((node, fields.get(list)?))
    });
    read.is_some_and(|(node, from)| {
        from.at == rows.at
            && from.each == rows.each
            && reads_of_source(definition, node, source, known)
    })
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

pub(super) fn empty_field(kind: FieldType) -> Field {
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
pub(super) fn text_for(definition: &mut Definition, name: &str, label: &str) -> String {
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

/// Removes a field, and the nodes that read nothing any more.
///
/// # Errors
/// There is no such field, or an address or a request has it.
pub fn remove_field(definition: &mut Definition, name: &str) -> Result<(), DraftError> {
    if definition.output.contains_key(name) && is_used(definition, name) {
        return Err(DraftError::ValueUsed(name.to_owned()));
    }
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

/// Removes a value for addresses.
///
/// # Errors
/// There is no such value, or an address or a request has it.
pub fn remove_variable(definition: &mut Definition, name: &str) -> Result<(), DraftError> {
    if is_used(definition, name) {
        return Err(DraftError::ValueUsed(name.to_owned()));
    }
    let mut found = false;
    for node in definition.nodes.values_mut() {
        if let Node::Collect { variables, .. } = node {
            found |= variables.remove(name).is_some();
        }
    }
    if !found {
        return Err(DraftError::NoField(name.to_owned()));
    }
    remove_empty_steps(definition);
    Ok(())
}

/// Returns whether an address or a request has a field or a value for addresses.
pub(super) fn is_used(definition: &Definition, name: &str) -> bool {
    let placeholder = format!("{{{name}}}");
    let in_nodes = definition.nodes.values().any(|node| match node {
        Node::Goto { url, .. } => url.contains(&placeholder),
        Node::Act { .. }
        | Node::Branch { .. }
        | Node::AwaitUser { .. }
        | Node::Collect { .. }
        | Node::Review { .. }
        | Node::Done
        | Node::Fail { .. } => false,
    });
    // Headers have no values, and bodies have them for whole texts alone: a query of GraphQL may have the
    // same text for a selection.
    let in_requests = definition.requests.values().any(|request| {
        request.url.contains(&placeholder)
            || request.body.as_ref().is_some_and(|body| has_text(body, &placeholder))
    });
    let in_login = definition.login_url.contains(&placeholder);
    in_nodes || in_requests || in_login
}

/// Returns whether a text is one of the strings in a body.
fn has_text(body: &Value, text: &str) -> bool {
    match body {
        Value::String(own) => own == text,
        Value::Array(items) => items.iter().any(|item| has_text(item, text)),
        Value::Object(members) => members.values().any(|member| has_text(member, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Moves a field one place up or down in the order in which applicants read the fields.
///
/// # Errors
/// There is no such field.
pub fn move_field(definition: &mut Definition, name: &str, down: bool) -> Result<(), DraftError> {
    let order = definition.ordered_output().map(|(name, _)| name.clone()).collect();
    definition.output_order = moved(order, name, down)?;
    Ok(())
}
