//! The interpreter with a definition that uses what the sandbox's does not, and with random ones.

use std::{collections::BTreeSet, fmt::Write as _, sync::Arc};

use chrono::{DateTime, TimeDelta, Utc};
use proptest::{prelude::*, strategy::ValueTree as _};
use serde_json::{Value, json};

use super::{list_tests::document_with_lists, *};
use crate::{error_code::ErrorCode, session::Collected};

type Mutation<'a> = &'a dyn Fn(&mut Value);

const HOST: &str = "https://shop.test";

pub(super) fn document() -> Value {
    json!({
        "schema": "avouch-workflow/1", "platform": "shop", "version": "1.0.0",
        "environment": "production", "displayName": "Shop", "icon": "/icon.svg",
        "loginUrl": "https://shop.test/login", "hosts": ["shop.test"],
        "budgets": { "totalSeconds": 600, "steps": 40 },
        "signals": {
            "banner": { "selector": "#cookies" },
            "down": { "httpStatus": [503] },
            "in": { "all": [{ "fragment": "/home*" }, { "not": { "signal": "form" } }] },
            "form": { "selector": "shop-app >>> form" },
            "wrong": { "text": { "selector": ".alert", "contains": { "en": ["Wrong"], "de": ["Falsch"] } } },
        },
        "interrupts": [
            { "when": "banner", "then": { "act": { "click": "#cookies button" } } },
            { "when": "down", "then": { "retry": {
                "times": 2, "afterSeconds": 5, "next": "open", "otherwise": { "fail": "PLATFORM_UNAVAILABLE" },
            } } },
        ],
        "start": "open",
        "nodes": {
            "open": {
                "type": "goto", "url": "https://shop.test/", "next": "login",
                "onFail": { "fail": "PLATFORM_UNAVAILABLE" },
            },
            "login": {
                "type": "awaitUser", "kind": "login", "textKey": "sign_in", "timeoutSeconds": 300,
                "until": ["in"],
                "hints": [{ "when": "wrong", "textKey": "wrong", "count": 2, "then": { "fail": "CREDENTIALS_INVALID" } }],
                "next": "menu", "onTimeout": { "fail": "USER_INPUT_TIMEOUT" },
            },
            "menu": {
                "type": "act", "action": { "choose": { "selector": "select", "option": "All" } },
                "next": "page", "onFail": { "next": "page" },
            },
            "page": {
                "type": "collect", "via": { "dom": {} },
                "fields": {
                    "balance": { "at": "tr td", "element": "last", "convert": [{ "number": { "decimalMark": "," } }] },
                    "active": { "at": "b", "read": { "attribute": "data-on" }, "convert": [{ "boolean": { "true": ["1"], "false": ["0"] } }] },
                },
                "variables": { "user": { "at": "a.profile", "read": { "attribute": "href" }, "convert": [{ "match": "/u/(.+)" }] } },
                "retries": 1, "onMissing": { "fail": "NO_DATA" }, "next": "api",
            },
            "api": {
                "type": "collect", "via": { "fetch": "profile" },
                "fields": { "since": { "at": "/data/joined", "convert": [{ "date": { "pattern": "d.M.y" } }] } },
                "retries": 0, "onMissing": { "fail": "EXTRACTION_FAILED" }, "next": "details",
            },
            "details": {
                "type": "goto", "url": "https://shop.test/u/{user}", "next": "review",
                "onFail": { "fail": "PLATFORM_UNAVAILABLE" },
            },
            "review": {
                "type": "review", "textKey": "share", "timeoutSeconds": 120,
                "confirm": { "when": "in", "otherwise": { "next": "login" } }, "next": "end",
            },
            "end": { "type": "done" },
        },
        "requests": {
            "profile": {
                "url": "https://shop.test/api/{user}?full={active}", "method": "POST", "expectStatus": 200,
                "maxBytes": 1000, "headers": { "accept": "application/json" },
                "csrf": { "header": "X-CSRF-Token", "from": { "cookie": "csrf" } },
                "body": { "query": "query($id: ID) { me { joined } }", "variables": { "id": "{user}" } },
            },
        },
        "output": {
            "balance": { "type": "number", "required": true, "labelKey": "balance" },
            "active": { "type": "boolean", "labelKey": "active" },
            "since": { "type": "string", "labelKey": "since", "format": "date" },
        },
        "texts": { "en": {
            "sign_in": "Sign in", "wrong": "Wrong", "share": "Share", "balance": "Balance",
            "active": "Active", "since": "Since",
        } },
    })
}

