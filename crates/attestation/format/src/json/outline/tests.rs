//! Property tests of the hidden ranges of a JSON text.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::json;

/// The hidden ranges of [`outline`], and the declared values as an examiner parses them.
type Found = (Vec<(Range<usize>, ByteClass)>, Vec<String>);

fn found(text: &[u8], pointers: &[String]) -> Result<Found, JsonError> {
    let Outline { hidden, declared } = outline(text, pointers.iter().map(String::as_str))?;
    if pointers.is_empty() {
        return Ok((hidden, vec![]));
    }
    let whole = json::read(declared.as_bytes())?;
    let value = |pointer: &String| json::value(declared.as_bytes(), &whole, pointer);
    Ok((hidden, pointers.iter().map(value).collect::<Result<_, _>>()?))
}

/// Returns the text as the attestor sees it, with placeholders for hidden bytes.
fn masked(text: &[u8], hidden: &[(Range<usize>, ByteClass)]) -> Vec<u8> {
    let mut text = text.to_vec();
    for (range, _) in hidden {
        text[range.clone()].fill(b'0');
    }
    text
}

/// Strings with every permitted content.
fn string() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => "[ -!#-\\[\\]-~é😀]{0,4}".boxed(),
        1 => prop::sample::select(vec![
            "\\\"", "\\\\", "\\/", "\\b", "\\f", "\\n", "\\r", "\\t", "\\u0061", "\\u00E9",
            "\\ud83d\\ude00", "\\u0022", "\\u005c", "\u{7f}", "{", "}", "[", "]", ",", ":",
        ])
        .prop_map(str::to_owned)
        .boxed(),
    ];
    prop::collection::vec(piece, 0..4).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

/// Names that are easily confused, names that pointers escape, and others.
fn name() -> impl Strategy<Value = String> {
    let alike =
        ["a", "b", "\\u0061", "a/b", "a~b", "~1", "~0", "~", "/", "", "0", "1", "00", "-", "A"];
    let alike = prop::sample::select(alike.to_vec()).prop_map(|name| format!("\"{name}\""));
    prop_oneof![4 => alike, 1 => string()]
}

fn value() -> impl Strategy<Value = String> {
    let number = "-?(0|[1-9][0-9]{0,25})(\\.[0-9]{1,4})?([eE][+-]?[0-9]{1,2})?";
    let leaf = prop_oneof![
        number,
        string(),
        prop::sample::select(vec!["true", "false", "null"]).prop_map(str::to_owned),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        let space = || "[ \t\r\n]{0,2}";
        let item = (space(), inner.clone(), space()).prop_map(|(a, b, c)| a + &b + &c);
        let member = (space(), name(), space(), space(), inner, space())
            .prop_map(|(a, name, b, c, value, d)| format!("{a}{name}{b}:{c}{value}{d}"));
        prop_oneof![
            prop::collection::vec(item, 0..5).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec(member, 0..5)
                .prop_map(|members| format!("{{{}}}", members.join(","))),
            space().prop_map(|space| format!("{{{space}}}")),
        ]
    })
}

