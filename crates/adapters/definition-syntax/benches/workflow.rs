//! Measures the interpreter on an observation with 500 signals, against the look-ups in sets alone that
//! it cannot do without, and replays against matching their selectors alone: of a fixture with ten pages
//! of 2,000 nodes, and of the fixture of each platform in `platforms/`.
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
    find_elements, replay, write_out,
};
use ports::definition_syntax::DefinitionSyntax as _;
use serde_json::{Map, Value, json};

const SIGNALS: usize = 500;
const PAGES: usize = 10;
const NODES: usize = 2000;
const ROUNDS: usize = 200;

/// What was measured, and the median time.
type Figure = (String, Duration);

fn main() {
    let mut figures = vec![interpreter(), replays()];
    figures.extend(platforms());
    for [(name, took), (base, base_took)] in &figures {
        let ratio = took.as_secs_f64() / base_took.as_secs_f64();
        println!("{name}: {took:?}; {base}: {base_took:?}; ratio {ratio:.2}");
    }
    let figure =
        |(name, took): &Figure| json!({ "name": name, "micros": took.as_secs_f64() * 1e6 });
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

fn interpreter() -> [Figure; 2] {
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
    [("an observation with 500 signals".into(), took), ("set look-ups alone".into(), base)]
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

fn replays() -> [Figure; 2] {
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
        is_first: false,
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
    let replayed = replay(&definition, &fixture, &select);
    assert_eq!(replayed.result.path, ["wait", "read", "review", "end"]);
    assert_eq!(replayed.result.data.len(), 10);
    measure("a replay of ten pages", &definition, &fixture)
}

/// Replays the fixture of each platform.
fn platforms() -> Vec<[Figure; 2]> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../platforms");
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let mut folders: Vec<_> = entries.map(|entry| entry.path()).filter(|p| p.is_dir()).collect();
    folders.sort();
    folders.iter().map(|folder| platform(folder)).collect()
}

fn platform(folder: &Path) -> [Figure; 2] {
    let read = |path: &Path| -> Value {
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    };
    let mut definition = read(&folder.join("definition.json"));
    let sign_ins = definition.get_mut("signIns").and_then(Value::as_object_mut);
    for sign_in in sign_ins.into_iter().flat_map(Map::values_mut) {
        *sign_in = read(&folder.join(sign_in.as_str().unwrap()));
    }
    let written_out = write_out(&definition).unwrap().map(|written| written.document);
    let definition = serde_json::from_value(written_out.unwrap_or(definition)).unwrap();
    let fixture: Fixture = serde_json::from_value(read(&folder.join("fixture.json"))).unwrap();
    let definition = Arc::new(definition);
    let replayed = replay(&definition, &fixture, &select);
    assert_eq!(fixture.expected.differences(&replayed.result), Vec::<String>::new());
    let name = folder.file_name().unwrap().display();
    let (pages, nodes) =
        (fixture.pages.len(), fixture.pages.iter().map(|p| p.nodes.len()).sum::<usize>());
    measure(&format!("{name}: {pages} pages, {nodes} nodes"), &definition, &fixture)
}

fn select(page: &PageTree, scope: usize, selector: &str) -> Vec<usize> {
    Syntax.select(page, scope, selector)
}

/// Measures a replay, and matching each selector in each page.
fn measure(name: &str, definition: &Arc<Definition>, fixture: &Fixture) -> [Figure; 2] {
    let took = median(|| replay(definition, fixture, &select));
    let base = median(|| {
        let selectors = definition.selectors();
        let found = fixture.pages.iter().flat_map(|page| {
            selectors.iter().map(move |one| find_elements(page, 0, one, &select).len())
        });
        found.sum::<usize>()
    });
    [(name.to_owned(), took), ("matching its selectors alone".to_owned(), base)]
}
