//! Changes of what a run reads already: the names, marks, places and converters of fields, of columns of
//! lists and of members of objects, and how a list leads to its next page.

use std::collections::BTreeMap;

use domain::workflow::{
    Action, Converter, Definition, ElementChoice, ElementContent, Extraction, Field, FieldFormat,
    FieldType, NextPage, Node, Pages, Source,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    DraftError, MAX_PLACE_CHARS, capitalized,
    fields::{empty_field, is_used, read_names, text_for},
    is_label, is_name, remove_text,
};

/// The columns that a list has at most.
const MAX_MEMBERS: usize = 30;

/// Where a value is read, and what it becomes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reading {
    #[serde(rename = "type")]
    pub kind: FieldType,
    #[serde(default)]
    pub format: Option<FieldFormat>,
    #[serde(default)]
    pub currency: Option<String>,
    pub at: String,
    #[serde(default)]
    pub read: ElementContent,
    #[serde(default)]
    pub element: ElementChoice,
    #[serde(default)]
    pub convert: Vec<Converter>,
    /// For a list in the page: the selector of its rows.
    #[serde(default)]
    pub each: Option<String>,
    /// For a list in the page: the selector of what is shown instead when there are no rows.
    #[serde(default)]
    pub empty_when: Option<String>,
    /// For a list: the number of rows after which it ends; 100 if it is left out.
    #[serde(default)]
    pub max_rows: Option<u16>,
}

impl Reading {
    /// Returns how a field is read.
    #[must_use]
    pub fn of(field: &Field, from: &Extraction) -> Self {
        let Extraction { at, read, element, convert, each, empty_when, .. } = from.clone();
        let (kind, format, currency) = (field.kind, field.format, field.currency.clone());
        let max_rows = field.max_rows;
        Self { kind, format, currency, at, read, element, convert, each, empty_when, max_rows }
    }

    /// Returns how a value for addresses is read. It has no type of its own: its text stands in them.
    pub(crate) fn of_variable(from: &Extraction) -> Self {
        let Extraction { at, read, element, convert, .. } = from.clone();
        Self {
            kind: FieldType::String,
            format: None,
            currency: None,
            at,
            read,
            element,
            convert,
            each: None,
            empty_when: None,
            max_rows: None,
        }
    }

    /// Has a field be read in this way. One with members keeps them, and its type.
    fn apply(self, field: &mut Field, from: Option<&mut Extraction>) -> Result<(), DraftError> {
        let places = [Some(&self.at), self.each.as_ref(), self.empty_when.as_ref()];
        let is_long = |place: &String| place.chars().count() > MAX_PLACE_CHARS;
        if places.into_iter().flatten().any(is_long) {
            return Err(DraftError::PlaceTooLong);
        }
        if self.kind != field.kind && (self.kind.has_members() || field.kind.has_members()) {
            return Err(DraftError::HasMembers);
        }
        let from = from.ok_or(DraftError::OtherForm)?;
        (from.at, from.element) = (self.at, self.element);
        if field.kind.has_members() {
            (from.each, from.empty_when) = (self.each, self.empty_when);
            field.max_rows = self.max_rows;
            return Ok(());
        }
        (field.kind, field.format, field.currency) = (self.kind, self.format, self.currency);
        (from.read, from.convert) = (self.read, self.convert);
        Ok(())
    }
}

/// What an author changes of a field.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    /// The list or the object that has the field.
    #[serde(default)]
    pub within: Option<String>,
    pub name: String,
    pub new_name: String,
    pub label: String,
    pub required: bool,
    pub pii: bool,
    /// How it is read from now on; as before if it is left out.
    #[serde(default)]
    pub reading: Option<Reading>,
}

/// Changes the name, the label, the marks and the reading of a field.
///
/// # Errors
/// There is no such field, the new name or label is not allowed or taken, or a field is to be optional
/// whose value an address or a request has.
pub fn edit_field(definition: &mut Definition, change: FieldChange) -> Result<(), DraftError> {
    if !is_name(&change.new_name) {
        return Err(DraftError::Name);
    }
    if !is_label(&change.label) {
        return Err(DraftError::Label);
    }
    match change.within.clone() {
        Some(group) => edit_member(definition, &group, change),
        None => edit_own(definition, change),
    }
}

