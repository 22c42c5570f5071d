//! Changes of definitions: what comes of them can be published.

use definition_syntax::Syntax;
use domain::{
    api_key::Environment,
    platform::NEUTRAL_ICON,
    workflow::{
        Condition, Converter, Definition, ElementContent, FieldType, Node, Severity, check,
    },
};
use ports::definition_syntax::DefinitionSyntax as _;
use serde_json::json;

use crate::{
    draft::{
        AddressChoice, DraftError, FieldChange, FieldSource, KnownValues, Marking, NewField,
        NewList, PageKind, add_field, add_variable, dismiss, edit_field, mark_page, move_field,
        new_definition, read_address, remove_dismissed, remove_field, remove_page, remove_variable,
        set_address,
    },
    explore::exploring,
    lists::ListProposal,
    studio::{Edit, text_of},
};

pub(crate) fn draft() -> Definition {
    let mut definition =
        new_definition("https://shop.example/login", "Shop", Environment::Production).unwrap();
    let selector = |selector: &str| Condition::Selector(selector.to_owned());
    let instead = Marking::Instead;
    mark_page(&mut definition, PageKind::SignIn, selector("input[type=password]"), instead)
        .unwrap();
    mark_page(&mut definition, PageKind::SignedIn, selector("a.logout"), instead).unwrap();
    definition
}

pub(crate) fn field(name: &str) -> NewField {
    NewField {
        name: name.to_owned(),
        label: format!("The {name}"),
        kind: FieldType::String,
        format: None,
        currency: None,
        required: true,
        pii: false,
        convert: vec![Converter::Trim],
        list: None,
    }
}

pub(crate) fn on_page(url: &str) -> FieldSource {
    FieldSource::Page { url: url.into(), at: "#x".into(), read: ElementContent::Text }
}

/// Returns the errors of a definition, and checks that its text can be read again.
pub(crate) fn errors(definition: &Definition) -> Vec<String> {
    let text = text_of(definition);
    assert_eq!(Syntax.validate(&text), Ok(()));
    assert_eq!(&serde_json::from_str::<Definition>(&text).unwrap(), definition);
    let all = check(definition).into_iter();
    let errors = all.filter(|error| error.severity == Severity::Error);
    errors.map(|error| format!("{}: {}", error.path, error.message)).collect()
}

/// Returns a definition with something of each kind.
fn full_draft() -> Definition {
    let mut definition = draft();
    let known = KnownValues::from([("user".to_owned(), "5".to_owned())]);
    let none = KnownValues::new();
    for kind in [
        PageKind::Code,
        PageKind::Push,
        PageKind::SecurityQuestion,
        PageKind::AccountPicker,
        PageKind::Captcha,
        PageKind::WrongPassword,
        PageKind::WrongCode,
        PageKind::Locked,
        PageKind::Down,
    ] {
        let condition = Condition::Selector(format!("#{}", kind.name()));
        mark_page(&mut definition, kind, condition, Marking::Instead).unwrap();
    }
    let home = FieldSource::Page {
        url: "https://shop.example/".into(),
        at: "a.me".into(),
        read: ElementContent::Attribute("href".into()),
    };
    add_variable(&mut definition, "user", vec![], &home, &none).unwrap();
    let profile = on_page("https://shop.example/users/5?tab=me");
    add_field(&mut definition, field("fullName"), &profile, &known).unwrap();
    add_field(&mut definition, field("email"), &profile, &known).unwrap();
    let api = FieldSource::Request {
        url: "https://shop.example/api/users/5".into(),
        pointer: "/since".into(),
        bytes: 0,
    };
    add_field(&mut definition, field("since"), &api, &known).unwrap();
    let rows = ListProposal {
        at: "#orders".into(),
        each: Some("tr".into()),
        member: "td".into(),
        rows: 3,
    };
    let list = NewList { name: "orders".into(), label: "Orders".into(), rows };
    for name in ["number", "total"] {
        let member = NewField { list: Some(list.clone()), ..field(name) };
        add_field(&mut definition, member, &on_page("https://shop.example/orders"), &known)
            .unwrap();
    }
    let own = FieldSource::Response {
        page_url: "https://shop.example/orders".into(),
        url: "https://shop.example/graphql".into(),
        pattern: "/graphql".into(),
        pointer: "/data/tier".into(),
    };
    add_field(&mut definition, field("tier"), &own, &known).unwrap();
    dismiss(&mut definition, "#cookies button").unwrap();
    definition
}

