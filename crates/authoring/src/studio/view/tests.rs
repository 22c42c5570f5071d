//! What an author sees of fields, lists and pages.

use chrono::DateTime;
use domain::workflow::{Observation, TraceEvent};

use super::*;
use crate::{
    draft::{
        FieldSource, KnownValues, NewField, NewList, add_field, remove_next_page, set_next_page,
    },
    lists::ListProposal,
    tests::{changes::with_orders, drafts::field},
};

#[test]
fn a_run_says_why_a_review_was_not_confirmed() {
    let mut state = State::default();
    let mut traced = |event: &TraceEvent| {
        if *event == TraceEvent::Reloaded {
            state.began(RunState::Running, None);
        } else {
            state.traced(event, DateTime::UNIX_EPOCH);
        }
        run(&state)["unconfirmed"].clone()
    };
    let url = "https://shop.example/settings";
    let unconfirmed = TraceEvent::Unconfirmed { signal: "signedIn".into(), url: Some(url.into()) };
    let expected = json!({ "signal": "signedIn", "url": url });
    assert_eq!(traced(&TraceEvent::Reloaded), Value::Null);
    assert_eq!(traced(&unconfirmed), expected);
    assert_eq!(traced(&TraceEvent::Entered { node: "open".into() }), expected);
    let failed = TraceEvent::Failed { code: ErrorCode::UnexpectedPage };
    assert_eq!(traced(&failed), expected);
    // Another run.
    assert_eq!(traced(&TraceEvent::Reloaded), Value::Null);
    assert_eq!(traced(&unconfirmed), expected);
    // The applicant had signed out, and has shared since.
    assert_eq!(traced(&TraceEvent::Completed { data: Some(json!({})) }), Value::Null);
}

#[test]
fn a_complete_run_says_what_it_lacks() {
    let mut state = State::default();
    state.began(RunState::Running, None);
    state.defined(&with_orders().into(), None);
    let none = json!({ "fields": [], "columns": [] });
    assert_eq!(run(&state)["missing"], none);
    let data = json!({ "orders": [{ "number": "1" }, { "number": "2" }] });
    state.traced(&TraceEvent::Completed { data: Some(data) }, DateTime::UNIX_EPOCH);
    let total = json!({ "list": "orders", "column": "total", "missing": 2, "rows": 2 });
    assert_eq!(run(&state)["missing"], json!({ "fields": ["tier"], "columns": [total] }));
    state.began(RunState::Running, None);
    assert_eq!(run(&state)["missing"], none);
    // Nothing was to be shared.
    state.traced(&TraceEvent::Completed { data: None }, DateTime::UNIX_EPOCH);
    assert_eq!(run(&state)["missing"], none);
}

#[test]
fn an_icon_that_is_not_the_platforms_own_is_told() {
    for (platform, icon, is_own) in [
        ("shop", NEUTRAL_ICON, false),
        ("shop", SANDBOX_ICON, false),
        (SANDBOX, SANDBOX_ICON, true),
        ("shop", "https://shop.example/icon.svg", true),
    ] {
        let (platform, icon) = (platform.to_owned(), icon.to_owned());
        let definition = Definition { platform, icon, ..with_orders() };
        let outline = outline(&definition, &State::default());
        assert_eq!(outline["hasOwnIcon"], is_own, "{}", definition.icon);
    }
}

#[test]
fn a_page_is_shown_with_each_of_its_conditions() {
    let mut definition = with_orders();
    let any = ["#home", "#settings"].map(|one| Condition::Selector(one.to_owned())).to_vec();
    definition.signals.insert("signedIn".to_owned(), Condition::Any(any));
    let outline = outline(&definition, &State::default());
    let pages = outline["pages"].as_array().unwrap();
    let page = pages.iter().find(|page| page["name"] == "signedIn").unwrap();
    let expected = ["The element `#home` is visible", "The element `#settings` is visible"];
    assert_eq!(page["conditions"], json!(expected));
}

