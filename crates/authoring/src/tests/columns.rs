//! What is proposed for the columns of lists.

use domain::workflow::PageTree;

use super::{page, select, with_text};
use crate::{
    columns::{ColumnProposal, propose_columns},
    draft::KnownValues,
    lists::propose_list,
    selectors::{has_known_value, is_numbered, is_positional, mark_own, propose_selectors},
};

/// A page with a table of orders; the second cell of one has a label of its own.
fn orders() -> PageTree {
    let rows = [
        ("first", "danger", "Canceled", ""),
        ("second", "success", "Paid", "\n     span class=label+label-danger\n      \"UNDERPAID\""),
        ("third", "warning", "Pending", ""),
        ("fourth", "success", "Complete", ""),
    ];
    let rows = rows.map(|(order, kind, status, note)| {
        format!(
            "\n   tr\n    td\n     a href=/event/lovelace/organ24/{order} data-order={order}\n      \
             \"{order}\"\n    td\n     i\n      \"10 €\"{note}\n    td\n     \
             span class=label+label-{kind}\n      \"{status}\""
        )
    });
    page(&format!("html\n body\n  table id=orders{}", rows.concat()))
}

fn columns(page: &PageTree, text: &str, known: &KnownValues) -> Vec<ColumnProposal> {
    let node = with_text(page, text);
    let list = propose_list(page, node, known, &select).unwrap();
    propose_columns(page, node, &list, known, &select)
}

fn account(value: &str) -> KnownValues {
    [("organizerSlug".to_owned(), value.to_owned())].into()
}

#[test]
fn a_column_is_found_in_all_rows_and_in_the_same_cell() {
    let page = orders();
    let list =
        propose_list(&page, with_text(&page, "Canceled"), &KnownValues::new(), &select).unwrap();
    assert_eq!(list.member, "td:nth-of-type(3) span.label");
    let found = columns(&page, "Canceled", &KnownValues::new());
    let counts = |selector: &str| {
        let one = found.iter().find(|one| one.selector == selector);
        one.map(|one| (one.found, one.elsewhere))
    };
    assert_eq!(found.first().unwrap().selector, list.member);
    assert_eq!(counts("td:nth-of-type(3) span.label"), Some((4, 0)));
    assert_eq!(counts("span.label"), Some((4, 1)), "{found:?}");
    // The look of one row finds another cell in others, and comes after what is proposed.
    assert_eq!(counts("span.label.label-danger"), None, "{found:?}");
    let worst = found.last().unwrap();
    assert_eq!(
        (worst.selector.as_str(), worst.found),
        ("td:nth-of-type(3) span.label.label-danger", 1)
    );
    for text in ["Paid", "Pending"] {
        assert_eq!(columns(&page, text, &KnownValues::new()).first(), found.first(), "{text}");
    }
}

#[test]
fn a_column_has_no_attribute_that_tells_a_row_or_the_account() {
    let page = orders();
    let none = columns(&page, "first", &KnownValues::new());
    assert_eq!((none[0].selector.as_str(), none[0].found), ("a", 4));
    assert!(none.iter().all(|one| !one.selector.contains("data-order")), "{none:?}");
    let last = &none.last().unwrap().selector;
    assert_eq!(last, "a[href*=\"/event/lovelace/\"]", "{none:?}");
    let known = columns(&page, "first", &account("lovelace"));
    assert!(!known.is_empty());
    assert!(known.iter().all(|one| !one.selector.contains("lovelace")), "{known:?}");
}

#[test]
fn an_optional_element_of_a_row_moves_no_column() {
    let row = |day: &str, badge: &str| {
        format!(
            "\n   li\n    a class=title\n     \"Book {day}\"{badge}\n    span class=date\n     \"{day}\""
        )
    };
    let badge = "\n    span class=badge\n     \"new\"";
    let rows = [row("Monday", ""), row("Tuesday", badge), row("Friday", "")].concat();
    let page = page(&format!("html\n body\n  ul id=books{rows}"));
    let found = columns(&page, "Monday", &KnownValues::new());
    let best = found.first().unwrap();
    assert_eq!((best.selector.as_str(), best.found, best.elsewhere), ("span.date", 3, 0));
}

/// A page with rows of a grid whose cells have the same class.
fn grid(rows: &[[&str; 3]]) -> PageTree {
    let cell = |text: &&str| match *text {
        "" => "\n    div class=cell".to_owned(),
        text => format!("\n    div class=cell\n     span class=label\n      \"{text}\""),
    };
    let row = |cells: &[&str; 3]| {
        format!("\n   div class=row role=row{}", cells.iter().map(cell).collect::<String>())
    };
    let rows: String = rows.iter().map(row).collect();
    page(&format!("html\n body\n  div id=grid{rows}"))
}