#[test]
fn a_definition_made_of_choices_can_be_published() {
    let mut definition = full_draft();
    assert_eq!(errors(&definition), [""; 0]);
    let urls = definition.nodes.values().filter_map(|node| {
        let Node::Goto { url, .. } = node else { return None };
        Some(url.as_str())
    });
    let urls: Vec<_> = urls.collect();
    assert!(urls.contains(&"https://shop.example/users/{user}?tab=me"), "{urls:?}");
    assert_eq!(definition.output_order, ["fullName", "email", "since", "orders", "tier"]);

    move_field(&mut definition, "tier", false).unwrap();
    let change = FieldChange {
        within: None,
        name: "since".into(),
        new_name: "memberSince".into(),
        label: "Member since".into(),
        required: false,
        pii: true,
        reading: None,
    };
    edit_field(&mut definition, change).unwrap();
    assert_eq!(definition.output_order, ["fullName", "email", "memberSince", "tier", "orders"]);
    let used = remove_variable(&mut definition, "user").unwrap_err();
    assert!(matches!(used, DraftError::ValueUsed(name) if name == "user"));
    for name in ["fullName", "email", "memberSince", "orders", "tier"] {
        assert_eq!(errors(&definition), [""; 0]);
        remove_field(&mut definition, name).unwrap();
    }
    for page in [
        "wrongCode",
        "code",
        "push",
        "securityQuestion",
        "accountPicker",
        "captcha",
        "wrongPassword",
        "locked",
        "down",
    ] {
        remove_page(&mut definition, page).unwrap();
    }
    remove_dismissed(&mut definition, "#cookies button");
    // It is all that is left to read.
    remove_variable(&mut definition, "user").unwrap();
    assert!(remove_variable(&mut definition, "user").is_err());
    let empty = draft();
    assert_eq!(definition.signals, empty.signals);
    assert_eq!(definition.interrupts, empty.interrupts);
    assert!(definition.requests.is_empty() && definition.output.is_empty());
    assert_eq!(definition.texts, empty.texts);
    assert_eq!(definition.nodes, empty.nodes);
}

#[test]
fn a_request_may_have_a_longer_response_than_the_one_that_was_seen() {
    let limit = |bytes: u32| {
        let mut definition = draft();
        let (url, pointer) = ("https://shop.example/api/me".into(), "/since".into());
        let source = FieldSource::Request { url, pointer, bytes };
        add_field(&mut definition, field("since"), &source, &KnownValues::new()).unwrap();
        definition.requests.values().next().map(|request| request.max_bytes)
    };
    assert_eq!(limit(0), Some(262_144));
    assert_eq!(limit(65_537), Some(262_148));
    assert_eq!(limit(262_145), Some(1_048_576), "more than a definition may have");
    assert_eq!(limit(u32::MAX), Some(1_048_576));
}

/// Returns a definition that reads two values for addresses on its first page, and the values: both are
/// the same.
fn with_two_values() -> (Definition, KnownValues) {
    let mut definition = draft();
    let home = on_page("https://shop.example/");
    for name in ["organization", "user"] {
        add_variable(&mut definition, name, vec![], &home, &KnownValues::new()).unwrap();
    }
    let known = ["organization", "user"].map(|name| (name.to_owned(), "1".to_owned())).into();
    (definition, known)
}

