//! Objects, lists, and lists on several pages.

use std::{fmt::Write as _, sync::Arc};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::{
    language_tests::{document, noon, page},
    *,
};
use crate::error_code::ErrorCode;

/// The definition of the other tests, with an object and lists of several pages before the consent.
pub(super) fn document_with_lists() -> Value {
    let mut document = document();
    document["nodes"]["api"]["next"] = json!("orders");
    document["nodes"]["orders"] = json!({
        "type": "collect", "via": { "dom": {} },
        "fields": {
            "orders": { "at": "table", "each": "tbody tr", "members": {
                "id": "td.id", "total": { "at": "td.sum", "convert": [{ "number": { "decimalMark": "." } }] },
                "link": { "at": "", "read": { "attribute": "data-link" } },
            } },
            "address": { "at": "#address", "element": "last", "members": { "city": ".city" } },
        },
        "pages": { "next": { "act": { "click": "a[rel=next]" } }, "max": 4 },
        "retries": 1, "onMissing": { "fail": "NO_DATA" }, "next": "events",
    });
    document["nodes"]["events"] = json!({
        "type": "collect", "via": { "fetch": "events" },
        "fields": { "events": { "at": "/items", "members": { "name": "/name" } } },
        "pages": { "next": { "cursor": { "name": "after", "from": "/next" } }, "max": 3 },
        "retries": 1, "onMissing": { "fail": "NO_DATA" }, "next": "details",
    });
    document["requests"]["events"] = json!({
        "url": "https://shop.test/events?after={after}", "expectStatus": 200, "maxBytes": 10000,
    });
    document["output"]["orders"] = json!({
        "type": "list", "required": true, "labelKey": "orders", "memberOrder": ["total", "id"], "maxRows": 7,
        "members": {
            "id": { "type": "string", "required": true, "labelKey": "id" },
            "total": { "type": "number", "labelKey": "balance", "currency": "EUR" },
            "link": { "type": "string", "labelKey": "id" },
        },
    });
    document["output"]["address"] = json!({
        "type": "object", "labelKey": "address",
        "members": { "city": { "type": "string", "labelKey": "city" } },
    });
    document["output"]["events"] = json!({
        "type": "list", "labelKey": "events",
        "members": { "name": { "type": "string", "required": true, "labelKey": "id" } },
    });
    for key in ["orders", "id", "address", "city", "events"] {
        document["texts"]["en"][key] = json!(key);
    }
    document
}

/// A run that is at a node of the definition, with changes.
struct Listing {
    run: Run,
    now: DateTime<Utc>,
}

impl Listing {
    fn at(node: &str, change: impl Fn(&mut Value)) -> Self {
        let mut document = document_with_lists();
        document["start"] = json!(node);
        change(&mut document);
        let definition = serde_json::from_value(document).unwrap();
        Self { run: Run::new(Arc::new(definition), noon()), now: noon() }
    }

    fn next(&mut self, result: StepResult) -> Command {
        self.run.next(result, self.now).command
    }

    fn settled(&mut self) -> Command {
        self.next(StepResult::Seen(page("", &[])))
    }

    /// Ends the pause before a further attempt, and returns the command of the attempt.
    fn after_pause(&mut self) -> Command {
        assert_eq!(self.settled(), Command::Watch, "it pauses");
        self.now += TimeDelta::milliseconds(500);
        self.settled()
    }

    /// Reads rows of orders with these identifiers.
    fn rows(&mut self, ids: &[&str]) -> Command {
        let row = |id: &&str| json!({ "id": id, "total": "1.50", "link": null });
        let rows: Vec<_> = ids.iter().map(row).collect();
        self.next(StepResult::Read(json!({ "orders": rows, "address": { "city": "Bonn" } })))
    }

    fn events(&mut self, names: &[&str], next: &Value) -> Command {
        let items: Vec<_> = names.iter().map(|name| json!({ "name": name })).collect();
        self.next(StepResult::Read(json!({ "items": items, "next": next })))
    }

    /// Returns one member of all rows of a collected list.
    fn collected(&self, list: &str, member: &str) -> Vec<Value> {
        let rows = self.run.value(list).and_then(Value::as_array).cloned().unwrap_or_default();
        rows.iter().map(|row| row[member].clone()).collect()
    }

