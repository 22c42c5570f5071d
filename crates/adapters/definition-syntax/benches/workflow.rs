//! Measures the interpreter on an observation with 500 signals, against the look-ups in sets alone that
//! it cannot do without, and the replay of a fixture with ten pages of 2,000 nodes, against matching
//! its selectors alone.
#![expect(clippy::unwrap_used, reason = "a benchmark panics to fail")]

use std::{
    collections::BTreeSet,
    fs,
    hint::black_box,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use chrono::DateTime;
use definition_syntax::Syntax;
use domain::workflow::{
    Definition, Fixture, FixtureEvent, Observation, PageNode, PageTree, Run, RunResult, StepResult,
    replay,
};
use ports::definition_syntax::DefinitionSyntax as _;
use serde_json::{Map, Value, json};

const SIGNALS: usize = 500;
const PAGES: usize = 10;
const NODES: usize = 2000;
const ROUNDS: usize = 200;

fn main() {
    let figures = [interpreter(), replays()];
    for [(name, took), (base, base_took)] in &figures {
        let ratio = took.as_secs_f64() / base_took.as_secs_f64();
        println!("{name}: {took:?}; {base}: {base_took:?}; ratio {ratio:.2}");
    }
    let figure = |(name, took): &(&str, Duration)| json!({ "name": name, "micros": took.as_secs_f64() * 1e6 });
    let figures: Vec<_> = figures.iter().flatten().map(figure).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/bench");
    fs::create_dir_all(&folder).unwrap();
    let report = serde_json::to_string_pretty(&json!({ "figures": figures })).unwrap();
    fs::write(folder.join("workflow.json"), report).unwrap();
}

/// Returns the median time of a call.
fn median<T>(mut call: impl FnMut() -> T) -> Duration {
    let mut times: Vec<_> = (0..ROUNDS)
        .map(|_| {
            let began = Instant::now();
            black_box(call());
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    times.get(ROUNDS / 2).copied().unwrap()
}

/// A definition that waits for any of `signals` and then reads ten fields of the page.
fn definition(signals: usize) -> Definition {
    let condition = |index: usize| match index % 3 {
        0 => json!({ "selector": format!("div.missing-{index} > a") }),
        1 => json!({ "all": [{ "url": "/account*" }, { "selector": format!("#none-{index}") }] }),
        _ => {
            json!({ "any": [{ "cookie": format!("c{index}") }, { "fragment": format!("/p{index}*") }] })
        }
    };
    let name = |index: usize| format!("s{index}");
    let mut conditions: Map<String, Value> =
        (0..signals).map(|index| (name(index), condition(index))).collect();
    conditions.insert("in".into(), json!({ "selector": "main.in" }));
    let until: Vec<_> = conditions.keys().cloned().collect();
    let fields: Map<String, Value> =
        (0..10).map(|index| (format!("f{index}"), json!(format!("#n{}", index + 1)))).collect();
    let output: Map<String, Value> = fields
        .keys()
        .map(|name| (name.clone(), json!({ "type": "string", "labelKey": "t" })))
        .collect();
    serde_json::from_value(json!({
        "schema": "avouch-workflow/1", "platform": "bench", "version": "1.0.0",
        "environment": "production", "displayName": "Bench", "icon": "/icon.svg",
        "loginUrl": "https://bench.test/", "hosts": ["bench.test"],
        "budgets": { "totalSeconds": 600, "steps": 40 },
        "signals": conditions, "start": "wait",
        "nodes": {
            "wait": {
                "type": "awaitUser", "kind": "login", "textKey": "t", "timeoutSeconds": 300,
                "until": until, "next": "read",
                "onTimeout": { "fail": "USER_INPUT_TIMEOUT" },
            },
            "read": {
                "type": "collect", "via": { "dom": {} }, "fields": fields,
                "onMissing": { "fail": "NO_DATA" }, "next": "review",
            },
            "review": { "type": "review", "textKey": "t", "timeoutSeconds": 60, "next": "end" },
            "end": { "type": "done" },
        },
        "output": output, "texts": { "en": { "t": "t" } },
    }))
    .unwrap()
}

fn interpreter() -> [(&'static str, Duration); 2] {
    let definition = Arc::new(definition(SIGNALS));
    let watched: Vec<_> = definition.selectors().into_iter().map(str::to_owned).collect();
    let page = Observation {
        url: "https://bench.test/account/overview#/home".into(),
        settled: true,
        present: (0..50).map(|index| format!("#there-{index}")).collect::<BTreeSet<_>>(),
        cookies: (0..20).map(|index| format!("k{index}")).collect(),
        ..Observation::default()
    };
    let mut run = Run::new(definition, DateTime::UNIX_EPOCH);
    run.next(StepResult::Begin, DateTime::UNIX_EPOCH);
    let took = median(|| run.next(StepResult::Seen(page.clone()), DateTime::UNIX_EPOCH));
    let base = median(|| {
        let page = page.clone();
        watched.iter().filter(|selector| page.present.contains(*selector)).count()
    });
    [("an observation with 500 signals", took), ("set look-ups alone", base)]
}

/// A page with two levels of elements and texts.
fn page(number: usize) -> PageTree {
    let mut nodes = vec![PageNode::default()];
    for index in 1..NODES {
        let parent = if index < 40 { 0 } else { index % 39 + 1 };
        let is_text = index >= 40 && index % 4 == 0;
        let tag = ["div", "a", "span"].get(index % 3).map(|tag| (*tag).to_owned());
        let attributes = [("id", format!("n{index}")), ("class", format!("p{number} row"))];
        let attributes = attributes.map(|(name, value)| (name.to_owned(), value));
        nodes.push(PageNode {
            parent: Some(parent),
            tag: tag.filter(|_| !is_text),
            text: is_text.then(|| format!("text {index}")),
            attributes: if is_text { [].into() } else { attributes.into() },
            visible: true,
            ..PageNode::default()
        });
    }
    let is_last = number + 1 == PAGES;
    let class = [("class".to_owned(), "in".to_owned())];
    nodes.push(PageNode {
        parent: Some(0),
        tag: is_last.then(|| "main".to_owned()),
        text: (!is_last).then(String::new),
        attributes: if is_last { class.into() } else { [].into() },
        visible: true,
        ..PageNode::default()
    });
    PageTree { nodes }
}

fn replays() -> [(&'static str, Duration); 2] {
    let definition = Arc::new(definition(30));
    let event = |(at, page): (u64, usize)| FixtureEvent::Page {
        at: at * 1000,
        page,
        url: "https://bench.test/account".into(),
        document: at,
        settled: true,
        http_status: Some(200),
        cookies: BTreeSet::new(),
        is_read: page + 1 == PAGES,
    };
    let fixture = Fixture {
        schema: Fixture::SCHEMA.into(),
        platform: "bench".into(),
        version: "1.0.0".into(),
        expected: RunResult::default(),
        events: (0..).zip(0..PAGES).map(event).collect(),
        pages: (0..PAGES).map(page).collect(),
    };
    assert_eq!(fixture.error(), None);
    let syntax = Syntax;
    let select =
        |page: &PageTree, scope: usize, selector: &str| syntax.select(page, scope, selector);
    let replayed = replay(&definition, &fixture, &select);
    assert_eq!(replayed.result.path, ["wait", "read", "review", "end"]);
    assert_eq!(replayed.result.data.len(), 10);
    let took = median(|| replay(&definition, &fixture, &select));
    let base = median(|| {
        let selectors = definition.selectors();
        let found = fixture.pages.iter().flat_map(|page| {
            selectors.iter().map(move |selector| syntax.select(page, 0, selector).len())
        });
        found.sum::<usize>()
    });
    [("a replay of ten pages", took), ("matching its selectors alone", base)]
}