fn choice(url: &str, parts: &serde_json::Value) -> AddressChoice {
    let choice = json!({ "url": url, "parts": parts });
    serde_json::from_value(choice).unwrap()
}

/// Returns the node that reads a field.
fn node_of(definition: &Definition, field: &str) -> String {
    let reads = definition.nodes.iter().find_map(|(node, content)| {
        let Node::Collect { fields, .. } = content else { return None };
        fields.contains_key(field).then(|| node.clone())
    });
    reads.unwrap()
}

#[test]
fn the_author_says_which_value_an_address_takes() {
    let (mut definition, known) = with_two_values();
    let url = "https://shop.example/api/organizations/1/memberships/1";
    let api = FieldSource::Request { url: url.into(), pointer: "/role".into(), bytes: 0 };
    let before = definition.clone();
    let refused = add_field(&mut definition, field("role"), &api, &known).unwrap_err();
    assert_eq!(refused, DraftError::PartUndecided("…/organizations/1".into()));
    assert_eq!(definition, before);

    let (organization, user) = (json!({ "value": "organization" }), json!({ "value": "user" }));
    let parts = json!(["asItIs", "asItIs", organization, "asItIs", user]);
    let decided = api.with_choice(&choice(url, &parts), &known).unwrap();
    add_field(&mut definition, field("role"), &decided, &KnownValues::new()).unwrap();
    let urls: Vec<_> = definition.requests.values().map(|request| request.url.as_str()).collect();
    let expected = "https://shop.example/api/organizations/{organization}/memberships/{user}";
    assert_eq!(urls, [expected]);
    let unused = check(&definition).into_iter().filter(|error| error.message.contains("not used"));
    assert_eq!(unused.count(), 0);
    assert_eq!(errors(&definition), [""; 0]);
}

#[test]
fn a_value_within_a_parameter_differs_between_accounts() {
    let (mut definition, mut known) = with_two_values();
    known.insert("user".to_owned(), "ada".to_owned());
    let url = "https://shop.example/api/posts/?filter=status%3Aopen%2Bauthors%3Aada&limit=30";
    let api = FieldSource::Request { url: url.into(), pointer: "/posts/0/title".into(), bytes: 0 };
    add_field(&mut definition, field("title"), &api, &known).unwrap();
    let urls: Vec<_> = definition.requests.values().map(|request| request.url.clone()).collect();
    assert_eq!(urls, [url.replace("ada", "{user}")]);
    assert_eq!(errors(&definition), [""; 0]);
    // It is the address of the same request.
    add_field(&mut definition, field("slug"), &api, &known).unwrap();
    assert_eq!(definition.requests.len(), 1);
    assert_eq!(node_of(&definition, "title"), node_of(&definition, "slug"));
}

#[test]
fn an_address_is_changed_for_all_that_is_read_there() {
    let (mut definition, mut known) = with_two_values();
    let url = "https://shop.example/users/1";
    let parts = json!(["asItIs", { "value": "user" }]);
    let page = on_page(url).with_choice(&choice(url, &parts), &known).unwrap();
    for name in ["fullName", "email"] {
        add_field(&mut definition, field(name), &page, &KnownValues::new()).unwrap();
    }
    let later = on_page("https://shop.example/later");
    add_variable(&mut definition, "late", vec![], &later, &KnownValues::new()).unwrap();
    known.insert("late".to_owned(), "1".to_owned());

    let node = node_of(&definition, "fullName");
    let address = read_address(&definition, &node).unwrap();
    assert_eq!(address.url, "https://shop.example/users/{user}");
    assert_eq!(address.names, ["email", "fullName"]);
    assert!(address.offered(&known).into_keys().eq(["organization", "user"]));

    let chosen = |name: &str| choice(&address.url, &json!(["asItIs", { "value": name }]));
    let set = |definition: &mut Definition, node: &str, name: &str| {
        set_address(definition, node, &chosen(name), &known, &known)
    };
    // It is read after the page was opened.
    let refused = set(&mut definition, &node, "late");
    assert!(matches!(refused, Err(DraftError::OtherValue { .. })), "{refused:?}");
    assert_eq!(set(&mut definition, "route", "user"), Err(DraftError::OtherForm));
    set(&mut definition, &node, "organization").unwrap();
    assert_eq!(errors(&definition), [""; 0]);
    let changed = read_address(&definition, &node).unwrap();
    assert_eq!(changed.url, "https://shop.example/users/{organization}");
    assert_eq!(set(&mut definition, &node, "user"), Err(DraftError::AddressChanged));
}