#[test]
fn a_list_says_that_it_goes_on_until_its_further_pages_are_read() {
    let mut definition = with_orders();
    let url = "https://shop.example/api/bills?limit=2".to_owned();
    let source = FieldSource::Request { url: url.clone(), pointer: "/rows".into(), bytes: 0 };
    let rows = ListProposal { at: "/rows".into(), each: None, member: "/id".into(), rows: 2 };
    let list = Some(NewList { name: "bills".into(), label: "Bills".into(), rows });
    let column = NewField { list, ..field("id") };
    add_field(&mut definition, column, &source, &KnownValues::new()).unwrap();
    let mut state = State::default();
    let paging = |definition: &Definition, state: &State, list: &str| {
        let outline = outline(definition, state);
        let fields = outline["fields"].as_array().unwrap().iter();
        fields.into_iter().find(|field| field["name"] == list).unwrap()["paging"].clone()
    };
    let by_address =
        json!({ "rows": null, "total": null, "sign": null, "parameters": ["limit=2"] });
    assert_eq!(paging(&definition, &state, "bills"), by_address);
    assert_eq!(paging(&definition, &state, "orders"), Value::Null, "it is read in the page");
    let received = |number: u64, url: &str, rows: Value| SeenResponse {
        number,
        url: url.to_owned(),
        status: 200,
        body: Some(json!({ "rows": rows, "meta": { "pagination": { "next": 2, "total": 5 } } })),
        ..SeenResponse::default()
    };
    let second_page =
        received(2, "https://shop.example/api/bills?limit=2&page=3", json!([{ "id": 5 }]));
    let first = received(1, &url, json!([{ "id": 1 }, { "id": 2 }]));
    state.seen(Observation { responses: vec![first, second_page], ..Observation::default() });
    let by_response = json!({
        "rows": 2, "total": 5, "sign": "/meta/pagination/next", "parameters": ["limit=2"],
    });
    assert_eq!(paging(&definition, &state, "bills"), by_response, "of the page that is read");
    let mut ends = |max_rows: u16| {
        definition.output.get_mut("bills").unwrap().max_rows = Some(max_rows);
        let field = definition.output.get("bills").unwrap();
        field_view(&definition, &state, "bills", field)["endsAfter"].clone()
    };
    assert_eq!((ends(4), ends(5)), (json!(4), Value::Null));
    for request in definition.requests.values_mut() {
        request.url = "https://shop.example/api/bills?limit=100".to_owned();
    }
    let by_address =
        json!({ "rows": null, "total": null, "sign": null, "parameters": ["limit=100"] });
    assert_eq!(paging(&definition, &state, "bills"), by_address, "of a page that is not read");
    for node in definition.nodes.values_mut() {
        if let Node::Collect { fields, pages, .. } = node
            && fields.contains_key("bills")
        {
            let next = NextPage::Number { name: "page".to_owned(), first: 1 };
            *pages = Some(Pages { next, max: 5 });
        }
    }
    assert_eq!(paging(&definition, &state, "bills"), Value::Null);
}

#[test]
fn a_list_that_ends_at_its_limit_says_so_until_the_limit_is_raised() {
    let mut definition = with_orders();
    let mut state = State::default();
    state.began(RunState::Running, None);
    state.defined(&definition.clone().into(), None);
    let ends = |definition: &Definition, state: &State| {
        let outline = outline(definition, state);
        let fields = outline["fields"].as_array().unwrap().iter();
        fields.into_iter().find(|field| field["name"] == "orders").unwrap()["endsAfter"].clone()
    };
    let read = TraceEvent::Read {
        name: "orders".into(),
        found: Some(json!([])),
        result: Ok(json!([{ "number": "1" }])),
    };
    let limit = TraceEvent::ListEnds { name: "orders".into(), max: 100 };
    state.traced(&read, DateTime::UNIX_EPOCH);
    assert_eq!(ends(&definition, &state), Value::Null);
    state.traced(&limit, DateTime::UNIX_EPOCH);
    assert_eq!(ends(&definition, &state), 100);
    // A further page is read.
    state.traced(&read, DateTime::UNIX_EPOCH);
    assert_eq!(ends(&definition, &state), Value::Null);
    state.traced(&limit, DateTime::UNIX_EPOCH);
    definition.output.get_mut("orders").unwrap().max_rows = Some(500);
    state.defined(&definition.clone().into(), None);
    assert_eq!(ends(&definition, &state), Value::Null);
    definition.output.get_mut("orders").unwrap().max_rows = Some(100);
    assert_eq!(ends(&definition, &state), 100);
    state.began(RunState::Running, None);
    assert_eq!(ends(&definition, &state), Value::Null, "another account may be signed in");
}

