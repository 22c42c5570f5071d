//! The addresses that an author sees, and what is chosen for their parts.

use std::sync::Arc;

use domain::workflow::{Definition, ElementContent, Node, SeenResponse};
use serde_json::{Value, json};

use crate::{
    draft::{DraftError, FieldSource, KnownValues, add_variable},
    studio::{
        Edit, Shared, StudioError, StudioView,
        addresses::AddressView,
        choices::of_member,
        edits::{apply, watched_source},
        view::Surroundings,
    },
    tests::{changes::with_orders, drafts::errors},
};

const PAGE: &str = "https://shop.example/organizations/1/memberships/1?page=2";

/// Returns a definition with two values for addresses, and a studio that has read the same for both.
fn with_values() -> (Definition, Shared) {
    let mut definition = with_orders();
    let orders = FieldSource::Page {
        url: "https://shop.example/orders".to_owned(),
        at: "#id".to_owned(),
        read: ElementContent::Text,
    };
    let shared = Shared::default();
    for name in ["organization", "user"] {
        add_variable(&mut definition, name, vec![], &orders, &KnownValues::new()).unwrap();
        shared.state().values.insert(name.to_owned(), Ok(json!(1)));
    }
    (definition, shared)
}

fn watched() -> FieldSource {
    FieldSource::Response {
        page_url: PAGE.to_owned(),
        url: "https://shop.example/api/users/12".to_owned(),
        pattern: "/api/users/12".to_owned(),
        pointer: "/role".to_owned(),
    }
}

fn added(address: &Value) -> Edit {
    let edit = json!({
        "op": "addField", "name": "role", "label": "Role", "type": "string", "required": true,
        "pii": false, "convert": [], "from": { "response": { "number": 1, "pointer": "/role" } },
        "address": address,
    });
    serde_json::from_value(edit).unwrap()
}

#[test]
fn a_member_is_a_column_of_lists_of_the_same_place_alone() {
    let mut definition = with_orders();
    let shared = Shared::default();
    let response = |path: &str| {
        let body = json!({ "items": [{ "id": 1, "total": 2 }, { "id": 3, "total": 4 }] });
        let url = format!("https://shop.example/api/{path}");
        SeenResponse { number: 1, url, status: 200, body: Some(body), ..SeenResponse::default() }
    };
    let bills = json!({
        "op": "addField", "name": "total", "label": "Total", "type": "number", "required": true,
        "pii": false, "convert": [], "from": { "response": { "number": 1, "pointer": "/items/0/total" } },
        "list": { "at": "/items", "each": null, "member": "/total", "name": "bills", "label": "Bills" },
    });
    let request = |path: &str| FieldSource::Request {
        url: format!("https://shop.example/api/{path}"),
        pointer: "/items".to_owned(),
        bytes: 0,
    };
    let edit = |edit: &Value| serde_json::from_value::<Edit>(edit.clone()).unwrap();
    apply(&mut definition, edit(&bills), Some(request("bills")), &shared).unwrap();
    shared.state().definition = Some(Arc::new(definition.clone()));
    let lists = |path: &str, pointer: &str| {
        let (response, state) = (response(path), shared.state());
        let source = watched_source(&state, &response, pointer.to_owned());
        let view = of_member(&response, pointer).unwrap().with_lists(&source, &state);
        serde_json::to_value(view).unwrap()["lists"].clone()
    };
    assert_eq!(lists("bills", "/items/1/id"), json!(["bills"]));
    assert_eq!(lists("orders", "/items/1/id"), json!([]));
    assert_eq!(lists("bills", "/items"), json!([]));

    let mut other = bills;
    other["name"] = json!("id");
    let refused = apply(&mut definition, edit(&other), Some(request("orders")), &shared);
    let is_refused = matches!(&refused, Err(StudioError::Draft(DraftError::OtherPlace(list))) if list == "bills");
    assert!(is_refused, "{refused:?}");
}

fn field(definition: &Definition, shared: &Shared, name: &str) -> Value {
    shown(definition, shared, "fields", name)
}

/// Returns one of the fields or the variables as the author sees it.
pub(super) fn shown(definition: &Definition, shared: &Shared, kind: &str, name: &str) -> Value {
    let mut state = shared.state();
    state.definition = Some(Arc::new(definition.clone()));
    let around = Surroundings {
        file: "shop",
        obstacle: None,
        home: None,
        time_zone: None,
        can_probe: false,
    };
    let view = serde_json::to_value(StudioView::of(&state, 1, &around)).unwrap();
    let all = view["outline"][kind].as_array().unwrap();
    all.iter().find(|one| one["name"] == name).unwrap().clone()
}