#[test]
fn a_field_of_an_earlier_page_is_offered_for_the_address_of_a_later_one() {
    let mut definition = draft();
    let none = KnownValues::new();
    let home = on_page("https://shop.example/");
    add_field(&mut definition, field("customer"), &home, &none).unwrap();
    let url = "https://shop.example/customers/7";
    for name in ["fullName", "mail"] {
        add_field(&mut definition, field(name), &on_page(url), &none).unwrap();
    }
    let known = ["customer", "fullName", "mail"].map(|name| (name.to_owned(), "7".to_owned()));
    let known = KnownValues::from(known);
    let offered = |definition: &Definition, field: &str| {
        let address = read_address(definition, &node_of(definition, field)).unwrap();
        address.offered(&known).into_keys().collect::<Vec<_>>()
    };
    assert_eq!(offered(&definition, "customer"), [""; 0], "nothing is read before");
    assert_eq!(offered(&definition, "fullName"), ["customer"], "nor what the page itself has");
    let page = node_of(&definition, "fullName");
    let parts = json!(["asItIs", { "value": "customer" }]);
    set_address(&mut definition, &page, &choice(url, &parts), &known, &known).unwrap();
    let address = read_address(&definition, &page).unwrap();
    assert_eq!(address.url, "https://shop.example/customers/{customer}");
    assert_eq!(errors(&definition), [""; 0]);
}

#[test]
fn a_new_definition_has_the_icon_of_no_other_platform() {
    assert_eq!(draft().icon, NEUTRAL_ICON);
}

#[test]
fn a_value_is_removed_unless_an_address_or_a_body_has_it() {
    let (mut definition, _) = with_two_values();
    let post = |body: serde_json::Value| {
        let request = json!({
            "url": "https://shop.example/graphql", "method": "POST", "body": body,
            "expectStatus": 200, "maxBytes": 1000,
        });
        serde_json::from_value(request).unwrap()
    };
    let used = Err(DraftError::ValueUsed("user".into()));
    let body = json!({ "query": "{user}", "variables": [{ "id": "{user}" }] });
    definition.requests.insert("user".into(), post(body));
    assert_eq!(remove_variable(&mut definition, "user"), used);
    definition.requests.clear();
    definition.login_url = "https://shop.example/login?as={user}".into();
    assert_eq!(remove_variable(&mut definition, "user"), used);
    definition.login_url = "https://shop.example/login".into();
    // The selection of a query, which has the form of a name.
    definition.requests.insert("user".into(), post(json!({ "query": "query me {user}" })));
    remove_variable(&mut definition, "user").unwrap();
}

#[test]
fn a_field_is_removed_unless_an_address_has_it() {
    let mut definition = full_draft();
    let before = definition.clone();
    let used = Err(DraftError::ValueUsed("fullName".into()));
    definition.requests.values_mut().next().unwrap().url += "?name={fullName}";
    assert_eq!(remove_field(&mut definition, "fullName"), used);
    definition.requests.clone_from(&before.requests);
    assert_eq!(definition, before);
    remove_field(&mut definition, "fullName").unwrap();
}

