//! Validates where values are read and how they are converted, and what is done with them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Checker, conditions::is_json_pointer, not_a_pointer, top};
use crate::workflow::{
    Action, Converter, CsrfToken, ElementChoice, ElementContent, Extraction, Field, FieldFormat,
    FieldType, JsonPath, Method, NextPage, Node, Pages, Request, Source,
    convert::ConvertedType,
    placeholders::{body_names, names},
};

const MAX_CONVERTERS: usize = 10;
const MAX_PAGES: u32 = 50;
const MAX_HEADERS: usize = 20;
const MAX_HEADER_BYTES: usize = 1000;
const MAX_BODY_BYTES: usize = 64 * 1024;
const MAX_OPTION_CHARS: usize = 500;
const FOR_LISTS_IN_THE_PAGE: &str = "is for lists in the page only";
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
            let Some(field) = self.definition.output.get(name) else { continue };
            if field.kind.has_members() {
                self.member_extractions(&path, via, field, from);
            } else {
                self.field_extraction(&path, via, field, from);
            }
        }
        for (name, from) in variables {
            let path = path.member("variables").member(name);
            self.name(&path, name);
            if self.definition.output.contains_key(name) {
                self.error(&path, format!("`{name}` is a field of the output already"));
            }
            self.has_no_members(&path, from);
            self.extraction(&path, via, from);
        }
    }

    /// Validates where a field is read that is no object and no list.
    fn field_extraction(
        &mut self,
        path: &JsonPath,
        via: &Source,
        field: &Field,
        from: &Extraction,
    ) {
        self.has_no_members(path, from);
        let output = self.extraction(path, via, from);
        if output.is_some_and(|output| !output.fits(field.kind)) {
            let types = "its last converter returns another type than the field of the output has";
            self.error(&path.member("convert"), types);
        }
        let is_date = field.kind == FieldType::String
            && matches!(field.format, Some(FieldFormat::Date | FieldFormat::DateTime));
        let is_text = matches!(via, Source::Dom {}) && from.read == ElementContent::Text;
        let is_read = from.convert.iter().any(|converter| matches!(converter, Converter::Date(_)));
        if is_date && is_text && !is_read {
            let wrong = "is a date, but is shared as the page writes it: add a `date` converter, or \
                         read an attribute that has the date in ISO 8601";
            self.warning(path, wrong);
        }
    }

    fn has_no_members(&mut self, path: &JsonPath, from: &Extraction) {
        if !from.members.is_empty() || from.each.is_some() {
            self.error(path, "only an object or a list of the output has `members` and `each`");
        }
        if from.empty_when.is_some() {
            self.error(&path.member("emptyWhen"), FOR_LISTS_IN_THE_PAGE);
        }
    }

    /// Validates where an object or a list is read.
    fn member_extractions(
        &mut self,
        path: &JsonPath,
        via: &Source,
        field: &Field,
        from: &Extraction,
    ) {
        let group = Extraction {
            convert: vec![],
            read: ElementContent::Text,
            members: BTreeMap::new(),
            ..from.clone()
        };
        self.extraction(path, via, &group);
        if !from.convert.is_empty() || from.read != ElementContent::Text {
            self.error(path, "`read` and `convert` are for the members of an object or a list");
        }
        let is_dom = matches!(via, Source::Dom {});
        let is_list_in_page = is_dom && field.kind == FieldType::List;
        match (&from.each, is_list_in_page) {
            (Some(each), true) => self.selector(&path.member("each"), each),
            (None, false) => (),
            (None, true) => {
                let wrong = "a list in the page needs `each`, the selector of its rows";
                self.error(path, wrong);
            }
            (Some(_), false) => self.error(&path.member("each"), FOR_LISTS_IN_THE_PAGE),
        }
        match (&from.empty_when, is_list_in_page) {
            (Some(shown), true) => self.selector(&path.member("emptyWhen"), shown),
            (Some(_), false) => self.error(&path.member("emptyWhen"), FOR_LISTS_IN_THE_PAGE),
            (None, _) => (),
        }
        let members = path.member("members");
        for (name, member) in &from.members {
            let path = members.member(name);
            self.exists(&path, "member", name, field.members.keys());
            let Some(field) = field.members.get(name) else { continue };
            if member.at.is_empty() && is_dom {
                let at_row = Extraction { at: "*".to_owned(), ..member.clone() };
                self.field_extraction(&path, via, field, &at_row);
            } else {
                self.field_extraction(&path, via, field, member);
            }
        }
        for (name, member) in &field.members {
            if !from.members.contains_key(name) && member.required {
                self.error(&members, format!("the required member `{name}` is not read"));
            }
        }
    }

    /// Validates how a node gets to further pages.
    pub(super) fn pages(
        &mut self,
        path: &JsonPath,
        via: &Source,
        fields: &BTreeMap<String, Extraction>,
        pages: &Pages,
    ) {
        self.range(&path.member("max"), pages.max.into(), 2, MAX_PAGES);
        let output = &self.definition.output;
        let is_list =
            |name: &String| output.get(name).is_some_and(|field| field.kind == FieldType::List);
        if !fields.keys().any(is_list) {
            self.error(path, "the node collects no list");
        }
        let path = path.member("next");
        match (&pages.next, via) {
            (NextPage::Act(action), Source::Dom {}) => self.action(&path.member("act"), action),
            (NextPage::Act(_), _) => self.error(&path, "`act` is for `dom` only"),
            (next, Source::Fetch(request)) => {
                let (member, from) = match next {
                    NextPage::Act(_) | NextPage::Number { .. } => ("number", None),
                    NextPage::Offset { .. } => ("offset", None),
                    NextPage::Cursor { from, .. } => ("cursor", Some(from)),
                };
                let path = path.member(member);
                self.page_name(&path.member("name"), next.name().unwrap_or_default(), request);
                if let Some(from) = from {
                    self.has_no_members(&path.member("from"), from);
                    self.extraction(&path.member("from"), via, from);
                }
            }
            _ => self.error(&path, "is for `fetch` only; the page has `act`"),
        }
    }

    /// Validates the name of the value that stands for a page in a request.
    fn page_name(&mut self, path: &JsonPath, name: &str, request: &str) {
        self.name(path, name);
        let is_variable = self.definition.nodes.values().any(
            |node| matches!(node, Node::Collect { variables, .. } if variables.contains_key(name)),
        );
        if self.definition.output.contains_key(name) || is_variable {
            self.error(path, format!("`{name}` is a field or variable already"));
        }
        if let Some(request) = self.definition.requests.get(request) {
            let in_url = names(&request.url).unwrap_or_default().contains(&name);
            let in_body = request.body.iter().flat_map(body_names).any(|other| other == name);
            if !in_url && !in_body {
                let wrong = format!("the request has no `{{{name}}}` in its URL or body");
                self.error(path, wrong);
            }
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

    /// Validates the placeholders of a URL, which may be anywhere after its host.
    pub(super) fn placeholders(&mut self, path: &JsonPath, url: &str) {
        match names(url) {
            Err(wrong) => self.error(path, format!("`{url}`: {wrong}")),
            Ok(names) => {
                let authority = url.split_once("://").map_or("", |(_, rest)| rest);
                let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
                if url.split("://").next().is_some_and(|scheme| scheme.contains('{'))
                    || authority.contains('{')
                {
                    self.error(path, format!("`{url}` may have values after its host only"));
                }
                for name in names {
                    self.collected_name(path, name);
                }
            }
        }
    }

    fn collected_name(&mut self, path: &JsonPath, name: &str) {
        let (mut collected, mut pages_names) =
            (BTreeSet::<&String>::new(), BTreeSet::<&str>::new());
        for node in self.definition.nodes.values() {
            if let Node::Collect { fields, variables, pages, .. } = node {
                let scalar = |field: &&String| {
                    !self.definition.output.get(*field).is_some_and(|f| f.kind.has_members())
                };
                collected.extend(fields.keys().filter(scalar).chain(variables.keys()));
                pages_names.extend(pages.iter().filter_map(|pages| pages.next.name()));
            }
        }
        let names = collected.into_iter().map(String::as_str).chain(pages_names);
        let names: Vec<_> = names.map(ToOwned::to_owned).collect();
        self.exists(path, "collected field or variable", name, names.iter());
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