#[test]
fn a_value_for_addresses_is_edited_like_a_field() {
    let (mut definition, shared) = with_values();
    let user = json!({ "value": "user" });
    let chosen = json!({ "url": PAGE, "parts": ["asItIs", "asItIs", "asItIs", user, "asItIs"] });
    apply(&mut definition, added(&chosen), Some(watched()), &shared).unwrap();
    let edit = |name: &str, new_name: &str, reading: &Value| {
        let edit = json!({
            "op": "editVariable", "name": name, "newName": new_name, "reading": reading,
        });
        let edit = serde_json::from_value::<Edit>(edit).unwrap();
        assert!(edit.is_checked(), "what is entered by hand may be wrong");
        edit
    };
    let mut reading = shown(&definition, &shared, "variables", "user")["reading"].clone();
    assert_eq!((&reading["at"], &reading["read"]), (&json!("#id"), &json!("text")));
    reading["at"] = json!("#profile");
    reading["read"] = json!({ "attribute": "href" });
    reading["element"] = json!("last");
    reading["convert"] = json!([{ "match": "/(\\d+)$" }]);
    apply(&mut definition, edit("user", "person", &reading), None, &shared).unwrap();
    assert_eq!(errors(&definition), [""; 0]);
    let person = shown(&definition, &shared, "variables", "person");
    assert_eq!((&person["reading"], &person["place"]), (&reading, &json!("#profile")));
    let address = field(&definition, &shared, "role")["address"]["url"].clone();
    assert_eq!(address, "https://shop.example/organizations/1/memberships/{person}?page=2");
    let other = shown(&definition, &shared, "variables", "organization");
    assert_eq!(other["reading"]["at"], "#id");

    // Its name alone.
    apply(&mut definition, edit("person", "member", &Value::Null), None, &shared).unwrap();
    let member = shown(&definition, &shared, "variables", "member");
    assert_eq!(member["reading"], reading);
    let before = definition.clone();
    let taken = |name: &str| DraftError::NameTaken(name.to_owned());
    let mut long = reading;
    long["at"] = json!("a".repeat(2001));
    for (refused, error) in [
        (edit("member", "organization", &Value::Null), taken("organization")),
        (edit("member", "tier", &Value::Null), taken("tier")),
        (edit("member", "1", &Value::Null), DraftError::Name),
        (edit("member", "member", &long), DraftError::PlaceTooLong),
        (edit("user", "user", &Value::Null), DraftError::NoField("user".to_owned())),
        (edit("tier", "level", &Value::Null), DraftError::NoField("tier".to_owned())),
    ] {
        let refused = apply(&mut definition, refused, None, &shared);
        let is_it = matches!(&refused, Err(StudioError::Draft(found)) if *found == error);
        assert!(is_it, "{refused:?}");
        assert_eq!(definition, before);
    }
}

#[test]
fn the_address_of_a_new_field_is_shown_in_parts() {
    let (definition, shared) = with_values();
    let view = AddressView::of_source(&watched(), &definition, &shared.state()).unwrap();
    let view = serde_json::to_value(view).unwrap();
    assert_eq!((&view["source"], &view["url"]), (&json!("response"), &json!(PAGE)));
    let watched = json!({ "pattern": "/api/users/12", "own": ["…/users/12"] });
    assert_eq!(view["watched"], watched);
    let organization = json!({
        "text": "1", "place": "…/organizations/1", "before": "…/organizations/", "after": "",
        "values": ["organization", "user"], "choice": null, "mayBeOwn": true,
        "restMayBeOwn": false,
    });
    assert_eq!(view["parts"][1], organization);
    let page = json!({
        "text": "2", "place": "page=2", "before": "page=", "after": "", "values": [],
        "choice": "asItIs", "mayBeOwn": false, "restMayBeOwn": false,
    });
    assert_eq!(view["parts"][4], page);
}

#[test]
fn a_field_has_the_address_that_its_author_has_chosen() {
    let (mut definition, shared) = with_values();
    let before = definition.clone();
    let undecided = json!({ "url": PAGE, "parts": ["asItIs", null, "asItIs", null, "asItIs"] });
    for address in [Value::Null, undecided] {
        let refused = apply(&mut definition, added(&address), Some(watched()), &shared);
        let is_undecided = matches!(refused, Err(StudioError::Draft(DraftError::PartUndecided(_))));
        assert!(is_undecided, "{refused:?}");
        assert_eq!(definition, before);
    }
    let user = json!({ "value": "user" });
    let chosen = json!({ "url": PAGE, "parts": ["asItIs", "asItIs", "asItIs", user, "asItIs"] });
    apply(&mut definition, added(&chosen), Some(watched()), &shared).unwrap();
    let shown = field(&definition, &shared, "role")["address"].clone();
    let url = "https://shop.example/organizations/1/memberships/{user}?page=2";
    assert_eq!((&shown["method"], &shown["url"]), (&json!("GET"), &json!(url)));
    assert_eq!((&shown["own"], &shown["names"]), (&json!(["…/organizations/1"]), &json!(["role"])));
    assert_eq!(shown["watched"]["pattern"], "/api/users/12");
    assert_eq!(shown["parts"][3]["choice"], user);

    let node = field(&definition, &shared, "role")["node"].clone();
    let organization = json!({ "value": "organization" });
    let parts = json!(["asItIs", organization, "asItIs", user, "asItIs"]);
    let edit =
        json!({ "op": "setAddress", "node": node, "address": { "url": url, "parts": parts } });
    let edit: Edit = serde_json::from_value(edit).unwrap();
    assert!(edit.is_checked());
    apply(&mut definition, edit, None, &shared).unwrap();
    let shown = field(&definition, &shared, "role")["address"].clone();
    let url = "https://shop.example/organizations/{organization}/memberships/{user}?page=2";
    assert_eq!((&shown["url"], &shown["own"]), (&json!(url), &json!([])));
    // Others keep theirs.
    let tier = field(&definition, &shared, "tier")["address"].clone();
    assert_eq!(tier["url"], "https://shop.example/orders");
    assert_eq!(tier["names"], json!(["orders", "tier", "organization", "user"]));
}

