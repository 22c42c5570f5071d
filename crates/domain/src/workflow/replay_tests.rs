//! Replays of fixtures that are made by hand, and of random ones.

use std::{collections::BTreeSet, sync::Arc};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{list_tests::document_with_lists, *};
use crate::error_code::ErrorCode;

/// Selects elements by their tag, or by `#` and their identifier.
fn select(page: &PageTree, scope: usize, selector: &str) -> Vec<usize> {
    let elements = page.descendants(scope).filter(|(_, node)| {
        let id = node.attributes.get("id").map(String::as_str);
        match selector.strip_prefix('#') {
            Some(wanted) => id == Some(wanted),
            None => node.tag.as_deref() == Some(selector),
        }
    });
    elements.map(|(index, _)| index).collect()
}

fn definition() -> Arc<Definition> {
    let document = json!({
        "schema": "avouch-workflow/1", "platform": "shop", "version": "1.0.0",
        "environment": "production", "displayName": "Shop", "icon": "/icon.svg",
        "loginUrl": "https://shop.test/", "hosts": ["shop.test"],
        "budgets": { "totalSeconds": 600, "steps": 40 },
        "signals": {
            "in": { "all": [{ "selector": "main" }, { "cookie": "sid" }] },
        },
        "start": "open",
        "nodes": {
            "open": {
                "type": "goto", "url": "https://shop.test/", "next": "login",
                "onFail": { "fail": "PLATFORM_UNAVAILABLE" },
            },
            "login": {
                "type": "awaitUser", "kind": "login", "textKey": "t", "timeoutSeconds": 300,
                "until": ["in"], "next": "more", "onTimeout": { "fail": "USER_INPUT_TIMEOUT" },
            },
            "more": {
                "type": "act", "action": { "click": "#more" }, "next": "page",
                "onFail": { "fail": "UNEXPECTED_PAGE" },
            },
            "page": {
                "type": "collect", "via": { "dom": {} },
                "fields": { "name": "div >>> b", "plan": { "at": "input", "read": "value" } },
                "onMissing": { "fail": "NO_DATA" }, "next": "api",
            },
            "api": {
                "type": "collect", "via": { "fetch": "me" }, "fields": { "id": "/id" },
                "onMissing": { "fail": "NO_DATA" }, "next": "watched",
            },
            "watched": {
                "type": "collect", "via": { "response": "/stats" }, "fields": { "count": "/count" },
                "onMissing": { "fail": "NO_DATA" }, "next": "review",
            },
            "review": { "type": "review", "textKey": "t", "timeoutSeconds": 60, "next": "end" },
            "end": { "type": "done" },
        },
        "requests": {
            "me": { "url": "https://shop.test/me", "expectStatus": 200, "maxBytes": 1000 },
        },
        "output": {
            "name": { "type": "string", "required": true, "labelKey": "t" },
            "plan": { "type": "string", "labelKey": "t" },
            "id": { "type": "integer", "labelKey": "t" },
            "count": { "type": "integer", "labelKey": "t" },
        },
        "texts": { "en": { "t": "t" } },
    });
    let definition: Definition = serde_json::from_value(document).unwrap();
    assert_eq!(check(&definition), []);
    Arc::new(definition)
}

fn fixture() -> Fixture {
    let page = |at: u64, page: usize, cookies: Value, is_read: bool| {
        json!({
            "type": "page", "at": at, "page": page, "url": "https://shop.test/", "document": 1,
            "settled": true, "cookies": cookies, "isRead": is_read,
        })
    };
    let shown = |tag: &str| json!({ "in": 0, "tag": tag, "visible": true });
    serde_json::from_value(json!({
        "schema": "avouch-fixture/1", "platform": "shop", "version": "1.0.0",
        "expected": {
            "path": ["open", "login", "more", "page", "api", "watched", "review", "end"],
            "data": { "name": "Ada", "id": 7, "count": 3, "plan": "gold" },
        },
        "events": [
            { "type": "visit", "url": "https://shop.test/", "arrived": true },
            page(100, 0, json!([]), false),
            { "type": "response", "number": 1, "url": "https://shop.test/stats", "status": 200, "body": { "count": 3 } },
            page(9000, 1, json!(["sid"]), false),
            { "type": "act" },
            page(9500, 2, json!(["sid"]), true),
            { "type": "fetch", "method": "GET", "url": "https://shop.test/me", "response": { "id": 7 } },
            { "type": "answer", "share": true },
        ],
        "pages": [
            { "nodes": [{}, shown("form")] },
            { "nodes": [{}, shown("main"), { "in": 1, "tag": "a", "attributes": { "id": "more" }, "visible": true }] },
            { "nodes": [
                {}, shown("main"), { "in": 1, "tag": "div", "visible": true }, { "in": 2 },
                { "in": 3, "tag": "b", "visible": true }, { "in": 4, "text": " Ada\n" },
                { "in": 1, "tag": "input", "value": "gold" },
            ] },
        ],
    }))
    .unwrap()
}

