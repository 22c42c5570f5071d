//! Conventions that no lint checks: module comments, and short files and functions.

use std::fs;

use acceptance::{root, sources};

const MAX_FILE_LINES: usize = 300;
const MAX_FUNCTION_LINES: usize = 65;

#[test]
fn every_file_starts_with_a_module_comment() {
    for file in sources() {
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("//! "), "{} does not start with `//!`", file.display());
    }
}

#[test]
fn files_and_functions_stay_short() {
    let mut long = Vec::new();
    for file in sources() {
        let text = fs::read_to_string(&file).unwrap();
        let place = file.strip_prefix(root()).unwrap().display().to_string();
        // Unit tests may be as long as their cases require.
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        if code.lines().count() > MAX_FILE_LINES {
            long.push(format!("{place} has {} lines", code.lines().count()));
        }
        for (name, lines) in functions(code) {
            if lines > MAX_FUNCTION_LINES {
                long.push(format!("{place}: {name} has {lines} lines"));
            }
        }
    }
    assert!(long.is_empty(), "too long:\n{}", long.join("\n"));
}

#[test]
fn no_source_has_a_note_about_work_to_do() {
    // Spelled in two parts, so that this file does not contain the words itself.
    let words = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("#[al", "low(")];
    for file in sources() {
        let text = fs::read_to_string(&file).unwrap();
        for word in words {
            assert!(!text.contains(word), "{} has {word}", file.display());
        }
    }
}

#[test]
fn the_justfile_and_ci_run_the_same_command() {
    let justfile = fs::read_to_string(root().join("justfile")).unwrap();
    let ci = fs::read_to_string(root().join(".ci/run")).unwrap();
    assert!(justfile.contains("cargo xtask test") && ci.contains("cargo xtask test"));
}

/// Returns the functions of a formatted file with their numbers of lines.
fn functions(code: &str) -> Vec<(String, usize)> {
    let lines: Vec<_> = code.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let words =
            line.split_whitespace().take_while(|word| !word.contains('(')).collect::<Vec<_>>();
        let Some(name) = line.split("fn ").nth(1).filter(|_| is_head(line, &words)) else {
            continue;
        };
        // A function of a trait without a body has no lines.
        let opens = lines[at..].iter().find(|line| line.ends_with(['{', ';']));
        if opens.is_some_and(|line| line.ends_with(';')) {
            continue;
        }
        let end = format!("{}}}", " ".repeat(indent));
        let length = lines[at..].iter().position(|line| *line == end).unwrap_or(0);
        let name = name.split(['(', '<']).next().unwrap_or_default();
        found.push((name.to_owned(), length));
    }
    found
}

fn is_head(line: &str, words: &[&str]) -> bool {
    let before = line.trim_start();
    !line.ends_with(';')
        && words
            .iter()
            .all(|word| word.chars().all(|c| c.is_alphanumeric() || "_()<'>,:&".contains(c)))
        && ["fn ", "pub", "async fn", "const fn"].iter().any(|start| before.starts_with(start))
}