    fn is_at(&self, node: &str) -> bool {
        self.run.path().last().is_some_and(|last| last == node)
    }
}

#[test]
fn lists_and_objects_pass_the_check_and_keep_their_form() {
    let document = document_with_lists();
    let definition: Definition = serde_json::from_value(document.clone()).unwrap();
    assert_eq!(check(&definition), []);
    let written = serde_json::to_value(&definition).unwrap();
    assert_eq!(written["nodes"]["orders"], document["nodes"]["orders"]);
    assert_eq!(written["nodes"]["events"], document["nodes"]["events"]);
    let again: Definition = serde_json::from_value(written).unwrap();
    assert_eq!(again, definition);
}

#[test]
fn a_click_leads_through_the_pages_of_a_table() {
    let mut listing = Listing::at("orders", |_| ());
    let Command::ReadDom { elements } = listing.next(StepResult::Begin) else { panic!() };
    let ReadContent::Rows { each, members, max, .. } = &elements["orders"].content else {
        panic!()
    };
    assert_eq!((each.as_str(), members.len(), *max), ("tbody tr", 3, 7));
    assert!(matches!(elements["address"].content, ReadContent::Members(_)));
    let click = Command::Act(Action::Click("a[rel=next]".into()));
    assert_eq!(listing.rows(&["a", "b"]), click);
    assert_eq!(listing.next(StepResult::Acted), Command::Watch);
    assert!(matches!(listing.settled(), Command::ReadDom { .. }));
    // The page still has the rows that were read before, and then none.
    assert_eq!(listing.rows(&["a", "b"]), Command::Watch);
    assert!(matches!(listing.settled(), Command::ReadDom { .. }));
    assert_eq!(listing.rows(&[]), Command::Watch);
    assert!(matches!(listing.settled(), Command::ReadDom { .. }));
    assert_eq!(listing.rows(&["c"]), click);
    assert!(!listing.is_at("events"));
    // There is no further page.
    listing.next(StepResult::Unreadable);
    assert!(listing.is_at("events"));
    assert_eq!(listing.collected("orders", "id"), ["a", "b", "c"]);
    assert_eq!(listing.run.value("address"), Some(&json!({ "city": "Bonn" })));
}

/// What is read of a page that shows something else in place of the list.
fn without_list() -> StepResult {
    let read = json!({ "orders": ReadContent::NO_LIST, "address": { "city": "Bonn" } });
    StepResult::Read(read)
}

fn with_empty_when(document: &mut Value) {
    document["nodes"]["orders"]["fields"]["orders"]["emptyWhen"] = json!("shop-app >>> .none");
}

#[test]
fn a_list_that_the_page_leaves_out_is_empty_and_has_no_further_page() {
    let mut listing = Listing::at("orders", with_empty_when);
    listing.run.record_trace();
    let Command::ReadDom { elements } = listing.next(StepResult::Begin) else { panic!() };
    let ReadContent::Rows { empty_when, .. } = &elements["orders"].content else { panic!() };
    assert_eq!(empty_when.as_deref(), Some("shop-app >>> .none"));
    assert!(matches!(listing.next(without_list()), Command::Fetch(_)));
    assert!(listing.is_at("events"));
    assert_eq!(listing.run.value("orders"), Some(&json!([])));
    assert!(listing.run.facts().fields["orders"]);
    let trace: Vec<_> = listing.run.take_trace().iter().map(ToString::to_string).collect();
    let expected = "  orders: [] (no list; the page has what `emptyWhen` names)".to_owned();
    assert!(trace.contains(&expected), "{trace:?}");

    // A list that is there may get its rows by a click.
    let mut listing = Listing::at("orders", with_empty_when);
    listing.next(StepResult::Begin);
    assert!(matches!(listing.rows(&[]), Command::Act(_)));
}