/// A definition whose second node leads on by what its third one decides by.
fn branching() -> Arc<Definition> {
    let mut document = serde_json::to_value(&*definition()).unwrap();
    document["nodes"]["login"]["next"] = json!("route");
    document["nodes"]["route"] = json!({
        "type": "branch", "settleSeconds": 5,
        "cases": [{ "when": "in", "next": "more" }],
        "default": { "fail": "UNEXPECTED_PAGE" },
    });
    Arc::new(serde_json::from_value(document).unwrap())
}

#[test]
fn a_node_sees_the_state_that_led_to_it() {
    // The run did not see another state before the action, so that the fixture has none.
    let replayed = replayed(&branching(), &fixture());
    let expected = ["open", "login", "route", "more", "page", "api", "watched", "review", "end"];
    assert_eq!(replayed.result.path, expected);
    assert_eq!(replayed.result.error, None);
}

#[test]
fn a_node_sees_first_what_it_saw_first_when_it_was_captured() {
    let mut fixture = fixture();
    let Some(FixtureEvent::Page { page, cookies, settled, .. }) = fixture.events.get(3).cloned()
    else {
        panic!("a page")
    };
    // The applicant was signed out again before the next node saw the page.
    let signed_out = FixtureEvent::Page {
        at: 9200,
        page: page - 1,
        url: "https://shop.test/".into(),
        document: 1,
        settled,
        http_status: None,
        cookies: BTreeSet::new(),
        is_read: false,
        is_first: true,
    };
    assert!(!cookies.is_empty());
    fixture.events.insert(4, signed_out);
    let replayed = replayed(&branching(), &fixture);
    assert_eq!(replayed.result.error, Some(ErrorCode::UnexpectedPage));
}

/// A state of a signed-in page, so many milliseconds after the beginning of a run.
fn state(at: u64, page: usize, (is_read, is_first): (bool, bool)) -> FixtureEvent {
    FixtureEvent::Page {
        at,
        page,
        url: "https://shop.test/".into(),
        document: 1,
        settled: true,
        http_status: None,
        cookies: ["sid".to_owned()].into(),
        is_read,
        is_first,
    }
}

const READ: (bool, bool) = (true, false);
const FIRST: (bool, bool) = (false, true);
const WATCHED: (bool, bool) = (false, false);

/// A definition with so many further attempts at the page, and this place of an optional field.
fn with_retries(retries: u8, plan: &str) -> Arc<Definition> {
    let mut document = serde_json::to_value(&*branching()).unwrap();
    document["nodes"]["page"]["retries"] = json!(retries);
    document["nodes"]["page"]["fields"]["plan"] = json!({ "at": plan, "read": "value" });
    Arc::new(serde_json::from_value(document).unwrap())
}

#[test]
fn the_attempts_of_a_recorded_run_are_repeated() {
    let recorded: [(u8, &[FixtureEvent]); 4] = [
        // Before there were pauses.
        (1, &[state(9500, 1, READ), state(9502, 2, READ)]),
        (
            3,
            &[
                state(9500, 1, READ),
                state(9501, 1, READ),
                state(9502, 1, READ),
                state(9503, 2, READ),
            ],
        ),
        // The run has seen the page change, and has read it at the end of the pause.
        (
            1,
            &[
                state(9500, 1, READ),
                state(9501, 1, FIRST),
                state(9800, 2, WATCHED),
                state(10_003, 2, READ),
            ],
        ),
        // It has read the page also when it changed.
        (
            1,
            &[
                state(9500, 1, READ),
                state(9501, 1, FIRST),
                state(9800, 1, READ),
                state(10_003, 2, READ),
            ],
        ),
    ];
    for (retries, events) in recorded {
        let mut fixture = fixture();
        drop(fixture.events.splice(5..6, events.iter().cloned()));
        let replayed = replayed(&with_retries(retries, "input"), &fixture);
        assert_eq!(replayed.result.error, None, "{events:?}");
        assert_eq!(replayed.result.data, fixture.expected.data, "{events:?}");
        assert_eq!(replayed.unrecorded, Vec::<String>::new());
    }
}