#[test]
fn a_cell_is_no_other_one_with_the_same_class() {
    // The third cell is empty in a row whose second one has a label.
    let page = grid(&[["", "", "Paid"], ["", "Note", ""], ["", "", "Open"]]);
    let found = columns(&page, "Paid", &KnownValues::new());
    let counts = |selector: &str| {
        let one = found.iter().find(|one| one.selector == selector).unwrap();
        (one.found, one.elsewhere)
    };
    assert_eq!(counts("span.label"), (3, 1), "{found:?}");
    let best = found.first().unwrap();
    assert_eq!(best.selector, "div:nth-of-type(3) span.label");
    assert_eq!((best.found, best.elsewhere), (2, 0));
}

#[test]
fn a_column_that_some_rows_lack_is_not_found_in_another_cell() {
    let row = |note: &str, status: &str| {
        let label = |text: &str| match text {
            "" => String::new(),
            text => format!("\n     span class=label\n      \"{text}\""),
        };
        format!("\n   tr\n    td\n     \"10\"{}\n    td{}", label(note), label(status))
    };
    let rows = [row("", "Paid"), row("UNDERPAID", ""), row("", "Open")].concat();
    let page = page(&format!("html\n body\n  table id=orders{rows}"));
    let found = columns(&page, "Paid", &KnownValues::new());
    let best = found.first().unwrap();
    assert_eq!(best.selector, "td:nth-of-type(2) span.label", "{found:?}");
    assert_eq!((best.found, best.elsewhere), (2, 0));
}

#[test]
fn a_moved_cell_is_told_from_the_one_in_its_place() {
    let badge = "\n    span class=badge\n     \"new\"";
    let row = |badge: &str, day: &str| {
        format!("\n   li\n    a\n     \"Book\"{badge}\n    span class=date\n     \"{day}\"")
    };
    let rows = [row("", "Monday"), row(badge, "Tuesday"), row("", "Friday")].concat();
    let page = page(&format!("html\n body\n  ul id=books{rows}"));
    let found = columns(&page, "Monday", &KnownValues::new());
    let counts = |selector: &str| {
        let one = found.iter().find(|one| one.selector == selector).unwrap();
        (one.found, one.elsewhere)
    };
    assert_eq!(counts("span.date"), (3, 0));
    assert_eq!(counts("span"), (3, 1), "{found:?}");
}

#[test]
fn cells_that_span_columns_or_rows_move_those_after_them() {
    let table = |rows: &[&str]| {
        let cell = |cell: &str| match cell.split_once(' ') {
            Some((text, span)) => format!("\n    td {span}\n     \"{text}\""),
            None => format!("\n    td\n     \"{cell}\""),
        };
        let row = |row: &&str| format!("\n   tr{}", row.split(", ").map(cell).collect::<String>());
        page(&format!("html\n body\n  table id=orders{}", rows.iter().map(row).collect::<String>()))
    };
    let elsewhere = |rows: &[&str], text: &str, selector: &str| {
        let page = table(rows);
        let found = columns(&page, text, &KnownValues::new());
        let one = found.iter().find(|one| one.selector == selector);
        one.map(|one| (one.found, one.elsewhere))
    };
    let (second, first) = ("td:nth-of-type(2)", "td:nth-of-type(1)");
    let sums = ["a, paid, 1", "b, open, 2", "Total colspan=2, 3"];
    assert_eq!(elsewhere(&sums, "paid", second), Some((3, 1)), "the sum is in the third column");
    let headings = ["Monday colspan=3", "a, paid, 1", "b, open, 2"];
    assert_eq!(elsewhere(&headings, "a", "td"), Some((3, 1)), "a heading of rows");
    let days = ["Monday rowspan=2, a, paid", "b, open", "Friday, c, sent"];
    assert_eq!(elsewhere(&days, "a", second), Some((3, 1)), "the day spans the second row");
    assert_eq!(elsewhere(&days, "b", first), Some((3, 2)));
    let endless = ["Monday rowspan=0, a, paid", "b, open", "c, sent"];
    assert_eq!(elsewhere(&endless, "b", first), Some((3, 1)));
}

#[test]
fn the_row_itself_is_in_all_rows() {
    let page = page(
        "html\n body\n  ul id=tags\n   li\n    \"red\"\n   li\n    \"blue\"\n   li\n    \"green\"",
    );
    let found = columns(&page, "red", &KnownValues::new());
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].selector.as_str(), found[0].found), ("", 3));
}

