//! What a studio keeps of its runs, and what it tells of places that an author edits.

mod addresses;
mod further_pages;
mod overlapping;
mod positions;
mod screens;
mod shown;

use std::{collections::BTreeMap, sync::Arc};

use chrono::DateTime;
use domain::{
    error_code::ErrorCode,
    workflow::{Definition, Observation, SeenResponse, Severity, TraceEvent, check},
};
use ports::{browser::Screen, driving::Finding};
use serde_json::{Value, json};

use super::{
    Shared,
    choices::{of_member, suggested},
    edits::{Edit, apply, new_error},
    filter::{Searches, matching},
    readings::{in_body, on_page, path_pattern},
    state::{RunState, State},
};
use crate::{
    draft::{KnownValues, Marking, PageKind, add_variable, dismiss, edit_field, remove_variable},
    signals::{KnownPage, OtherScreen},
    tests::{changes::with_orders, drafts, page, select},
};

fn traced(state: &mut State, event: &TraceEvent) {
    state.traced(event, DateTime::UNIX_EPOCH);
}

fn read(rows: Value) -> TraceEvent {
    let found = Some(rows.clone());
    TraceEvent::Read { name: "orders".into(), found, result: Ok(rows) }
}

#[test]
fn a_list_has_the_rows_of_all_its_pages() {
    let mut state = State::default();
    state.began(RunState::Running, None);
    let shown = |state: &State| state.values.get("orders").cloned().unwrap().unwrap();
    let entered = TraceEvent::Entered { node: "readOrders".into() };
    traced(&mut state, &entered);
    traced(&mut state, &read(json!([{ "n": 1 }, { "n": 2 }])));
    traced(&mut state, &read(json!([{ "n": 3 }])));
    assert_eq!(shown(&state), json!([{ "n": 1 }, { "n": 2 }, { "n": 3 }]));
    // A button has added a row to those that were there, and the page is read twice.
    traced(&mut state, &read(json!([{ "n": 1 }, { "n": 2 }, { "n": 3 }, { "n": 4 }])));
    traced(&mut state, &read(json!([{ "n": 1 }, { "n": 2 }, { "n": 3 }, { "n": 4 }])));
    assert_eq!(shown(&state).as_array().unwrap().len(), 4);
    traced(&mut state, &entered);
    traced(&mut state, &read(json!([{ "n": 5 }])));
    assert_eq!(shown(&state), json!([{ "n": 5 }]));

    let mut definition = with_orders();
    definition.output.get_mut("orders").unwrap().max_rows = Some(2);
    state.definition = Some(Arc::new(definition));
    traced(&mut state, &read(json!([{ "n": 6 }])));
    traced(&mut state, &read(json!([{ "n": 7 }])));
    assert_eq!(shown(&state), json!([{ "n": 5 }, { "n": 6 }]));
    let data = json!({ "orders": [{ "n": 8 }] });
    traced(&mut state, &TraceEvent::Completed { data: Some(data) });
    assert_eq!(shown(&state), json!([{ "n": 8 }]));
}