/// Collects the pointers to all values that can be declared.
fn pointers(value: &Value, at: &str, all: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.for_each(|(index, item)| pointers(item, &format!("{at}/{index}"), all));
        }
        Value::Object(members) => {
            for (name, member) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                pointers(member, &format!("{at}/{name}"), all);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) if at.is_empty() => (),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            all.push(at.to_owned());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn hidden_ranges_depend_on_visible_bytes_only(
        text in value(),
        before in "[ \n]{0,2}",
        chosen: u32,
        others in prop::collection::vec(name(), 0..3),
    ) {
        let text = format!("{before}{text}{before}");
        let whole = json::read(text.as_bytes());
        let mut all = vec![];
        if let Ok(whole) = &whole {
            pointers(whole, "", &mut all);
        }
        let mut some: Vec<_> =
            all.into_iter().enumerate().filter(|(at, _)| chosen >> (at % 32) & 1 == 1).map(|(_, one)| one).collect();
        let declared = found(text.as_bytes(), &some);
        if let Ok(whole) = &whole {
            // No pointer passes through a duplicate name, and each value has its literal text.
            let expected: Vec<_> =
                some.iter().map(|one| json::value(text.as_bytes(), whole, one).unwrap()).collect();
            let declared = declared.unwrap();
            prop_assert_eq!(&declared.1, &expected);
            for (pointer, value) in some.iter().zip(&declared.1) {
                let read: Value = serde_json::from_str(value).unwrap();
                prop_assert_eq!(whole.pointer(pointer), Some(&read));
            }
        }
        // The same with pointers to missing values or duplicate names.
        some.extend(others.iter().map(|name| format!("/{}", name.trim_matches('"'))));
        let Ok(outlined) = outline(text.as_bytes(), some.iter().map(String::as_str)) else {
            return Ok(());
        };
        let seen = masked(text.as_bytes(), &outlined.hidden);
        let again = outline(&seen, some.iter().map(String::as_str)).unwrap();
        prop_assert_eq!(&again.hidden, &outlined.hidden);
        prop_assert_eq!(&again.declared, &outlined.declared);
        let mut end = 0;
        for (range, class) in &outlined.hidden {
            prop_assert!(range.start >= end && !range.is_empty(), "{:?}", outlined.hidden);
            end = range.end + 1;
            let fits = text.as_bytes()[range.clone()].iter().all(|byte| class.contains(*byte));
            prop_assert!(fits, "{:?} in {}", range, text);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// With no declared value, only the structure and the prefixes of escapes are visible.
    #[test]
    fn only_the_structure_of_undeclared_values_is_visible(text in value()) {
        let hidden = outline(text.as_bytes(), std::iter::empty()).unwrap().hidden;
        let seen = |at: &usize| !hidden.iter().any(|(range, _)| range.contains(at));
        let mut seen = (0..text.len()).filter(seen).map(|at| text.as_bytes()[at]);
        while let Some(byte) = seen.next() {
            let escape = byte == b'\\' && seen.next().is_some_and(|kind| b"\"\\/bfnrtu".contains(&kind));
            prop_assert!(escape || b"{}[],:\" \t\r\n".contains(&byte), "{:?} in {}", byte, text);
        }
    }
}

const SAMPLE: &str = r#" {"a":{"b":[1.5e3,{"c":"\u00e9\"x"},null]},"d" : true , "e":"f"} "#;

#[test]
fn a_truncated_text_is_refused() {
    let pointers = ["/a/b/1/c".to_owned(), "/d".to_owned()];
    let (hidden, values) = found(SAMPLE.as_bytes(), &pointers).unwrap();
    assert_eq!(values, ["\"é\\\"x\"", "true"]);
    assert_eq!(
        masked(SAMPLE.as_bytes(), &hidden),
        SAMPLE
            .replace("1.5e3", "00000")
            .replace("null", "0000")
            .replace("\"f\"", "\"0\"")
            .into_bytes()
    );
    for end in 0..SAMPLE.trim_end().len() {
        assert!(found(&SAMPLE.as_bytes()[..end], &pointers).is_err(), "{}", &SAMPLE[..end]);
        assert!(found(&SAMPLE.as_bytes()[..end], &[]).is_err(), "{}", &SAMPLE[..end]);
    }
}

#[test]
fn invalid_json_is_refused() {
    let texts: [&[u8]; 48] = [
        b"",
        b" ",
        b"[",
        b"]",
        b"{",
        b"}",
        b"[1,]",
        b"[,1]",
        b"[,]",
        b"[1,,2]",
        b"[1 2]",
        b"[1;2]",
        b"[1}",
        b"{\"a\":1]",
        b"{\"a\":1,}",
        b"{,}",
        b"{\"a\"}",
        b"{\"a\":}",
        b"{\"a\" 1}",
        b"{\"a\"::1}",
        b"{\"a\":1 \"b\":2}",
        b"{a:1}",
        b"{'a':1}",
        b"{1:1}",
        b"{null:1}",
        b"{[]:1}",
        b"['a']",
        b"[1]]",
        b"[1][1]",
        b"{}{}",
        b"[1]x",
        b"[1],",
        b"\xef\xbb\xbf[1]",
        b"[1]\0",
        b"\0[1]",
        b"[\x0b1]",
        b"[\xc2\xa01]",
        b"[\"\x00\"]",
        b"[\"\x1f\"]",
        b"[\"\n\"]",
        b"[\"\t\"]",
        b"[\"\\x41\"]",
        b"[\"\\u12\"]",
        b"[\"\\u12g4\"]",
        b"[\"\\U0041\"]",
        b"[\"\\\"]",
        b"[\"a]",
        b"[\"\\u\"]",
    ];
    for text in texts {
        assert!(found(text, &[]).is_err(), "{}", text.escape_ascii());
        assert!(json::read(text).is_err(), "{}", text.escape_ascii());
    }
}

/// Of hidden bytes the attestor learns only that they are not structure; declared values, and all
/// names on the path to them, are parsed as strictly as in a completely visible text.
#[test]
fn declared_values_are_parsed_strictly() {
    for value in [
        "01",
        "+1",
        ".5",
        "1.",
        "1e",
        "-",
        "nul",
        "True",
        "NaN",
        "0x1",
        "\"\\ud800\"",
        "\"\\udc00\\ud800\"",
        "1e999",
        "undefined",
        "(1)",
        "--1",
        "1/2",
    ] {
        let text = format!("{{\"a\":{value},\"b\":1}}");
        let declaring = |pointer: &str| found(text.as_bytes(), &[pointer.to_owned()]);
        assert!(declaring("/a").is_err(), "{value}");
        assert!(declaring("/b").is_ok(), "{value}");
    }
    for value in ["1_0", "~1", "1;2", "[", "1 2", "\u{e9}", "'a'", "<1>", "$x", "1=1"] {
        let text = format!("{{\"a\":{value},\"b\":1}}");
        assert!(
            found(text.as_bytes(), &["/b".to_owned()]).is_err(),
            "{value}: no scalar has these bytes"
        );
    }
    let invalid = b"{\"a\":\"\xff\",\"b\":1}";
    assert!(found(invalid, &["/a".to_owned()]).is_err());
    assert!(found(invalid, &["/b".to_owned()]).is_ok(), "hidden bytes are not decoded");
    assert!(found(b"{\"\xff\":1,\"b\":1}", &["/b".to_owned()]).is_err(), "a visible name");
    for twice in [r#"{"a":1,"a":2}"#, r#"{"a":1,"\u0061":2}"#, r#"{"b":1,"a":3,"b":2}"#] {
        assert!(found(twice.as_bytes(), &["/a".to_owned()]).is_err(), "{twice}");
    }
    let elsewhere = br#"{"a":1,"c":{"d":1,"d":2}}"#;
    assert!(found(elsewhere, &["/a".to_owned()]).is_ok(), "no path leads there");
    assert!(found(elsewhere, &["/c/d".to_owned()]).is_err());
    for compound in ["/c", "/none", "/a/b", "/c/00", "/"] {
        assert!(found(br#"{"a":1,"c":[1,2]}"#, &[compound.to_owned()]).is_err(), "{compound}");
    }
}

#[test]
fn the_maximum_depth_is_that_of_a_complete_text() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        for (deep, fine) in [(1, true), (63, true), (64, true), (65, false), (5000, false)] {
            let text = format!("{}1{}", open.repeat(deep), close.repeat(deep));
            assert_eq!(outline(text.as_bytes(), std::iter::empty()).is_ok(), fine, "{deep}");
            assert_eq!(json::read(text.as_bytes()).is_ok(), fine, "{deep}");
        }
    }
}