fn definition() -> Definition {
    serde_json::from_value(document()).unwrap()
}

pub(super) fn noon() -> DateTime<Utc> {
    DateTime::from_timestamp(1_767_268_800, 0).unwrap()
}

pub(super) fn page(fragment: &str, present: &[&str]) -> Observation {
    Observation {
        url: format!("{HOST}/#{fragment}"),
        settled: true,
        present: present.iter().map(|selector| (*selector).to_owned()).collect(),
        ..Observation::default()
    }
}

pub(super) fn seen(fragment: &str, present: &[&str]) -> StepResult {
    StepResult::Seen(page(fragment, present))
}

/// Returns a run and the last step after these results.
fn play(results: impl IntoIterator<Item = StepResult>) -> (Run, RunStep) {
    let mut run = Run::new(Arc::new(definition()), noon());
    let step = results.into_iter().map(|result| run.next(result, noon())).last().unwrap();
    (run, step)
}

pub(super) fn texts(user: &str) -> StepResult {
    StepResult::Read(json!({ "balance": "EUR 1.234,50", "active": "1", "user": user }))
}

fn until_page() -> Vec<StepResult> {
    let home = || seen("/home", &[]);
    vec![StepResult::Begin, StepResult::Arrived, home(), StepResult::Acted]
}

#[test]
fn the_definition_is_valid_and_keeps_its_form() {
    assert_eq!(check(&definition()), []);
    assert_eq!(serde_json::to_value(definition()).unwrap()["nodes"], document()["nodes"]);
    let selectors: BTreeSet<_> =
        definition().selector_paths().iter().map(|(_, part)| (*part).to_owned()).collect();
    for part in ["shop-app", "form", "#cookies button", "select", "a.profile", ".alert"] {
        assert!(selectors.contains(part), "{selectors:?}");
    }
}

#[test]
fn values_are_converted_and_used_in_requests_and_urls() {
    let (mut run, step) = play(until_page());
    let Command::ReadDom { elements } = &step.command else { panic!("{step:?}") };
    assert_eq!(elements["balance"].choice, ElementChoice::Last);
    let href = ElementContent::Attribute("href".into());
    assert_eq!(elements["user"].content, ReadContent::Value(href));
    let step = run.next(texts("/u/ada lovelace"), noon());
    let Command::Fetch(request) = &step.command else { panic!("{step:?}") };
    assert_eq!(request.url, "https://shop.test/api/ada%20lovelace?full=true");
    assert_eq!(request.method, Method::Post);
    let body: Value = serde_json::from_str(request.body.as_deref().unwrap()).unwrap();
    assert_eq!(body["variables"]["id"], "ada lovelace");
    assert!(request.csrf.is_some() && request.headers.contains_key("accept"));
    let step = run.next(StepResult::Read(json!({ "data": { "joined": "1.3.2019" } })), noon());
    assert_eq!(step.command, Command::Goto { url: format!("{HOST}/u/ada%20lovelace") });
    let step = run.next(StepResult::Arrived, noon());
    let Command::Consent { fields, .. } = &step.command else { panic!("{step:?}") };
    let shared: Vec<_> = fields.iter().map(|field| (field.name.as_str(), &field.value)).collect();
    let (active, balance, since) = (json!(true), json!(1234.5), json!("2019-03-01"));
    assert_eq!(shared, [("active", &active), ("balance", &balance), ("since", &since)]);
}

#[test]
fn a_missing_variable_is_read_again_and_then_counts_as_missing() {
    let (mut run, _) = play(until_page());
    assert_eq!(run.next(texts("/profile"), noon()).command, Command::Watch);
    let later = noon() + TimeDelta::milliseconds(500);
    let step = run.next(seen("/home", &[]), later);
    assert!(matches!(step.command, Command::ReadDom { .. }), "{step:?}");
    let step = run.next(texts("/profile"), later);
    assert_eq!(step.command, Command::End(End::Failed(ErrorCode::NoData)));
    // A value that would lead to another path is none.
    let (mut run, _) = play(until_page());
    let step = run.next(texts("/u/.."), noon());
    assert_eq!(step.command, Command::End(End::Failed(ErrorCode::ExtractionFailed)));
}

