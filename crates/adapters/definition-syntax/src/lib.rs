//! Implements the port for the syntax of platform definitions: JSON (RFC 8259), the JSON Schema of
//! definitions (draft 2020-12), and CSS selectors (Selectors Level 4).

mod document;
mod reference;
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "most kinds of errors are of keywords that the schema does not have"
)]
mod schema;
mod select;
mod selector;

use domain::workflow::{JsonPath, PageTree};
use ports::definition_syntax::{DefinitionSyntax, DocumentPosition, SyntaxError};

/// Implements [`DefinitionSyntax`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Syntax;

impl DefinitionSyntax for Syntax {
    fn validate(&self, document: &str) -> Result<(), Vec<SyntaxError>> {
        let value = document::parse(document)?;
        let errors = schema::validate(&value);
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    fn positions(&self, document: &str, paths: &[JsonPath]) -> Vec<Option<DocumentPosition>> {
        document::positions(document, paths)
    }

    fn selector_error(&self, selector: &str) -> Option<String> {
        selector::error(selector)
    }

    fn select(&self, page: &PageTree, scope: usize, selector: &str) -> Vec<usize> {
        select::select(page, scope, selector)
    }

    fn schema(&self) -> String {
        schema::text()
    }

    fn reference(&self) -> String {
        reference::text()
    }
}
