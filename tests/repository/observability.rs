//! What an operator watches fits together: the metrics that the code records, the list of them, the
//! documentation, the alert rules with their tests, the runbook and the dashboard.

use std::{collections::BTreeSet, fs};

use acceptance::{root, sources};

const LIST: &str = "crates/adapters/http-api/src/metric_list.rs";
const ALERTS: &str = "deploy/prometheus/alerts.yaml";
const ALERT_TESTS: &str = "deploy/prometheus/alerts.test.yaml";
const DASHBOARD: &str = "deploy/grafana/avouch.json";
const RUNBOOK: &str = "docs/runbook.md";
const GUIDE: &str = "docs/operators-guide.md";

#[test]
fn the_list_of_metrics_is_what_the_code_records() {
    let mut recorded = BTreeSet::new();
    for file in sources() {
        let place = file.strip_prefix(root()).unwrap().display().to_string();
        if place.starts_with("crates/") && place != LIST {
            recorded.extend(quoted_metrics(&fs::read_to_string(&file).unwrap()));
        }
    }
    assert_eq!(recorded, listed());
}

#[test]
fn each_metric_is_documented() {
    let guide = read(GUIDE);
    let rows: BTreeSet<_> = guide
        .lines()
        .filter_map(|line| line.strip_prefix("| `avouch_")?.split('`').next())
        .map(|rest| format!("avouch_{rest}"))
        .collect();
    assert_eq!(rows, listed());
}

#[test]
fn rules_dashboard_and_runbook_name_metrics_that_exist() {
    let listed = listed();
    for file in [ALERTS, ALERT_TESTS, DASHBOARD, RUNBOOK, GUIDE] {
        for name in metrics(&read(file)) {
            let parts = ["_bucket", "_count", "_sum"];
            let histogram = parts.into_iter().find_map(|part| name.strip_suffix(part));
            let exists = listed.contains(&name) || histogram.is_some_and(|it| listed.contains(it));
            assert!(exists, "{file} names {name}, which is no metric");
        }
    }
}

#[test]
fn each_alert_has_a_severity_a_test_and_a_section_of_the_runbook() {
    let (rules, tests, runbook) = (read(ALERTS), read(ALERT_TESTS), read(RUNBOOK));
    let mut alerts = BTreeSet::new();
    for rule in rules.split("- alert: ").skip(1) {
        let name = rule.lines().next().unwrap().trim();
        let severity = rule.contains("severity: page") || rule.contains("severity: ticket");
        assert!(severity, "{name} has no severity");
        let url = format!("runbook_url: docs/runbook.md#{}\n", name.to_lowercase());
        assert!(rule.contains(&url), "{name} has no {url}");
        assert!(tests.contains(&format!("alertname=\"{name}\"")), "{name} has no test");
        alerts.insert(name.to_owned());
    }
    assert!(alerts.len() > 10);
    let sections = runbook.lines().filter_map(|line| line.strip_prefix("### Avouch"));
    let sections: BTreeSet<_> = sections.map(|rest| format!("Avouch{rest}")).collect();
    assert_eq!(sections, alerts);
    for section in runbook.split("### Avouch").skip(1) {
        for part in ["**Meaning.**", "**Effect.**", "**Look first.**", "**Fix.**"] {
            assert!(section.contains(part), "Avouch{section} has no {part}");
        }
    }
    assert!(read(GUIDE).contains("(runbook.md)"));
}

#[test]
fn the_dashboard_is_json_with_a_query_in_each_panel() {
    let dashboard: serde_json::Value = serde_json::from_str(&read(DASHBOARD)).unwrap();
    for panel in dashboard["panels"].as_array().unwrap() {
        let has_query = panel["targets"][0]["expr"].is_string();
        assert!(has_query || panel["type"] == "row", "{}", panel["title"]);
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

fn listed() -> BTreeSet<String> {
    let list = read(LIST);
    let names = list.split("name: \"").skip(1).map(|rest| rest.split('"').next().unwrap());
    names.filter(|name| name.starts_with("avouch_")).map(str::to_owned).collect()
}

/// Returns the names of metrics that are string literals of their own.
fn quoted_metrics(text: &str) -> BTreeSet<String> {
    let literals = text.split("\"avouch_").skip(1).filter_map(|rest| rest.split_once('"'));
    let names = literals.map(|(rest, _)| rest).filter(|rest| is_name(rest));
    names.map(|rest| format!("avouch_{rest}")).collect()
}

/// Returns all words that begin like a metric.
fn metrics(text: &str) -> BTreeSet<String> {
    let words = text.split(|char: char| !char.is_ascii_alphanumeric() && char != '_');
    words.filter(|word| word.starts_with("avouch_")).map(str::to_owned).collect()
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}