#[test]
fn what_was_read_is_forgotten_with_its_run_and_its_reading() {
    let mut definition = with_orders();
    let page = drafts::on_page("https://shop.example/orders");
    for name in ["user", "team"] {
        add_variable(&mut definition, name, vec![], &page, &KnownValues::new()).unwrap();
    }
    let mut state = State::default();
    state.defined(&Arc::new(definition.clone()), None);
    let names = ["orders", "team", "tier", "user"];
    let read = |state: &mut State| {
        for name in names {
            state.values.insert(name.to_owned(), Ok(json!(1)));
        }
    };
    let left = |state: &State| state.values.keys().cloned().collect::<Vec<_>>();
    read(&mut state);
    remove_variable(&mut definition, "team").unwrap();
    state.defined(&Arc::new(definition.clone()), None);
    assert_eq!(left(&state), ["orders", "tier", "user"]);
    // A value with the name of one that was removed is another one.
    read(&mut state);
    add_variable(&mut definition, "team", vec![], &page, &KnownValues::new()).unwrap();
    state.defined(&Arc::new(definition.clone()), None);
    assert_eq!(left(&state), ["orders", "tier", "user"]);
    let mut edited = |change: Value| {
        let change = serde_json::from_value(change).unwrap();
        edit_field(&mut definition, change).unwrap();
        state.defined(&Arc::new(definition.clone()), None);
        left(&state)
    };
    let tier =
        json!({ "name": "tier", "newName": "tier", "label": "T", "required": true, "pii": true });
    assert_eq!(edited(tier.clone()), ["orders", "tier", "user"], "it is read as before");
    let column = json!({ "within": "orders", "name": "total", "newName": "sum", "label": "S",
        "required": true, "pii": true });
    assert_eq!(edited(column), ["orders", "tier", "user"]);
    let mut elsewhere = tier;
    elsewhere["reading"] = json!({ "type": "string", "at": "#other" });
    assert_eq!(edited(elsewhere), ["orders", "user"]);
    let renamed = json!({ "name": "orders", "newName": "bills", "label": "B", "required": true, "pii": true });
    assert_eq!(edited(renamed), ["user"]);

    state.began(RunState::Exploring, None);
    assert!(state.values.is_empty(), "another account may be signed in");
}

#[test]
fn a_run_that_recognizes_no_page_says_at_which_it_ended() {
    let mut definition = with_orders();
    dismiss(&mut definition, "#accept").unwrap();
    let mut state = State::default();
    state.defined(&definition.into(), None);
    let mut ends = |held: &str, settled: bool, code: ErrorCode| {
        state.began(RunState::Running, None);
        let names = ["banner", "signIn", "signedIn"];
        let signals = names.map(|name| (name.to_owned(), name == held)).to_vec();
        let url = "https://shop.example/organizers/?page=1".to_owned();
        traced(&mut state, &TraceEvent::Observed { url, settled, signals });
        traced(&mut state, &TraceEvent::Failed { code });
        state.unrecognized.clone()
    };
    let unexpected = ErrorCode::UnexpectedPage;
    let path = Some("/organizers/".to_owned());
    assert_eq!(ends("", true, unexpected), path);
    assert_eq!(ends("banner", true, unexpected), path, "a banner is on any page");
    assert_eq!(ends("signedIn", true, unexpected), None);
    assert_eq!(ends("", false, unexpected), None, "it was still loading");
    assert_eq!(ends("", true, ErrorCode::UserInputTimeout), None);
    // A review that is not confirmed says so itself.
    state.began(RunState::Running, None);
    let (signal, url) = ("signedIn".to_owned(), "https://shop.example/".to_owned());
    let observed = TraceEvent::Observed { url: url.clone(), settled: true, signals: vec![] };
    traced(&mut state, &observed);
    traced(&mut state, &TraceEvent::Unconfirmed { signal, url: Some(url) });
    traced(&mut state, &TraceEvent::Failed { code: unexpected });
    assert_eq!(state.unrecognized, None);
}

#[test]
fn what_was_read_of_a_renamed_list_or_value_for_addresses_stays() {
    let mut definition = with_orders();
    let page = drafts::on_page("https://shop.example/orders");
    add_variable(&mut definition, "user", vec![], &page, &KnownValues::new()).unwrap();
    let mut state = State::default();
    state.defined(&Arc::new(definition.clone()), None);
    state.values.insert("orders".to_owned(), Ok(json!([{ "number": "1" }])));
    state.last_pages.insert("orders".to_owned(), 10);
    state.values.insert("user".to_owned(), Ok(json!("4711")));
    state.samples.insert("user".to_owned(), "4711".to_owned());
    let shared = Shared::default();
    let mut rename = |change: Value| {
        let change = serde_json::from_value::<Edit>(change).unwrap();
        let renamed = change.renaming();
        apply(&mut definition, change, None, &shared).unwrap();
        state.defined(&Arc::new(definition.clone()), renamed.as_ref());
        state.values.keys().cloned().collect::<Vec<_>>()
    };
    let user = json!({ "op": "editVariable", "name": "user", "newName": "account" });
    assert_eq!(rename(user), ["account", "orders"]);
    let orders = json!({ "op": "editField", "name": "orders", "newName": "bills", "label": "B",
        "required": false, "pii": false });
    assert_eq!(rename(orders), ["account", "bills"]);
    assert_eq!(state.samples.get("account").map(String::as_str), Some("4711"));
    assert_eq!(state.last_pages.get("bills"), Some(&10));
}