#[test]
fn an_action_without_an_element_leads_to_its_exit() {
    let mut results = until_page();
    results.pop();
    let (mut run, step) = play(results);
    assert!(matches!(step.command, Command::Act(Action::Choose { .. })), "{step:?}");
    let step = run.next(StepResult::Unreadable, noon());
    assert!(matches!(step.command, Command::ReadDom { .. }), "{step:?}");
}

#[test]
fn an_action_that_the_page_does_not_answer_is_not_done_again() {
    let mut results = until_page();
    results.pop();
    results.push(StepResult::Waited);
    let (run, step) = play(results);
    assert!(matches!(step.command, Command::ReadDom { .. }), "{step:?}");
    assert_eq!(run.path(), ["open", "login", "menu", "page"]);
}

#[test]
fn a_banner_is_closed_while_the_applicant_is_asked_but_not_for_ever() {
    let (mut run, step) = play([StepResult::Begin, StepResult::Arrived]);
    assert!(matches!(&step.shown, PublicPhase::Awaiting(_)));
    for _ in 0..5 {
        let step = run.next(seen("/login", &["#cookies"]), noon());
        assert!(matches!(&step.shown, PublicPhase::Awaiting(ask) if ask.kind == PromptKind::Login));
        assert_eq!(step.command, Command::Act(Action::Click("#cookies button".into())));
        let step = run.next(StepResult::Acted, noon());
        assert_eq!(step.command, Command::Watch);
    }
    let step = run.next(seen("/login", &["#cookies"]), noon());
    assert_eq!(step.command, Command::Watch);
    let step = run.next(seen("/home", &["#cookies"]), noon());
    assert!(matches!(step.command, Command::Act(Action::Choose { .. })), "{step:?}");
}

#[test]
fn a_text_is_a_hint() {
    let (mut run, _) = play([StepResult::Begin, StepResult::Arrived]);
    let wrong = |document| {
        let texts = [(".alert".to_owned(), "Passwort falsch!".to_owned())].into();
        StepResult::Seen(Observation { document, texts, ..page("/login", &["form"]) })
    };
    let step = run.next(wrong(1), noon());
    assert!(matches!(&step.shown, PublicPhase::Awaiting(ask) if ask.text_key == "wrong"));
    let step = run.next(wrong(2), noon());
    assert_eq!(step.command, Command::End(End::Failed(ErrorCode::CredentialsInvalid)));
}

#[test]
fn consent_must_be_confirmed_by_the_page() {
    let reviewed = || {
        let mut results = until_page();
        let read = StepResult::Read(json!({ "data": { "joined": "1.3.2019" } }));
        results.extend([texts("/u/ada"), read, StepResult::Arrived]);
        let (mut run, _) = play(results);
        let step = run.next(StepResult::Answered { share: true }, noon());
        assert_eq!(step.command, Command::Watch);
        run
    };
    let mut run = reviewed();
    let loading = StepResult::Seen(Observation { settled: false, ..page("/home", &[]) });
    let step = run.next(loading, noon());
    assert_eq!(step.command, Command::Watch, "the page is not settled");
    let step = run.next(seen("/home", &[]), noon());
    assert!(matches!(step.command, Command::End(End::Done(Collected { .. }))), "{step:?}");
    // Signed out: the applicant is asked to sign in again.
    let mut run = reviewed();
    let step = run.next(seen("/home", &["shop-app >>> form"]), noon());
    assert!(matches!(&step.shown, PublicPhase::Awaiting(ask) if ask.kind == PromptKind::Login));
    // A page that never settles confirms nothing.
    let mut run = reviewed();
    let step = run.next(StepResult::Waited, noon() + TimeDelta::seconds(10));
    assert!(matches!(&step.shown, PublicPhase::Awaiting(ask) if ask.kind == PromptKind::Login));
    // Consent that was declined needs no confirmation.
    let mut run = reviewed();
    run.confirm_until = None;
    let step = run.next(StepResult::Answered { share: false }, noon());
    assert_eq!(step.command, Command::End(End::Declined));
}

