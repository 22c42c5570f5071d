//! The API reference of the documentation: the interface description as HTML, by tag.

use std::fmt::Write as _;

use serde_json::Value;

use super::document;
use crate::docs::escaped;

/// Schemas inside of schemas are shown to this depth; none of ours is as deep.
const MAX_DEPTH: usize = 6;
const METHODS: [&str; 3] = ["get", "post", "delete"];
/// Errors that every operation can answer, which the page describes once.
const COMMON_ERRORS: [&str; 3] = ["401", "429", "500"];

/// Returns the operations and webhooks of the interface description as HTML.
pub(crate) fn reference() -> String {
    let document = serde_json::to_value(document()).unwrap_or_default();
    let mut page = Reference { document: &document, html: String::new() };
    for tag in list(at(&document, &["tags"])) {
        page.tag(tag);
    }
    page.html
}

/// The page while it is written.
struct Reference<'a> {
    document: &'a Value,
    html: String,
}

impl<'a> Reference<'a> {
    fn tag(&mut self, tag: &Value) {
        let name = text(at(tag, &["name"]));
        let id = name.to_ascii_lowercase();
        self.add(&format!(
            "<h2 id=\"{id}\"><a class=\"header\" href=\"#{id}\">{}</a></h2>\n",
            escaped(name)
        ));
        self.prose(text(at(tag, &["description"])));
        for group in ["paths", "webhooks"] {
            for (path, item) in members(at(self.document, &[group])) {
                for method in METHODS {
                    let operation = at(item, &[method]);
                    if list(at(operation, &["tags"])).any(|own| own.as_str() == Some(name)) {
                        let path = (group == "paths").then_some(path.as_str());
                        self.operation(method, path, operation);
                    }
                }
            }
        }
    }

    fn operation(&mut self, method: &str, path: Option<&str>, operation: &'a Value) {
        let (id, summary) =
            (text(at(operation, &["operationId"])), text(at(operation, &["summary"])));
        let summary = escaped(summary);
        self.add(&format!(
            "<h3 id=\"{id}\"><a class=\"header\" href=\"#{id}\">{summary}</a></h3>\n"
        ));
        let method = method.to_ascii_uppercase();
        let target = path.map_or("your endpoint's URL".to_owned(), |path| {
            format!("<code>/v1{}</code>", escaped(path))
        });
        self.add(&format!("<p><span class=\"method {method}\">{method}</span>{target}</p>\n"));
        self.prose(text(at(operation, &["description"])));
        let parameters: Vec<_> = list(at(operation, &["parameters"])).collect();
        if !parameters.is_empty() {
            let heading = if path.is_some() { "Parameters" } else { "Headers" };
            self.add(&format!("<h4>{heading}</h4>\n<dl class=\"fields\">\n"));
            for parameter in parameters {
                let required = at(parameter, &["required"]) == true;
                let mut schema = self.resolved(at(parameter, &["schema"])).clone();
                if let Some(members) = schema.as_object_mut() {
                    members.insert("description".into(), at(parameter, &["description"]).clone());
                }
                let place = if path.is_some() { text(at(parameter, &["in"])) } else { "" };
                self.field(text(at(parameter, &["name"])), &schema, place, required, MAX_DEPTH);
            }
            self.add("</dl>\n");
        }
        let body = at(operation, &["requestBody", "content", "application/json"]);
        if body.is_object() {
            self.add("<h4>Body</h4>\n");
            self.fields(at(body, &["schema"]), 0);
            for (name, example) in members(at(body, &["examples"])) {
                let summary = text(at(example, &["summary"]));
                self.details(&format!("Example: {name} – {summary}"), at(example, &["value"]));
            }
            let example = at(self.resolved(at(body, &["schema"])), &["example"]);
            if example.is_object() {
                self.details("Example request", example);
            }
        }
        self.responses(at(operation, &["responses"]));
    }