#[test]
fn elements_are_found_by_any_selector_and_in_every_root() {
    let page = page(
        "html\n body\n  ul class=pagination\n   a class=page-link rel=next href=/changes/?page=2\n    \"2\"\n  \
         div id=host\n   #shadow\n    a class=page-link",
    );
    let found = |selector: &str| -> Vec<String> {
        let found = matching(&page, selector, &select).into_iter();
        found.filter_map(|index| page.nodes.get(index)?.tag.clone()).collect()
    };
    for selector in ["a[rel=next]", " [rel] ", "ul.pagination > a", "[href*='page=2']"] {
        assert_eq!(found(selector), ["a"], "{selector}");
    }
    assert_eq!(found("ul.pagination"), ["ul"]);
    assert_eq!(found(".page-link"), ["a", "a"]);
    assert_eq!(found("a.page-link, #host"), ["a", "div", "a"]);
    assert_eq!(found("#host >>> a"), ["a"]);
    let long = format!("a{}", ", a".repeat(700));
    for none in ["", "  ", "2,048 comments", "a[[", long.as_str()] {
        assert_eq!(found(none), [""; 0], "{none}");
    }
}

#[test]
fn a_search_that_is_not_wanted_any_more_is_left_out() {
    let searches = Searches::default();
    let (first, second) = (searches.begin(), searches.begin());
    assert_eq!(searches.run(first, || "a"), None);
    assert_eq!(searches.run(second, || "ab"), Some("ab"));
    let third = searches.begin();
    assert_eq!((searches.run(second, || "ab"), searches.run(third, || "abc")), (None, Some("abc")));
}

#[test]
fn a_place_is_tried_on_the_page() {
    let page = page(
        "html lang=de\n body\n  dd id=balance\n   \"1.234,50 €\"\n  table id=orders\n   tr\n    th\n     \
         \"Betrag\"\n   tr\n    td\n     \"10,00 €\"\n   tr\n    td\n     \"20,00 €\"\n  p id=later hidden",
    );
    let on = |tried: Value| {
        let tried = serde_json::from_value(tried).unwrap();
        serde_json::to_value(on_page(&page, &tried, &select)).unwrap()
    };
    let number = json!([{ "number": { "decimalMark": "," } }]);
    let balance = |kind: &str, convert: &Value| json!({ "node": "read", "reading": { "type": kind, "at": "#balance", "convert": convert } });
    let seen = on(balance("number", &number));
    assert_eq!((&seen["found"], &seen["value"]), (&json!("1.234,50 €"), &json!(1234.5)));
    assert_eq!((&seen["matches"], &seen["problem"]), (&json!(1), &Value::Null));
    assert_eq!(seen["values"][0]["currency"], "EUR");
    let wrong = on(balance("boolean", &number));
    assert_eq!(wrong["problem"], "the value is empty, or of another type than the field");
    let wrong = on(balance("number", &json!([{ "match": "x" }])));
    assert_eq!(wrong["problem"], "converter 1 does not apply");

    let list = json!({ "type": "list", "at": "#orders", "each": "tr" });
    let whole = on(json!({ "node": "read", "reading": list }));
    assert_eq!((&whole["rows"], &whole["problem"]), (&json!(3), &Value::Null));
    let instead = |at: &str, shown: &str| {
        let list = json!({ "type": "list", "at": at, "each": "tr", "emptyWhen": shown });
        let seen = on(json!({ "node": "read", "reading": list }));
        (seen["rows"].clone(), seen["instead"].clone(), seen["problem"].clone())
    };
    assert_eq!(whole["instead"], Value::Null);
    assert_eq!(instead("#orders", "#balance"), (json!(3), json!(1), Value::Null));
    assert_eq!(instead("#none", "#balance"), (json!(0), json!(1), Value::Null));
    let missing = (Value::Null, json!(0), json!("nothing is there"));
    // It is not visible.
    assert_eq!(instead("#none", "#later"), missing);
    assert_eq!(instead("#none", "p["), missing);
    let column = json!({ "type": "number", "at": "td", "convert": number });
    let seen = on(json!({ "node": "read", "within": list, "reading": column }));
    assert_eq!((&seen["rows"], &seen["value"]), (&json!(3), &json!(10)));
    // The row with headings has no such cell.
    let all = json!({ "found": 2, "unread": 0, "values": [null, 10, 20] });
    assert_eq!((&seen["column"], &whole["column"]), (&all, &Value::Null));
    let tens = json!({ "type": "string", "at": "td", "convert": [{ "match": "10.*" }] });
    let seen = on(json!({ "node": "read", "within": list, "reading": tens }));
    let some = json!({ "found": 2, "unread": 1, "values": [null, "10,00 €", null] });
    assert_eq!(seen["column"], some);
    let nothing = on(json!({ "node": "read", "reading": { "type": "string", "at": "#no" } }));
    assert_eq!((&nothing["matches"], &nothing["problem"]), (&json!(0), &json!("nothing is there")));
    // An author is still writing it.
    let broken = on(json!({ "node": "read", "reading": { "type": "string", "at": "td[" } }));
    assert_eq!(broken["problem"], "nothing is there");
}