#[test]
fn data_of_two_accounts_is_never_shared_together() {
    let mut results = until_page();
    let read = StepResult::Read(json!({ "data": { "joined": "1.3.2019" } }));
    results.extend([texts("/u/ada"), read, StepResult::Arrived]);
    results.push(StepResult::Answered { share: true });
    // Signed out during the review; another account has no date.
    results.push(seen("/login", &["shop-app >>> form"]));
    results.extend([seen("/home", &[]), StepResult::Acted, texts("/u/bob")]);
    let (mut run, step) = play(results);
    let Command::Fetch(request) = &step.command else { panic!("{step:?}") };
    assert!(request.url.contains("/bob"), "{request:?}");
    let step = run.next(StepResult::Read(json!({ "data": {} })), noon());
    assert_eq!(step.command, Command::Goto { url: format!("{HOST}/u/bob") });
    let step = run.next(StepResult::Arrived, noon());
    let Command::Consent { fields, .. } = &step.command else { panic!("{step:?}") };
    let names: Vec<_> = fields.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(names, ["active", "balance"]);

    // A browser keeps the responses of the account that was left.
    let mut changed = document();
    changed["signals"]["in"] = json!({ "all": [
        { "response": { "url": "/api/me", "status": 200 } }, { "not": { "signal": "form" } },
    ] });
    changed["nodes"]["api"]["via"] = json!({ "response": "/api/me" });
    let changed: Definition = serde_json::from_value(changed).unwrap();
    let mut run = Run::new(Arc::new(changed), noon());
    let me = |number| {
        let url = format!("{HOST}/api/me");
        SeenResponse { number, url, status: 200, ..SeenResponse::default() }
    };
    let received = |newest: u64, present: &[&str]| {
        let responses = (1..=newest).map(me).collect();
        StepResult::Seen(Observation { responses, ..page("/home", present) })
    };
    for result in [StepResult::Begin, StepResult::Arrived, received(1, &[]), StepResult::Acted] {
        run.next(result, noon());
    }
    let step = run.next(texts("/u/ada"), noon());
    assert_eq!(step.command, Command::ReadResponse { url: "/api/me".into(), after: 0 });
    run.next(StepResult::Read(json!({ "data": { "joined": "1.3.2019" } })), noon());
    run.next(StepResult::Arrived, noon());
    run.next(StepResult::Answered { share: true }, noon());
    let step = run.next(received(1, &["shop-app >>> form"]), noon());
    assert!(matches!(&step.shown, PublicPhase::Awaiting(ask) if ask.kind == PromptKind::Login));
    // A page that was opened anew, and has not shown its form yet.
    let step = run.next(received(1, &[]), noon());
    assert_eq!(step.command, Command::Watch);
    let step = run.next(received(2, &[]), noon());
    assert!(matches!(step.command, Command::Act(_)), "{step:?}");
    run.next(StepResult::Acted, noon());
    let step = run.next(texts("/u/bob"), noon());
    assert_eq!(step.command, Command::ReadResponse { url: "/api/me".into(), after: 1 });
}

#[test]
fn what_the_page_does_not_confirm_is_dropped() {
    let mut changed = document();
    changed["nodes"]["review"]["confirm"]["otherwise"]["next"] = json!("details");
    let changed: Definition = serde_json::from_value(changed).unwrap();
    let errors: Vec<_> = check(&changed).iter().map(ToString::to_string).collect();
    assert_eq!(errors, ["$.nodes.end: can be reached without the required `balance`"]);
    let mut run = Run::new(Arc::new(changed), noon());
    let read = StepResult::Read(json!({ "data": { "joined": "1.3.2019" } }));
    let mut results = until_page();
    results.extend([texts("/u/ada"), read, StepResult::Arrived]);
    results.extend([StepResult::Answered { share: true }, seen("/login", &[])]);
    let step = results.into_iter().map(|result| run.next(result, noon())).last().unwrap();
    // The URL has a value of the account that was left.
    assert_eq!(step.command, Command::End(End::Failed(ErrorCode::PlatformUnavailable)));
}

