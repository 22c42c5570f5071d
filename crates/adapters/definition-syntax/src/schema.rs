//! The JSON Schema of definitions, and validation by it.

use std::{collections::BTreeSet, sync::OnceLock};

use domain::workflow::{Definition, JsonPath, SignIn, closest_name};
use jsonschema::{
    ValidationError, Validator,
    error::{TypeKind, ValidationErrorKind as Kind},
};
use ports::definition_syntax::SyntaxError;
use serde_json::{Value, json};

/// The URI that identifies the schema (RFC 8141).
const SCHEMA_ID: &str = "urn:avouch:schema:workflow:1";
/// Errors of one document that are reported.
const MAX_ERRORS: usize = 100;

/// Returns the schema as indented JSON.
pub(crate) fn text() -> String {
    format!("{:#}", json_schema())
}

pub(crate) fn json_schema() -> Value {
    let mut schema = schemars::schema_for!(Definition).to_value();
    if let Some(members) = schema.as_object_mut() {
        members.insert("$id".into(), SCHEMA_ID.into());
        members.insert("title".into(), "Platform definition".into());
    }
    add_sign_ins(&mut schema);
    schema
}

/// Adds what a document has and a definition has not, since it is written out: shared sign-ins.
fn add_sign_ins(schema: &mut Value) {
    let mut sign_in = schemars::schema_for!(SignIn).to_value();
    if let Some(members) = sign_in.as_object_mut() {
        // Those of a definition are among them all.
        for name in ["$schema", "$defs", "title"] {
            members.remove(name);
        }
    }
    if let Some(parts) = schema.get_mut("$defs").and_then(Value::as_object_mut) {
        parts.insert("SignIn".into(), sign_in);
    }
    if let Some(members) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        let sign_ins = json!({
            "description": "Sign-ins that other definitions share, for nodes of type `signIn`. In a file, \
                the path of another file may stand for one.",
            "type": "object",
            "additionalProperties": { "$ref": "#/$defs/SignIn" },
        });
        members.insert("signIns".into(), sign_ins);
    }
    let nodes = schema.pointer_mut("/$defs/Node/oneOf").and_then(Value::as_array_mut);
    if let Some(nodes) = nodes {
        nodes.push(json!({
            "description": "Goes through a shared sign-in, and goes on after it.",
            "type": "object",
            "properties": {
                "type": { "type": "string", "const": "signIn" },
                "signIn": { "description": "The name of a sign-in.", "type": "string" },
                "next": { "type": "string" },
            },
            "required": ["type", "signIn", "next"],
            "additionalProperties": false,
        }));
    }
}

/// Returns the errors of a document by the schema.
pub(crate) fn validate(document: &Value) -> Vec<SyntaxError> {
    static VALIDATOR: OnceLock<Option<Validator>> = OnceLock::new();
    let Some(validator) = VALIDATOR.get_or_init(|| jsonschema::validator_for(&json_schema()).ok())
    else {
        return vec![];
    };
    let mut errors = Vec::new();
    for error in validator.iter_errors(document).take(MAX_ERRORS) {
        describe(&error, document, &mut errors);
    }
    errors.sort_by(|a, b| a.path.cmp(&b.path));
    errors.dedup();
    errors.truncate(MAX_ERRORS);
    errors
}

/// Adds what an author has to correct.
fn describe(error: &ValidationError<'_>, document: &Value, errors: &mut Vec<SyntaxError>) {
    let path = place(error, document);
    let mut add = |path: &JsonPath, message: String| {
        errors.push(SyntaxError { path: path.clone(), position: None, message });
    };
    match error.kind() {
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            add(&path, format!("the member `{name}` is missing"));
        }
        Kind::AdditionalProperties { unexpected } => {
            let known = known_members(error.schema_path().as_str());
            for name in unexpected {
                let message = "is no member that is known here".to_owned();
                add(&path.member(name), message + &suggestion(name, &known));
            }
        }
        Kind::Enum { options } => {
            let options = options.as_array().into_iter().flatten();
            add(&path, must_be_one_of(error.instance(), &options.collect::<Vec<_>>()));
        }
        Kind::Constant { expected_value } => {
            add(&path, must_be_one_of(error.instance(), &[expected_value]));
        }
        Kind::Minimum { limit } => add(&path, format!("must be at least {limit}")),
        Kind::Maximum { limit } => add(&path, format!("must be at most {limit}")),
        Kind::Type { kind } => {
            let types: Vec<_> = match kind {
                TypeKind::Single(one) => vec![one.to_string()],
                TypeKind::Multiple(many) => many.iter().map(|one| one.to_string()).collect(),
            };
            let is = kind_of(error.instance());
            add(&path, format!("is {is}, must be of type {}", types.join(" or ")));
        }
        Kind::OneOfNotValid { context } | Kind::AnyOf { context } => {
            one_of(error, context, document, errors);
        }
        _ => add(&path, error.to_string()),
    }
}

