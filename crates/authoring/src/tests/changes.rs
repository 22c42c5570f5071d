//! Changes of fields and columns that are read already.

use domain::workflow::{
    Action, Converter, DecimalMark, Definition, FieldFormat, FieldType, NextPage, Node,
    NumberFormat, Pages,
};
use serde_json::json;

use super::drafts::{draft, errors, field, on_page};
use crate::{
    draft::{
        DraftError, FieldChange, FieldSource, KnownValues, NewField, NewList, NewMember, Reading,
        add_field, add_member, edit_field, move_member, remove_field, remove_member,
        remove_next_page, set_next_page,
    },
    lists::ListProposal,
};

/// A definition with a list of a page that has two columns, `number` and `total`, and a field `tier`.
pub(crate) fn with_orders() -> Definition {
    let mut definition = draft();
    let rows = ListProposal {
        at: "#orders".into(),
        each: Some("tr".into()),
        member: "td".into(),
        rows: 3,
    };
    let list = NewList { name: "orders".into(), label: "Orders".into(), rows };
    let page = on_page("https://shop.example/orders");
    for name in ["number", "total"] {
        let member = NewField { list: Some(list.clone()), ..field(name) };
        add_field(&mut definition, member, &page, &KnownValues::new()).unwrap();
    }
    add_field(&mut definition, field("tier"), &page, &KnownValues::new()).unwrap();
    definition
}

fn reading(kind: FieldType, at: &str) -> Reading {
    Reading {
        kind,
        format: None,
        currency: None,
        at: at.into(),
        read: domain::workflow::ElementContent::Text,
        element: domain::workflow::ElementChoice::First,
        convert: vec![],
        each: None,
        empty_when: None,
        max_rows: None,
    }
}

fn change(within: Option<&str>, name: &str, reading: Option<Reading>) -> FieldChange {
    FieldChange {
        within: within.map(str::to_owned),
        name: name.into(),
        new_name: name.into(),
        label: "Changed".into(),
        required: false,
        pii: true,
        reading,
    }
}

fn number() -> Converter {
    Converter::Number(NumberFormat { decimal_mark: DecimalMark::Comma })
}

fn columns(definition: &Definition) -> Vec<&str> {
    let list = definition.output.get("orders").unwrap();
    list.ordered_members().map(|(name, _)| name.as_str()).collect()
}

#[test]
fn a_column_is_changed_like_a_field() {
    let mut definition = with_orders();
    let amount = Reading {
        currency: Some("EUR".into()),
        convert: vec![number()],
        ..reading(FieldType::Number, "td.total")
    };
    let renamed = FieldChange {
        new_name: "amount".into(),
        ..change(Some("orders"), "total", Some(amount.clone()))
    };
    edit_field(&mut definition, renamed).unwrap();
    assert_eq!(errors(&definition), [""; 0]);
    assert_eq!(columns(&definition), ["number", "amount"]);
    let list = definition.output.get("orders").unwrap();
    let column = list.members.get("amount").unwrap();
    assert_eq!((column.required, column.pii), (false, true));
    let texts = definition.texts.get("en").unwrap();
    assert_eq!(texts.get(&column.label_key).unwrap(), "Changed");
    let Some(Node::Collect { fields, .. }) = definition.nodes.get("readOrders") else { panic!() };
    let from = fields.get("orders").unwrap();
    assert_eq!(Reading::of(column, from.members.get("amount").unwrap()), amount);
    assert!(!from.members.contains_key("total"));

    let taken = FieldChange { new_name: "number".into(), ..change(Some("orders"), "amount", None) };
    let refused = edit_field(&mut definition, taken);
    assert_eq!(refused, Err(DraftError::NameTaken("number".into())));
    let none = edit_field(&mut definition, change(Some("tier"), "x", None));
    assert_eq!(none, Err(DraftError::NoList("tier".into())));
}

#[test]
fn columns_are_added_moved_and_removed() {
    let mut definition = with_orders();
    let new = NewMember {
        within: "orders".into(),
        name: "state".into(),
        label: "State".into(),
        required: true,
        pii: false,
        reading: reading(FieldType::String, "td.state"),
    };
    add_member(&mut definition, new.clone()).unwrap();
    assert_eq!(errors(&definition), [""; 0]);
    assert_eq!(columns(&definition), ["number", "total", "state"]);
    let again = add_member(&mut definition, new.clone());
    assert_eq!(again, Err(DraftError::NameTaken("state".into())));
    let list =
        NewMember { name: "x".into(), reading: reading(FieldType::List, "td"), ..new.clone() };
    assert_eq!(add_member(&mut definition, list), Err(DraftError::HasMembers));
    move_member(&mut definition, "orders", "state", false).unwrap();
    assert_eq!(columns(&definition), ["number", "state", "total"]);
    for name in ["number", "total"] {
        remove_member(&mut definition, "orders", name).unwrap();
        assert_eq!(errors(&definition), [""; 0]);
    }
    assert_eq!(remove_member(&mut definition, "orders", "state"), Err(DraftError::LastMember));
    let missing = remove_member(&mut definition, "orders", "total");
    assert_eq!(missing, Err(DraftError::NoField("total".into())));
    // Nothing of it is left behind.
    remove_field(&mut definition, "orders").unwrap();
    remove_field(&mut definition, "tier").unwrap();
    assert_eq!(definition, draft());
}