#[test]
fn a_trace_says_what_was_seen_and_why_fields_are_missing() {
    let mut run = Run::new(Arc::new(definition()), noon());
    assert_eq!(run.take_trace(), [], "it is not recorded");
    run.record_trace();
    for result in until_page() {
        run.next(result, noon());
    }
    let trace = run.take_trace();
    let entered = |node: &str| TraceEvent::Entered { node: node.to_owned() };
    let signals =
        [("banner", false), ("down", false), ("form", false), ("in", true), ("wrong", false)];
    let observed = TraceEvent::Observed {
        url: format!("{HOST}/#/home"),
        settled: true,
        signals: signals.map(|(name, holds)| (name.to_owned(), holds)).into(),
    };
    assert_eq!(
        trace,
        [entered("open"), entered("login"), observed, entered("menu"), entered("page")]
    );
    run.next(StepResult::Read(json!({ "balance": "n/a", "user": "/u/ada" })), noon());
    let trace = run.take_trace();
    let read = |name: &str, found: Option<Value>, result| TraceEvent::Read {
        name: name.to_owned(),
        found,
        result,
    };
    assert_eq!(
        trace,
        [
            read("active", None, Err(ReadFailure::NotFound)),
            read("balance", Some(json!("n/a")), Err(ReadFailure::Converter(0))),
            read("user", Some(json!("/u/ada")), Ok(json!("ada"))),
            TraceEvent::Paused { length: TimeDelta::milliseconds(500), attempt: 2, of: 2 },
        ]
    );
}

#[test]
fn errors_in_the_language_are_reported() {
    let errors = |mutate: Mutation<'_>| {
        let mut document = document();
        mutate(&mut document);
        let definition: Definition = serde_json::from_value(document).unwrap();
        check(&definition).iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let mut report = String::new();
    let mutations: [(&str, Mutation<'_>); 9] = [
        ("circular signals", &|d| {
            d["signals"]["form"] = json!({ "any": [{ "signal": "in" }, { "signal": "inn" }] });
        }),
        ("large signals", &|d| {
            for n in 0..10 {
                let part = json!({ "signal": format!("s{}", n + 1) });
                d["signals"][format!("s{n}")] = json!({ "all": [part.clone(), part] });
            }
            d["signals"]["s10"] = json!({ "cookie": "a" });
            d["signals"]["form"] = json!({ "signal": "s0" });
        }),
        ("conditions", &|d| {
            d["signals"]["wrong"]["text"]["contains"] = json!({ "en": [" "] });
            d["signals"]["banner"] = json!({ "any": [
                { "host": "shop.tst" }, { "query": { "name": "" } }, { "fragment": "#/home" },
                { "selector": "a >>> " }, { "text": { "selector": "p", "contains": {} } },
            ] });
        }),
        ("converters", &|d| {
            let fields = &mut d["nodes"]["page"]["fields"];
            fields["balance"]["convert"] = json!([{ "number": { "decimalMark": "," } }, "trim"]);
            fields["active"]["convert"] =
                json!([{ "match": "(" }, { "date": { "pattern": "YYYY" } }]);
            d["nodes"]["api"]["fields"]["since"]["element"] = json!("last");
        }),
        ("types", &|d| {
            d["output"]["balance"]["type"] = json!("boolean");
            d["output"]["since"]["type"] = json!("integer");
        }),
        ("variables", &|d| {
            d["nodes"]["page"]["variables"]["balance"] = json!("p");
            d["nodes"]["page"]["variables"]["unused"] = json!("p");
            d["nodes"]["details"]["url"] = json!("https://shop.test/{usr}/{user");
            d["requests"]["profile"]["body"]["variables"]["id"] = json!("{usr}");
        }),
        ("values in the host", &|d| {
            d["nodes"]["details"]["url"] = json!("https://{user}.shop.test/");
        }),
        ("requests", &|d| {
            d["requests"]["profile"]["method"] = json!("GET");
            d["requests"]["profile"]["headers"] =
                json!({ "Cookie": "a=b", "Sec-Fetch-Site": "x", "a b": "c", "x-y": "\n" });
            d["requests"]["profile"]["csrf"]["from"] =
                json!({ "element": { "selector": "", "attribute": "a=b" } });
        }),
        ("actions", &|d| {
            d["nodes"]["menu"]["action"]["choose"]["option"] = json!("");
            d["interrupts"][0]["then"]["act"]["click"] = json!("");
            d["nodes"]["review"]["confirm"]["when"] = json!("inn");
            d["nodes"]["review"]["confirm"]["otherwise"]["next"] = json!("logn");
        }),
    ];
    for (name, mutate) in mutations {
        writeln!(report, "# {name}\n{}", errors(mutate)).unwrap();
    }
    insta::assert_snapshot!(report);
}

/// A text of the kinds that stand in definitions, or an arbitrary one.
fn any_text() -> impl Strategy<Value = String> {
    let words = [
        "",
        "in",
        "form",
        "open",
        "login",
        "page",
        "review",
        "end",
        "balance",
        "user",
        "{user}",
        "goto",
        "collect",
        "done",
        "/home*",
        "*",
        "https://shop.test/{user}",
        "https://evil.test/",
        "#a",
        "/a/b",
        "profile",
        "trim",
        "text",
        "last",
        "POST",
        "NO_DATA",
        "sign_in",
        "en",
    ];
    prop_oneof![
        4 => prop::sample::select(words.to_vec()).prop_map(str::to_owned),
        1 => "\\PC{0,12}",
    ]
}

/// A change of a value of a document: which one, and to what.
fn any_change() -> impl Strategy<Value = (prop::sample::Index, Value)> {
    let value = prop_oneof![
        3 => any_text().prop_map(Value::from),
        1 => any::<i32>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => Just(json!([])),
        1 => Just(json!({})),
        1 => any_text().prop_map(|text| json!({ "next": text })),
        1 => any_text().prop_map(|text| json!({ "signal": text })),
        1 => any_text().prop_map(|text| json!({ "at": text, "convert": ["trim"] })),
    ];
    (any::<prop::sample::Index>(), value)
}

/// Returns the pointers to all values within a document.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    let mut add = |name: &str, value: &Value| {
        let pointer = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
        pointers(value, &pointer, found);
        found.push(pointer);
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| add(name, value)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, value)| add(&index.to_string(), value));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (),
    }
}