#[test]
fn a_row_that_says_that_there_are_none_is_no_row() {
    let other = json!({ "id": null, "total": "We couldn't find any orders", "link": null });
    let row = json!({ "id": "a", "total": "1.50", "link": null });
    let read = |rows: &[&Value], shown: Value| {
        let address = json!({ "city": "Bonn" });
        let read = json!({ "orders": rows, "orders\nemptyWhen": shown, "address": address });
        StepResult::Read(read)
    };
    let shown = || Value::from(ReadContent::NO_LIST);
    let begun = || {
        let mut listing = Listing::at("orders", with_empty_when);
        let Command::ReadDom { elements } = listing.next(StepResult::Begin) else { panic!() };
        let content = &elements["orders\nemptyWhen"].content;
        let ReadContent::Rows { empty_when, .. } = content else { panic!() };
        assert_eq!(empty_when.as_deref(), Some("shop-app >>> .none"));
        listing
    };
    let mut listing = begun();
    assert!(matches!(listing.next(read(&[&other], shown())), Command::Fetch(_)));
    assert!(listing.is_at("events"));
    assert_eq!(listing.run.value("orders"), Some(&json!([])));
    // The rows may still be on their way, or one of them lacks what the others have.
    for (rows, shown) in [
        (vec![&other], Value::Null),
        (vec![&row, &other], shown()),
        (vec![&other, &other], shown()),
    ] {
        let mut listing = begun();
        assert_eq!(listing.next(read(&rows, shown)), Command::Watch);
        assert!(!listing.is_at("events"));
    }
    // A page can show it beside rows that are there.
    let mut listing = begun();
    assert!(matches!(listing.next(read(&[&row], shown())), Command::Act(_)));
    assert_eq!(listing.collected("orders", "id"), ["a"]);
}

#[test]
fn a_list_ends_with_a_further_page_that_leaves_it_out() {
    let mut listing = Listing::at("orders", with_empty_when);
    listing.next(StepResult::Begin);
    listing.rows(&["a", "b"]);
    listing.next(StepResult::Acted);
    listing.settled();
    // Its rows may still be on their way.
    assert_eq!(listing.next(without_list()), Command::Watch);
    listing.now += TimeDelta::seconds(10);
    listing.settled();
    listing.next(without_list());
    assert!(listing.is_at("events"));
    assert_eq!(listing.collected("orders", "id"), ["a", "b"]);
}

#[test]
fn what_is_shown_in_place_of_a_list_passes_the_check_and_keeps_its_form() {
    let mut document = document_with_lists();
    with_empty_when(&mut document);
    let definition: Definition = serde_json::from_value(document.clone()).unwrap();
    assert_eq!(check(&definition), []);
    let written = serde_json::to_value(&definition).unwrap();
    assert_eq!(written["nodes"]["orders"], document["nodes"]["orders"]);
    let place = "$.nodes.orders.fields.orders.emptyWhen";
    let selectors = definition.selector_paths().into_iter();
    let own = selectors.filter(|(path, _)| path.to_string() == place).map(|(_, part)| part);
    assert_eq!(own.collect::<Vec<_>>(), ["shop-app", ".none"]);
}

#[test]
fn a_list_whose_place_is_gone_on_a_further_page_is_missing() {
    for required in [false, true] {
        let mut listing = Listing::at("orders", |document| {
            document["output"]["orders"]["required"] = json!(required);
        });
        listing.next(StepResult::Begin);
        listing.rows(&["a", "b"]);
        listing.next(StepResult::Acted);
        listing.settled();
        // A page that asks to sign in again has taken its place.
        listing.next(StepResult::Read(json!({})));
        listing.now += TimeDelta::seconds(10);
        listing.settled();
        // One further attempt is allowed.
        assert_eq!(listing.next(StepResult::Read(json!({}))), Command::Watch);
        assert!(matches!(listing.after_pause(), Command::ReadDom { .. }));
        let end = listing.next(StepResult::Read(json!({})));
        assert_eq!(listing.run.value("orders"), None, "a part is not taken for all");
        assert_eq!(listing.is_at("events"), !required);
        assert_eq!(end == Command::End(End::Failed(ErrorCode::NoData)), required);
    }
}

#[test]
fn a_list_whose_pages_lead_back_is_missing() {
    for other_fields in [false, true] {
        let mut listing = Listing::at("orders", |document| {
            document["nodes"]["orders"]["retries"] = json!(0);
        });
        listing.next(StepResult::Begin);
        for (visit, ids) in [["a", "b"], ["c", "d"], ["a", "b"]].iter().enumerate() {
            let row = |id: &&str| json!({ "id": id, "total": "1.50", "link": null });
            let city = if other_fields { format!("Bonn {visit}") } else { "Bonn".to_owned() };
            let rows: Vec<_> = ids.iter().map(row).collect();
            listing.next(StepResult::Read(json!({ "orders": rows, "address": { "city": city } })));
            listing.next(StepResult::Acted);
            listing.settled();
        }
        assert_eq!(listing.run.value("orders"), None, "neither twice nor in part");
        assert!(listing.run.value("address").is_some());
    }
}

