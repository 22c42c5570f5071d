//! Converts the values that were read from a page to fields of the output.

use serde_json::{Map, Number, Value};

use super::{Extraction, Field, FieldType, ReadContent, ReadFailure, Source};

const MAX_STRING_CHARS: usize = 4096;

/// Returns the value at a JSON pointer of a response. A null is none if an object around it tells of
/// errors, in `errors` or `error`: it may stand for a value that could not be determined, as in GraphQL
/// (section 6.4.4), also in one of several responses at once.
#[must_use]
pub fn value_at<'a>(body: &'a Value, pointer: &str) -> Option<&'a Value> {
    let value = body.pointer(pointer)?;
    let ends = pointer.match_indices('/').map(|(end, _)| end);
    let mut around = ends.filter_map(|end| body.pointer(pointer.get(..end)?));
    (!value.is_null() || !around.any(tells_errors)).then_some(value)
}

fn tells_errors(response: &Value) -> bool {
    ["errors", "error"].iter().any(|name| match response.get(name) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::Array(errors)) => !errors.is_empty(),
        Some(Value::Object(errors)) => !errors.is_empty(),
        Some(Value::String(error)) => !error.is_empty(),
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::Bool(true)) => true,
    })
}

/// Returns the rows of a list of a response; `None` if the value is no list. Null is one without rows, as
/// many servers write it.
#[must_use]
pub fn rows_of(list: &Value) -> Option<&[Value]> {
    if list.is_null() { Some(&[]) } else { list.as_array().map(Vec::as_slice) }
}

/// Returns the value at the place of an extraction; for the page, what was read there is under `name`.
pub(super) fn located<'a>(
    name: &str,
    from: &Extraction,
    read: &'a Value,
    via: &Source,
) -> Option<&'a Value> {
    if matches!(via, Source::Dom {}) { read.get(name) } else { value_at(read, &from.at) }
}

/// Returns the value of a field in what was found at its place.
pub(super) fn read_field(
    field: &Field,
    from: &Extraction,
    found: Option<&Value>,
    via: &Source,
) -> Result<Value, ReadFailure> {
    match field.kind {
        FieldType::Object => {
            let found = found.filter(|found| found.is_object()).ok_or(ReadFailure::NotFound)?;
            let object = members(field, from, found, via).map_err(ReadFailure::Member)?;
            if object.is_empty() { Err(ReadFailure::NotFound) } else { Ok(object.into()) }
        }
        FieldType::List => {
            let items = match via {
                Source::Dom {} if is_no_list(found) => Some(<&[Value]>::default()),
                Source::Dom {} => found.and_then(Value::as_array).map(Vec::as_slice),
                Source::Fetch(_) | Source::Response(_) => found.and_then(rows_of),
            };
            let items = items.ok_or(ReadFailure::NotFound)?;
            let mut rows = Vec::new();
            for (row, item) in items.iter().enumerate().take(field.row_limit()) {
                match members(field, from, item, via) {
                    // Such as a row with a heading.
                    Ok(read) if read.is_empty() => (),
                    Ok(read) => rows.push(Value::Object(read)),
                    Err(_) if is_blank(item, via) => (),
                    Err(member) => return Err(ReadFailure::Row { row, member }),
                }
            }
            Ok(rows.into())
        }
        FieldType::String | FieldType::Integer | FieldType::Number | FieldType::Boolean => {
            read_scalar(field, from, found)
        }
    }
}

/// Returns whether what was found in a page in place of a list is what it shows if there are no rows.
pub(super) fn is_no_list(found: Option<&Value>) -> bool {
    found.and_then(Value::as_str) == Some(ReadContent::NO_LIST)
}

/// Returns whether one row was found in the page in place of those of a list, such as one that says that
/// there are none: it has nothing at the place of a required member, and it is the only row that is not
/// blank. Several rows, or one with a required member that could not be read, are rows of the list.
pub(super) fn has_other_row(field: &Field, from: &Extraction, found: Option<&Value>) -> bool {
    let Some(Value::Array(rows)) = found else { return false };
    let lacks_required = |row: &Value| {
        field.members.iter().any(|(name, own)| own.required && row.get(name).is_none_or(is_missing))
    };
    let mut others = 0_usize;
    for row in rows.iter().take(field.row_limit()) {
        match members(field, from, row, &Source::Dom {}) {
            Ok(read) if read.is_empty() => (),
            Err(_) if is_blank(row, &Source::Dom {}) => (),
            Err(_) if lacks_required(row) => others = others.saturating_add(1),
            Ok(_) | Err(_) => return false,
        }
    }
    others == 1
}

/// Returns whether nothing at all was found in a row of the page.
fn is_blank(item: &Value, via: &Source) -> bool {
    matches!(via, Source::Dom {})
        && item.as_object().is_some_and(|row| row.values().all(is_missing))
}

/// Returns whether nothing was found at a place of the page.
fn is_missing(found: &Value) -> bool {
    found.as_str().is_none_or(|text| text.trim().is_empty())
}