#[test]
fn a_list_says_that_nothing_led_to_its_next_page_until_another_element_is_chosen() {
    let mut definition = with_orders();
    let mut state = State::default();
    state.began(RunState::Running, None);
    state.defined(&definition.clone().into(), None);
    let shown = |definition: &Definition, state: &State| {
        let outline = outline(definition, state);
        let fields = outline["fields"].as_array().unwrap().iter();
        let orders = fields.into_iter().find(|field| field["name"] == "orders").unwrap();
        orders["hasNoNextPage"].clone()
    };
    let next = |definition: &Definition| {
        let outline = outline(definition, &State::default());
        let fields = outline["fields"].as_array().unwrap().iter();
        let orders = fields.into_iter().find(|field| field["name"] == "orders").unwrap();
        orders["nextPage"]["selector"].clone()
    };
    assert_eq!(next(&definition), Value::Null);
    set_next_page(&mut definition, "orders", "li:nth-of-type(3) > a", 5).unwrap();
    let read = TraceEvent::Read {
        name: "orders".into(),
        found: Some(json!([])),
        result: Ok(json!([{ "number": "1" }])),
    };
    let action = Action::Click("li:nth-of-type(3) > a".into());
    let none = TraceEvent::NoNextPage { name: "orders".into(), action };
    state.traced(&read, DateTime::UNIX_EPOCH);
    assert_eq!(shown(&definition, &state), false);
    state.traced(&none, DateTime::UNIX_EPOCH);
    assert_eq!(shown(&definition, &state), true);
    state.traced(&read, DateTime::UNIX_EPOCH);
    assert_eq!(shown(&definition, &state), false);
    let action = Action::Click("li:nth-of-type(3) > a".into());
    let same = TraceEvent::SamePage { name: "orders".into(), action };
    state.traced(&same, DateTime::UNIX_EPOCH);
    assert_eq!(shown(&definition, &state), true);
    set_next_page(&mut definition, "orders", "li.active + li a", 5).unwrap();
    assert_eq!(next(&definition), "li.active + li a");
    assert_eq!(shown(&definition, &state), false);
    remove_next_page(&mut definition, "orders").unwrap();
    assert_eq!(shown(&definition, &state), false);
    set_next_page(&mut definition, "orders", "li:nth-of-type(3) > a", 5).unwrap();
    state.began(RunState::Running, None);
    assert_eq!(shown(&definition, &state), false, "another account may be signed in");
}

#[test]
fn a_list_says_that_it_ends_after_its_last_page_until_more_are_read() {
    let mut definition = with_orders();
    set_next_page(&mut definition, "orders", "a.next", 5).unwrap();
    let mut state = State::default();
    state.began(RunState::Running, None);
    state.defined(&definition.clone().into(), None);
    let shown = |definition: &Definition, state: &State| {
        let outline = outline(definition, state);
        let fields = outline["fields"].as_array().unwrap().iter();
        let orders = fields.into_iter().find(|field| field["name"] == "orders").unwrap();
        orders["endsAfterPages"].clone()
    };
    assert_eq!(shown(&definition, &state), Value::Null);
    let end = TraceEvent::PagesEnd { name: "orders".into(), max: 5 };
    state.traced(&end, DateTime::UNIX_EPOCH);
    assert_eq!(shown(&definition, &state), 5);
    set_next_page(&mut definition, "orders", "a.next", 9).unwrap();
    assert_eq!(shown(&definition, &state), Value::Null);
    state.began(RunState::Running, None);
    set_next_page(&mut definition, "orders", "a.next", 5).unwrap();
    assert_eq!(shown(&definition, &state), Value::Null, "another account may be signed in");
}

#[test]
fn a_response_without_a_body_is_shown_with_the_reason() {
    let shown = |body: Option<Value>, why: Option<NoBody>| {
        let seen = SeenResponse { body, no_body: why, ..SeenResponse::default() };
        let (listed, opened) = (response(&seen), response_body(&seen, None));
        assert_eq!(listed["noBody"], opened["noBody"]);
        listed["noBody"].clone()
    };
    assert_eq!(shown(Some(Value::Null), None), Value::Null);
    let long = Some(NoBody::TooLong { max_kib: 256 });
    assert_eq!(shown(None, long), json!({ "reason": "tooLong", "maxKib": 256 }));
    let html = Some(NoBody::NotJson { content_type: "text/html".to_owned() });
    assert_eq!(shown(None, html), json!({ "reason": "notJson", "contentType": "text/html" }));
    assert_eq!(shown(None, None), json!({ "reason": "unavailable" }));
}

#[test]
fn a_form_field_is_shown_by_its_value_or_its_name() {
    let node = |tag: &str, value: Option<&str>, attributes: &[(&str, &str)]| PageNode {
        tag: Some(tag.to_owned()),
        value: value.map(str::to_owned),
        attributes: attributes.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
        ..PageNode::default()
    };
    let named = [("name", "last_name")];
    assert_eq!(shown_text(&node("input", Some("Lovelace"), &named), ""), "Lovelace");
    assert_eq!(shown_text(&node("select", Some("Two"), &named), "One Two Three"), "Two");
    assert_eq!(shown_text(&node("input", Some(" "), &named), ""), "last_name");
    assert_eq!(shown_text(&node("input", None, &named), ""), "last_name");
    assert_eq!(shown_text(&node("dd", None, &named), "gold"), "gold");
    assert_eq!(shown_text(&node("div", None, &named), ""), "");
}