#[test]
fn a_button_may_add_rows() {
    let mut listing = Listing::at("orders", |_| ());
    listing.next(StepResult::Begin);
    for rows in [&["a"][..], &["a", "b"], &["a", "b", "c"]] {
        assert!(matches!(listing.rows(rows), Command::Act(_)));
        listing.next(StepResult::Acted);
        listing.settled();
    }
    assert_eq!(listing.collected("orders", "id"), ["a", "b", "c"]);
}

#[test]
fn a_list_ends_when_an_action_changes_nothing_at_its_bound_and_after_its_pages() {
    let mut listing = Listing::at("orders", |_| ());
    listing.next(StepResult::Begin);
    listing.rows(&["a"]);
    listing.next(StepResult::Acted);
    listing.now += TimeDelta::seconds(11);
    listing.settled();
    listing.rows(&["a"]);
    assert!(listing.is_at("events"));

    let mut listing = Listing::at("orders", |_| ());
    listing.next(StepResult::Begin);
    listing.rows(&["1", "2", "3", "4", "5", "6"]);
    listing.next(StepResult::Acted);
    listing.settled();
    listing.rows(&["7", "8", "9"]);
    assert!(listing.is_at("events"));
    assert_eq!(listing.collected("orders", "id").len(), 7);

    let mut listing = Listing::at("orders", |_| ());
    listing.next(StepResult::Begin);
    for id in ["1", "2", "3", "4"] {
        listing.rows(&[id]);
        listing.next(StepResult::Acted);
        listing.settled();
    }
    assert!(listing.is_at("events"));
    assert_eq!(listing.collected("orders", "id"), ["1", "2", "3", "4"]);
}

#[test]
fn the_trace_says_where_a_list_ends_at_its_limit() {
    let began = |node: &str, change: &dyn Fn(&mut Value)| {
        let mut listing = Listing::at(node, change);
        listing.run.record_trace();
        listing.next(StepResult::Begin);
        listing
    };
    let limits = |listing: &mut Listing| {
        let trace = listing.run.take_trace().into_iter();
        let limit = |event| {
            let TraceEvent::ListEnds { name, max } = event else { return None };
            Some((name, max))
        };
        trace.filter_map(limit).collect::<Vec<_>>()
    };
    let orders = || ("orders".to_owned(), 7);
    let mut listing = began("orders", &|_| ());
    listing.rows(&["1", "2", "3", "4", "5", "6"]);
    assert_eq!(limits(&mut listing), []);
    listing.next(StepResult::Acted);
    listing.settled();
    listing.rows(&["7", "8"]);
    assert_eq!(limits(&mut listing), [orders()]);

    // The page was read up to the limit, with a row that has no value.
    let mut listing = began("orders", &|_| ());
    let mut rows = vec![json!({ "id": null, "total": null, "link": null })];
    rows.extend((0..6).map(|id| json!({ "id": id.to_string(), "total": "1", "link": null })));
    listing.next(StepResult::Read(json!({ "orders": rows, "address": { "city": "Bonn" } })));
    assert_eq!(listing.collected("orders", "id").len(), 6);
    assert_eq!(limits(&mut listing), [orders()]);

    let two_rows = |d: &mut Value| d["output"]["events"]["maxRows"] = json!(2);
    let ends = vec![("events".to_owned(), 2)];
    for (names, expected) in [(&["a"][..], vec![]), (&["a", "b", "c"][..], ends)] {
        let mut listing = began("events", &two_rows);
        listing.events(names, &Value::Null);
        assert_eq!(limits(&mut listing), expected);
    }
}