    fn responses(&mut self, responses: &'a Value) {
        self.add("<h4>Responses</h4>\n<div class=\"wide\"><table><tbody>\n");
        for (status, response) in members(responses) {
            if COMMON_ERRORS.contains(&status.as_str()) {
                continue;
            }
            let status = if status == "default" { "other" } else { status };
            self.add(&format!("<tr><td><code>{status}</code></td><td>"));
            let description = inline(text(at(response, &["description"])));
            self.add(&format!("{description}</td></tr>\n"));
        }
        self.add("</tbody></table></div>\n");
        for (_, response) in members(responses).filter(|(status, _)| status.starts_with('2')) {
            let content = at(response, &["content", "application/json"]);
            let data = at(self.resolved(at(content, &["schema"])), &["properties", "data"]);
            let data = if at(data, &["items"]).is_object() { at(data, &["items"]) } else { data };
            if at(self.resolved(data), &["properties"]).is_object() {
                self.add("<details><summary>Fields of <code>data</code></summary>\n");
                self.fields(data, 0);
                self.add("</details>\n");
            }
            if at(content, &["example"]).is_object() {
                self.details("Example response", at(content, &["example"]));
            }
        }
    }

    /// Writes the members of an object.
    fn fields(&mut self, schema: &'a Value, depth: usize) {
        let schema = self.resolved(schema);
        if depth >= MAX_DEPTH || !at(schema, &["properties"]).is_object() {
            return;
        }
        let required: Vec<_> = list(at(schema, &["required"])).filter_map(Value::as_str).collect();
        self.add("<dl class=\"fields\">\n");
        for (name, schema) in members(at(schema, &["properties"])) {
            self.field(name, schema, "", required.contains(&name.as_str()), depth);
        }
        self.add("</dl>\n");
    }

    fn field(&mut self, name: &str, given: &Value, place: &str, required: bool, depth: usize) {
        let mut schema = given.clone();
        let nullable = at(&schema, &["oneOf"]).as_array().is_some_and(|parts| parts.len() == 2)
            && list(at(&schema, &["oneOf"])).any(|part| at(part, &["type"]) == "null");
        if nullable {
            let inner = list(at(given, &["oneOf"])).find(|part| at(part, &["type"]) != "null");
            schema = inner.cloned().unwrap_or_default();
        }
        let resolved = self.resolved(&schema).clone();
        let mut kind = kind(&resolved);
        if nullable && !kind.contains("null") {
            kind.push_str(" or null");
        }
        if !place.is_empty() {
            let _ = write!(kind, ", {place}");
        }
        let required = if required { "<span class=\"required\">required</span>" } else { "" };
        let (name, kind) = (escaped(name), escaped(&kind));
        self.add(&format!(
            "<dt><code>{name}</code><span class=\"type\">{kind}</span>{required}</dt>\n<dd>"
        ));
        let description = at(given, &["description"]).as_str();
        self.add(&inline(description.unwrap_or_else(|| text(at(&resolved, &["description"])))));
        for rule in rules(&resolved) {
            self.add(&format!(" {rule}"));
        }
        let inner = if at(&resolved, &["items"]).is_object() {
            at(&resolved, &["items"])
        } else {
            &resolved
        };
        self.add(&nested(self.document, inner, depth + 1));
        self.add("</dd>\n");
    }

    fn details(&mut self, title: &str, example: &Value) {
        let json = serde_json::to_string_pretty(example).unwrap_or_default();
        self.add(&format!(
            "<details><summary>{}</summary>\n<pre><code class=\"language-json\">{}</code></pre>\n</details>\n",
            escaped(title),
            escaped(&json)
        ));
    }

    /// Writes paragraphs.
    fn prose(&mut self, text: &str) {
        for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
            self.add(&format!("<p>{}</p>\n", inline(paragraph)));
        }
    }

    /// Returns the schema that a reference names.
    fn resolved<'v>(&self, schema: &'v Value) -> &'v Value
    where
        'a: 'v,
    {
        let name = at(schema, &["$ref"]).as_str().map(|name| name.trim_start_matches('#'));
        name.and_then(|name| self.document.pointer(name)).unwrap_or(schema)
    }

    fn add(&mut self, html: &str) {
        self.html.push_str(html);
    }
}

