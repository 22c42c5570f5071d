//! The JSON document of a definition: its syntax, and where its values are.

use std::collections::BTreeSet;

use domain::workflow::{JsonPath, PathSegment};
use jsonc_parser::{
    CollectOptions, ParseOptions,
    ast::{Object, ObjectProp, Value as Node},
    common::Ranged as _,
    parse_to_ast,
};
use ports::definition_syntax::{DocumentPosition, MAX_DEFINITION_BYTES, SyntaxError};
use serde_json::Value;

/// JSON without the extensions of the parser.
const JSON: ParseOptions = ParseOptions {
    allow_comments: false,
    allow_loose_object_property_names: false,
    allow_trailing_commas: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Parses a document, in which the names of an object's members must differ.
pub(crate) fn parse(document: &str) -> Result<Value, Vec<SyntaxError>> {
    if document.len() > MAX_DEFINITION_BYTES {
        let message = format!("a definition has at most {MAX_DEFINITION_BYTES} bytes");
        return Err(vec![SyntaxError { path: JsonPath::root(), position: None, message }]);
    }
    // First, because this parser bounds the depth of the document.
    let value = serde_json::from_str(document).map_err(|error| {
        let position = Some(DocumentPosition { line: error.line(), column: error.column() });
        let text = error.to_string();
        let message = text.split(" at line ").next().unwrap_or_default();
        vec![SyntaxError {
            path: JsonPath::root(),
            position,
            message: format!("is no JSON: {message}"),
        }]
    })?;
    let mut errors = Vec::new();
    if let Some(root) = tree(document) {
        find_duplicates(&root, &JsonPath::root(), document, &mut errors);
    }
    if errors.is_empty() { Ok(value) } else { Err(errors) }
}

/// Returns where the value of each path begins, or the name of a member.
pub(crate) fn positions(document: &str, paths: &[JsonPath]) -> Vec<Option<DocumentPosition>> {
    let readable =
        document.len() <= MAX_DEFINITION_BYTES && serde_json::from_str::<Value>(document).is_ok();
    let root = if readable { tree(document) } else { None };
    let find = |path: &JsonPath| Some(position(document, locate(root.as_ref()?, path)));
    paths.iter().map(find).collect()
}

/// Parses a document that is JSON.
fn tree(document: &str) -> Option<Node<'_>> {
    parse_to_ast(document, &CollectOptions::default(), &JSON).ok()?.value
}

/// Returns the offset of a value in the document; for the member of an object, of its name. Where the
/// path leads to nothing, it is that of the innermost value that exists.
fn locate(root: &Node<'_>, path: &JsonPath) -> usize {
    let mut node = root;
    let mut offset = root.start();
    for segment in path.segments() {
        let next = match (segment, node) {
            (PathSegment::Member(name), Node::Object(object)) => {
                member(object, name).map(|member| (member.start(), &member.value))
            }
            (PathSegment::Item(index), Node::Array(array)) => {
                array.elements.get(*index).map(|item| (item.start(), item))
            }
            _ => None,
        };
        let Some((at, value)) = next else { break };
        (offset, node) = (at, value);
    }
    offset
}

fn member<'a, 'b>(object: &'b Object<'a>, name: &str) -> Option<&'b ObjectProp<'a>> {
    object.properties.iter().find(|member| member.name.as_str() == name)
}

fn find_duplicates(
    node: &Node<'_>,
    path: &JsonPath,
    document: &str,
    errors: &mut Vec<SyntaxError>,
) {
    match node {
        Node::Object(object) => {
            let mut names = BTreeSet::new();
            for property in &object.properties {
                let name = property.name.as_str();
                let path = path.member(name);
                if !names.insert(name) {
                    let position = Some(position(document, property.start()));
                    let message = "is there twice: the earlier one would have no effect".into();
                    errors.push(SyntaxError { path: path.clone(), position, message });
                }
                find_duplicates(&property.value, &path, document, errors);
            }
        }
        Node::Array(array) => {
            for (index, item) in array.elements.iter().enumerate() {
                find_duplicates(item, &path.item(index), document, errors);
            }
        }
        Node::StringLit(_) | Node::NumberLit(_) | Node::BooleanLit(_) | Node::NullKeyword(_) => (),
    }
}

fn position(document: &str, offset: usize) -> DocumentPosition {
    let before = document.get(..offset).unwrap_or(document);
    let line = before.rsplit('\n').next().unwrap_or_default();
    DocumentPosition { line: before.matches('\n').count() + 1, column: line.chars().count() + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str =
        "{\n  \"a\": { \"é\": 1, \"b c\": [true,\n 5] },\n  \"n\\u0061me\": null\n}";

    #[test]
    fn values_are_found_by_their_paths() {
        let root = JsonPath::root();
        let a = root.member("a");
        let paths = [
            root.clone(),
            a.clone(),
            a.member("b c"),
            a.member("b c").item(1),
            root.member("name"),
            a.member("missing").item(3),
        ];
        let found: Vec<_> = positions(DOCUMENT, &paths)
            .into_iter()
            .map(|position| position.map(|position| (position.line, position.column)).unwrap())
            .collect();
        assert_eq!(found, [(1, 1), (2, 3), (2, 18), (3, 2), (4, 3), (2, 3)]);
        assert_eq!(positions("{", &[root]), [None]);
    }

    #[test]
    fn a_document_that_is_no_json_is_refused_with_its_position() {
        for (document, line, column) in [
            ("", 1, 0),
            ("{\n \"a\": 1,\n}", 3, 1),
            ("{\"a\": 01}", 1, 8),
            ("// no\n{}", 1, 1),
            ("{'a': 1}", 1, 2),
            ("{} {}", 1, 4),
        ] {
            let errors = parse(document).unwrap_err();
            assert_eq!(errors.len(), 1, "{document}");
            assert!(errors[0].message.starts_with("is no JSON: "), "{errors:?}");
            assert_eq!(errors[0].position, Some(DocumentPosition { line, column }), "{document}");
        }
        let deep = "[".repeat(100_000);
        assert!(parse(&deep).unwrap_err()[0].message.contains("recursion limit"));
        let long = format!("\"{}\"", "a".repeat(MAX_DEFINITION_BYTES));
        assert!(parse(&long).unwrap_err()[0].message.contains("at most"));
    }

    #[test]
    fn a_member_that_is_there_twice_is_refused() {
        let errors = parse("{\"a\": [{\"b\": 1,\n \"\\u0062\": 2}], \"a\": 3}").unwrap_err();
        let found: Vec<_> = errors.iter().map(|error| error.path.to_string()).collect();
        assert_eq!(found, ["$.a[0].b", "$.a"]);
        assert_eq!(errors[0].position, Some(DocumentPosition { line: 2, column: 2 }));
    }
}