#[test]
fn two_pages_do_not_read_the_same_response() {
    let mut definition = draft();
    let none = KnownValues::new();
    let orders = |state: &str, path: &str| FieldSource::Response {
        page_url: format!("https://shop.example/app#/orders?state={state}"),
        url: format!("https://shop.example{path}?state={state}"),
        pattern: path.to_owned(),
        pointer: "/total".to_owned(),
    };
    let open = orders("open", "/api/orders");
    for name in ["open", "openAgain"] {
        add_field(&mut definition, field(name), &open, &none).unwrap();
    }
    let before = definition.clone();
    let closed = orders("closed", "/api/orders");
    let refused = add_field(&mut definition, field("closed"), &closed, &none);
    assert_eq!(refused, Err(DraftError::PathTaken));
    assert_eq!(add_variable(&mut definition, "closed", vec![], &closed, &none), refused);
    assert_eq!(definition, before);
    let other = orders("closed", "/api/closed-orders");
    add_field(&mut definition, field("closed"), &other, &none).unwrap();
    assert_eq!(errors(&definition), [""; 0]);
}

#[test]
fn what_is_not_known_yet_is_an_error_that_says_so() {
    let definition =
        new_definition("https://shop.example/login", "Shop", Environment::Production).unwrap();
    let errors = errors(&definition);
    assert!(errors.iter().any(|error| error.starts_with("$.signals.signedIn")), "{errors:?}");
}

#[test]
fn an_author_looks_around_with_any_definition() {
    for opens in [true, false] {
        let definition = exploring(&draft(), opens);
        let errors = errors(&definition);
        // Nothing is read, and a signal never holds; the rest is as in any definition.
        assert!(definition.nodes.contains_key(&definition.start));
        assert!(
            errors.iter().all(|error| error.contains("studio")
                || error.contains("$.nodes")
                || error.contains("$.output")),
            "{errors:?}"
        );
    }
}

#[test]
fn what_cannot_be_changed_is_refused() {
    let mut definition = draft();
    let none = KnownValues::new();
    let page = on_page("https://shop.example/");
    add_field(&mut definition, field("name"), &page, &none).unwrap();
    let before = definition.clone();
    let refused = |definition: &mut Definition, field: NewField| {
        add_field(definition, field, &page, &none).unwrap_err()
    };
    assert_eq!(refused(&mut definition, field("name")), DraftError::NameTaken("name".into()));
    assert_eq!(refused(&mut definition, field("1st")), DraftError::Name);
    assert_eq!(refused(&mut definition, field("a-b")), DraftError::Name);
    assert_eq!(
        refused(&mut definition, NewField { label: " ".into(), ..field("b") }),
        DraftError::Label
    );
    let long = FieldSource::Page {
        url: "https://shop.example/".into(),
        at: "a".repeat(2001),
        read: ElementContent::Text,
    };
    let error = add_field(&mut definition, field("b"), &long, &none).unwrap_err();
    assert_eq!(error, DraftError::PlaceTooLong);
    assert_eq!(definition, before);
    for url in ["http://shop.example/", "ftp://a.test", "shop", "https://"] {
        let new = new_definition(url, "Shop", Environment::Production);
        assert_eq!(new.unwrap_err(), DraftError::Address, "{url}");
    }
    assert!(
        new_definition("http://shop.localhost:8080/", "Shop", Environment::Development).is_ok()
    );
    assert_eq!(remove_page(&mut definition, "name"), Err(DraftError::NoPage("name".into())));
    definition.nodes.remove("review");
    let error = add_field(&mut definition, field("b"), &on_page("https://shop.example/b"), &none);
    assert_eq!(error, Err(DraftError::OtherForm));
}