#[test]
fn a_required_field_is_offered_for_the_addresses_of_later_pages() {
    let (mut definition, shared) = (with_orders(), Shared::default());
    let page = |path: &str| FieldSource::Page {
        url: format!("https://shop.example/{path}"),
        at: "#role".to_owned(),
        read: ElementContent::Text,
    };
    apply(&mut definition, added(&Value::Null), Some(page("home")), &shared).unwrap();
    shared.state().samples.insert("role".to_owned(), "ada".to_owned());
    let part = |definition: &Definition| {
        let view = AddressView::of_source(&page("users/ada"), definition, &shared.state()).unwrap();
        serde_json::to_value(view).unwrap()["parts"][1].clone()
    };
    let shown = part(&definition);
    assert_eq!((&shown["values"], &shown["choice"]), (&json!(["role"]), &Value::Null));

    let edit = json!({
        "op": "addVariable", "name": "team", "convert": [],
        "from": { "page": { "inspection": 1, "at": "#role", "read": "text" } },
        "address": {
            "url": "https://shop.example/users/ada", "parts": ["asItIs", { "value": "role" }],
        },
    });
    let edit = serde_json::from_value(edit).unwrap();
    apply(&mut definition, edit, Some(page("users/ada")), &shared).unwrap();
    let reads_team = |node: &Node| matches!(node, Node::Collect { variables, .. } if variables.contains_key("team"));
    let (node, _) = definition.nodes.iter().find(|(_, node)| reads_team(node)).unwrap();
    let view = AddressView::of_node(&definition, &shared.state(), node).unwrap();
    let view = serde_json::to_value(view).unwrap();
    assert_eq!(view["url"], "https://shop.example/users/{role}");
    assert_eq!(view["parts"][1]["values"], json!(["role"]));

    // The account may lack it, and the page could not be opened then.
    definition.output.get_mut("role").unwrap().required = false;
    assert_eq!(part(&definition)["values"], json!([]));
}

#[test]
fn a_value_within_a_parameter_is_shown_and_chosen() {
    let (mut definition, shared) = with_values();
    shared.state().values.insert("user".to_owned(), Ok(json!("ada")));
    let url = "https://shop.example/api/posts?filter=status:open%2Bauthors:ada";
    let source = || FieldSource::Request {
        url: url.to_owned(),
        pointer: "/posts/0/title".to_owned(),
        bytes: 0,
    };
    let view = AddressView::of_source(&source(), &definition, &shared.state()).unwrap();
    let word = json!({
        "text": "ada", "place": "filter=status:open+authors:ada",
        "before": "filter=status:open+authors:", "after": "", "values": ["user"],
        "choice": { "value": "user" }, "mayBeOwn": true, "restMayBeOwn": false,
    });
    assert_eq!(serde_json::to_value(view).unwrap()["parts"][2], word);

    apply(&mut definition, added(&Value::Null), Some(source()), &shared).unwrap();
    let shown = field(&definition, &shared, "role")["address"].clone();
    assert_eq!(shown["url"], url.replace("ada", "{user}"));
    assert_eq!((&shown["own"], &shown["parts"][2]), (&json!([]), &word_named(&word)));

    let node = field(&definition, &shared, "role")["node"].clone();
    let address = json!({ "url": shown["url"], "parts": ["asItIs", "asItIs", "asItIs"] });
    let edit = json!({ "op": "setAddress", "node": node, "address": address });
    apply(&mut definition, serde_json::from_value(edit).unwrap(), None, &shared).unwrap();
    let shown = field(&definition, &shared, "role")["address"].clone();
    assert_eq!((&shown["url"], &shown["own"]), (&json!(url), &json!([word["place"]])));
}

/// Returns a part as the definition has it once its value has taken the place of its text.
fn word_named(word: &Value) -> Value {
    let mut named = word.clone();
    named["place"] = json!("filter=status:open+authors:{user}");
    named
}