#[test]
fn a_pause_does_not_take_what_later_nodes_saw() {
    let mut document = serde_json::to_value(&*with_retries(5, "select")).unwrap();
    document["nodes"]["page"]["next"] = json!("still");
    document["nodes"]["still"] = json!({
        "type": "branch", "settleSeconds": 5,
        "cases": [{ "when": "in", "next": "api" }],
        "default": { "fail": "UNEXPECTED_PAGE" },
    });
    let definition = serde_json::from_value::<Definition>(document).unwrap();
    let mut fixture = fixture();
    // The applicant was signed out much later.
    let mut signed_out = state(60_000, 0, WATCHED);
    if let FixtureEvent::Page { cookies, .. } = &mut signed_out {
        cookies.clear();
    }
    drop(fixture.events.splice(6..6, [state(9510, 2, FIRST), signed_out]));
    let replayed = replayed(&Arc::new(definition), &fixture);
    assert_eq!(replayed.result.error, None);
    assert_eq!(replayed.result.missing, BTreeSet::from(["plan".to_owned()]));
}

/// A captured run, with a third page that lacks the optional field, and these events in place of the
/// reading of the page.
fn fixture_with(events: &[FixtureEvent]) -> Fixture {
    let mut fixture = fixture();
    let mut without_plan = fixture.pages[2].clone();
    without_plan.nodes.pop();
    fixture.pages.push(without_plan);
    drop(fixture.events.splice(5..6, events.iter().cloned()));
    fixture
}

#[test]
fn a_second_pause_does_not_take_what_the_next_node_saw() {
    let mut document = serde_json::to_value(&*with_retries(2, "input")).unwrap();
    document["nodes"]["page"]["next"] = json!("extra");
    document["nodes"]["extra"] = json!({
        "type": "collect", "via": { "dom": {} },
        "fields": { "extra": { "at": "select", "read": "value" } },
        "onMissing": { "fail": "NO_DATA" }, "next": "api",
    });
    document["output"]["extra"] = json!({ "type": "string", "labelKey": "t" });
    let definition = serde_json::from_value::<Definition>(document).unwrap();
    let fixture = fixture_with(&[
        state(9500, 3, READ),
        state(9501, 3, FIRST),
        state(10_003, 3, READ),
        state(11_006, 3, READ),
        // The field has appeared after the last attempt.
        state(11_010, 2, READ),
    ]);
    let replayed = replayed(&Arc::new(definition), &fixture);
    assert_eq!(replayed.result.error, None);
    let missing = ["extra", "plan"].map(str::to_owned);
    assert_eq!(replayed.result.missing, BTreeSet::from(missing));
}

#[test]
fn a_second_pause_ends_early_as_the_recorded_one() {
    let mut document = serde_json::to_value(&*with_retries(2, "input")).unwrap();
    document["nodes"]["page"]["next"] = json!("still");
    document["nodes"]["still"] = json!({
        "type": "branch", "settleSeconds": 5,
        "cases": [{ "when": "in", "next": "api" }],
        "default": { "fail": "UNEXPECTED_PAGE" },
    });
    let definition = serde_json::from_value::<Definition>(document).unwrap();
    let of_document = |number: u64, mut state: FixtureEvent| {
        if let FixtureEvent::Page { document, .. } = &mut state {
            *document = number;
        }
        state
    };
    let fixture = fixture_with(&[
        state(9500, 3, READ),
        state(9501, 3, FIRST),
        state(10_003, 3, READ),
        of_document(2, state(10_600, 2, WATCHED)),
        of_document(2, state(10_602, 2, READ)),
        of_document(2, state(10_605, 2, FIRST)),
        of_document(3, state(10_900, 3, WATCHED)),
    ]);
    let replayed = replayed(&Arc::new(definition), &fixture);
    assert_eq!(replayed.result.error, None);
    assert_eq!(replayed.result.data["plan"], "gold");
}

fn replayed(definition: &Arc<Definition>, fixture: &Fixture) -> Replayed {
    replay(definition, fixture, &select)
}

