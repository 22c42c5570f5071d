//! The syntax of platform definitions.

use domain::workflow::{JsonPath, PageTree};

/// The maximum length of a document.
pub const MAX_DEFINITION_BYTES: usize = 1024 * 1024;

/// A position in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DocumentPosition {
    /// From 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
}

/// An error that a document has before it can be read as a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    pub path: JsonPath,
    /// `None` if it is where the path leads to.
    pub position: Option<DocumentPosition>,
    /// What is wrong, and how to correct it.
    pub message: String,
}

/// Parses the documents of definitions, and the selectors in them.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait DefinitionSyntax: Send + Sync {
    /// Validates that a document is JSON of at most [`MAX_DEFINITION_BYTES`], that no object has two
    /// members of a name, and that it conforms to the schema.
    ///
    /// # Errors
    /// Returns the errors, at most a hundred.
    fn validate(&self, document: &str) -> Result<(), Vec<SyntaxError>>;

    /// Returns where the value of each path begins; for the member of an object, its name. Where a
    /// path leads to nothing, it is that of the innermost value that exists. `None` if the document is
    /// no JSON.
    fn positions(&self, document: &str, paths: &[JsonPath]) -> Vec<Option<DocumentPosition>>;

    /// Returns why a browser would not accept a CSS selector; `None` if it would.
    fn selector_error(&self, selector: &str) -> Option<String>;

    /// Returns the elements within a node of a recorded page that a CSS selector matches, in document
    /// order; none if a browser would not accept it.
    fn select(&self, page: &PageTree, scope: usize, selector: &str) -> Vec<usize>;

    /// Returns the JSON Schema of definitions (draft 2020-12).
    fn schema(&self) -> String;

    /// Returns the reference of definitions for their authors, as Markdown.
    fn reference(&self) -> String;
}
