//! Outlines of accessibility trees in the form of Chromium's, also of those that a hostile page makes.

use ports::browser::{Checked, ControlState, OutlineEntry, OutlineRole, PageOutline};
use serde_json::{Value, json};

use super::{FoundEntry, OutlinedControls};
use super::{accessibility_tree::FrameTree, outline_of, parts, reader::read};

#[test]
fn a_page_is_a_list_of_texts_and_controls() {
    let page = json!({ "role": "RootWebArea", "children": [
        { "role": "none", "ignored": true, "children": [
            { "role": "heading", "name": "Sign in", "level": 2, "children": [
                { "role": "StaticText", "name": "Sign " },
                { "role": "link", "name": "in", "backend": 1, "children": [
                    { "role": "StaticText", "name": "in" }] }] },
            { "role": "alert", "children": [
                { "role": "StaticText", "name": "The code or " },
                { "role": "strong", "children": [{ "role": "StaticText", "name": "the name" }] },
                { "role": "LineBreak", "name": "\n" },
                { "role": "StaticText", "name": "is wrong." }] },
            { "role": "LabelText", "children": [
                { "role": "StaticText", "name": "User name " },
                { "role": "textbox", "name": "User name", "backend": 2, "required": true,
                  "invalid": "true", "editable": "plaintext", "focused": true }] },
            { "role": "LabelText", "children": [{ "role": "StaticText", "name": "Of nothing" }] },
            { "role": "checkbox", "name": "Stay", "checked": "mixed", "backend": 3 },
            { "role": "radio", "name": "Text message", "checked": "false", "backend": 4 },
            { "role": "combobox", "name": "Country", "value": "Chile", "expanded": false,
              "backend": 5, "children": [{ "role": "option", "name": "Peru", "backend": 6 }] },
            { "role": "combobox", "name": "City", "expanded": true, "backend": 7, "children": [
                { "role": "option", "name": "Arica", "selected": true, "backend": 8 }] },
            { "role": "list", "children": [
                { "role": "listitem", "children": [
                    { "role": "ListMarker", "name": "• " },
                    { "role": "StaticText", "name": "First" },
                    { "role": "paragraph", "children": [{ "role": "StaticText", "name": "more" }] }] },
                { "role": "listitem", "children": [{ "role": "link", "name": "Help", "backend": 9 }] }] },
            { "role": "image", "name": "A dog" },
            { "role": "image", "name": " " },
            { "role": "dialog", "name": "Cookies", "children": [
                { "role": "button", "name": "Accept", "disabled": true, "backend": 10 }] },
            { "role": "generic", "ignored": true, "children": [
                { "role": "StaticText", "name": "hidden", "ignored": true },
                { "role": "button", "name": "hidden", "ignored": true }] },
        ] },
    ] });
    let outline = outline(&[(None, page)]);
    let lines: Vec<_> = outline.entries.iter().map(line).collect();
    assert_eq!(
        lines,
        [
            "Heading(2) Sign in",
            "Link in #1",
            "Alert The code or the name is wrong.",
            "Field User name #2 required invalid focused",
            "Text Of nothing",
            "Checkbox Stay #3 Mixed",
            "Radio Text message #4 No",
            "Combobox Country=Chile #5 expanded=false",
            "Combobox City #7 expanded=true",
            "ListItem Arica #8 Yes",
            "ListItem First",
            "Text more",
            "Link Help #9",
            "Image A dog",
            "Dialog Cookies",
            "Button Accept #10 disabled",
        ]
    );
    assert!(!outline.is_cut);
}

#[test]
fn contents_of_fields_are_passed_over() {
    let typed = json!([{ "role": "generic", "children": [
        { "role": "StaticText", "name": "typed", "children": [
            { "role": "InlineTextBox", "name": "typed" }] }] }]);
    let roles = ["textbox", "searchbox", "spinbutton", "slider", "Date", "DateTime", "InputTime"];
    let by_role = roles.map(|role| {
        json!({ "role": role, "name": "A field", "value": "typed", "backend": 1, "children": typed })
    });
    // Elements that are edited (`contenteditable`), and fields with a list of suggestions.
    let by_property = ["generic", "combobox", "paragraph", "heading", "button"].map(|role| {
        json!({ "role": role, "name": "A field", "value": "typed", "backend": 1,
            "editable": "richtext", "children": typed })
    });
    let fields: Vec<_> = by_role.into_iter().chain(by_property).collect();
    let count = fields.len();
    let page = json!({ "role": "RootWebArea", "children": fields });
    let outline = outline(&[(None, page)]);
    let lines: Vec<_> = outline.entries.iter().map(line).collect();
    assert_eq!(lines, vec!["Field A field #1"; count]);
}