#[test]
fn a_selector_with_a_value_of_the_account_is_marked_and_comes_last() {
    let page = page("html\n body\n  p\n   a href=/event/lovelace/organ24 class=event\n    \"Ada\"");
    let mut found = propose_selectors(&page, with_text(&page, "Ada"), &select);
    mark_own(&mut found, &account("event"));
    let last = found.last().unwrap();
    assert!(last.may_be_own, "{found:?}");
    assert!(!found.first().unwrap().may_be_own, "{found:?}");
    let own: Vec<_> = found.iter().filter(|one| one.may_be_own).collect();
    assert!(own.iter().any(|one| one.selector == "a.event"), "{found:?}");
    for (selector, value, has) in [
        ("a[href*=\"/event/lovelace/\"]", "lovelace", true),
        ("a[href*=\"/event/lovelace/\"]", "Lovelace", true),
        ("a[href*=\"/event/lovelaces/\"]", "lovelace", false),
        ("#main > p", "main", true),
        ("main > p", "main", false),
        ("#list main", "main", false),
        ("td:nth-of-type(123)", "123", false),
        ("i.de", "de", false),
        ("[name=\"a@b.test\"]", "a@b.test", true),
        ("a[aria-label=\"Next orders of lovelace\"]", "lovelace", true),
        (r#"a[title="Next of \"Ada\" lovelace"] main"#, "lovelace", true),
        (r#"a[title="Next of \"Ada\" lovelace"] main"#, "main", false),
    ] {
        assert_eq!(has_known_value(selector, &account(value)), has, "{selector}, {value}");
    }
}

#[test]
fn a_class_with_a_number_tells_a_column_before_its_position() {
    let row = |number: u8| {
        let cell = |width: u16, text: &str| {
            format!("\n    td class=number+zero-width-{width}+unit-{number}\n     {text}")
        };
        let link = format!("a href=/x\n      \"words {number}\"");
        let cells = [cell(540, &format!("\"done {number}\"")), cell(720, &link)];
        format!("\n   tr\n    th\n     \"unit {number}\"{}", cells.concat())
    };
    let rows: String = (1..=3).map(row).collect();
    let page = page(&format!("html\n body\n  table id=units{rows}"));
    for (text, expected) in [("done 1", "td.zero-width-540"), ("words 2", "td.zero-width-720 a")] {
        let found = columns(&page, text, &KnownValues::new());
        let best = found.first().unwrap();
        assert_eq!((best.selector.as_str(), best.found, best.positional), (expected, 3, false));
        assert!(found.iter().all(|one| !one.selector.contains("unit-")), "{found:?}");
    }
}

#[test]
fn words_with_a_number_are_told_from_what_a_build_made_up() {
    for name in ["zero-width-720", "zero-width-1200", "col-md-6", "column-3", "text-gray-500"] {
        assert!(is_numbered(name), "{name}");
    }
    for name in [
        "css-1q2w3e",
        "css-1234",
        "sc-bdVaJa",
        "sc-1234",
        "userpic--tBKCQ",
        "_3xY9z",
        "order-47110",
        "order-",
        "order-4a",
        "-12",
        "720",
        "gzvtszq-12",
    ] {
        assert!(!is_numbered(name), "{name}");
    }
}

/// Returns a table of three rows with a cell for the number of the row and another one.
fn with_cells(cell: impl Fn(u8) -> String) -> String {
    let row =
        |number: u8| format!("\n   tr\n    td\n     \"{number}\"\n    td\n     {}", cell(number));
    let rows: String = (1..=3).map(row).collect();
    format!("html\n body\n  table id=units{rows}")
}

#[test]
fn a_class_with_the_number_of_a_row_or_of_its_value_tells_no_column() {
    // The first two rows have the same number by chance.
    for class in ["order-4711", "rating-2", "item7", "user_4"] {
        let cell = |number: u8| {
            let other = class.trim_end_matches(|c: char| c.is_ascii_digit());
            let class = if number < 3 { class.to_owned() } else { format!("{other}9") };
            format!("span class={class}\n      \"value {number}\"\n     span\n      \"x\"")
        };
        let page = page(&with_cells(cell));
        let found = columns(&page, "value 1", &KnownValues::new());
        assert!(!found.is_empty(), "{class}");
        assert!(found.iter().all(|one| !one.selector.contains(class)), "{class}: {found:?}");
    }
    // A row without the value has no other number, and one with both has the class as well.
    let cell = |number: u8| {
        let value = format!("span class=width-540\n      \"value {number}\"\n     ");
        let value = if number < 3 { value } else { String::new() };
        format!("{value}span class=width-540+width-720\n      \"x\"")
    };
    let found = columns(&page(&with_cells(cell)), "value 1", &KnownValues::new());
    assert!(found.iter().any(|one| one.selector == "span.width-540"), "{found:?}");
}

#[test]
fn a_class_that_numbers_cells_is_a_position() {
    for class in ["column-2", "cell-2", "order-col-2", "column2"] {
        let line = |number: u8| {
            format!(
                "\n   li\n    div class=id\n     \"{number}\"\n    div class={class}\n     \"value {number}\""
            )
        };
        let rows: String = (1..=3).map(line).collect();
        let page = page(&format!("html\n body\n  ul id=units{rows}"));
        let found = columns(&page, "value 1", &KnownValues::new());
        let selector = format!("div.{class}");
        let one = found.iter().find(|one| one.selector == selector);
        assert!(one.is_some_and(|one| one.positional), "{class}: {found:?}");
    }
    for selector in ["td.zero-width-720", "td.col-md-6", "span.order-7", "a[href*=\"/a.td4\"]"] {
        assert!(!is_positional(selector), "{selector}");
    }
}