fn edit_own(definition: &mut Definition, change: FieldChange) -> Result<(), DraftError> {
    let FieldChange { name, new_name, label, required, pii, reading, .. } = change;
    let is_renamed = name != new_name;
    if is_renamed && read_names(definition).contains(new_name.as_str()) {
        return Err(DraftError::NameTaken(new_name));
    }
    let field = definition.output.get(&name).ok_or_else(|| DraftError::NoField(name.clone()))?;
    if field.required && !required && is_used(definition, &name) {
        return Err(DraftError::ValueNeeded(name));
    }
    let mut field = Field { required, pii, ..field.clone() };
    if let Some(reading) = reading {
        reading.apply(&mut field, extraction(definition, &name))?;
    }
    drop_value_texts(definition, &mut field);
    set_text(definition, &field.label_key, &label);
    definition.output.remove(&name);
    definition.output.insert(new_name.clone(), field);
    rename_in(&mut definition.output_order, &name, &new_name);
    for node in definition.nodes.values_mut() {
        if let Node::Collect { fields, .. } = node
            && let Some(extraction) = fields.remove(&name)
        {
            fields.insert(new_name.clone(), extraction);
        }
    }
    if is_renamed {
        rename_uses(definition, &name, &new_name);
        if let Some(attest) = &mut definition.attest
            && let Some(pointer) = attest.fields.remove(&name)
        {
            attest.fields.insert(new_name, pointer);
        }
    }
    Ok(())
}

fn edit_member(
    definition: &mut Definition,
    group: &str,
    change: FieldChange,
) -> Result<(), DraftError> {
    let FieldChange { name, new_name, label, required, pii, reading, .. } = change;
    let whole = group_of(definition, group)?;
    if name != new_name && whole.members.contains_key(&new_name) {
        return Err(DraftError::NameTaken(new_name));
    }
    let member = whole.members.get(&name).ok_or_else(|| DraftError::NoField(name.clone()))?;
    let mut member = Field { required, pii, ..member.clone() };
    if let Some(reading) = reading {
        let from = extraction(definition, group).ok_or(DraftError::OtherForm)?;
        // One that is not read yet is read from now on.
        let from = from.members.entry(name.clone()).or_default();
        reading.apply(&mut member, Some(from))?;
    }
    drop_value_texts(definition, &mut member);
    set_text(definition, &member.label_key, &label);
    let whole = group_of(definition, group)?;
    whole.members.remove(&name);
    whole.members.insert(new_name.clone(), member);
    rename_in(&mut whole.member_order, &name, &new_name);
    for members in reads_of_members(definition, group) {
        if let Some(extraction) = members.remove(&name) {
            members.insert(new_name.clone(), extraction);
        }
    }
    Ok(())
}

/// What an author changes of a value for addresses.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VariableChange {
    pub name: String,
    pub new_name: String,
    /// How it is read from now on, of which the place, the element, what is read of it and the steps count;
    /// as before if it is left out.
    #[serde(default)]
    pub reading: Option<Reading>,
}

/// Changes the name and the reading of a value for addresses. The addresses and the bodies of requests that
/// have it have it by its new name.
///
/// # Errors
/// There is no such value, or the new name is not allowed or taken, or the place is too long.
pub fn edit_variable(
    definition: &mut Definition,
    change: VariableChange,
) -> Result<(), DraftError> {
    let VariableChange { name, new_name, mut reading } = change;
    if !is_name(&new_name) {
        return Err(DraftError::Name);
    }
    let is_renamed = name != new_name;
    if is_renamed && read_names(definition).contains(new_name.as_str()) {
        return Err(DraftError::NameTaken(new_name));
    }
    let is_long = |reading: &Reading| reading.at.chars().count() > MAX_PLACE_CHARS;
    if reading.as_ref().is_some_and(is_long) {
        return Err(DraftError::PlaceTooLong);
    }
    let mut found = false;
    for node in definition.nodes.values_mut() {
        let Node::Collect { variables, .. } = node else { continue };
        let Some(mut from) = variables.remove(&name) else { continue };
        // Of several places, the first is changed, as that of a field.
        if let Some(reading) = reading.take() {
            (from.at, from.element) = (reading.at, reading.element);
            (from.read, from.convert) = (reading.read, reading.convert);
        }
        variables.insert(new_name.clone(), from);
        found = true;
    }
    if !found {
        return Err(DraftError::NoField(name));
    }
    if is_renamed {
        rename_uses(definition, &name, &new_name);
    }
    Ok(())
}