#[test]
fn a_token_that_a_definition_reads_is_replayed_as_it_was_recorded() {
    let shared = "9a7b3c5d1e2f4a6b8c0d9e1f3a5b7c9d";
    let sent = "q8Zt3vLw9XcR2mKp7YbN5sHd1GfJ4aTe+U6o/Ei0";
    let encoded = sent.replace('+', "%2B").replace('/', "%2F");
    let mut document = serde_json::to_value(&*definition()).unwrap();
    let from = json!({ "at": "i", "read": { "attribute": "data-key" } });
    document["nodes"]["page"]["variables"] = json!({ "key": from });
    document["requests"]["me"]["url"] = json!("https://shop.test/me?k={key}");
    let definition: Arc<Definition> = Arc::new(serde_json::from_value(document).unwrap());
    let mut fixture = fixture();
    fixture.pages[2].nodes[5].text = Some(shared.into());
    let node = json!({ "in": 1, "tag": "i", "attributes": { "data-key": sent } });
    fixture.pages[2].nodes.push(serde_json::from_value(node).unwrap());
    let Some(FixtureEvent::Fetch { url, .. }) = fixture.events.get_mut(6) else {
        panic!("a fetch")
    };
    *url = format!("https://shop.test/me?k={encoded}");
    let before = replayed(&definition, &fixture).result;
    assert_eq!((&before.data["name"], &before.data["id"]), (&json!(shared), &json!(7)));
    let after = mask_tokens(fixture, &|fixture| replayed(&definition, fixture));
    assert_eq!((after.masked, after.kept), (1, 1), "the one that is shared is kept");
    let text = serde_json::to_string(&after.fixture).unwrap();
    assert!(!text.contains(sent) && !text.contains(&encoded) && text.contains(shared), "{text}");
    assert_eq!(replayed(&definition, &after.fixture).result, before);
}

#[test]
fn a_fixture_leads_to_what_was_captured() {
    let fixture = fixture();
    assert_eq!(fixture.error(), None);
    let replayed = replayed(&definition(), &fixture);
    assert_eq!(fixture.expected.differences(&replayed.result), Vec::<String>::new());
    assert_eq!(replayed.unrecorded, Vec::<String>::new());
    let written = serde_json::to_value(&fixture).unwrap();
    assert_eq!(serde_json::from_value::<Fixture>(written).unwrap(), fixture);
}

/// The browser's adapter has the same cases, as `a_list_that_the_page_leaves_out_is_told_by_what_it_shows_instead`.
#[test]
fn a_list_that_the_page_leaves_out_is_replayed() {
    for (at, empty_when, expected) in [
        ("ul", "div >>> b", Some(json!([]))),
        ("div >>> ul", "main", Some(json!([]))),
        // It has no box, or is not there.
        ("ul", "input", None),
        ("ul", "#none", None),
        // The list is there.
        ("main", "div >>> b", Some(json!([{ "plan": "gold" }]))),
    ] {
        let mut document = serde_json::to_value(&*definition()).unwrap();
        document["nodes"]["page"]["fields"]["plans"] = json!({
            "at": at, "each": "input", "emptyWhen": empty_when,
            "members": { "plan": { "at": "", "read": "value" } },
        });
        document["output"]["plans"] = json!({
            "type": "list", "labelKey": "t",
            "members": { "plan": { "type": "string", "labelKey": "t" } },
        });
        let changed: Definition = serde_json::from_value(document).unwrap();
        let replayed = replayed(&Arc::new(changed), &fixture());
        assert_eq!(replayed.result.error, None);
        assert_eq!(replayed.result.data.get("plans"), expected.as_ref(), "{at} {empty_when}");
    }
}

#[test]
fn a_row_that_says_that_there_are_none_is_replayed() {
    // The row has a plan and no name.
    for (empty_when, expected) in [("div >>> b", Some(json!([]))), ("input", None), ("#none", None)]
    {
        let mut document = serde_json::to_value(&*definition()).unwrap();
        document["nodes"]["page"]["fields"]["plans"] = json!({
            "at": "main", "each": "input", "emptyWhen": empty_when,
            "members": { "plan": { "at": "", "read": "value" }, "name": "#none" },
        });
        document["output"]["plans"] = json!({
            "type": "list", "labelKey": "t",
            "members": {
                "plan": { "type": "string", "labelKey": "t" },
                "name": { "type": "string", "labelKey": "t", "required": true },
            },
        });
        let changed: Definition = serde_json::from_value(document).unwrap();
        let replayed = replayed(&Arc::new(changed), &fixture());
        assert_eq!(replayed.result.error, None);
        assert_eq!(replayed.result.data.get("plans"), expected.as_ref(), "{empty_when}");
    }
}

