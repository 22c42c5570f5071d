//! The output of a definition: the fields that are shared with the partner.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A field of the output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Field {
    #[serde(rename = "type")]
    pub kind: FieldType,
    #[serde(default)]
    pub required: bool,
    /// The key of the label that the applicant reads beside the value before sharing it.
    pub label_key: String,
    // Members without a value are not serialized, so that documents that were published before there
    // were such members keep their hash.
    /// How the applicant reads the value. It changes nothing of what is shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<FieldFormat>,
    /// The ISO 4217 code of the currency, if the number is an amount of money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// Whether the value identifies or describes a person. Partners see the mark in the schema of the
    /// data.
    #[serde(default, skip_serializing_if = "is_false")]
    pub pii: bool,
    /// The keys of the texts that the applicant reads in place of certain values of a string.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub value_keys: BTreeMap<String, String>,
    /// The members of an object, or of each row of a list: 1 to 30, none of which is an object or list
    /// itself. A required member must be in every row.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub members: BTreeMap<String, Field>,
    /// The order in which applicants read the members; those that are not listed follow, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub member_order: Vec<String>,
    /// The number of rows after which a list ends: 1 to 1,000; 100 if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rows: Option<u16>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}

impl Field {
    /// The number of rows of a list that does not say how many it has at most.
    pub const DEFAULT_MAX_ROWS: u16 = 100;

    /// Returns the number of rows after which a list ends.
    #[must_use]
    pub fn row_limit(&self) -> usize {
        self.max_rows.unwrap_or(Self::DEFAULT_MAX_ROWS).into()
    }

    /// Returns the members in the order in which applicants read them.
    pub fn ordered_members(&self) -> impl Iterator<Item = (&String, &Self)> {
        in_order(&self.members, &self.member_order)
    }
}

/// How an applicant reads a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum FieldFormat {
    /// A string that begins with an ISO 8601 date: without the time.
    Date,
    /// A string that is an ISO 8601 date and time.
    DateTime,
    /// As it was read: a number that identifies something.
    Plain,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum FieldType {
    /// At most 4,096 characters.
    String,
    Integer,
    Number,
    Boolean,
    /// Values that belong together, such as an address.
    Object,
    /// Rows with the same members, such as those of a table.
    List,
}

impl FieldType {
    /// Returns whether values of this type have members.
    #[must_use]
    pub const fn has_members(self) -> bool {
        matches!(self, Self::Object | Self::List)
    }
}

/// Returns the fields in the given order, and then the others by name.
pub(super) fn in_order<'a>(
    fields: &'a BTreeMap<String, Field>,
    order: &'a [String],
) -> impl Iterator<Item = (&'a String, &'a Field)> {
    let listed = order.iter().filter_map(|name| fields.get_key_value(name));
    listed.chain(fields.iter().filter(|(name, _)| !order.contains(name)))
}