/// A column of a list, or a member of an object, to be added.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewMember {
    /// The list or the object.
    pub within: String,
    pub name: String,
    pub label: String,
    pub required: bool,
    pub pii: bool,
    pub reading: Reading,
}

/// Adds a column to a list, or a member to an object.
///
/// # Errors
/// There is no such list or object, it has too many members, or the name or label is not allowed or
/// taken.
pub fn add_member(definition: &mut Definition, new: NewMember) -> Result<(), DraftError> {
    let NewMember { within, name, label, required, pii, reading } = new;
    if !is_name(&name) {
        return Err(DraftError::Name);
    }
    if !is_label(&label) {
        return Err(DraftError::Label);
    }
    let whole = group_of(definition, &within)?;
    if whole.members.contains_key(&name) {
        return Err(DraftError::NameTaken(name));
    }
    if whole.members.len() >= MAX_MEMBERS {
        return Err(DraftError::TooMany);
    }
    if reading.kind.has_members() {
        return Err(DraftError::HasMembers);
    }
    let mut member = Field { required, pii, ..empty_field(reading.kind) };
    let mut from = Extraction::default();
    reading.apply(&mut member, Some(&mut from))?;
    let reads = extraction(definition, &within).ok_or(DraftError::OtherForm)?;
    reads.members.insert(name.clone(), from);
    member.label_key = text_for(definition, &format!("{within}{}", capitalized(&name)), &label);
    let whole = group_of(definition, &within)?;
    // The order of those that are not listed yet must not change.
    whole.member_order = whole.ordered_members().map(|(name, _)| name.clone()).collect();
    whole.members.insert(name.clone(), member);
    whole.member_order.push(name);
    Ok(())
}

/// Removes a column of a list, or a member of an object.
///
/// # Errors
/// There is no such member, or it is the only one.
pub fn remove_member(
    definition: &mut Definition,
    group: &str,
    name: &str,
) -> Result<(), DraftError> {
    let whole = group_of(definition, group)?;
    if whole.members.contains_key(name) && whole.members.len() == 1 {
        return Err(DraftError::LastMember);
    }
    let member = whole.members.remove(name).ok_or_else(|| DraftError::NoField(name.into()))?;
    whole.member_order.retain(|listed| listed != name);
    for members in reads_of_members(definition, group) {
        members.remove(name);
    }
    for key in member.value_keys.values().chain([&member.label_key]) {
        remove_text(definition, key);
    }
    Ok(())
}

/// Moves a column of a list, or a member of an object, one place up or down.
///
/// # Errors
/// There is no such member.
pub fn move_member(
    definition: &mut Definition,
    group: &str,
    name: &str,
    down: bool,
) -> Result<(), DraftError> {
    let whole = group_of(definition, group)?;
    let order = whole.ordered_members().map(|(name, _)| name.clone()).collect();
    whole.member_order = moved(order, name, down)?;
    Ok(())
}

/// Returns names in an order in which one is moved.
pub(super) fn moved(
    mut order: Vec<String>,
    name: &str,
    down: bool,
) -> Result<Vec<String>, DraftError> {
    let at = order.iter().position(|listed| listed == name);
    let at = at.ok_or_else(|| DraftError::NoField(name.to_owned()))?;
    let to = if down { at.checked_add(1) } else { at.checked_sub(1) };
    if let Some(to) = to.filter(|to| *to < order.len()) {
        order.swap(at, to);
    }
    Ok(order)
}

/// Has a click on an element of the page lead to the next page of a list, of which `max` pages are read
/// at most.
///
/// # Errors
/// There is no such list in a page, or the selector is too long.
pub fn set_next_page(
    definition: &mut Definition,
    list: &str,
    selector: &str,
    max: u8,
) -> Result<(), DraftError> {
    if selector.chars().count() > MAX_PLACE_CHARS {
        return Err(DraftError::PlaceTooLong);
    }
    let next = NextPage::Act(Action::Click(selector.to_owned()));
    *pages_of(definition, list)? = Some(Pages { next, max });
    Ok(())
}

