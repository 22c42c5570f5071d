//! Compares `docs/conformance.md` with the API description and with the tests that it names.

use std::{collections::BTreeMap, fs, path::Path};

use domain::{
    session::{Event, Status},
    webhook,
};
use serde_json::Value;
use testkit::sample;

use super::mocks::session;
use crate::openapi;

/// Returns the words of a text that are set in `code`.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// By heading: the item of each line, and the tests for it.
type Sections<'a> = BTreeMap<&'a str, Vec<(Vec<&'a str>, Vec<&'a str>)>>;

/// Returns the first and the last cell of each line of a table, by the heading above the table.
fn lines(page: &str) -> Sections<'_> {
    let mut sections = Sections::new();
    let mut heading = "";
    for line in page.lines() {
        if let Some(name) = line.strip_prefix("## ") {
            heading = name;
        } else if let Some(row) = line.strip_prefix("| ").filter(|row| !row.starts_with("---")) {
            let cells: Vec<_> = row.trim_end_matches(" |").split(" | ").collect();
            let head = cells.last() == Some(&"held by");
            if !head {
                let tests = quoted(cells.last().unwrap());
                sections.entry(heading).or_default().push((quoted(cells[0]), tests));
            }
        }
    }
    sections
}

struct Document(Value);

impl Document {
    fn resolved<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(name) => self.0.pointer(name.trim_start_matches('#')).unwrap(),
            None => schema,
        }
    }

    fn fields(&self, schema: &Value, before: &str, found: &mut Vec<String>) {
        let schema = self.resolved(schema);
        for key in ["oneOf", "anyOf", "allOf"] {
            for part in schema[key].as_array().into_iter().flatten() {
                self.fields(part, before, found);
            }
        }
        if let Some(items) = schema.get("items") {
            self.fields(items, before, found);
        }
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{before}{name}");
            found.push(path.clone());
            self.fields(schema, &format!("{path}."), found);
        }
    }

    /// Returns each operation with its parameters and the fields of its response.
    fn operations(&self) -> BTreeMap<String, Vec<String>> {
        let mut operations = BTreeMap::new();
        for (path, item) in self.0["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                let mut asked = Vec::new();
                for parameter in operation["parameters"].as_array().into_iter().flatten() {
                    asked.push(parameter["name"].as_str().unwrap().to_owned());
                }
                let json = "content/application~1json/schema";
                if let Some(body) = operation.pointer(&format!("/requestBody/{json}")) {
                    self.fields(body, "", &mut asked);
                }
                let mut answered = Vec::new();
                for status in ["200", "201"] {
                    let body = operation.pointer(&format!("/responses/{status}/{json}"));
                    if let Some(body) = body {
                        self.fields(body, "", &mut answered);
                    }
                }
                answered.retain(|field| field.starts_with("data."));
                let fields = asked.iter().map(|field| format!("> {field}"));
                let fields = fields.chain(answered.iter().map(|field| format!("< {field}")));
                let name = format!("{} {path}", method.to_uppercase());
                operations.insert(name, fields.collect());
            }
        }
        operations
    }
}

#[test]
fn every_field_has_a_line_and_every_line_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let page = fs::read_to_string(root.join("docs/conformance.md")).unwrap();
    let sections = lines(&page);
    let mut faults = Vec::new();
    let named = |section: &str| -> Vec<&str> {
        let lines = sections.get(section).into_iter().flatten();
        lines.flat_map(|(names, _)| names.iter().copied()).collect()
    };
    let operations = Document(serde_json::to_value(openapi::document()).unwrap()).operations();
    for (operation, fields) in &operations {
        let lines = named(operation);
        let missing = fields.iter().filter(|field| !lines.contains(&field.as_str()));
        faults.extend(missing.map(|field| format!("{operation}: no line for {field}")));
        let stale = lines.iter().filter(|line| !fields.iter().any(|field| field == *line));
        faults.extend(stale.map(|line| format!("{operation}: there is no {line}")));
    }
    for status in Status::ALL {
        if !named("Statuses").contains(&status.as_str()) {
            faults.push(format!("no line for the status {status}"));
        }
    }
    let ended = sample::transition(&session(), Event::TerminatedByPartner).session;
    for key in webhook::payload(&ended).unwrap().as_object().unwrap().keys() {
        if !named("Webhooks").contains(&key.as_str()) {
            faults.push(format!("no line for {key} of a webhook's body"));
        }
    }
    faults.extend(tests_that_are_not_there(&root, &page, &sections));
    assert_eq!(faults, Vec::<String>::new());
}

fn tests_that_are_not_there(root: &Path, page: &str, sections: &Sections<'_>) -> Vec<String> {
    let homes = page.lines().filter(|line| line.starts_with("- `")).flat_map(quoted);
    let homes: Vec<_> = homes.collect();
    let sources: BTreeMap<_, _> = homes
        .chunks(2)
        .map(|home| (home[0], fs::read_to_string(root.join(home[1])).unwrap()))
        .collect();
    let mut faults = Vec::new();
    for (section, lines) in sections {
        for (names, tests) in lines {
            if tests.is_empty() {
                faults.push(format!("{section}: nothing holds {names:?}"));
            }
            for test in tests {
                let there = test.split_once('/').is_some_and(|(home, name)| {
                    let function = format!("fn {name}(");
                    sources.get(home).is_some_and(|source| source.contains(&function))
                });
                if !there {
                    faults.push(format!("{section}: there is no test {test}"));
                }
            }
        }
    }
    faults
}