fn any_result() -> impl Strategy<Value = StepResult> {
    let fragment = prop::sample::select(vec!["/home", "/login", ""]);
    let present = prop::sample::subsequence(vec!["#cookies", "shop-app >>> form", "#a", ""], 0..4);
    let text = || any_text().prop_map(Value::from);
    let read = (text(), text()).prop_map(|(a, b)| {
        json!({
            "balance": a, "user": b, "active": "1", "data": { "joined": "1.3.2019" },
            "orders": [{ "id": a, "total": b }], "items": [{ "name": b }], "next": a,
        })
    });
    let status = prop_oneof![3 => Just(None), 1 => Just(Some(503))];
    prop_oneof![
        1 => Just(StepResult::Arrived),
        1 => Just(StepResult::Unreachable),
        4 => (fragment, present, any::<bool>(), 0_u64..3, status).prop_map(|(fragment, present, settled, document, http_status)| {
            let texts = [(".alert".to_owned(), "Wrong".to_owned())].into();
            StepResult::Seen(Observation { document, settled, http_status, texts, ..page(fragment, &present) })
        }),
        3 => read.prop_map(StepResult::Read),
        1 => Just(StepResult::Unreadable),
        2 => Just(StepResult::Acted),
        1 => any::<bool>().prop_map(|share| StepResult::Answered { share }),
        1 => Just(StepResult::Waited),
    ]
}

/// Returns whether a field can have a value.
fn is_allowed(field: &Field, value: &Value) -> bool {
    let is_row = |row: &Value| {
        let Some(row) = row.as_object() else { return false };
        row.keys().all(|name| field.members.contains_key(name))
            && field.members.iter().all(|(name, member)| {
                row.get(name).map_or(!member.required, |value| is_allowed(member, value))
            })
    };
    match field.kind {
        FieldType::String => value.is_string(),
        FieldType::Integer => value.is_i64() || value.is_u64(),
        FieldType::Number => value.is_number(),
        FieldType::Boolean => value.is_boolean(),
        FieldType::Object => is_row(value),
        FieldType::List => value
            .as_array()
            .is_some_and(|rows| rows.len() <= field.row_limit() && rows.iter().all(is_row)),
    }
}