#[test]
fn the_trace_says_that_nothing_on_the_first_page_leads_to_a_next_one() {
    let told = |pages: &[&str]| {
        let mut listing = Listing::at("orders", |_| ());
        listing.run.record_trace();
        listing.next(StepResult::Begin);
        for (index, id) in pages.iter().enumerate() {
            if index > 0 {
                listing.next(StepResult::Acted);
                listing.settled();
            }
            listing.rows(&[*id]);
        }
        listing.next(StepResult::Unreadable);
        assert!(listing.is_at("events"), "it is no error");
        assert_eq!(listing.collected("orders", "id").len(), pages.len());
        let trace = listing.run.take_trace().into_iter();
        trace.filter(|event| matches!(event, TraceEvent::NoNextPage { .. })).collect::<Vec<_>>()
    };
    let action = Action::Click("a[rel=next]".into());
    assert_eq!(told(&["a"]), [TraceEvent::NoNextPage { name: "orders".into(), action }]);
    assert_eq!(told(&["a", "b"]), [], "the last page has none");
}

#[test]
fn the_trace_says_that_what_leads_on_changes_nothing_on_the_first_page() {
    let told = |pages: &[&str]| {
        let mut listing = Listing::at("orders", |_| ());
        listing.run.record_trace();
        listing.next(StepResult::Begin);
        for id in pages {
            listing.rows(&[*id]);
            listing.next(StepResult::Acted);
            listing.settled();
        }
        listing.now += TimeDelta::seconds(11);
        listing.rows(&[*pages.last().unwrap()]);
        assert!(listing.is_at("events"), "it is no error");
        let trace = listing.run.take_trace().into_iter();
        trace.filter(|event| matches!(event, TraceEvent::SamePage { .. })).collect::<Vec<_>>()
    };
    let action = Action::Click("a[rel=next]".into());
    assert_eq!(told(&["a"]), [TraceEvent::SamePage { name: "orders".into(), action }]);
    assert_eq!(told(&["a", "b"]), [], "on the last page, it is switched off");
}

#[test]
fn the_trace_says_that_a_list_ends_after_its_last_page() {
    let ends = |listing: &mut Listing| {
        let trace = listing.run.take_trace().into_iter();
        trace.filter(|event| matches!(event, TraceEvent::PagesEnd { .. })).collect::<Vec<_>>()
    };
    let end = |name: &str, max: u8| [TraceEvent::PagesEnd { name: name.into(), max }];
    let began = |node: &str| {
        let mut listing = Listing::at(node, |_| ());
        listing.run.record_trace();
        listing.next(StepResult::Begin);
        listing
    };
    let mut listing = began("orders");
    for id in ["1", "2", "3", "4"] {
        listing.rows(&[id]);
        listing.next(StepResult::Acted);
        listing.settled();
    }
    assert_eq!(ends(&mut listing), end("orders", 4));
    for (next, expected) in [(json!("d"), end("events", 3).to_vec()), (json!(null), vec![])] {
        let mut listing = began("events");
        listing.events(&["a"], &json!("b"));
        listing.events(&["b"], &json!("c"));
        listing.events(&["c"], &next);
        assert_eq!(ends(&mut listing), expected);
    }
}

#[test]
fn a_list_with_a_page_that_cannot_be_read_is_missing() {
    let mut listing = Listing::at("events", |_| ());
    listing.next(StepResult::Begin);
    listing.events(&["a"], &json!("p2"));
    assert_eq!(listing.collected("events", "name"), ["a"]);
    // One further attempt is allowed.
    assert_eq!(listing.next(StepResult::Unreadable), Command::Watch);
    assert!(matches!(listing.after_pause(), Command::Fetch(_)));
    listing.next(StepResult::Unreadable);
    assert!(listing.is_at("details"));
    assert_eq!(listing.run.value("events"), None);

    let mut listing = Listing::at("events", |document| {
        document["output"]["events"]["required"] = json!(true);
    });
    listing.next(StepResult::Begin);
    listing.events(&["a"], &json!("p2"));
    listing.next(StepResult::Unreadable);
    listing.after_pause();
    let end = listing.next(StepResult::Read(json!({ "items": [{ "title": "no name" }] })));
    assert_eq!(end, Command::End(End::Failed(ErrorCode::NoData)));
}