/// Reads the members of an object or of a row. The error is the name of a required one that is missing.
fn members(
    field: &Field,
    from: &Extraction,
    found: &Value,
    via: &Source,
) -> Result<Map<String, Value>, String> {
    let mut values = Map::new();
    for (name, member) in &field.members {
        let value = from
            .members
            .get(name)
            .and_then(|from| read_scalar(member, from, located(name, from, found, via)).ok());
        match value {
            Some(value) => drop(values.insert(name.clone(), value)),
            None if member.required => return Err(name.clone()),
            None => (),
        }
    }
    Ok(values)
}

fn read_scalar(
    field: &Field,
    from: &Extraction,
    found: Option<&Value>,
) -> Result<Value, ReadFailure> {
    take(field, &convert(from, found)?).ok_or(ReadFailure::WrongType)
}

/// Applies the converters of an extraction to the value that was read. Converters read texts of at most
/// [`MAX_STRING_CHARS`].
pub(super) fn convert(from: &Extraction, value: Option<&Value>) -> Result<Value, ReadFailure> {
    let mut value = value.filter(|value| !value.is_null()).ok_or(ReadFailure::NotFound)?.clone();
    let is_long = value.as_str().is_some_and(|text| text.chars().count() > MAX_STRING_CHARS);
    if is_long && !from.convert.is_empty() {
        return Err(ReadFailure::TooLong);
    }
    for (index, converter) in from.convert.iter().enumerate() {
        value = converter.apply(&value).ok_or(ReadFailure::Converter(index))?;
    }
    Ok(value)
}