#[test]
fn a_place_is_tried_on_a_response() {
    let orders = json!([{ "id": null }, { "id": "A-2" }]);
    let body = json!({ "user": { "age": 42 }, "orders": orders, "bills": null });
    let on = |tried: Value| {
        let tried = serde_json::from_value(tried).unwrap();
        serde_json::to_value(in_body(&body, &tried)).unwrap()
    };
    let seen = on(json!({ "node": "read", "reading": { "type": "integer", "at": "/user/age" } }));
    assert_eq!((&seen["found"], &seen["value"]), (&json!("42"), &json!(42)));
    let list = json!({ "type": "list", "at": "/orders" });
    let column = json!({ "type": "string", "at": "/none" });
    let seen = on(json!({ "node": "read", "within": list, "reading": column }));
    assert_eq!((&seen["rows"], &seen["problem"]), (&json!(2), &json!("nothing is there")));
    assert_eq!(seen["column"], json!({ "found": 0, "unread": 0, "values": [null, null] }));
    let column = json!({ "type": "string", "at": "/id" });
    let seen = on(json!({ "node": "read", "within": list, "reading": column }));
    assert_eq!((&seen["value"], &seen["problem"]), (&json!("A-2"), &Value::Null));
    assert_eq!(seen["column"], json!({ "found": 1, "unread": 0, "values": [null, "A-2"] }));
    let many = json!({ "orders": vec![json!({ "id": "A" }); 1500] });
    let tried = json!({ "node": "read", "within": list, "reading": column });
    let seen = in_body(&many, &serde_json::from_value(tried).unwrap());
    let seen = serde_json::to_value(seen).unwrap();
    assert_eq!((&seen["rows"], &seen["column"]["found"]), (&json!(1000), &json!(1000)));
    // A value for addresses has no type.
    let age = json!({ "type": "string", "at": "/user/age" });
    let seen = on(json!({ "node": "read", "forAddresses": true, "reading": age }));
    assert_eq!((&seen["value"], &seen["problem"]), (&json!("42"), &Value::Null));
    let user = json!({ "type": "string", "at": "/user" });
    let seen = on(json!({ "node": "read", "forAddresses": true, "reading": user }));
    assert_eq!(seen["problem"], "the value is empty, or of another type than the field");
    let null = json!({ "node": "read", "reading": { "type": "list", "at": "/bills" } });
    let seen = on(null);
    assert_eq!((&seen["rows"], &seen["problem"]), (&json!(0), &Value::Null));
    let object = json!({ "type": "object", "at": "/user" });
    let age = json!({ "type": "string", "at": "/age" });
    let seen = on(json!({ "node": "read", "within": object, "reading": age }));
    assert_eq!(seen["problem"], "the value is empty, or of another type than the field");
    assert_eq!(path_pattern("https://a.test/users/{id}/x?page={page}"), "/users/*/x");
    assert_eq!(path_pattern("https://a.test"), "/");
}

