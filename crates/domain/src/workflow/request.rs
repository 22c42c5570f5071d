//! Requests that a definition has the page make, and the pages of lists.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Action, Extraction};

/// A named request of the definition, made in the page with its cookies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Request {
    /// `{name}` in the path, query or fragment stands for a collected field or variable.
    pub url: String,
    pub expect_status: u16,
    /// The maximum size of the response: 1 to 1,048,576.
    pub max_bytes: u32,
    // Members without a value are not serialized, as with `Field`.
    /// GET if it is left out.
    #[serde(default, skip_serializing_if = "Method::is_get")]
    pub method: Method,
    /// Headers in addition to those of the browser, with their values: at most 20.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The header that proves to the site that the request comes from its own page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csrf: Option<CsrfHeader>,
    /// The JSON body of a POST, at most 64 kB. A string that is exactly `{name}` stands for a
    /// collected field or variable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
}

impl Request {
    /// The greatest `maxBytes`.
    pub const MAX_BYTES: u32 = 1_048_576;
}

/// The method of a request (RFC 9110, section 9.3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    #[default]
    Get,
    /// For APIs that read by POST, such as GraphQL.
    Post,
}

impl Method {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    const fn is_get(&self) -> bool {
        matches!(self, Self::Get)
    }
}

/// A header with a token against cross-site request forgery. The token never leaves the page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CsrfHeader {
    /// The name of the header, such as `X-CSRF-Token`.
    pub header: String,
    pub from: CsrfToken,
}

/// Where a token against cross-site request forgery is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CsrfToken {
    /// The name of a cookie that scripts of the page can read.
    Cookie(String),
    /// An attribute of an element.
    #[serde(rename_all = "camelCase")]
    Element { selector: String, attribute: String },
}

/// Further pages of the lists that a node collects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pages {
    /// How one page leads to the next.
    pub next: NextPage,
    /// The number of pages that are read at most, with the first: 2 to 50.
    pub max: u8,
}

/// How one page of a list leads to the next. The names stand for values in the URL or the body of the
/// node's request, and are not those of fields or variables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum NextPage {
    /// An action in the page, such as a click on a link to the next page, which replaces the rows, or on
    /// a button that adds more. The list ends where no visible element matches, and where the rows
    /// are still the same after ten seconds.
    Act(Action),
    /// The number of the page. The list ends with a page without rows.
    #[serde(rename_all = "camelCase")]
    Number {
        name: String,
        /// The number of the first page, usually 0 or 1.
        first: u32,
    },
    /// The number of rows before the page. The list ends with a page without rows.
    #[serde(rename_all = "camelCase")]
    Offset { name: String },
    /// A value in the response that stands for the next page. The list ends with a response without
    /// it.
    #[serde(rename_all = "camelCase")]
    Cursor {
        name: String,
        from: Extraction,
        /// The value for the first page; if it is left out, a URL has nothing in its place, and a body
        /// `null`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        first: Option<String>,
    },
}

impl NextPage {
    /// Returns the name of the value that requests have; `None` for an action.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Act(_) => None,
            Self::Number { name, .. } | Self::Offset { name } | Self::Cursor { name, .. } => {
                Some(name)
            }
        }
    }
}