#[test]
fn a_field_gets_another_place_and_type() {
    let mut definition = with_orders();
    let date = Reading { format: Some(FieldFormat::Date), ..reading(FieldType::String, "#since") };
    edit_field(&mut definition, change(None, "tier", Some(date.clone()))).unwrap();
    assert_eq!(errors(&definition), [""; 0]);
    let Some(Node::Collect { fields, .. }) = definition.nodes.get("readOrders") else { panic!() };
    let read = Reading::of(definition.output.get("tier").unwrap(), fields.get("tier").unwrap());
    assert_eq!(read, date);
    // Texts in place of values are for texts alone.
    definition.output.get_mut("tier").unwrap().value_keys.insert("gold".into(), "tierGold".into());
    definition.texts.get_mut("en").unwrap().insert("tierGold".into(), "Gold".into());
    let whole = reading(FieldType::Integer, "#since");
    edit_field(&mut definition, change(None, "tier", Some(whole))).unwrap();
    assert_eq!(errors(&definition), [""; 0]);
    assert!(!definition.texts.get("en").unwrap().contains_key("tierGold"));

    let before = definition.clone();
    let list = Reading { each: Some("tr".into()), ..reading(FieldType::List, "#all") };
    let refused = edit_field(&mut definition, change(None, "tier", Some(list.clone())));
    assert_eq!(refused, Err(DraftError::HasMembers));
    let text = reading(FieldType::String, "#all");
    let refused = edit_field(&mut definition, change(None, "orders", Some(text)));
    assert_eq!(refused, Err(DraftError::HasMembers));
    assert_eq!(definition, before);
    edit_field(&mut definition, change(None, "orders", Some(list))).unwrap();
    assert_eq!(errors(&definition), [""; 0]);
    let Some(Node::Collect { fields, .. }) = definition.nodes.get("readOrders") else { panic!() };
    let from = fields.get("orders").unwrap();
    assert_eq!((from.at.as_str(), from.members.len()), ("#all", 2));
    let instead = Reading {
        each: Some("tr".into()),
        empty_when: Some("#none".into()),
        ..reading(FieldType::List, "#all")
    };
    edit_field(&mut definition, change(None, "orders", Some(instead.clone()))).unwrap();
    assert_eq!(errors(&definition), [""; 0]);
    let Some(Node::Collect { fields, .. }) = definition.nodes.get("readOrders") else { panic!() };
    let read = Reading::of(definition.output.get("orders").unwrap(), fields.get("orders").unwrap());
    assert_eq!(read, instead);
    let more = Reading { max_rows: Some(500), ..instead.clone() };
    edit_field(&mut definition, change(None, "orders", Some(more.clone()))).unwrap();
    assert_eq!(errors(&definition), [""; 0]);
    let list = definition.output.get("orders").unwrap();
    let Some(Node::Collect { fields, .. }) = definition.nodes.get("readOrders") else { panic!() };
    assert_eq!((list.row_limit(), Reading::of(list, fields.get("orders").unwrap())), (500, more));
    let too_many = Reading { max_rows: Some(1001), ..instead.clone() };
    let mut refused = definition.clone();
    edit_field(&mut refused, change(None, "orders", Some(too_many))).unwrap();
    assert_eq!(errors(&refused).len(), 1, "the studio refuses what is an error");
    let long = Reading { empty_when: Some("a".repeat(2001)), ..instead };
    let refused = edit_field(&mut definition, change(None, "orders", Some(long)));
    assert_eq!(refused, Err(DraftError::PlaceTooLong));
    let long = reading(FieldType::String, &"a".repeat(2001));
    let refused = edit_field(&mut definition, change(None, "tier", Some(long)));
    assert_eq!(refused, Err(DraftError::PlaceTooLong));
}

#[test]
fn a_field_is_renamed_wherever_its_value_is_used() {
    let mut definition = with_orders();
    definition.login_url = "https://shop.example/login?tier={tier}".into();
    let body =
        json!({ "query": "{tier}", "variables": [{ "tier": "{tier}", "text": "a {tier}" }] });
    let request = json!({
        "url": "https://shop.example/{tier}", "method": "POST", "body": body, "expectStatus": 200,
        "maxBytes": 1000,
    });
    definition.requests.insert("api".into(), serde_json::from_value(request).unwrap());
    let renamed =
        FieldChange { new_name: "level".into(), required: true, ..change(None, "tier", None) };
    edit_field(&mut definition, renamed).unwrap();
    let request = definition.requests.get("api").unwrap();
    assert_eq!(request.url, "https://shop.example/{level}");
    // In a body, a value stands for a whole string alone.
    let body =
        json!({ "query": "{level}", "variables": [{ "tier": "{level}", "text": "a {tier}" }] });
    assert_eq!(request.body, Some(body));
    assert_eq!(definition.login_url, "https://shop.example/login?tier={level}");
}