#[test]
fn a_member_of_several_items_is_a_column_at_first() {
    let body = json!({
        "results": [{ "title": "a", "tags": ["x"] }, { "title": "b" }],
        "teams": [{ "orders": [{ "id": 1 }, { "id": 2 }] }], "one": [{ "title": "c" }], "total": 2,
        "byNumber": { "1": "d" },
    });
    let view = |url: &str, pointer: &str| {
        let (url, body) = (url.to_owned(), Some(body.clone()));
        let response =
            SeenResponse { number: 1, url, status: 200, body, ..SeenResponse::default() };
        serde_json::to_value(of_member(&response, pointer)).unwrap()
    };
    let used = |pointer: &str| {
        let view = view("https://shop.test/api", pointer);
        (view["proposedUse"].clone(), view["list"]["rows"].clone())
    };
    assert_eq!(used("/results/1/title"), (json!("column"), json!(2)));
    assert_eq!(used("/one/0/title"), (json!("field"), json!(1)));
    assert_eq!(used("/total"), (json!("field"), Value::Null));
    let is_positional =
        |pointer: &str| view("https://shop.test/api", pointer)["positional"].clone();
    assert_eq!(is_positional("/results/1/title"), true, "another item may come before it");
    assert_eq!(is_positional("/results/1"), true);
    assert_eq!(is_positional("/results"), false);
    assert_eq!(is_positional("/byNumber/1"), false, "it is a name");
    let is_column_positional =
        |pointer: &str| view("https://shop.test/api", pointer)["positionalColumn"].clone();
    assert_eq!(is_column_positional("/results/1/title"), false, "all rows are read");
    assert_eq!(is_column_positional("/teams/0/orders/1/id"), true, "those of one team are");
    assert_eq!(is_column_positional("/results/0/tags/0"), true, "one tag of each row is");
    assert_eq!(is_column_positional("/total"), false);
    assert_eq!(view("https://shop.test/api", "/none"), Value::Null);

    for (query, parameters) in [
        ("?page_size=10&sort=title", json!(["page_size=10"])),
        (
            "?perPage=5&page%5Boffset%5D=1&Cursor=",
            json!(["perPage=5", "page[offset]=1", "Cursor="]),
        ),
        ("?page=1&limit=2&offset=3&first=4", json!(["page=1", "limit=2", "offset=3"])),
        ("?homepage=1&q=page", Value::Null),
        ("", Value::Null),
    ] {
        let seen = view(&format!("https://shop.test/api{query}"), "/results/0/title");
        assert_eq!(seen["paging"]["parameters"], parameters, "{query}");
    }
}

#[test]
fn the_first_marked_page_has_no_other_to_compare_with() {
    let tree = page("html\n body\n  form\n   input type=password");
    let form = Arc::new(KnownPage { url: "https://shop.test/login".into(), tree });
    let compared = |known: &[PageKind]| {
        let known: BTreeMap<_, _> =
            known.iter().map(|kind| (kind.name().to_owned(), vec![form.clone()])).collect();
        let found =
            suggested(PageKind::SignIn, &form, None, known, &KnownValues::new(), None, &select);
        let found = serde_json::to_value(found).unwrap();
        assert!(found["conditions"][0]["alsoOn"].is_array(), "{found}");
        found["comparedWith"].clone()
    };
    assert_eq!(compared(&[]), json!([]));
    assert_eq!(compared(&[PageKind::SignIn]), json!([]), "a page of the same kind");
    assert_eq!(compared(&[PageKind::SignIn, PageKind::SignedIn]), json!(["signedIn"]));
}