#[test]
fn a_document_that_is_edited_as_a_whole_has_no_outline() {
    let text = json!([{ "role": "StaticText", "name": "typed", "editable": "richtext" }]);
    let page = json!({ "role": "RootWebArea", "editable": "richtext", "children": text });
    assert_eq!(outline(&[(None, page)]), PageOutline::default());
}

#[test]
fn frames_are_read_where_their_element_is() {
    let text = |name: &str| json!({ "role": "StaticText", "name": name });
    let page = json!({ "role": "RootWebArea", "children": [
        text("before"), { "role": "Iframe", "backend": 7 }, text("after")] });
    let frame = |text: Value| json!({ "role": "RootWebArea", "children": [text] });
    let frames =
        [(None, page), (Some(7), frame(text("inside"))), (Some(8), frame(text("unknown")))];
    let lines: Vec<_> = outline(&frames).entries.iter().map(line).collect();
    assert_eq!(lines, ["Text before", "Text inside", "Text after"]);
}

#[test]
fn hostile_names_are_short_and_on_one_line() {
    let name = "\u{202e}<b>\r\n\u{7}\u{2066}name\u{0} ".repeat(100_000);
    let page = json!({ "role": "RootWebArea", "children": [
        { "role": "button", "name": name, "backend": 1 },
        { "role": "combobox", "name": "x", "value": name, "backend": -1 },
        { "role": "paragraph", "children": [{ "role": "StaticText", "name": name }] },
        { "role": "heading", "name": name, "level": 1e300 }] });
    let outline = outline(&[(None, page)]);
    assert!(outline.entries.len() > 4, "a long text is divided: {}", outline.entries.len());
    for entry in &outline.entries {
        for text in [Some(&entry.name), entry.value.as_ref()].into_iter().flatten() {
            assert!(text.chars().count() <= PageOutline::MAX_TEXT_CHARS, "{text}");
            assert!(text.starts_with(['<', 'n', 'x']), "{text}");
            assert!(
                !text.contains(|c: char| c.is_control() || ('\u{2000}'..'\u{206f}').contains(&c))
            );
        }
        assert_eq!(entry.node, (entry.role == OutlineRole::Button).then_some(1), "{entry:?}");
    }
}

#[test]
fn a_hostile_tree_ends() {
    let node = |id: usize, role: &str, children: &[usize]| {
        json!({ "nodeId": id.to_string(), "role": { "value": role }, "name": { "value": "name" },
            "backendDOMNodeId": id, "parentId": (id > 0).then(|| "0".to_owned()),
            "childIds": children.iter().map(usize::to_string).collect::<Vec<_>>() })
    };
    let read = |nodes: Vec<Value>| {
        let tree = FrameTree::parse(0, None, json!({ "nodes": nodes })).unwrap();
        let (found, is_cut) = read(&[tree]);
        outline_of(found, is_cut)
    };
    let many: Vec<_> = (1..30_000).collect();
    let wide = std::iter::once(node(0, "RootWebArea", &many))
        .chain(many.iter().map(|id| node(*id, "button", &[])));
    let outline = read(wide.collect());
    assert_eq!((outline.entries.len(), outline.is_cut), (PageOutline::MAX_ENTRIES, true));
    let deep = (0..30_000).map(|id| node(id, "paragraph", &[id + 1]));
    assert_eq!(read(deep.collect()), PageOutline::default());
    // Nodes that contain one another, and nodes that are not there.
    let circle = vec![
        node(0, "RootWebArea", &[1, 2, 2, 77]),
        node(1, "heading", &[0, 1, 2]),
        node(2, "link", &[0]),
    ];
    let lines: Vec<_> = read(circle).entries.iter().map(line).collect();
    assert_eq!(lines, ["Heading(1) name", "Link name #2"]);
}