#[test]
fn pages_that_do_not_answer_are_no_reason_to_ask_on() {
    // The first page.
    let mut listing = Listing::at("orders", |document| {
        document["nodes"]["orders"]["retries"] = json!(0);
    });
    listing.next(StepResult::Begin);
    let end = listing.next(StepResult::Waited);
    assert_eq!(end, Command::End(End::Failed(ErrorCode::NoData)));

    // A further one; one further attempt is allowed.
    let mut listing = Listing::at("events", |_| ());
    listing.next(StepResult::Begin);
    listing.events(&["a"], &json!("p2"));
    assert_eq!(listing.next(StepResult::Waited), Command::Watch);
    assert!(matches!(listing.after_pause(), Command::Fetch(_)));
    listing.next(StepResult::Waited);
    assert!(listing.is_at("details"));
    assert_eq!(listing.run.value("events"), None);

    // A page that an action led to.
    let mut listing = Listing::at("orders", |document| {
        document["nodes"]["orders"]["retries"] = json!(0);
    });
    listing.next(StepResult::Begin);
    listing.rows(&["a"]);
    listing.next(StepResult::Acted);
    assert_eq!(listing.next(StepResult::Waited), Command::Watch);
    listing.now += TimeDelta::seconds(20);
    let end = listing.next(StepResult::Waited);
    assert_eq!(end, Command::End(End::Failed(ErrorCode::NoData)));
}

#[test]
fn a_cursor_leads_through_the_pages_of_an_api() {
    let url = |command: Command| {
        let Command::Fetch(PageFetch { url, .. }) = command else { panic!("{command:?}") };
        url
    };
    let mut listing = Listing::at("events", |_| ());
    assert_eq!(url(listing.next(StepResult::Begin)), "https://shop.test/events?after=");
    assert_eq!(url(listing.events(&["a"], &json!("p 2"))), "https://shop.test/events?after=p%202");
    // The third page is the last that is read.
    assert_eq!(url(listing.events(&["b"], &json!(3))), "https://shop.test/events?after=3");
    listing.events(&["c"], &json!("p4"));
    assert!(listing.is_at("details"));
    assert_eq!(listing.collected("events", "name"), ["a", "b", "c"]);
    for end in [json!(null), json!(""), json!("same")] {
        let mut listing = Listing::at("events", |_| ());
        listing.next(StepResult::Begin);
        listing.events(&["a"], &json!("same"));
        listing.events(&["b"], &end);
        assert!(listing.is_at("details"), "{end}");
    }
}

#[test]
fn numbers_and_offsets_end_with_a_page_without_rows() {
    let expected = [
        (json!({ "number": { "name": "after", "first": 0 } }), ["0", "1", "2"]),
        (json!({ "offset": { "name": "after" } }), ["0", "2", "3"]),
    ];
    for (next, expected) in expected {
        let mut listing = Listing::at("events", |document| {
            document["nodes"]["events"]["pages"]["next"] = next.clone();
        });
        let mut urls = Vec::new();
        let mut command = listing.next(StepResult::Begin);
        for names in [&["a", "b"][..], &["c"], &[]] {
            let Command::Fetch(PageFetch { url, .. }) = command else { panic!("{command:?}") };
            urls.push(url.replace("https://shop.test/events?after=", ""));
            command = listing.events(names, &json!(null));
        }
        assert_eq!(urls, expected);
        assert!(listing.is_at("details"));
        assert_eq!(listing.collected("events", "name"), ["a", "b", "c"]);
    }
}

#[test]
fn a_list_ends_with_a_page_that_is_null() {
    let mut listing = Listing::at("events", |document| {
        let next = json!({ "number": { "name": "after", "first": 1 } });
        document["nodes"]["events"]["pages"]["next"] = next;
    });
    listing.next(StepResult::Begin);
    listing.events(&["a"], &json!(null));
    listing.next(StepResult::Read(json!({ "items": null })));
    assert!(listing.is_at("details"));
    assert_eq!(listing.collected("events", "name"), ["a"]);
}

/// The ways to further pages of a request: each with what a response has of the next page.
fn ways_of_requests() -> [(Value, [Value; 4]); 3] {
    let cursors = ["p2", "p3", "p4", "p5"].map(Value::from);
    let none = || [(); 4].map(|()| Value::Null);
    [
        (json!({ "number": { "name": "after", "first": 1 } }), none()),
        (json!({ "offset": { "name": "after" } }), none()),
        (json!({ "cursor": { "name": "after", "from": "/next" } }), cursors),
    ]
}