/// Servers that write a list without rows as null may answer with nothing else.
#[test]
fn a_response_that_is_null_is_replayed_as_such() {
    let mut document = serde_json::to_value(&*definition()).unwrap();
    for (node, list) in [("api", "bills"), ("watched", "orders")] {
        document["nodes"][node]["fields"] =
            json!({ list: { "at": "", "members": { "id": "/id" } } });
        document["output"][list] = json!({
            "type": "list", "labelKey": "t",
            "members": { "id": { "type": "integer", "labelKey": "t" } },
        });
    }
    let changed: Arc<Definition> = Arc::new(serde_json::from_value(document).unwrap());
    for is_null in [true, false] {
        let mut response = json!({
            "type": "response", "number": 1, "url": "https://shop.test/stats", "status": 200,
        });
        // Without the mark, it is a response that was not as expected.
        let mut fetch = json!({
            "type": "fetch", "method": "GET", "url": "https://shop.test/me", "response": null,
        });
        if is_null {
            response["body"] = Value::Null;
            fetch["isNull"] = json!(true);
        }
        let mut fixture = fixture();
        fixture.events[2] = serde_json::from_value(response).unwrap();
        fixture.events[6] = serde_json::from_value(fetch).unwrap();
        let written = serde_json::to_string(&fixture).unwrap();
        assert_eq!(serde_json::from_str::<Fixture>(&written).unwrap(), fixture);
        let replayed = replayed(&changed, &fixture);
        assert_eq!(replayed.result.error, None);
        let expected = is_null.then(|| json!([]));
        for list in ["bills", "orders"] {
            assert_eq!(replayed.result.data.get(list), expected.as_ref(), "{list} {is_null}");
        }
    }
}

#[test]
fn a_response_from_before_a_sign_in_is_not_read() {
    let mut document = serde_json::to_value(&*definition()).unwrap();
    document["nodes"]["again"] = document["nodes"]["login"].clone();
    document["nodes"]["login"]["next"] = json!("again");
    let changed: Definition = serde_json::from_value(document).unwrap();
    let replayed = replayed(&Arc::new(changed), &fixture());
    assert_eq!(replayed.result.error, None);
    assert_eq!(replayed.result.missing, BTreeSet::from(["count".to_owned()]));
}

#[test]
fn what_was_not_captured_is_named() {
    let mut changed = Definition::clone(&definition());
    let request = changed.requests.get_mut("me").unwrap();
    request.url = "https://shop.test/other".into();
    let replayed = replayed(&Arc::new(changed), &fixture());
    assert_eq!(replayed.unrecorded, ["GET https://shop.test/other"]);
    let differences = fixture().expected.differences(&replayed.result);
    assert_eq!(differences, ["id: expected 7, but it was missing"]);
}

#[test]
fn what_differs_in_credentials_alone_is_answered_in_its_order() {
    let mut document = serde_json::to_value(&*definition()).unwrap();
    document["nodes"]["open"]["url"] = json!("https://shop.test/?ticket=1");
    document["nodes"]["api"]["next"] = json!("again");
    document["nodes"]["again"] = json!({
        "type": "collect", "via": { "fetch": "other" }, "fields": { "count": "/id" },
        "onMissing": { "fail": "NO_DATA" }, "next": "review",
    });
    for (request, sid) in [("me", "one"), ("other", "two")] {
        document["requests"][request] = json!({
            "url": format!("https://shop.test/me?sid={sid}"), "method": "POST", "expectStatus": 200,
            "maxBytes": 1000, "body": { "tokens": [sid] },
        });
    }
    let definition = serde_json::from_value::<Definition>(document).unwrap();
    let mut fixture = fixture();
    let fetch = |sid: &str, id: u64| FixtureEvent::Fetch {
        method: Method::Post,
        url: format!("https://shop.test/me?sid={sid}"),
        body: Some(json!({ "tokens": [sid] }).to_string()),
        response: Some(json!({ "id": id })),
        is_null: false,
    };
    fixture.events[0] =
        FixtureEvent::Visit { url: "https://shop.test/?ticket=masked".into(), arrived: true };
    // The second one is as fixtures had them before requests were masked.
    fixture.events[6] = fetch("masked", 7);
    fixture.events.insert(7, fetch("real", 8));
    let replayed = replayed(&Arc::new(definition), &fixture);
    assert_eq!(replayed.unrecorded, Vec::<String>::new());
    assert_eq!(replayed.result.error, None);
    assert_eq!(
        (&replayed.result.data["id"], &replayed.result.data["count"]),
        (&json!(7), &json!(8))
    );
}