/// Returns the members of an object inside of a field.
fn nested(document: &Value, schema: &Value, depth: usize) -> String {
    let mut inner = Reference { document, html: String::new() };
    inner.fields(schema, depth);
    inner.html
}

fn kind(schema: &Value) -> String {
    let name =
        |kind: &Value| match (kind.as_str().unwrap_or("any"), at(schema, &["format"]).as_str()) {
            ("string", Some("date-time")) => "ISO 8601 time".to_owned(),
            ("string", Some("uuid")) => "UUID".to_owned(),
            ("string", Some("uri")) => "URL".to_owned(),
            (kind, _) => kind.to_owned(),
        };
    let kinds = at(schema, &["type"]);
    let Some(several) = kinds.as_array() else { return name(kinds) };
    several.iter().map(name).collect::<Vec<_>>().join(" or ")
}

/// Returns the rules for a value, as HTML.
fn rules(schema: &Value) -> Vec<String> {
    let mut rules = Vec::new();
    let values: Vec<_> = list(at(schema, &["enum"])).filter_map(Value::as_str).collect();
    if !values.is_empty() {
        let values: Vec<_> =
            values.iter().map(|value| format!("<code>{}</code>", escaped(value))).collect();
        rules.push(format!("One of {}.", values.join(", ")));
    }
    for (least, most, unit) in
        [("minimum", "maximum", ""), ("minLength", "maxLength", " characters")]
    {
        match (at(schema, &[least]).as_i64(), at(schema, &[most]).as_i64()) {
            (Some(least), Some(most)) => rules.push(format!("{least} to {most}{unit}.")),
            (Some(least), None) => rules.push(format!("At least {least}{unit}.")),
            (None, Some(most)) => rules.push(format!("At most {most}{unit}.")),
            (None, None) => (),
        }
    }
    if !at(schema, &["default"]).is_null() {
        rules.push(format!(
            "Default <code>{}</code>.",
            escaped(&at(schema, &["default"]).to_string())
        ));
    }
    rules
}

/// Returns text with its parts in backticks as code.
fn inline(text: &str) -> String {
    let mut html = String::new();
    for (number, part) in text.split('`').enumerate() {
        let part = escaped(part);
        if number % 2 == 1 {
            let _ = write!(html, "<code>{part}</code>");
        } else {
            html.push_str(&part);
        }
    }
    html
}

/// Returns what a path of names leads to, or `null`.
fn at<'v>(value: &'v Value, path: &[&str]) -> &'v Value {
    static NULL: Value = Value::Null;
    path.iter().try_fold(value, |value, name| value.get(name)).unwrap_or(&NULL)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_and_webhook_has_a_section_and_sessions_come_first() {
        let page = reference();
        let document = serde_json::to_value(document()).unwrap();
        let mut count = 0;
        for group in ["paths", "webhooks"] {
            for (_, item) in members(&document[group]) {
                for (_, operation) in members(item) {
                    let id = text(&operation["operationId"]);
                    let heading = format!("<h3 id=\"{id}\">");
                    assert_eq!(page.matches(&heading).count(), 1, "{id}");
                    count += 1;
                }
            }
        }
        assert!(count > 15, "{count}");
        let place = |id: &str| page.find(&format!("<h2 id=\"{id}\">")).unwrap();
        assert!(place("sessions") < place("webhooks"));
        assert!(place("lookups") < place("attestations"));
        assert!(page.find("<h2").unwrap() == place("sessions"));
    }

    #[test]
    fn texts_are_escaped() {
        assert_eq!(inline("a `b<c` & d"), "a <code>b&lt;c</code> &amp; d");
        assert_eq!(inline("\"x\""), "&quot;x&quot;");
    }
}