#[test]
fn a_page_that_is_compared_with_the_sign_in_page_says_so() {
    let marked =
        |tree: &str| Arc::new(KnownPage { url: "https://shop.test/".into(), tree: page(tree) });
    let shown = marked("html\n body\n  header");
    let captcha = (PageKind::Captcha.name().to_owned(), vec![marked("html\n body\n  iframe")]);
    let sign_in = (PageKind::SignIn.name().to_owned(), vec![shown.clone()]);
    let told = |known: BTreeMap<_, _>| {
        let found =
            suggested(PageKind::SignedIn, &shown, None, known, &KnownValues::new(), None, &select);
        serde_json::to_value(found).unwrap()
    };
    // The condition holds on the sign-in page, too, which is not known.
    let found = told([captcha.clone()].into());
    assert_eq!(found["conditions"][0]["alsoOn"], json!([]));
    assert_eq!(found["comparedWith"], json!(["captcha"]));
    let found = told([captcha, sign_in].into());
    assert_eq!(found["comparedWith"], json!(["captcha", "signIn"]));
    assert_eq!(found["conditions"][0]["alsoOn"], json!(["signIn"]));
}

#[test]
fn no_condition_that_something_warns_of_is_chosen_for_the_author() {
    let preferred = |lines: &str| {
        let tree = page(&format!("html\n body\n{lines}"));
        let shown = KnownPage { url: "https://shop.test/".into(), tree };
        let (known, values) = (BTreeMap::new(), KnownValues::new());
        let other = OtherScreen { screen: Screen::Phone, page: shown.clone() };
        let (kind, other) = (PageKind::SignedIn, Some(&other));
        let found = suggested(kind, &shown, None, known, &values, other, &select);
        let found = serde_json::to_value(found).unwrap();
        assert!(found["conditions"][0]["inRow"].is_boolean(), "{found}");
        found["preferred"].clone()
    };
    let rows = "  table\n   tr\n    td\n     a href=/user/ada\n      \"Ada\"";
    assert_eq!(preferred(rows), Value::Null);
    assert_eq!(preferred(&format!("{rows}\n  div id=user-menu\n   \"Ada\"")), 0);
}

#[test]
fn no_condition_is_chosen_that_was_not_compared_with_where_it_may_fail() {
    let of = |lines: &str| {
        let tree = page(&format!("html\n body\n{lines}"));
        KnownPage { url: "https://shop.test/app".into(), tree }
    };
    let preferred = |kind: PageKind, shown: &KnownPage, known: &[(PageKind, &str)], looked| {
        let other = OtherScreen { screen: Screen::Phone, page: shown.clone() };
        let other = Some(&other).filter(|_| looked);
        let at = |path: &str| {
            let url = format!("https://shop.test{path}");
            vec![Arc::new(KnownPage { url, ..of("") })]
        };
        let known = known.iter().map(|&(kind, path)| (kind.name().to_owned(), at(path))).collect();
        let found = suggested(kind, shown, None, known, &KnownValues::new(), other, &select);
        let found = serde_json::to_value(found).unwrap();
        found["preferred"].as_u64().map(|at| {
            let at = usize::try_from(at).unwrap();
            found["conditions"][at]["condition"].clone()
        })
    };
    let (sign_in, signed_in, captcha) = (PageKind::SignIn, PageKind::SignedIn, PageKind::Captcha);
    // The path alone tells something of a page without a known element.
    let (bare, path) = (of(""), json!({ "url": "/app" }));
    assert_eq!(preferred(signed_in, &bare, &[], true), None);
    assert_eq!(preferred(signed_in, &bare, &[(captcha, "/wait")], true), None);
    assert_eq!(preferred(signed_in, &bare, &[(sign_in, "/app")], true), None);
    assert_eq!(preferred(signed_in, &bare, &[(sign_in, "/login")], false), Some(path.clone()));
    assert_eq!(preferred(sign_in, &bare, &[], true), None);
    assert_eq!(preferred(sign_in, &bare, &[(signed_in, "/home")], true), Some(path));
    // An element may be hidden on a screen on which the page was not looked at.
    let menu = of("  div id=user-menu\n   \"Ada\"");
    assert_eq!(preferred(signed_in, &menu, &[], false), None);
    let selector = json!({ "selector": "#user-menu" });
    assert_eq!(preferred(signed_in, &menu, &[], true), Some(selector));
}