/// Describes why none of several alternatives is met, by the one that the author meant: alternatives
/// differ in the constant that a value or its member `type` has, or in the only member of an object.
fn one_of(
    error: &ValidationError<'_>,
    alternatives: &[Vec<ValidationError<'static>>],
    document: &Value,
    errors: &mut Vec<SyntaxError>,
) {
    let path = place(error, document);
    let instance = error.instance();
    let mut add = |path: JsonPath, message| {
        errors.push(SyntaxError { path, position: None, message });
    };
    let tag = path.member("type");
    let constants = |at: &JsonPath| {
        let errors = alternatives.iter().flatten().filter(|error| place(error, document) == *at);
        let mut values: Vec<&Value> = Vec::new();
        for error in errors {
            match error.kind() {
                Kind::Constant { expected_value } => values.push(expected_value),
                Kind::Enum { options } => values.extend(options.as_array().into_iter().flatten()),
                _ => (),
            }
        }
        values
    };
    let values = constants(&path);
    if !values.is_empty() {
        return add(path, must_be_one_of(instance, &values));
    }
    if !instance.is_object() {
        let types = alternatives.iter().flatten().filter_map(|error| match error.kind() {
            Kind::Type { kind: TypeKind::Single(one) } if place(error, document) == path => {
                Some(one.to_string())
            }
            _ => None,
        });
        let types: BTreeSet<_> = types.collect();
        let types: Vec<_> = types.into_iter().collect();
        let is = kind_of(instance);
        return add(path, format!("is {is}, must be of type {}", types.join(" or ")));
    }
    // The members that an alternative lacks, in the order of the alternatives.
    let lacks = |alternative: &[ValidationError<'static>], wanted: Option<&str>| {
        alternative.iter().find_map(|error| match error.kind() {
            Kind::Required { property } if place(error, document) == path => {
                let name = property.as_str()?;
                wanted.is_none_or(|wanted| wanted == name).then(|| name.to_owned())
            }
            _ => None,
        })
    };
    let tags = constants(&tag);
    let is_other = |alternative: &[ValidationError<'static>]| {
        let is_tag = |error: &ValidationError<'static>| place(error, document) == tag;
        alternative
            .iter()
            .any(|error| is_tag(error) && matches!(error.kind(), Kind::Constant { .. }))
    };
    let meant = if alternatives.iter().all(|one| lacks(one, Some("type")).is_some()) {
        return add(path, "the member `type` is missing".into());
    } else if tags.is_empty() {
        alternatives.iter().find(|alternative| lacks(alternative, None).is_none())
    } else {
        let meant = alternatives.iter().find(|alternative| !is_other(alternative));
        if meant.is_none() {
            let value = instance.get("type").cloned().unwrap_or_default();
            return add(tag, must_be_one_of(&value, &tags));
        }
        meant
    };
    if let Some(meant) = meant {
        return meant.iter().for_each(|error| describe(error, document, errors));
    }
    let members: BTreeSet<_> = alternatives.iter().filter_map(|one| lacks(one, None)).collect();
    let unknown = instance.as_object().and_then(|members| members.keys().next());
    let known: Vec<_> = members.iter().map(String::as_str).collect();
    let suggestion = unknown.map(|name| suggestion(name, &known)).unwrap_or_default();
    let members: Vec<_> = members.iter().map(|name| format!("`{name}`")).collect();
    let members = members.join(", ");
    add(path, format!("must be an object with one of the members {members}{suggestion}"));
}

/// Returns the place of the value that an error is about.
fn place(error: &ValidationError<'_>, document: &Value) -> JsonPath {
    path(error.instance_path().as_str(), document)
}

fn must_be_one_of(value: &Value, options: &[&Value]) -> String {
    let names: Vec<_> = options.iter().filter_map(|option| option.as_str()).collect();
    let closest = value.as_str().and_then(|value| closest_name(value, names));
    let suggestion =
        closest.map(|closest| format!("did you mean `{closest}`? It ")).unwrap_or_default();
    let options: BTreeSet<_> = options.iter().map(ToString::to_string).collect();
    let options: Vec<_> = options.into_iter().collect();
    match options.as_slice() {
        [one] => format!("must be {one}"),
        _ => format!("{suggestion}must be one of {}", options.join(", ")),
    }
}

/// Returns the names of the members of an object, by the place of a keyword in its schema.
fn known_members(keyword: &str) -> Vec<&'static str> {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    let parent = keyword.rsplit_once('/').map_or("", |(parent, _)| parent);
    let object = SCHEMA.get_or_init(json_schema).pointer(parent);
    let members = object.and_then(|object| object.get("properties")?.as_object());
    members.into_iter().flatten().map(|(name, _)| name.as_str()).collect()
}