/// Returns the value of a field if it is present and of the field's type. A text without a visible
/// character is no value.
fn take(field: &Field, value: &Value) -> Option<Value> {
    let fits = match field.kind {
        FieldType::String => {
            let filled =
                |text: &str| !text.trim().is_empty() && text.chars().count() <= MAX_STRING_CHARS;
            value.as_str().is_some_and(filled)
        }
        FieldType::Integer => value.is_i64() || value.is_u64(),
        FieldType::Number => value.is_number(),
        FieldType::Boolean => value.is_boolean(),
        FieldType::Object | FieldType::List => false,
    };
    if fits {
        return Some(value.clone());
    }
    // The DOM contains only text.
    let text = value.as_str()?.trim();
    match field.kind {
        FieldType::String | FieldType::Object | FieldType::List => None,
        FieldType::Integer => text.parse::<i64>().ok().map(Value::from),
        // `inf` and `NaN` are no numbers of JSON (RFC 8259, section 6).
        FieldType::Number => text.parse().ok().and_then(Number::from_f64).map(Value::Number),
        FieldType::Boolean => text.parse::<bool>().ok().map(Value::from),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    fn field(kind: FieldType, members: &[(&str, Field)]) -> Field {
        Field {
            pii: false,
            kind,
            required: true,
            label_key: String::new(),
            format: None,
            currency: None,
            value_keys: BTreeMap::new(),
            members: members
                .iter()
                .map(|(name, field)| ((*name).to_owned(), field.clone()))
                .collect(),
            member_order: vec![],
            max_rows: None,
        }
    }

    fn row() -> (Field, Extraction) {
        let amount = Field { required: false, ..field(FieldType::Number, &[]) };
        let members = [("id", field(FieldType::String, &[])), ("amount", amount)];
        let places = [("id", "/id"), ("amount", "/amount")];
        let places = places.map(|(name, at)| (name.to_owned(), Extraction::from(at)));
        let from =
            Extraction { members: places.into_iter().collect(), ..Extraction::from("/rows") };
        (field(FieldType::List, &members), from)
    }

    #[test]
    fn a_list_has_rows_with_the_declared_members_alone() {
        let (field, from) = row();
        let fetch = Source::Fetch(String::new());
        let read = |rows: Value| read_field(&field, &from, Some(&rows), &fetch);
        let rows = json!([{ "id": "a", "amount": 1.5, "other": 1 }, { "id": "b", "amount": null }]);
        assert_eq!(read(rows), Ok(json!([{ "id": "a", "amount": 1.5 }, { "id": "b" }])));
        assert_eq!(read(json!([])), Ok(json!([])));
        let without_id = json!([{ "id": "a" }, { "amount": 2 }]);
        let failure = ReadFailure::Row { row: 1, member: "id".into() };
        assert_eq!(read(without_id), Err(failure));
        for no_list in [json!({ "id": "a" }), json!("a"), json!("noList")] {
            assert_eq!(read(no_list), Err(ReadFailure::NotFound));
        }
        assert_eq!(read_field(&field, &from, None, &fetch), Err(ReadFailure::NotFound));
        let many: Vec<_> = (0..200).map(|id| json!({ "id": id.to_string() })).collect();
        assert_eq!(read(many.into()).unwrap().as_array().unwrap().len(), 100);
    }

    #[test]
    fn a_null_in_place_of_a_list_is_a_list_without_rows() {
        let (field, from) = row();
        let read = |body: &Value, via: &Source| {
            read_field(&field, &from, located("rows", &from, body, via), via)
        };
        let empty = json!([]);
        for via in [&Source::Fetch(String::new()), &Source::Response(String::new())] {
            assert_eq!(read(&json!({ "rows": null }), via).as_ref(), Ok(&empty));
            assert_eq!(read(&json!({ "rows": null, "errors": [] }), via).as_ref(), Ok(&empty));
            let harmless = [json!([]), json!({}), json!(""), json!(null), json!(false), json!(0)];
            for error in harmless {
                let body = json!({ "rows": null, "errors": error, "error": error });
                assert_eq!(read(&body, via).as_ref(), Ok(&empty), "{body}");
            }
            for no_list in [json!({}), json!(null)] {
                assert_eq!(read(&no_list, via), Err(ReadFailure::NotFound), "{no_list}");
            }
            let errors = [
                json!([{ "message": "timeout" }]),
                json!({ "base": ["timeout"] }),
                json!("timeout"),
            ];
            for error in errors.into_iter().chain([json!(true), json!(503)]) {
                for name in ["errors", "error"] {
                    let body = json!({ "rows": null, name: error });
                    assert_eq!(read(&body, via), Err(ReadFailure::NotFound), "{body}");
                    // One of several responses.
                    let body = json!([{ "data": { "rows": null }, name: error }, {}]);
                    assert_eq!(value_at(&body, "/0/data/rows"), None, "{body}");
                    assert_eq!(value_at(&json!([{ name: error }, null]), "/1"), Some(&json!(null)));
                }
            }
        }
        let nothing = read_field(&field, &from, Some(&Value::Null), &Source::Dom {});
        assert_eq!(nothing, Err(ReadFailure::NotFound));
        // Other values have no null.
        let object = Field { kind: FieldType::Object, ..field };
        let via = Source::Fetch(String::new());
        let nothing = read_field(&object, &from, Some(&Value::Null), &via);
        assert_eq!(nothing, Err(ReadFailure::NotFound));
    }

    #[test]
    fn rows_of_a_page_without_any_text_are_skipped() {
        let (field, from) = row();
        let rows = json!([
            { "id": null, "amount": null },
            { "id": "a", "amount": "2" },
            { "id": " ", "amount": "" },
        ]);
        let read = |rows: &Value| read_field(&field, &from, Some(rows), &Source::Dom {});
        assert_eq!(read(&rows), Ok(json!([{ "id": "a", "amount": 2.0 }])));
        let failure = ReadFailure::Row { row: 0, member: "id".into() };
        assert_eq!(read(&json!([{ "id": null, "amount": "2" }])), Err(failure));
    }

    #[test]
    fn a_single_row_with_nothing_for_a_required_member_is_another_one() {
        let (mut field, from) = row();
        field.members.get_mut("amount").unwrap().required = true;
        let is_other = |rows: &Value| has_other_row(&field, &from, Some(rows));
        let none = json!({ "id": "No orders", "amount": null });
        let blank = json!({ "id": null, "amount": " " });
        assert!(is_other(&json!([none])));
        assert!(is_other(&json!([blank, none])), "a row with headings");
        // Its first member cannot be read either.
        assert!(is_other(&json!([{ "id": null, "amount": "No orders" }])));
        let unread = json!({ "id": "a", "amount": "n/a" });
        let read = json!({ "id": "b", "amount": "2" });
        // These would be lost.
        for rows in [json!([unread]), json!([none, unread]), json!([none, read])] {
            assert!(!is_other(&rows), "{rows}");
        }
        let partly = json!([{ "id": "a", "amount": null }, { "id": "b", "amount": null }]);
        assert!(!is_other(&partly), "the amounts may still be on their way");
        assert!(!is_other(&json!([blank])) && !is_other(&json!([])));
        assert!(!has_other_row(&field, &from, None));
    }

    #[test]
    fn an_object_needs_its_required_members() {
        let (list, from) = row();
        let field = Field { kind: FieldType::Object, ..list };
        let fetch = Source::Fetch(String::new());
        let read = |object: Value| read_field(&field, &from, Some(&object), &fetch);
        assert_eq!(read(json!({ "id": "a", "x": 1 })), Ok(json!({ "id": "a" })));
        assert_eq!(read(json!({ "amount": 1 })), Err(ReadFailure::Member("id".into())));
        assert_eq!(read(json!([])), Err(ReadFailure::NotFound));
    }

    #[test]
    fn an_empty_text_is_no_value() {
        let field = |kind| field(kind, &[]);
        for kind in [FieldType::String, FieldType::Integer, FieldType::Boolean] {
            for text in ["", " ", "\n\t\u{a0}"] {
                assert_eq!(take(&field(kind), &json!(text)), None, "{kind:?} {text:?}");
            }
        }
        assert_eq!(take(&field(FieldType::String), &json!("0")), Some(json!("0")));
        for text in ["inf", "-Infinity", "NaN", "1e999"] {
            assert_eq!(take(&field(FieldType::Number), &json!(text)), None, "{text}");
        }
    }
}