#[test]
fn a_request_that_was_recorded_once_is_answered_again() {
    let mut document = serde_json::to_value(&*definition()).unwrap();
    document["nodes"]["watched"]["via"] = json!({ "fetch": "me" });
    document["nodes"]["watched"]["fields"] = json!({ "count": "/id" });
    let definition = serde_json::from_value::<Definition>(document).unwrap();
    let replayed = replayed(&Arc::new(definition), &fixture());
    assert_eq!(replayed.unrecorded, Vec::<String>::new());
    assert_eq!(replayed.result.data["count"], 7);
}

#[test]
fn time_passes_where_nothing_happens() {
    let mut fixture = fixture();
    fixture.events.truncate(2);
    let replayed = replayed(&definition(), &fixture);
    assert_eq!(replayed.result.error, Some(ErrorCode::UserInputTimeout));
    let differences = fixture.expected.differences(&replayed.result);
    assert_eq!(differences[0], "path: after login, expected more, but it was the end");
    assert_eq!(differences[1], "error: expected none, but it was USER_INPUT_TIMEOUT");
}

#[test]
fn secrets_of_forms_are_never_values() {
    let mut fixture = fixture();
    let attributes = [("type", "password"), ("name", "x")];
    let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned()));
    fixture.pages[2].nodes[6].attributes = attributes.into();
    let replayed = replayed(&definition(), &fixture);
    assert_eq!(replayed.result.missing, BTreeSet::from(["plan".to_owned()]));
}

#[test]
fn hostile_fixtures_are_refused() {
    type Change<'a> = &'a dyn Fn(&mut Fixture);
    let changes: [Change<'_>; 5] = [
        &|fixture| fixture.schema.clear(),
        &|fixture| fixture.pages.clear(),
        &|fixture| fixture.pages[0].nodes[1].parent = Some(1),
        &|fixture| fixture.pages[0].nodes[1].parent = None,
        &|fixture| fixture.pages[0].nodes = vec![PageNode::default(); PageTree::MAX_NODES + 1],
    ];
    for change in changes {
        let mut hostile = fixture();
        change(&mut hostile);
        assert!(hostile.error().is_some());
    }
}

fn any_event() -> impl Strategy<Value = FixtureEvent> {
    let bools = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let page = (0_u64..2_000_000, 0_usize..3, bools);
    let page =
        page.prop_map(|(at, page, (settled, is_in, is_read, is_first))| FixtureEvent::Page {
            at,
            page,
            url: "https://shop.test/#/home".into(),
            document: 1,
            settled,
            http_status: None,
            cookies: if is_in { ["sid".to_owned()].into() } else { BTreeSet::new() },
            is_read,
            is_first,
        });
    prop_oneof![
        4 => page,
        1 => (1_u64..9).prop_map(|number| FixtureEvent::Response {
            number, url: "https://shop.test/stats".into(), status: 200, body: Some(json!({ "count": 1 })),
        }),
        1 => any::<bool>().prop_map(|arrived| FixtureEvent::Visit {
            url: "https://shop.test/".into(), arrived,
        }),
        1 => Just(FixtureEvent::Act),
        1 => any::<bool>().prop_map(|share| FixtureEvent::Answer { share }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases / 4,
        ..ProptestConfig::default()
    })]

    /// For any fixture, a replay ends, and by the definition's own means.
    #[test]
    fn every_replay_ends(events in prop::collection::vec(any_event(), 0..60)) {
        let fixture = Fixture { events, ..fixture() };
        let lists: Definition = serde_json::from_value(document_with_lists()).unwrap();
        for definition in [definition(), Arc::new(lists)] {
            let replayed = replayed(&definition, &fixture);
            prop_assert_ne!(replayed.result.error, Some(ErrorCode::InternalError));
        }
    }
}