fn suggestion(name: &str, known: &[&str]) -> String {
    closest_name(name, known.iter().copied())
        .map(|closest| format!("; did you mean `{closest}`?"))
        .unwrap_or_default()
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a number with a fraction",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Returns the place that a JSON pointer leads to in a document.
fn path(pointer: &str, document: &Value) -> JsonPath {
    let mut path = JsonPath::root();
    let mut value = Some(document);
    for token in pointer.split('/').skip(1) {
        let name = token.replace("~1", "/").replace("~0", "~");
        let index = name.parse().ok().filter(|_| value.is_some_and(Value::is_array));
        path = index.map_or_else(|| path.member(&name), |index| path.item(index));
        value = match index {
            Some(index) => value.and_then(|value| value.get(index)),
            None => value.and_then(|value| value.get(&name)),
        };
    }
    path
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use serde_json::json;

    use super::*;

    fn sandbox() -> Value {
        serde_json::from_str(include_str!("../../../domain/platforms/sandbox.json")).unwrap()
    }

    fn errors(document: &Value) -> Vec<String> {
        validate(document).iter().map(|e| format!("{}: {}", e.path, e.message)).collect()
    }

    #[test]
    fn the_sandbox_conforms_to_the_schema() {
        assert_eq!(errors(&sandbox()), [""; 0]);
    }

    #[test]
    fn the_schema_is_valid_by_its_own_schema() {
        assert!(jsonschema::draft202012::meta::is_valid(&json_schema()));
        assert_eq!(json_schema()["$schema"], "https://json-schema.org/draft/2020-12/schema");
    }

    #[test]
    fn all_errors_are_reported_at_once_by_what_the_author_meant() {
        let mut document = sandbox();
        document["strat"] = json!("open");
        document.as_object_mut().unwrap().remove("start");
        document["budgets"]["steps"] = json!("60");
        document["hosts"] = json!("sandbox.localhost");
        document["environment"] = json!("prod");
        document["signals"]["otp"] = json!({ "selecter": "input" });
        document["signals"]["questions"] = json!({ "any": [{ "selector": 5 }, { "url": ["/x"] }] });
        document["signals"]["locked"] = json!({ "response": { "url": "/x", "status": "200" } });
        document["signals"]["down"] = json!("502");
        document["nodes"]["open"]["type"] = json!("gotoo");
        document["nodes"]["route"]["default"] = json!({ "fial": "UNEXPECTED_PAGE" });
        document["nodes"]["login"]["timeoutSeconds"] = json!(1.5);
        document["nodes"]["login"]["hints"][0]["count"] = json!(-1);
        document["nodes"]["code"]["onTimeout"] = json!({ "fail": "MFA_TIME" });
        document["nodes"]["question"].as_object_mut().unwrap().remove("type");
        document["nodes"]["profile"]["via"] = json!({ "fecth": "me" });
        document["nodes"]["badge"]["colour"] = json!("red");
        document["nodes"]["stats"].as_object_mut().unwrap().remove("next");
        document["nodes"]["end"] = json!([]);
        document["output"]["tier"]["type"] = json!("text");
        document["interrupts"][1]["then"] = json!(null);
        let mut report = String::new();
        for error in errors(&document) {
            writeln!(report, "{error}").unwrap();
        }
        insta::assert_snapshot!(report);
    }

    #[test]
    fn deep_and_wide_documents_are_validated_in_time() {
        let mut condition = json!({ "selector": 5 });
        for _ in 0..55 {
            condition = json!({ "all": [condition] });
        }
        let mut document = sandbox();
        document["signals"]["otp"] = condition;
        assert_eq!(errors(&document).len(), 1);
        for number in 0..500 {
            document["nodes"][format!("n{number}")] = json!({ "type": "goto", "url": 1 });
        }
        assert_eq!(errors(&document).len(), MAX_ERRORS);
        assert!(!errors(&json!(null)).is_empty());
    }
}