#[test]
fn a_field_stays_required_while_an_address_has_its_value() {
    let mut definition = with_orders();
    let required = |required| FieldChange { required, ..change(None, "tier", None) };
    edit_field(&mut definition, required(true)).unwrap();
    let login_url = definition.login_url.clone();
    definition.login_url = "https://shop.example/login?tier={tier}".into();
    let before = definition.clone();
    let refused = edit_field(&mut definition, required(false));
    assert_eq!(refused, Err(DraftError::ValueNeeded("tier".into())));
    assert_eq!(definition, before);
    edit_field(&mut definition, required(true)).unwrap();
    // What was written as text is not refused for what it has been before.
    definition.output.get_mut("tier").unwrap().required = false;
    edit_field(&mut definition, required(false)).unwrap();
    definition.login_url = login_url;
    edit_field(&mut definition, required(true)).unwrap();
    edit_field(&mut definition, required(false)).unwrap();
    assert!(!definition.output.get("tier").unwrap().required);
}

#[test]
fn a_column_is_added_to_a_list_of_the_same_place_alone() {
    let mut definition = with_orders();
    let none = KnownValues::new();
    let items = |at: &str, member: &str| ListProposal {
        at: at.into(),
        each: None,
        member: member.into(),
        rows: 3,
    };
    let api = |path: &str| FieldSource::Request {
        url: format!("https://shop.example/api/{path}"),
        pointer: "/items".into(),
        bytes: 0,
    };
    let seen = |path: &str| FieldSource::Response {
        page_url: "https://shop.example/bills".into(),
        url: format!("https://shop.example/api/{path}"),
        pattern: format!("/api/{path}"),
        pointer: "/items".into(),
    };
    let column = |name: &str, list: &str, rows: ListProposal| {
        let list = NewList { name: list.into(), label: "List".into(), rows };
        NewField { list: Some(list), ..field(name) }
    };
    let bills = column("total", "bills", items("/items", "/total"));
    add_field(&mut definition, bills, &api("bills"), &none).unwrap();
    let taxes = column("total", "taxes", items("/items", "/total"));
    add_field(&mut definition, taxes, &seen("taxes"), &none).unwrap();
    let before = definition.clone();
    let elsewhere = FieldSource::Response {
        page_url: "https://shop.example/home".into(),
        url: "https://shop.example/api/taxes".into(),
        pattern: "/api/taxes".into(),
        pointer: "/items".into(),
    };
    for (list, rows, source) in [
        ("bills", items("/items", "/id"), api("invoices")),
        ("bills", items("/items", "/id"), seen("invoices")),
        ("bills", items("/others", "/id"), api("bills")),
        ("taxes", items("/items", "/id"), elsewhere),
        ("taxes", items("/items", "/id"), seen("bills")),
        ("orders", items("#orders", "td"), on_page("https://shop.example/orders")),
    ] {
        let refused = add_field(&mut definition, column("id", list, rows), &source, &none);
        assert_eq!(refused, Err(DraftError::OtherPlace(list.into())), "{source:?}");
        assert_eq!(definition, before);
    }
    // A request and the page's own response have the same rows.
    for (list, name, source) in [
        ("bills", "id", api("bills")),
        ("bills", "date", seen("bills")),
        ("taxes", "id", seen("taxes")),
    ] {
        let column = column(name, list, items("/items", &format!("/{name}")));
        add_field(&mut definition, column, &source, &none).unwrap();
    }
    assert_eq!(errors(&definition), [""; 0]);
}

#[test]
fn a_list_goes_on_with_its_next_page() {
    let mut definition = with_orders();
    set_next_page(&mut definition, "orders", "a.next", 5).unwrap();
    assert_eq!(errors(&definition), [""; 0]);
    let pages = |definition: &Definition| {
        let Some(Node::Collect { pages, .. }) = definition.nodes.get("readOrders") else {
            panic!()
        };
        pages.clone()
    };
    let next = NextPage::Act(Action::Click("a.next".into()));
    assert_eq!(pages(&definition), Some(Pages { next, max: 5 }));
    let refused = set_next_page(&mut definition, "tier", "a.next", 5);
    assert_eq!(refused, Err(DraftError::NoList("tier".into())));
    remove_next_page(&mut definition, "orders").unwrap();
    assert_eq!(pages(&definition), None);

    let rows = ListProposal { at: "/orders".into(), each: None, member: "/id".into(), rows: 3 };
    let list = Some(NewList { name: "bills".into(), label: "Bills".into(), rows });
    let api = FieldSource::Request {
        url: "https://shop.example/api/bills".into(),
        pointer: "/orders".into(),
        bytes: 0,
    };
    add_field(&mut definition, NewField { list, ..field("id") }, &api, &KnownValues::new())
        .unwrap();
    let refused = set_next_page(&mut definition, "bills", "a.next", 5);
    assert_eq!(refused, Err(DraftError::NotInPage("bills".into())));
}