#[test]
fn several_pages_are_marked_as_the_same_kind() {
    let selector = |selector: &str| Condition::Selector(selector.to_owned());
    let orders = || Condition::Url("/orders".into());
    let mut definition = full_draft();
    let mut mark = |condition: Condition, marking| {
        mark_page(&mut definition, PageKind::SignedIn, condition, marking)
            .map(|()| definition.signals["signedIn"].clone())
    };
    let (also, instead) = (Marking::Also, Marking::Instead);
    assert_eq!(mark(selector("#home"), instead), Ok(selector("#home")));
    assert_eq!(mark(selector("#home"), also), Ok(selector("#home")), "the same one again");
    let both = Condition::Any(vec![selector("#home"), selector("#settings")]);
    assert_eq!(mark(selector("#settings"), also), Ok(both.clone()));
    let three = Condition::Any(vec![selector("#home"), selector("#settings"), orders()]);
    assert_eq!(mark(Condition::Any(vec![both, orders()]), also), Ok(three));
    for number in 4..=8 {
        mark(selector(&format!("#page{number}")), also).unwrap();
    }
    assert_eq!(mark(selector("#page9"), also), Err(DraftError::TooManyConditions));
    assert!(mark(selector("#home"), also).is_ok(), "it is there already");
    assert_eq!(errors(&definition), [""; 0]);
    let instead = mark_page(&mut definition, PageKind::SignedIn, orders(), instead);
    assert_eq!((instead, &definition.signals["signedIn"]), (Ok(()), &orders()));

    // No page is marked yet.
    let mut definition =
        new_definition("https://shop.example/login", "Shop", Environment::Production).unwrap();
    mark_page(&mut definition, PageKind::SignedIn, orders(), also).unwrap();
    assert_eq!(definition.signals["signedIn"], orders());
}

#[test]
fn a_change_is_read_as_the_page_sends_it() {
    let column = json!({
        "op": "addField", "name": "total", "label": "Total", "type": "number", "format": null,
        "currency": "EUR", "required": false, "pii": false, "convert": ["trim"],
        "from": { "page": { "inspection": 1, "at": "#x", "read": "text" } },
        "list": { "at": "#orders", "each": "tr", "member": "td", "name": "orders", "label": "Orders" },
    });
    for edit in [
        column,
        json!({ "op": "addVariable", "name": "user", "convert": [],
            "from": { "response": { "number": 1, "pointer": "/id" } } }),
        json!({ "op": "addVariable", "name": "user", "convert": [],
            "from": { "page": { "inspection": 1, "at": "#x", "read": "text" } },
            "address": { "url": "https://shop.example/1",
                "parts": [null, "asItIs", { "value": "user" }] } }),
        json!({ "op": "setAddress", "node": "read",
            "address": { "url": "https://shop.example/", "parts": [] } }),
        json!({ "op": "markPage", "kind": "signedIn", "condition": { "selector": "#in" } }),
        json!({ "op": "markPage", "kind": "signedIn", "condition": { "selector": "#in" },
            "marking": "instead" }),
        json!({ "op": "editField", "name": "a", "newName": "b", "label": "B", "required": true, "pii": true }),
        json!({ "op": "editField", "within": "orders", "name": "a", "newName": "a", "label": "A",
            "required": true, "pii": true, "reading": { "type": "number", "format": null,
            "currency": "EUR", "at": "td", "read": { "attribute": "title" }, "element": "last",
            "convert": [{ "number": { "decimalMark": "," } }], "each": null } }),
        json!({ "op": "addMember", "within": "orders", "name": "a", "label": "A", "required": true,
            "pii": true, "reading": { "type": "string", "at": "td" } }),
        json!({ "op": "removeField", "within": "orders", "name": "a" }),
        json!({ "op": "removeField", "name": "a" }),
        json!({ "op": "setNextPage", "list": "orders", "selector": "a.next", "max": 10 }),
        json!({ "op": "removeNextPage", "list": "orders" }),
        json!({ "op": "moveField", "name": "a", "by": -1 }),
        json!({ "op": "dismiss", "inspection": 1, "selector": "#ok" }),
        json!({ "op": "replace", "document": "{}" }),
    ] {
        let read = serde_json::from_value::<Edit>(edit.clone());
        assert!(read.is_ok(), "{edit}: {read:?}");
    }
}