/// Runs a valid definition on results until it ends; checks what it asks for and what it shares. Returns
/// the number of steps.
fn finishes(definition: Definition, results: &[StepResult]) -> Result<u64, TestCaseError> {
    let limit = u64::from(definition.budgets.total_seconds) + 1;
    let definition = Arc::new(definition);
    let mut run = Run::new(definition.clone(), noon());
    let mut now = noon();
    let results = results.iter().cycle().take(usize::try_from(limit).unwrap());
    for (steps, result) in (1..).zip(results) {
        let step = run.next(result.clone(), now);
        now += TimeDelta::seconds(1);
        match step.command {
            Command::Goto { url } | Command::Fetch(PageFetch { url, .. }) => {
                let host = url.split('/').nth(2).unwrap_or_default();
                let host = host.split([':', '?', '#']).next().unwrap_or_default();
                prop_assert!(definition.hosts.iter().any(|allowed| allowed == host), "{url}");
            }
            Command::End(End::Done(Collected { data, .. })) => {
                for (name, field) in &definition.output {
                    let value = data.get(name);
                    let fits = value.is_none_or(|value| is_allowed(field, value));
                    prop_assert!(fits && (value.is_some() || !field.required), "{name}: {value:?}");
                }
                prop_assert!(data.keys().all(|name| definition.output.contains_key(name)));
                return Ok(steps);
            }
            Command::End(_) => return Ok(steps),
            Command::Watch
            | Command::ReadResponse { .. }
            | Command::ReadDom { .. }
            | Command::Act(_)
            | Command::AskCustomUrl
            | Command::Consent { .. } => (),
        }
    }
    Err(TestCaseError::fail("the run did not end within its budget"))
}

proptest! {
    // Few cases, for a fast loop; PROPTEST_CASES multiplies them.
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases / 4,
        ..ProptestConfig::default()
    })]

    /// For any results, a run ends within its budget, asks for nothing outside of the hosts, and shares
    /// only what the output allows.
    #[test]
    fn every_run_of_the_language_ends(results in prop::collection::vec(any_result(), 1..200)) {
        finishes(definition(), &results)?;
        finishes(serde_json::from_value(document_with_lists()).unwrap(), &results)?;
    }

    /// No document makes the validation panic, and every definition that it accepts can be run.
    #[test]
    fn changed_definitions_are_refused_or_run(
        changes in prop::collection::vec(any_change(), 1..4),
        results in prop::collection::vec(any_result(), 1..60),
    ) {
        let mut changed = document_with_lists();
        for (index, value) in changes {
            let mut places = Vec::new();
            pointers(&changed, "", &mut places);
            if let Some(place) = changed.pointer_mut(index.get(places.as_slice()).as_str()) {
                *place = value;
            }
        }
        if let Ok(definition) = serde_json::from_value::<Definition>(changed) {
            let is_valid = check(&definition).iter().all(|error| error.severity == Severity::Warning);
            if is_valid {
                finishes(definition, &results)?;
            }
        }
    }
}

/// Run with `cargo xtask test --tests-only -- -P long --run-ignored only -E 'test(million)'`.
#[test]
#[ignore = "takes minutes"]
fn a_million_random_steps_end_as_they_should() {
    let mut runner = proptest::test_runner::TestRunner::default();
    let definitions = [definition(), serde_json::from_value(document_with_lists()).unwrap()];
    let (mut steps, mut runs) = (0, 0);
    while steps < 1_000_000 {
        let results = prop::collection::vec(any_result(), 1..400);
        let results = results.new_tree(&mut runner).unwrap().current();
        for definition in &definitions {
            steps += finishes(definition.clone(), &results).unwrap();
            runs += 1;
        }
    }
    println!("{steps} steps in {runs} runs");
}

/// Returns a run whose platform is not available, after the page was opened.
fn run_with_retries() -> Run {
    let definition: Definition = serde_json::from_value(document()).unwrap();
    assert_eq!(check(&definition), []);
    Run::new(Arc::new(definition), noon())
}

