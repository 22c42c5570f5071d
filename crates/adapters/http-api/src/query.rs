//! Query strings, parsed so that an error names its parameter.

use domain::request::InvalidRequest;

/// The parameters that an endpoint accepts; others are ignored.
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Parses the query string.
    ///
    /// # Errors
    /// An accepted parameter is given more than once.
    pub(super) fn read(text: &str, known: &[&str]) -> Result<Self, InvalidRequest> {
        let pairs = url::form_urlencoded::parse(text.as_bytes()).into_owned();
        let pairs: Vec<_> = pairs.filter(|(name, _)| known.contains(&name.as_str())).collect();
        let twice = |name: &&&str| pairs.iter().filter(|(own, _)| own == **name).count() > 1;
        let findings = known.iter().filter(twice).map(|name| format!("{name} must be given once"));
        let findings: Vec<_> = findings.collect();
        if findings.is_empty() { Ok(Self(pairs)) } else { Err(InvalidRequest(findings)) }
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}
