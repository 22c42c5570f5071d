//! The security documents are true to the tree: each test that they name exists, and each
//! requirement of ASVS is listed once and counted.

use std::{collections::BTreeSet, fs};

use acceptance::root;

const DOCUMENTS: [&str; 2] = ["docs/asvs.md", "docs/threat-model.md"];
/// The number of requirements of levels 1 and 2 in each chapter of ASVS 5.0.0, from V1 to V17.
const REQUIREMENTS: [usize; 17] = [27, 11, 19, 10, 9, 35, 18, 7, 7, 29, 14, 9, 13, 9, 13, 16, 7];
const STATUSES: [&str; 4] = ["met", "partly", "not met", "not applicable"];

#[test]
fn every_named_test_exists() {
    let (mut named, mut absent) = (0, Vec::new());
    for document in DOCUMENTS {
        let text = fs::read_to_string(root().join(document)).unwrap();
        for code in text.lines().flat_map(|line| line.split('`').skip(1).step_by(2)) {
            let Some((file, function)) = code.split_once(".rs::") else { continue };
            let source = fs::read_to_string(root().join(format!("{file}.rs")));
            named += 1;
            if !source.unwrap_or_default().contains(&format!("fn {function}(")) {
                absent.push(format!("{document}: {code}"));
            }
        }
    }
    assert!(absent.is_empty(), "missing:\n{}", absent.join("\n"));
    assert!(named > 200, "only {named} tests were found in the documents");
}

#[test]
fn every_requirement_is_listed_once_and_counted() {
    let text = fs::read_to_string(root().join("docs/asvs.md")).unwrap();
    let (mut seen, mut counts) = (BTreeSet::new(), [[0_usize; 4]; 17]);
    for row in text.lines().filter(|line| line.starts_with("| `v5.0.0-")) {
        let cells: Vec<_> = row.split(" | ").collect();
        let status = STATUSES.iter().position(|status| *status == cells[3]);
        let status = status.unwrap_or_else(|| panic!("no status in {row}"));
        for id in cells[0].split('`').filter_map(|part| part.strip_prefix("v5.0.0-")) {
            assert!(seen.insert(id), "{id} is listed twice");
            let chapter: usize = id.split('.').next().unwrap().parse().unwrap();
            counts[chapter - 1][status] += 1;
        }
    }
    let mut all = [0; 4];
    for (index, count) in counts.iter().enumerate() {
        let chapter = index + 1;
        assert_eq!(count.iter().sum::<usize>(), REQUIREMENTS[index], "requirements of V{chapter}");
        let row = format!("| V{chapter} | {} |", figures(count));
        assert!(text.contains(&row), "the counts have no row {row}");
        for (sum, part) in all.iter_mut().zip(count) {
            *sum += part;
        }
    }
    let row = format!("| all | {} |", figures(&all));
    assert!(text.contains(&row), "the counts have no row {row}");
}

fn figures(count: &[usize; 4]) -> String {
    count.map(|figure| figure.to_string()).join(" | ")
}