#[test]
fn a_list_ends_where_a_server_repeats_its_last_page() {
    for (way, next) in ways_of_requests() {
        let mut listing = Listing::at("events", |document| {
            document["nodes"]["events"]["pages"] = json!({ "next": way, "max": 9 });
        });
        listing.next(StepResult::Begin);
        for (names, next) in [["a", "b"], ["c", "d"], ["c", "d"]].iter().zip(&next) {
            assert!(listing.is_at("events"), "{way}");
            listing.events(names, next);
        }
        assert!(listing.is_at("details"), "{way}");
        assert_eq!(listing.collected("events", "name"), ["a", "b", "c", "d"], "{way}");
    }
}

#[test]
fn a_list_whose_requests_lead_back_is_missing() {
    for (way, next) in ways_of_requests() {
        let mut listing = Listing::at("events", |document| {
            document["nodes"]["events"]["pages"] = json!({ "next": way, "max": 9 });
        });
        listing.next(StepResult::Begin);
        for (names, next) in [["a", "b"], ["c", "d"], ["a", "b"]].iter().zip(&next) {
            listing.events(names, next);
        }
        // One further attempt is allowed.
        assert!(listing.is_at("events"), "{way}");
        listing.after_pause();
        listing.events(&["a", "b"], &json!(null));
        assert!(listing.is_at("details"), "{way}");
        assert_eq!(listing.run.value("events"), None, "{way}: neither twice nor in part");
    }
}

#[test]
fn pages_without_rows_are_not_taken_for_one_another() {
    let mut listing = Listing::at("events", |document| {
        document["nodes"]["events"]["pages"]["max"] = json!(9);
    });
    listing.next(StepResult::Begin);
    let (first, none, last): (&[&str], &[&str], &[&str]) = (&["a"], &[], &["b"]);
    for (names, next) in [(first, "p2"), (none, "p3"), (none, "p4"), (last, "")] {
        assert!(listing.is_at("events"), "{next}");
        listing.events(names, &json!(next));
    }
    assert!(listing.is_at("details"));
    assert_eq!(listing.collected("events", "name"), ["a", "b"]);
}

