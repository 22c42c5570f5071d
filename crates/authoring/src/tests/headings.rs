//! The labels of cells of tables.

use super::{page, with_text};
use crate::naming::label_of;

/// Returns the label of the cell with the text `12` in the body of a page.
fn label(body: &str) -> String {
    let page = page(&format!("html\n body\n{body}"));
    label_of(&page, with_text(&page, "12"))
}

#[test]
fn a_cell_is_named_by_the_heading_of_its_column() {
    let table = |head: &str| {
        format!(
            "  table\n   thead{head}\n   tbody\n    tr\n     th\n      \"icon\"\n     td\n      \"Docs\"\n     \
             td\n      \"12\""
        )
    };
    let row = |last: &str| {
        format!("\n    tr\n     th\n      i\n     th\n      \"Component\"\n     {last}")
    };
    let text = "th\n      \"Unfinished words\"";
    let hidden =
        "span class=sr-only\n       \"Sort\"\n      i class=material-icons\n       \"arrow_up\"";
    let rows = [row(text), row("th\n      input")].concat();
    for head in [
        &row(text),
        &format!("\n    tr\n     th colspan=2\n      \"Component\"\n     {text}"),
        &format!("\n    tr\n     th colspan=3\n      \"Units\"{}", row(text)),
        &format!(
            "\n    tr\n     th rowspan=2\n     th rowspan=2\n     th\n      \"Text\"\n    tr\n     {text}"
        ),
        // A row of filters.
        &rows,
        &row("td\n      \"Unfinished words\""),
        &row("th title=Sort+this+column\n      \"Unfinished words\""),
        &row(&format!("th\n      a href=?sort=words\n       \"Unfinished words\"\n      {hidden}")),
        &row("th\n      abbr title=Unfinished+words\n       \"UW\""),
        &row("th\n      i title=Unfinished+words"),
        &row("th\n      i\n      span class=visually-hidden\n       \"Unfinished words\""),
        &row("th hidden\n      span hidden\n       \"Unfinished words\""),
        &row("th\n      \"Unfinished\"\n      br\n      \"words\""),
    ] {
        assert_eq!(label(&table(head)), "Unfinished words", "{head}");
    }
    // The title of a table and a heading without a text are no labels.
    for head in ["\n    tr\n     th colspan=3\n      \"Units\"", &row("th")] {
        assert_eq!(label(&table(head)), "", "{head}");
    }
}
