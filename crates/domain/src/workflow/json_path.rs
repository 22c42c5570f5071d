//! Places in a definition.

use std::fmt;

/// The place of a value in a JSON document. It is displayed as a query that selects exactly this
/// value (RFC 9535), as `$.nodes.login.until[0]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct JsonPath(Vec<PathSegment>);

/// One step from a value to a value within it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathSegment {
    /// The member of an object with this name.
    Member(String),
    /// The item of an array with this index, from 0.
    Item(usize),
}

impl JsonPath {
    /// Returns the place of the whole document.
    #[must_use]
    pub const fn root() -> Self {
        Self(vec![])
    }

    /// Returns the place that these steps from the whole document lead to.
    #[must_use]
    pub(super) const fn of(segments: Vec<PathSegment>) -> Self {
        Self(segments)
    }

    /// Returns the place of a member of the object at this place.
    #[must_use]
    pub fn member(&self, name: &str) -> Self {
        self.with(PathSegment::Member(name.to_owned()))
    }

    /// Returns the place of an item of the array at this place.
    #[must_use]
    pub fn item(&self, index: usize) -> Self {
        self.with(PathSegment::Item(index))
    }

    /// Returns the steps from the whole document to this place.
    #[must_use]
    pub fn segments(&self) -> &[PathSegment] {
        &self.0
    }

    fn with(&self, segment: PathSegment) -> Self {
        Self(self.0.iter().cloned().chain([segment]).collect())
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("$")?;
        for segment in &self.0 {
            match segment {
                PathSegment::Item(index) => write!(f, "[{index}]")?,
                PathSegment::Member(name) if is_shorthand(name) => write!(f, ".{name}")?,
                PathSegment::Member(name) => {
                    // A string of JSON is a valid name selector too (RFC 9535, section 2.3.1).
                    write!(f, "[{}]", serde_json::Value::from(name.as_str()))?;
                }
            }
        }
        Ok(())
    }
}

/// Returns whether a name can stand after a dot (RFC 9535, section 2.5.1).
fn is_shorthand(name: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
    name.starts_with(first) && name.chars().all(|c| first(c) || c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_displayed_as_a_query() {
        let place = JsonPath::root().member("nodes").member("log-in").member("until").item(2);
        assert_eq!(place.to_string(), "$.nodes[\"log-in\"].until[2]");
        assert_eq!(JsonPath::root().to_string(), "$");
        let odd = JsonPath::root().member("").member("a\"b\n").member("é1").member("1a");
        assert_eq!(odd.to_string(), "$[\"\"][\"a\\\"b\\n\"].é1[\"1a\"]");
    }
}