#[test]
fn a_list_that_was_read_before_is_dropped_if_a_further_page_is_missing() {
    let document = |has_pages: bool| {
        let mut document = document_with_lists();
        document["nodes"]["more"] = document["nodes"]["orders"].clone();
        document["nodes"]["more"]["onMissing"] = json!({ "next": "events" });
        document["nodes"]["more"]["retries"] = json!(0);
        document["nodes"]["orders"]["next"] = json!("more");
        document["nodes"]["orders"].as_object_mut().unwrap().remove("pages");
        if !has_pages {
            document["nodes"]["more"].as_object_mut().unwrap().remove("pages");
        }
        document
    };
    let errors = |has_pages| {
        let definition: Definition = serde_json::from_value(document(has_pages)).unwrap();
        check(&definition).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let lacks = "$.nodes.end: can be reached without the required `orders`";
    assert_eq!(errors(true), [lacks]);
    assert_eq!(errors(false), Vec::<String>::new());

    let mut listing = Listing::at("orders", |changed| {
        changed["nodes"] = document(true)["nodes"].clone();
    });
    listing.next(StepResult::Begin);
    listing.rows(&["a"]);
    assert!(listing.is_at("more"));
    listing.rows(&["a"]);
    listing.next(StepResult::Acted);
    listing.now += TimeDelta::seconds(20);
    listing.next(StepResult::Waited);
    assert!(listing.is_at("events"));
    assert_eq!(listing.run.value("orders"), None);
}

#[test]
fn another_attempt_does_not_add_the_rows_of_a_page_again() {
    let mut listing = Listing::at("events", |document| {
        document["nodes"]["events"]["fields"]["visits"] =
            json!({ "at": "/visits", "members": { "name": "/name" } });
        document["output"]["visits"] = document["output"]["events"].clone();
    });
    listing.next(StepResult::Begin);
    let page = |items: &str, visits: Option<&str>, next: &str| {
        let rows = |name: &str| json!([{ "name": name }]);
        let mut read = json!({ "items": rows(items), "next": next });
        if let Some(visits) = visits {
            read["visits"] = rows(visits);
        }
        StepResult::Read(read)
    };
    listing.next(page("a", Some("v"), "p2"));
    assert_eq!(listing.next(page("b", None, "")), Command::Watch);
    listing.after_pause();
    listing.next(page("b", Some("w"), ""));
    assert!(listing.is_at("details"));
    assert_eq!(listing.collected("events", "name"), ["a", "b"]);
    assert_eq!(listing.collected("visits", "name"), ["v", "w"]);
}

#[test]
fn all_data_has_a_bound() {
    let mut listing = Listing::at("events", |document| {
        document["output"]["events"]["maxRows"] = json!(1000);
        document["nodes"]["events"]["retries"] = json!(0);
    });
    listing.next(StepResult::Begin);
    let name = "n".repeat(4000);
    listing.events(&[name.as_str(); 60], &json!("p2"));
    assert_eq!(listing.collected("events", "name").len(), 60);
    listing.events(&[name.as_str(); 70], &json!("p3"));
    assert!(listing.is_at("details"));
    assert_eq!(listing.run.value("events"), None);
}

#[test]
fn errors_in_lists_are_reported() {
    type Mutation<'a> = &'a dyn Fn(&mut Value);
    let errors = |mutate: Mutation<'_>| {
        let mut changed = document_with_lists();
        mutate(&mut changed);
        let definition: Definition = serde_json::from_value(changed).unwrap();
        let errors = check(&definition);
        let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
        lines.join("\n")
    };
    let mutations: [(&str, Mutation<'_>); 22] = [
        ("no members", &|d| d["output"]["orders"]["members"] = json!({})),
        ("members of a text", &|d| {
            d["output"]["since"]["members"] = d["output"]["address"]["members"].clone();
        }),
        ("a list in a list", &|d| d["output"]["orders"]["members"]["id"]["type"] = json!("list")),
        ("the order of others", &|d| {
            d["output"]["orders"]["memberOrder"] = json!(["ids", "id", "id"]);
        }),
        ("too many rows", &|d| d["output"]["orders"]["maxRows"] = json!(1001)),
        ("rows of an object", &|d| d["output"]["address"]["maxRows"] = json!(3)),
        ("a list with a format", &|d| d["output"]["orders"]["format"] = json!("plain")),
        ("no rows", &|d| {
            d["nodes"]["orders"]["fields"]["orders"].as_object_mut().unwrap().remove("each");
        }),
        ("rows of a response", &|d| d["nodes"]["events"]["fields"]["events"]["each"] = json!("li")),
        ("a required member is not read", &|d| {
            d["nodes"]["orders"]["fields"]["orders"]["members"]
                .as_object_mut()
                .unwrap()
                .remove("id");
        }),
        ("an unknown member", &|d| {
            d["nodes"]["orders"]["fields"]["address"]["members"] = json!({ "town": ".city" });
        }),
        ("members of members", &|d| {
            d["nodes"]["orders"]["fields"]["address"]["members"]["city"] =
                json!({ "at": "a", "members": { "b": "c" } });
        }),
        ("a converted list", &|d| {
            d["nodes"]["orders"]["fields"]["orders"]["convert"] = json!(["trim"]);
        }),
        ("pages without a list", &|d| {
            d["nodes"]["page"]["pages"] = d["nodes"]["orders"]["pages"].clone();
        }),
        ("a click in a response", &|d| {
            d["nodes"]["events"]["pages"] = d["nodes"]["orders"]["pages"].clone();
        }),
        ("a cursor in the page", &|d| {
            d["nodes"]["orders"]["pages"] = d["nodes"]["events"]["pages"].clone();
        }),
        ("a request without the cursor", &|d| {
            d["requests"]["events"]["url"] = json!("https://shop.test/events");
        }),
        ("a list in a URL", &|d| {
            d["nodes"]["details"]["url"] = json!("https://shop.test/{orders}");
        }),
        ("an empty list of a response", &|d| {
            d["nodes"]["events"]["fields"]["events"]["emptyWhen"] = json!(".none");
        }),
        ("an empty object", &|d| {
            d["nodes"]["orders"]["fields"]["address"]["emptyWhen"] = json!(".none");
        }),
        ("an empty text", &|d| d["nodes"]["page"]["fields"]["active"]["emptyWhen"] = json!("a")),
        ("no selector", &|d| d["nodes"]["orders"]["fields"]["orders"]["emptyWhen"] = json!("")),
    ];
    let mut report = String::new();
    for (name, mutate) in mutations {
        writeln!(report, "# {name}\n{}", errors(mutate)).unwrap();
    }
    insta::assert_snapshot!(report);
}
