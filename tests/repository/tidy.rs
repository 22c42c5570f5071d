//! Conventions that no lint checks.

use std::fs;

use acceptance::{root, sources};

#[test]
fn every_file_starts_with_a_module_comment() {
    for file in sources() {
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("//! "), "{} does not start with `//!`", file.display());
    }
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