#[test]
fn controls_of_different_processes_have_different_numbers() {
    let found = |process, node| FoundEntry {
        process,
        entry: OutlineEntry {
            role: OutlineRole::Button,
            name: String::new(),
            value: None,
            node,
            state: ControlState::default(),
        },
        is_cut: false,
    };
    let sessions = ["page", "frame", "other"].map(str::to_owned);
    let numbers = |found: &[FoundEntry]| found.iter().map(|f| f.entry.node).collect::<Vec<_>>();
    let mut controls = OutlinedControls::default();
    let mut first = [found(0, Some(7)), found(1, Some(7)), found(2, Some(7)), found(0, None)];
    controls.number(("page", 1), &sessions, &mut first);
    let [own, framed, other, text] = numbers(&first).try_into().unwrap();
    assert_eq!((own, text), (Some(7), None));
    assert!(framed != own && other != own && framed != other, "{framed:?} {other:?}");
    assert_eq!(controls.get(framed.unwrap()), Some(&("frame".to_owned(), 7)));
    let mut second = [found(2, Some(7)), found(1, Some(8)), found(1, Some(7))];
    controls.number(("page", 1), &sessions, &mut second);
    let again = numbers(&second);
    assert_eq!((again[0], again[2]), (other, framed), "a control keeps its number");
    assert!(!first.iter().any(|one| one.entry.node == again[1]));
    assert_eq!(controls.get(7), None, "no control of the newest outline");
    let mut large = [found(0, Some(u32::MAX))];
    controls.number(("page", 2), &sessions, &mut large);
    assert_eq!(numbers(&large), [None]);
}

#[test]
fn what_is_no_tree_is_refused() {
    for reply in
        [json!(null), json!({}), json!({ "nodes": [] }), json!({ "nodes": [{ "nodeId": 7 }] })]
    {
        assert!(FrameTree::parse(0, None, reply).is_none());
    }
}

#[test]
fn a_long_text_is_divided_at_spaces() {
    let text = "word ".repeat(100).trim_end().to_owned();
    let divided = parts(&text);
    assert_eq!(divided.join(" "), text);
    assert_eq!(divided.iter().map(String::len).collect::<Vec<_>>(), [199, 199, 99]);
    assert_eq!(parts(&"x".repeat(300)), ["x".repeat(PageOutline::MAX_TEXT_CHARS)]);
    assert!(parts("").is_empty());
}

/// Returns the outline of a page whose frames are given as nested nodes, each with the element that
/// owns it.
fn outline(frames: &[(Option<i64>, Value)]) -> PageOutline {
    let trees = frames.iter().map(|(owner, page)| {
        let mut nodes = vec![];
        flatten(page, None, &mut nodes);
        FrameTree::parse(0, owner.map(|owner| (0, owner)), json!({ "nodes": nodes })).unwrap()
    });
    let trees: Vec<_> = trees.collect();
    let (found, is_cut) = read(&trees);
    outline_of(found, is_cut)
}

/// Writes a nested node as Chromium does, and returns its identifier.
fn flatten(node: &Value, parent: Option<&str>, nodes: &mut Vec<Value>) -> String {
    let id = nodes.len().to_string();
    let place = nodes.len();
    nodes.push(Value::Null);
    let children = node["children"].as_array().into_iter().flatten();
    let children: Vec<_> = children.map(|child| flatten(child, Some(&id), nodes)).collect();
    let words = [
        "required", "invalid", "disabled", "checked", "selected", "expanded", "editable",
        "focused", "level",
    ];
    let properties = words.iter().filter(|word| !node[**word].is_null());
    let properties =
        properties.map(|word| json!({ "name": word, "value": { "value": node[*word] } }));
    nodes[place] = json!({
        "nodeId": id, "parentId": parent, "childIds": children,
        "ignored": node["ignored"] == true,
        "role": { "type": "role", "value": node["role"] },
        "name": { "type": "computedString", "value": node["name"], "sources": [] },
        "value": { "type": "string", "value": node["value"] },
        "properties": properties.collect::<Vec<_>>(),
        "backendDOMNodeId": node["backend"],
    });
    id
}

fn line(entry: &OutlineEntry) -> String {
    let OutlineEntry { role, name, value, node, state } = entry;
    let value = value.as_ref().map(|value| format!("={value}")).unwrap_or_default();
    let node = node.map(|node| format!(" #{node}")).unwrap_or_default();
    let mut line = format!("{role:?} {name}{value}{node}");
    for (is, word) in [
        (state.required, " required".to_owned()),
        (state.invalid, " invalid".to_owned()),
        (state.disabled, " disabled".to_owned()),
        (state.focused, " focused".to_owned()),
        (state.checked.is_some(), format!(" {:?}", state.checked.unwrap_or(Checked::No))),
        (state.expanded.is_some(), format!(" expanded={}", state.expanded.unwrap_or_default())),
    ] {
        if is {
            line.push_str(&word);
        }
    }
    line
}