#[test]
fn pages_are_compared_with_all_that_were_marked() {
    let mut state = State::default();
    let mut mark = |number: usize, marking| {
        let url = format!("https://shop.test/{number}");
        state.add_inspection(KnownPage { url, tree: page("html\n body") });
        state.marked(PageKind::SignedIn, marking, None);
        let known = state.known.get("signedIn").unwrap();
        known.iter().map(|page| page.url.rsplit('/').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(mark(1, Marking::Also), ["1"]);
    assert_eq!(mark(2, Marking::Also), ["1", "2"]);
    assert_eq!(mark(3, Marking::Instead), ["3"]);
    for number in 4..11 {
        mark(number, Marking::Also);
    }
    assert_eq!(mark(11, Marking::Also), ["4", "5", "6", "7", "8", "9", "10", "11"]);
}

#[test]
fn the_page_that_is_kept_is_the_one_for_which_the_condition_was_chosen() {
    let shared = Shared::default();
    let [login, _] = ["login", "home"].map(|path| {
        let url = format!("https://shop.example/{path}");
        shared.state().add_inspection(KnownPage { url, tree: page("html\n body") })
    });
    let mut definition = with_orders();
    let mut mark = |inspection: u64| {
        let mark = json!({
            "op": "markPage", "kind": "signIn", "condition": { "selector": "form" },
            "inspection": inspection,
        });
        apply(&mut definition, serde_json::from_value(mark).unwrap(), None, &shared).unwrap();
        let known = shared.state().known.get("signIn").cloned().unwrap_or_default();
        known.iter().map(|page| page.url.clone()).collect::<Vec<_>>()
    };
    assert_eq!(mark(login), ["https://shop.example/login"]);
    // It is not kept any more.
    assert_eq!(mark(99), ["https://shop.example/login"]);
}

#[test]
fn an_author_who_does_not_say_it_keeps_the_pages_after_sign_in() {
    assert_eq!(Marking::usual(PageKind::SignedIn), Marking::Also);
    assert_eq!(Marking::usual(PageKind::SignIn), Marking::Instead);
}

#[test]
fn a_message_is_not_told_from_the_page_that_it_is_about() {
    let tree = page(
        "html\n body\n  input name=otp\n  input type=password\n  p id=wrong role=alert\n   \"Wrong\"",
    );
    let shown = Arc::new(KnownPage { url: "https://shop.test/".into(), tree });
    let also_on = |kind: PageKind, other: PageKind| {
        let known = [(other.name().to_owned(), vec![shown.clone()])].into();
        let found = suggested(kind, &shown, None, known, &KnownValues::new(), None, &select);
        serde_json::to_value(found).unwrap()["conditions"][0]["alsoOn"].clone()
    };
    assert_eq!(also_on(PageKind::SignIn, PageKind::WrongPassword), json!([]));
    assert_eq!(also_on(PageKind::Code, PageKind::WrongCode), json!([]));
    assert_eq!(also_on(PageKind::WrongCode, PageKind::WrongPassword), json!([]));
    assert_eq!(also_on(PageKind::WrongPassword, PageKind::WrongCode), json!([]));
    // This tells that the code was refused, not which page asks for one.
    assert_eq!(also_on(PageKind::WrongCode, PageKind::Code), json!(["code"]));
    assert_eq!(also_on(PageKind::WrongPassword, PageKind::SignIn), json!(["signIn"]));
}

#[test]
fn a_refused_sign_in_request_is_proposed_before_the_message() {
    let shared = Shared::default();
    let mut definition = with_orders();
    shared.state().definition = Some(Arc::new(definition.clone()));
    let sees = |responses: &[(u64, &str, u16, bool)]| {
        let responses = responses.iter().map(|(number, url, status, is_post)| SeenResponse {
            number: *number,
            url: (*url).to_owned(),
            status: *status,
            is_post: *is_post,
            ..SeenResponse::default()
        });
        let responses = responses.collect();
        shared.state().seen(Observation { responses, ..Observation::default() });
    };
    // The page has asked for another token while it was loaded.
    sees(&[(1, "https://shop.example/api/refresh", 401, true)]);
    let mark = json!({ "op": "markPage", "kind": "signIn", "condition": { "selector": "form" } });
    apply(&mut definition, serde_json::from_value(mark).unwrap(), None, &shared).unwrap();
    let tree = page("html\n body\n  form\n  p role=alert id=wrong\n   \"Wrong password\"");
    let shown = KnownPage { url: "https://shop.example/".into(), tree };
    let proposed = |kind: PageKind| {
        let found =
            suggested(kind, &shown, None, BTreeMap::new(), &KnownValues::new(), None, &select);
        let found = found.with_refusals(kind, &shared.state().refusals_of(kind));
        serde_json::to_value(found).unwrap()["conditions"].clone()
    };
    let message = proposed(PageKind::WrongPassword);
    assert_eq!(message[0]["condition"], json!({ "selector": "#wrong" }));
    assert_eq!(message[0]["counts"], "afterVanishing");
    sees(&[
        (2, "https://shop.example/api/sessions/77", 422, true),
        (3, "https://shop.example/api/me", 401, false),
        (4, "https://other.example/api/sessions", 401, true),
        (5, "https://shop.example/api/events", 500, true),
        (6, "https://shop.example/api/sessions/77", 422, true),
        (7, "https://shop.example/api/sessions/77", 200, true),
    ]);
    let found = proposed(PageKind::WrongPassword);
    let request = json!({ "response": { "url": "/api/sessions/*", "status": 422 } });
    assert_eq!(found[0]["condition"], request);
    let text = "The sign-in request to `/api/sessions/*` is answered 422: counts each attempt";
    assert_eq!(found[0]["text"], text);
    assert_eq!(found[0]["counts"], "eachAttempt");
    assert_eq!(found[1], message[0]);
    let others = proposed(PageKind::Locked);
    assert_eq!(
        (&others[0]["condition"], &others[0]["counts"]),
        (&message[0]["condition"], &Value::Null)
    );
    // The code that is asked for next is refused by a later request.
    let mark = json!({ "op": "markPage", "kind": "code", "condition": { "selector": "#otp" } });
    apply(&mut definition, serde_json::from_value(mark).unwrap(), None, &shared).unwrap();
    assert_eq!(proposed(PageKind::WrongCode), message);
    sees(&[(8, "https://shop.example/api/codes", 403, true)]);
    let code = proposed(PageKind::WrongCode);
    let text = "The request with the code to `/api/codes` is answered 403: counts each attempt";
    assert_eq!((&code[0]["text"], &code[0]["counts"]), (&json!(text), &json!("eachAttempt")));
    assert_eq!(code[1], message[0]);
    // The name with which the author has signed in.
    sees(&[(9, "https://shop.example/api/users/ada@shop.example/sessions", 401, true)]);
    let url = proposed(PageKind::WrongPassword)[0]["condition"]["response"]["url"].clone();
    assert_eq!(url, "/api/users/*/sessions");
}

fn findings(definition: &Definition) -> Vec<Finding> {
    let all = check(definition).into_iter().map(|error| Finding {
        severity: error.severity,
        path: error.path,
        position: None,
        message: error.message,
    });
    all.collect()
}

#[test]
fn an_error_is_new_if_there_was_none_like_it() {
    let before = with_orders();
    assert_eq!(new_error(&findings(&before), &findings(&before)), None);
    let mut after = before.clone();
    after.output.get_mut("orders").unwrap().max_rows = Some(5000);
    let (before, after) = (findings(&before), findings(&after));
    let error = new_error(&before, &after).unwrap();
    assert_eq!(error.severity, Severity::Error);
    assert_eq!(error.path.to_string(), "$.output.orders.maxRows");
    // It can be corrected step by step.
    assert_eq!(new_error(&after, &after), None);
    assert_eq!(new_error(&after, &before), None);
}
