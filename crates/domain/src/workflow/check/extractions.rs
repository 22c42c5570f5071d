//! Validates where values are read and how they are converted, and what is done with them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Checker, conditions::is_json_pointer, not_a_pointer, top};
use crate::workflow::{
    Action, CsrfToken, ElementChoice, ElementContent, Extraction, JsonPath, Method, Node, Request,
    Source,
    convert::ConvertedType,
    placeholders::{body_names, names},
};

const MAX_CONVERTERS: usize = 10;
const MAX_HEADERS: usize = 20;
const MAX_HEADER_BYTES: usize = 1000;
const MAX_BODY_BYTES: usize = 64 * 1024;
const MAX_OPTION_CHARS: usize = 500;
/// Headers that scripts cannot set (Fetch Standard, section 2.2.2), and those that would change what the
/// request is.
const FORBIDDEN_HEADERS: &[&str] = &[
    "accept-charset",
    "accept-encoding",
    "access-control-request-headers",
    "access-control-request-method",
    "connection",
    "content-length",
    "cookie",
    "cookie2",
    "date",
    "dnt",
    "expect",
    "host",
    "keep-alive",
    "origin",
    "referer",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

impl<'a> Checker<'a> {
    pub(super) fn collection(
        &mut self,
        path: &JsonPath,
        via: &Source,
        fields: &'a BTreeMap<String, Extraction>,
        variables: &'a BTreeMap<String, Extraction>,
    ) {
        if let Source::Fetch(request) = via {
            let requests = self.definition.requests.keys();
            self.exists(&path.member("via").member("fetch"), "request", request, requests);
        }
        if fields.is_empty() && variables.is_empty() {
            self.error(path, "reads nothing: name a field or a variable");
        }
        for (name, from) in fields {
            let path = path.member("fields").member(name);
            self.output_field(&path, name);
            let output = self.extraction(&path, via, from);
            let field = self.definition.output.get(name);
            if let Some((output, field)) = output.zip(field)
                && !output.fits(field.kind)
            {
                let types =
                    "its last converter returns another type than the field of the output has";
                self.error(&path.member("convert"), types);
            }
        }
        for (name, from) in variables {
            let path = path.member("variables").member(name);
            self.name(&path, name);
            if self.definition.output.contains_key(name) {
                self.error(&path, format!("`{name}` is a field of the output already"));
            }
            self.extraction(&path, via, from);
        }
    }

    /// Validates an extraction. Returns the type of its value; `None` if it has no converter.
    fn extraction(
        &mut self,
        path: &JsonPath,
        via: &Source,
        from: &Extraction,
    ) -> Option<ConvertedType> {
        let place = from.at_path(path);
        if matches!(via, Source::Dom {}) {
            self.selector(&place, &from.at);
            if let ElementContent::Attribute(name) = &from.read {
                self.attribute(&path.member("read").member("attribute"), name);
            }
        } else {
            if !is_json_pointer(&from.at) {
                self.error(&place, not_a_pointer(&from.at));
            }
            if from.read != ElementContent::Text || from.element != ElementChoice::First {
                self.error(path, "`read` and `element` are for `dom` only");
            }
        }
        let convert = path.member("convert");
        if from.convert.len() > MAX_CONVERTERS {
            self.error(&convert, format!("must be at most {MAX_CONVERTERS}"));
        }
        let mut input = None;
        for (index, converter) in from.convert.iter().enumerate() {
            let path = convert.item(index);
            if let Some(wrong) = converter.error() {
                self.error(&path, wrong);
            }
            if input
                .is_some_and(|input| !matches!(input, ConvertedType::Text | ConvertedType::Date))
            {
                self.error(&path, "cannot follow a converter to a number or boolean");
            }
            input = Some(converter.output());
        }
        input
    }

    fn attribute(&mut self, path: &JsonPath, name: &str) {
        let allowed = |c: char| !c.is_whitespace() && !c.is_control() && !"\"'>/=".contains(c);
        if !(1..=100).contains(&name.len()) || !name.chars().all(allowed) {
            self.error(path, format!("`{name}` cannot be the name of an attribute"));
        }
    }

    pub(super) fn action(&mut self, path: &JsonPath, action: &Action) {
        match action {
            Action::Click(selector) => self.selector(&path.member("click"), selector),
            Action::ScrollTo(selector) => self.selector(&path.member("scrollTo"), selector),
            Action::Choose { selector, option } => {
                let path = path.member("choose");
                self.selector(&path.member("selector"), selector);
                if !(1..=MAX_OPTION_CHARS).contains(&option.chars().count()) {
                    let rule = format!("must be 1 to {MAX_OPTION_CHARS} characters");
                    self.error(&path.member("option"), rule);
                }
            }
        }
    }

    /// Validates what requests send beside their URL.
    pub(super) fn request(&mut self, path: &JsonPath, request: &Request) {
        let headers = path.member("headers");
        if request.headers.len() > MAX_HEADERS {
            self.error(&headers, format!("must be at most {MAX_HEADERS}"));
        }
        for (name, value) in &request.headers {
            self.header_name(&headers.member(name), name);
            let is_visible = value.bytes().all(|b| b == b' ' || b.is_ascii_graphic());
            if value.is_empty() || value.len() > MAX_HEADER_BYTES || !is_visible {
                let rule = format!("must be 1 to {MAX_HEADER_BYTES} visible ASCII characters");
                self.error(&headers.member(name), rule);
            }
        }
        if let Some(csrf) = &request.csrf {
            let path = path.member("csrf");
            self.header_name(&path.member("header"), &csrf.header);
            match &csrf.from {
                CsrfToken::Cookie(name) => self.cookie(&path.member("from").member("cookie"), name),
                CsrfToken::Element { selector, attribute } => {
                    let path = path.member("from").member("element");
                    self.selector(&path.member("selector"), selector);
                    self.attribute(&path.member("attribute"), attribute);
                }
            }
        }
        match (&request.body, request.method) {
            (Some(_), Method::Get) => {
                self.error(
                    &path.member("body"),
                    "only a POST has a body: add \"method\": \"POST\"",
                );
            }
            (Some(body), Method::Post) => self.body(&path.member("body"), body),
            (None, _) => (),
        }
    }

    fn header_name(&mut self, path: &JsonPath, name: &str) {
        // A token of RFC 9110, section 5.6.2.
        let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        let lower = name.to_ascii_lowercase();
        let is_forbidden = FORBIDDEN_HEADERS.contains(&lower.as_str())
            || lower.starts_with("sec-")
            || lower.starts_with("proxy-")
            || lower.starts_with("x-http-method");
        if !(1..=100).contains(&name.len()) || !name.bytes().all(is_token) || is_forbidden {
            self.error(path, format!("`{name}` is no header that a page can send"));
        }
    }

    fn body(&mut self, path: &JsonPath, body: &Value) {
        if body.to_string().len() > MAX_BODY_BYTES {
            self.error(path, format!("must be at most {MAX_BODY_BYTES} bytes"));
        }
        for name in body_names(body) {
            self.collected_name(path, name);
        }
    }

    /// Validates the placeholders of a URL, which may be in its path and query only.
    pub(super) fn placeholders(&mut self, path: &JsonPath, url: &str) {
        match names(url) {
            Err(wrong) => self.error(path, format!("`{url}`: {wrong}")),
            Ok(names) => {
                let authority = url.split_once("://").map_or("", |(_, rest)| rest);
                let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
                if url.split("://").next().is_some_and(|scheme| scheme.contains('{'))
                    || authority.contains('{')
                {
                    self.error(path, format!("`{url}` may have values in its path and query only"));
                }
                for name in names {
                    self.collected_name(path, name);
                }
            }
        }
    }

    fn collected_name(&mut self, path: &JsonPath, name: &str) {
        let mut collected: BTreeSet<&String> = BTreeSet::new();
        for node in self.definition.nodes.values() {
            if let Node::Collect { fields, variables, .. } = node {
                collected.extend(fields.keys().chain(variables.keys()));
            }
        }
        self.exists(path, "collected field or variable", name, collected.into_iter());
    }

    /// Validates that an attested request is one that the attestor can repeat.
    pub(super) fn is_repeatable(&mut self, path: &JsonPath, request: &Request) {
        let is_plain = request.method == Method::Get
            && request.headers.is_empty()
            && request.csrf.is_none()
            && !request.url.contains('{');
        if !is_plain {
            let wrong = "its request must be a GET without headers, token and values in its URL; \
                         `attest` has headers of its own";
            self.error(path, wrong);
        }
    }

    /// Warns of variables that no URL and no body has.
    pub(super) fn unused_variables(&mut self) {
        let definition = self.definition;
        let mut used: BTreeSet<&str> = BTreeSet::new();
        for request in definition.requests.values() {
            used.extend(names(&request.url).unwrap_or_default());
            used.extend(request.body.iter().flat_map(body_names));
        }
        for node in definition.nodes.values() {
            if let Node::Goto { url, .. } = node {
                used.extend(names(url).unwrap_or_default());
            }
        }
        let declared = definition.nodes.iter().filter_map(|(node, value)| {
            let Node::Collect { variables, .. } = value else { return None };
            Some(variables.keys().map(move |name| (node, name)))
        });
        for (node, name) in declared.flatten() {
            if !used.contains(name.as_str()) {
                let path = top("nodes").member(node).member("variables").member(name);
                self.warning(&path, "is not used: no URL and no request has it");
            }
        }
    }
}