/// Has a list end with its first page. The lists that are read with it end there as well.
///
/// # Errors
/// There is no such list.
pub fn remove_next_page(definition: &mut Definition, list: &str) -> Result<(), DraftError> {
    for node in definition.nodes.values_mut() {
        if let Node::Collect { fields, pages, .. } = node
            && fields.contains_key(list)
        {
            *pages = None;
            return Ok(());
        }
    }
    Err(DraftError::NoList(list.to_owned()))
}

/// Returns the further pages of a list that is read in a page.
fn pages_of<'a>(
    definition: &'a mut Definition,
    list: &str,
) -> Result<&'a mut Option<Pages>, DraftError> {
    if definition.output.get(list).is_none_or(|field| field.kind != FieldType::List) {
        return Err(DraftError::NoList(list.to_owned()));
    }
    for node in definition.nodes.values_mut() {
        if let Node::Collect { fields, pages, via, .. } = node
            && fields.contains_key(list)
        {
            let is_page = matches!(via, Source::Dom {});
            return if is_page { Ok(pages) } else { Err(DraftError::NotInPage(list.to_owned())) };
        }
    }
    Err(DraftError::OtherForm)
}

fn group_of<'a>(definition: &'a mut Definition, name: &str) -> Result<&'a mut Field, DraftError> {
    let group = definition.output.get_mut(name).filter(|field| field.kind.has_members());
    group.ok_or_else(|| DraftError::NoList(name.to_owned()))
}

/// Returns where a field is read; of several places, the first.
fn extraction<'a>(definition: &'a mut Definition, name: &str) -> Option<&'a mut Extraction> {
    definition.nodes.values_mut().find_map(|node| {
        let Node::Collect { fields, .. } = node else { return None };
        fields.get_mut(name)
    })
}

/// Returns where the members of a list or an object are read, of each node that reads it.
fn reads_of_members<'a>(
    definition: &'a mut Definition,
    group: &'a str,
) -> impl Iterator<Item = &'a mut BTreeMap<String, Extraction>> {
    definition.nodes.values_mut().filter_map(move |node| {
        let Node::Collect { fields, .. } = node else { return None };
        fields.get_mut(group).map(|extraction| &mut extraction.members)
    })
}

/// Only texts have texts in place of their values.
fn drop_value_texts(definition: &mut Definition, field: &mut Field) {
    if field.kind == FieldType::String {
        return;
    }
    for key in std::mem::take(&mut field.value_keys).into_values() {
        remove_text(definition, &key);
    }
}

fn set_text(definition: &mut Definition, key: &str, label: &str) {
    let english = definition.texts.entry("en".to_owned()).or_default();
    english.insert(key.to_owned(), label.trim().to_owned());
}

fn rename_in(order: &mut [String], name: &str, new_name: &str) {
    for listed in order.iter_mut().filter(|listed| *listed == name) {
        new_name.clone_into(listed);
    }
}

/// Has the addresses and the bodies of requests that have a value have it by its new name.
fn rename_uses(definition: &mut Definition, name: &str, new_name: &str) {
    let (old, new) = (format!("{{{name}}}"), format!("{{{new_name}}}"));
    definition.login_url = definition.login_url.replace(&old, &new);
    for node in definition.nodes.values_mut() {
        if let Node::Goto { url, .. } = node {
            *url = url.replace(&old, &new);
        }
    }
    for request in definition.requests.values_mut() {
        request.url = request.url.replace(&old, &new);
        if let Some(body) = &mut request.body {
            rename_in_body(body, &old, &new);
        }
    }
}

/// Replaces the strings in a body that are a whole placeholder. Without recursion, since a body may be
/// nested deeply.
fn rename_in_body(body: &mut Value, old: &str, new: &str) {
    let mut left = vec![body];
    while let Some(value) = left.pop() {
        match value {
            Value::String(text) => {
                if text.as_str() == old {
                    new.clone_into(text);
                }
            }
            Value::Array(items) => left.extend(items),
            Value::Object(members) => left.extend(members.values_mut()),
            Value::Null | Value::Bool(_) | Value::Number(_) => (),
        }
    }
}
