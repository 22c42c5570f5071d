//! `cargo xtask vocabulary`: type names that stand for two or more types, and words that the
//! glossary does not use, in type names, log lines and errors.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use crate::{Failure, command::root};

#[derive(clap::Args)]
pub(crate) struct VocabularyOptions {
    /// The tree to look at; without it, this one
    #[arg(long)]
    root: Option<PathBuf>,
    /// Lists every finding instead of the numbers alone
    #[arg(long)]
    list: bool,
}

/// Where something was found.
struct Occurrence {
    file: PathBuf,
    line: usize,
    text: String,
}

pub(crate) fn vocabulary(options: &VocabularyOptions) -> Result<(), Failure> {
    let tree = options.root.clone().unwrap_or_else(root);
    let avoided = avoided_words(&fs::read_to_string(root().join("docs/GLOSSARY.md"))?);
    let mut types: BTreeMap<String, Vec<Occurrence>> = BTreeMap::new();
    let mut messages = Vec::new();
    for file in sources(&tree.join("crates"))? {
        let text = fs::read_to_string(&file)?;
        let production = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for (number, line) in production.lines().enumerate() {
            let place =
                |text: &str| Occurrence { file: file.clone(), line: number + 1, text: text.into() };
            if let Some(name) = defined_type(line) {
                types.entry(name.to_owned()).or_default().push(place(name));
            }
        }
        messages.extend(message_texts(production).into_iter().map(|(line, text)| Occurrence {
            file: file.clone(),
            line,
            text,
        }));
    }
    let total: usize = types.values().map(Vec::len).sum();
    let shared: Vec<_> = types.iter().filter(|(_, places)| places.len() > 1).collect();
    let odd_types: Vec<_> = types
        .values()
        .flatten()
        .filter(|place| !words_of(&place.text).is_disjoint(&avoided))
        .collect();
    let odd_messages: Vec<_> =
        messages.iter().filter(|place| !words_of(&place.text).is_disjoint(&avoided)).collect();
    if options.list {
        for (name, places) in &shared {
            println!("{name} stands for {} types", places.len());
            for place in *places {
                print(&tree, place);
            }
        }
        println!("Types named with words that the glossary does not use");
        for place in &odd_types {
            print(&tree, place);
        }
        println!("Logs and errors with words that the glossary does not use");
        for place in &odd_messages {
            print(&tree, place);
        }
    }
    let in_shared: usize = shared.iter().map(|(_, places)| places.len()).sum();
    println!("{total} type definitions under {} names", types.len());
    println!("{} names stand for two or more types ({in_shared} definitions)", shared.len());
    println!("{} types are named with words that the glossary does not use", odd_types.len());
    println!(
        "{} of {} log lines and errors have words that the glossary does not use",
        odd_messages.len(),
        messages.len()
    );
    Ok(())
}

fn print(tree: &Path, place: &Occurrence) {
    let file = place.file.strip_prefix(tree).unwrap_or(&place.file);
    println!("    {}:{}: {}", file.display(), place.line, place.text);
}

/// Returns the words in backquotes of each table's last column.
fn avoided_words(glossary: &str) -> BTreeSet<String> {
    let rows = glossary.lines().filter(|line| line.starts_with("| "));
    let cells = rows.filter_map(|row| row.trim_end_matches(['|', ' ']).rsplit_once('|'));
    let quoted = cells.flat_map(|(rest, cell)| {
        // A row without words to avoid ends with its meaning.
        let cell = if rest.matches('|').count() >= 2 { cell } else { "" };
        cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
    });
    quoted.collect()
}

/// Returns the name of the type that a line defines.
fn defined_type(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.strip_prefix(' ')?,
        None => line,
    };
    let rest = ["struct ", "enum ", "trait "].iter().find_map(|kind| line.strip_prefix(kind))?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    rest.get(..end).filter(|name| !name.is_empty())
}

/// Returns the string literals of log macros and of `#[error]` attributes, each with its line.
fn message_texts(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for start in
        ["tracing::error!(", "tracing::warn!(", "tracing::info!(", "log_error(", "#[error("]
    {
        for (at, _) in code.match_indices(start) {
            let line = code.get(..at).map_or(0, |before| before.lines().count());
            let call = code.get(at + start.len()..).unwrap_or_default();
            let end = call.find([';', '\u{5d}']).unwrap_or(call.len());
            let call = call.get(..end).unwrap_or_default();
            let text: Vec<_> = call.split('"').skip(1).step_by(2).collect();
            if !text.is_empty() {
                found.push((line.max(1), text.join(" ")));
            }
        }
    }
    found
}

/// Returns the words of a text or of a name, in lower case and without the plural's `s`.
fn words_of(text: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    let mut word = String::new();
    for c in text.chars().chain([' ']) {
        if c.is_uppercase() || !c.is_alphabetic() {
            let whole = std::mem::take(&mut word);
            words.insert(whole.strip_suffix('s').unwrap_or(&whole).to_owned());
            words.insert(whole);
        }
        if c.is_alphabetic() {
            word.extend(c.to_lowercase());
        }
    }
    words.remove("");
    words
}

/// Returns the Rust files of production code below a folder, in the order of their names.
fn sources(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let skipped = ["tests", "tests.rs", "fuzz", "benches", "target", "testkit", "fakes.rs"];
            if skipped.contains(&name.as_str()) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_definitions_whatever_their_visibility() {
        for line in ["pub struct Frame {", "    pub(crate) enum Frame {", "trait Frame: Send {"] {
            assert_eq!(defined_type(line), Some("Frame"), "{line}");
        }
        assert_eq!(defined_type("impl Frame {"), None);
        assert_eq!(defined_type("/// A struct Frame"), None);
    }

    #[test]
    fn splits_names_and_sentences_into_words() {
        let words = words_of("RedactionVeil holds the rooms");
        for word in ["redaction", "veil", "room", "rooms"] {
            assert!(words.contains(word), "{word}");
        }
    }

    #[test]
    fn reads_what_logs_and_errors_say() {
        let code = "#[error(\"no such room\")]\nfn f() {\n    tracing::warn!(a = 1, \"late\");\n}";
        assert_eq!(message_texts(code), [(3, "late".to_owned()), (1, "no such room".to_owned())]);
    }

    #[test]
    fn takes_the_words_to_avoid_from_the_last_column() {
        let table = "| term | meaning | not |\n| --- | --- | --- |\n| slot | room for one | `seat`, `berth` |\n| a | `b` | |";
        assert_eq!(avoided_words(table), ["berth", "seat"].map(str::to_owned).into());
    }
}