#[test]
fn an_interrupt_waits_and_tries_again() {
    let seen = |status| {
        StepResult::Seen(Observation {
            url: format!("{HOST}/"),
            http_status: Some(status),
            settled: true,
            ..Observation::default()
        })
    };
    let after = |seconds| noon() + TimeDelta::seconds(seconds);
    let is_goto = |step: &RunStep| matches!(step.command, Command::Goto { .. });
    let mut run = run_with_retries();
    assert!(is_goto(&run.next(StepResult::Begin, noon())));
    run.next(StepResult::Arrived, noon());
    for began in [0, 5] {
        assert_eq!(run.next(seen(503), after(began)).command, Command::Watch);
        assert_eq!(run.next(seen(503), after(began + 4)).command, Command::Watch);
        assert!(is_goto(&run.next(seen(503), after(began + 5))), "{began}");
        run.next(StepResult::Arrived, after(began + 5));
    }
    let failed = Command::End(End::Failed(ErrorCode::PlatformUnavailable));
    assert_eq!(run.next(seen(503), after(11)).command, failed, "after two attempts");

    // Where it is available again before the attempt, the node that was interrupted goes on.
    let mut run = run_with_retries();
    run.next(StepResult::Begin, noon());
    run.next(StepResult::Arrived, noon());
    run.next(seen(503), noon());
    assert_eq!(run.next(seen(200), after(3)).command, Command::Watch);
    assert_eq!(run.next(seen(503), after(6)).command, Command::Watch, "it waits anew");
    assert!(is_goto(&run.next(seen(503), after(11))));
    assert_eq!(run.path(), ["open", "login", "open"]);
}

#[test]
fn a_date_that_is_shared_as_the_page_writes_it_is_a_warning() {
    let found = |mutate: Mutation| {
        let mut document = document();
        document["nodes"]["page"]["fields"]["since"] = json!("time");
        document["nodes"]["api"]["fields"] = json!({});
        document["nodes"]["api"]["variables"] = json!({ "full": "/full" });
        document["nodes"]["details"]["url"] = json!("https://shop.test/u/{user}/{full}");
        mutate(&mut document);
        let definition: Definition = serde_json::from_value(document).unwrap();
        check(&definition)
    };
    let findings = found(&|_| ());
    let [finding] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(finding.path.to_string(), "$.nodes.page.fields.since");
    let matched = json!({ "at": "time", "convert": [{ "match": "[0-9-]+" }] });
    assert_eq!(found(&|d| d["nodes"]["page"]["fields"]["since"] = matched.clone()).len(), 1);
    assert_eq!(found(&|d| d["output"]["since"]["format"] = json!("dateTime")).len(), 1);

    assert_eq!(found(&|d| d["output"]["since"]["format"] = Value::Null), []);
    let converted = json!({ "at": "time", "convert": [{ "date": { "pattern": "d.M.y" } }] });
    assert_eq!(found(&|d| d["nodes"]["page"]["fields"]["since"] = converted.clone()), []);
    let attribute = json!({ "at": "time", "read": { "attribute": "datetime" } });
    assert_eq!(found(&|d| d["nodes"]["page"]["fields"]["since"] = attribute.clone()), []);
    let of_response = |d: &mut Value| {
        d["nodes"]["page"]["fields"].as_object_mut().unwrap().remove("since");
        d["nodes"]["api"]["fields"] = json!({ "since": "/data/joined" });
    };
    assert_eq!(found(&of_response), []);
}

#[test]
fn retries_of_interrupts_are_bounded() {
    let errors = |mutate: Mutation| {
        let mut document = document();
        mutate(&mut document["interrupts"][1]["then"]["retry"]);
        let definition: Definition = serde_json::from_value(document).unwrap();
        check(&definition).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert!(errors(&|_| ()).is_empty());
    let at = "$.interrupts[1].then.retry";
    assert_eq!(errors(&|retry| retry["times"] = json!(0)), [format!("{at}.times: must be 1 to 5")]);
    assert_eq!(
        errors(&|retry| retry["afterSeconds"] = json!(61)),
        [format!("{at}.afterSeconds: must be 1 to 60")]
    );
    assert_eq!(errors(&|retry| retry["next"] = json!("nowhere")).len(), 1);
    assert_eq!(errors(&|retry| retry["otherwise"] = json!({ "next": "nowhere" })).len(), 1);
}
