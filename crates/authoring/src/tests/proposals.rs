//! What is proposed for elements, values and pages.

use std::{collections::BTreeMap, sync::Arc};

use domain::workflow::{
    Condition, Converter, DecimalMark, FieldType, NumberFormat, PageNode, PageTree, find_elements,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{conditions, page, select, with_text};
use crate::{
    columns::propose_columns,
    draft::{KnownValues, PageKind},
    lists::{propose_json_list, propose_list},
    naming::{label_of, name_of},
    next_page::propose_next_page,
    selectors::{is_hashed, propose_selectors},
    signals::{KnownPage, page_language, page_language_tag},
    values::propose_values,
};

const ACCOUNT: &str = r#"
html lang=de
 body
  header
   a href=/users/4711/profile
    "Ada"
   form action=/session/logout?csrf=1
    button class=css-1q2w3e4r+btn
     "Abmelden"
  dl
   dt
    "Mitglied seit:"
   dd
    "1. März 2019"
   dt
    "Guthaben"
   dd class=balance data-field=balance data-id=a1b2c3d4
    "1.234,50 €"
  table id=orders
   tr
    th
     "Nummer"
    th
     "Betrag"
   tr
    td
     "A-1"
    td
     "10,00 €"
   tr
    td
     "A-2"
    td
     "20,00 €"
  div
   #shadow
    span data-testid=phone
     "0171"
"#;

fn first(page: &PageTree, text: &str) -> String {
    propose_selectors(page, with_text(page, text), &select).first().unwrap().selector.clone()
}

#[test]
fn selectors_prefer_what_changes_least() {
    let page = page(ACCOUNT);
    assert_eq!(first(&page, "1.234,50 €"), "dd[data-field=\"balance\"]");
    assert_eq!(first(&page, "Ada"), "a[href*=\"/users/\"]");
    // No class that a program made up.
    assert_eq!(first(&page, "Abmelden"), "button.btn");
}

#[test]
fn names_that_a_build_made_up_are_told_from_words() {
    for name in [
        "userpic--tBKCQ",
        "css-1x2y3z",
        "css-tlelie",
        "sc-bdVaJa",
        "_abc12_34",
        "Button-module__root--3Kx9d",
        "svelte-kqzvwm",
        ":r1:",
        "kXoWfR",
        "gzvtszq",
    ] {
        assert!(is_hashed(name), "{name}");
    }
    for name in [
        "list-group-item",
        "col-md-6",
        "text-2xl",
        "mt-4",
        "h1",
        "block__element--modifier",
        "userpic",
        "mainNavBar",
        "userID",
        "btnOK",
        "HTMLForm",
        "iPhone",
        "MuiButton-root",
        "css-grid",
        "btn-primary",
        "Größe",
        "кнопка",
        "wpName1",
        "order-4711",
    ] {
        assert!(!is_hashed(name), "{name}");
    }
}

#[test]
fn a_class_that_a_build_made_up_is_marked_and_only_the_last_choice() {
    let lines = "html\n body\n  div\n   span class=userpic--tBKCQ\n    \"Ada\"\n   span class=name--dQwXz+name\n    \
                 \"Lovelace\"\n   b class=sc-bdVaJa\n    \"gold\"\n  div\n   b class=sc-bdVaJb\n    \"silver\"";
    let page = page(lines);
    let all = |text: &str| {
        let found = propose_selectors(&page, with_text(&page, text), &select);
        found.into_iter().map(|one| (one.selector, one.hashed)).collect::<Vec<_>>()
    };
    assert_eq!(all("Lovelace"), [("span.name".to_owned(), false)]);
    // The first of several, which the class alone tells apart.
    let gold = [("b.sc-bdVaJa".to_owned(), true), ("b".to_owned(), false)];
    assert_eq!(all("gold"), gold);
    let silver = all("silver");
    assert!(matches!(silver.first(), Some((_, false))), "{silver:?}");
    assert!(silver.contains(&("b.sc-bdVaJb".to_owned(), true)), "{silver:?}");
    let node = with_text(&page, "gold");
    let known = KnownPage { url: "https://a.test/".into(), tree: page.clone() };
    let found = conditions(PageKind::SignedIn, &known, Some(node), &BTreeMap::new());
    assert!(found.iter().all(|one| !one.text.contains("bdVaJa")), "{found:?}");
}

#[test]
fn a_selector_that_counts_elements_is_marked() {
    let lines = "html\n body\n  div\n   p\n    \"Ada\"\n   p\n    \"Lovelace\"\n  section id=orders\n   i\n    \"new\"\n   i\n    \"paid\"";
    let page = page(lines);
    let all = |text: &str| {
        let found = propose_selectors(&page, with_text(&page, text), &select);
        found.into_iter().map(|one| (one.selector, one.positional)).collect::<Vec<_>>()
    };
    let second = all("Lovelace");
    assert!(!second.is_empty() && second.iter().all(|(_, positional)| *positional), "{second:?}");
    let paid = all("paid");
    assert!(paid.contains(&("#orders > i:nth-of-type(2)".to_owned(), true)), "{paid:?}");
    let first = all("Ada");
    assert!(first.contains(&("p".to_owned(), false)), "{first:?}");
}

#[test]
fn a_selector_goes_into_shadow_roots() {
    let page = page(ACCOUNT);
    let found = first(&page, "0171");
    assert!(found.ends_with(" >>> [data-testid=\"phone\"]"), "{found}");
    assert_eq!(find_elements(&page, 0, &found, &select), [with_text(&page, "0171")]);
}

#[test]
fn no_selector_has_the_separator_of_frames_in_a_string() {
    let page = page("html\n body\n  a href=/a>>>b class=next\n   \"Next\"");
    assert_eq!(first(&page, "Next"), "a.next");
    let found = propose_selectors(&page, with_text(&page, "Next"), &select);
    assert!(found.iter().all(|one| !one.selector.contains(">>>")), "{found:?}");
}

#[test]
fn the_rows_of_a_table_are_a_list() {
    let (page, none) = (page(ACCOUNT), KnownValues::new());
    let list = propose_list(&page, with_text(&page, "20,00 €"), &none, &select).unwrap();
    assert_eq!((list.at.as_str(), list.each.as_deref()), ("#orders", Some("tr:has(> td)")));
    assert_eq!((list.member.as_str(), list.rows), ("td:nth-of-type(2)", 2));
    assert_eq!(propose_list(&page, with_text(&page, "Abmelden"), &none, &select), None);
    let body = json!({ "user": { "orders": [{ "id": 1, "lines": [{ "sku": "a" }] }] } });
    let list = propose_json_list(&body, "/user/orders/0/lines/0/sku").unwrap();
    assert_eq!((list.at.as_str(), list.member.as_str()), ("/user/orders", "/lines/0/sku"));
    assert_eq!(propose_json_list(&body, "/user/orders"), None);
    let body = json!({ "pages": [{ "orders": [{ "id": 1 }, { "id": 2 }] }] });
    let list = propose_json_list(&body, "/pages/0/orders/1/id").unwrap();
    let found = (list.at.as_str(), list.member.as_str(), list.rows);
    assert_eq!(found, ("/pages/0/orders", "/id", 2), "the one with several rows");
}

/// The list that is proposed for the element with a text: its place, its rows and their number.
fn list_of(lines: &str, text: &str) -> Option<(String, String, usize)> {
    let page = page(lines);
    let list = propose_list(&page, with_text(&page, text), &KnownValues::new(), &select)?;
    Some((list.at, list.each.unwrap_or_default(), list.rows))
}

#[test]
fn a_label_and_its_value_are_no_list() {
    let siblings = "html\n body\n  div class=fact\n   div\n    \"Tier\"\n   div\n    \"gold\"";
    assert_eq!(list_of(siblings, "gold"), None);
    let facts = "html\n body\n  table\n   tbody\n    tr\n     th\n      \"Tier\"\n     td\n      \"gold\"\n    \
                 tr\n     th\n      \"Since\"\n     td\n      \"2019\"";
    assert_eq!(list_of(facts, "gold"), None);
    let lines = "html\n body\n  ul\n   li\n    b\n     \"Tier\"\n    span\n     \"gold\"\n   \
                 li\n    b\n     \"Since\"\n    span\n     \"2019\"";
    assert_eq!(list_of(lines, "gold"), None);
    let colons = facts.replace("th", "td").replace("Tier", "Tier:").replace("Since", "Since:");
    assert_eq!(list_of(&colons, "gold"), None);
    // Each of these has several parts.
    let orders = "html\n body\n  div id=orders\n   div\n    p\n     \"A-1\"\n    p\n     \"paid\"\n   \
                  div\n    p\n     \"A-2\"\n    p\n     \"open\"";
    let found = ("#orders".to_owned(), "div".to_owned(), 2);
    assert_eq!(list_of(orders, "open"), Some(found));
}

#[test]
fn a_class_of_a_state_or_of_each_second_row_leaves_out_no_rows() {
    let row = |attributes: &str, text: &str| {
        format!("\n   li{attributes}\n    a\n     \"{text}\"\n    time\n     \"May\"")
    };
    let list = |rows: &[String]| format!("html\n body\n  ul id=mail{}", rows.concat());
    let found = |each: &str, rows: usize| Some(("#mail".to_owned(), each.to_owned(), rows));
    let (unread, odd) = (" class=unread", " class=odd");
    let states = [row(unread, "a"), row("", "b"), row(unread, "c"), row("", "d")];
    assert_eq!(list_of(&list(&states), "a"), found("li", 4));
    let second = [row(odd, "a"), row(" class=even", "b"), row(odd, "c")];
    assert_eq!(list_of(&list(&second), "c"), found("li", 3));
    let both = [row(" class=mail+unread", "a"), row(" class=mail", "b"), row(" class=mail", "c")];
    assert_eq!(list_of(&list(&both), "a"), found("li.mail", 3));
    // A row of another kind has other parts, or is the last one.
    let mail = |text: &str| row(" class=mail", text);
    let heading = "\n   li\n    b\n     \"Today\"".to_owned();
    let kinds = [mail("a"), heading, mail("b"), row(" class=sum", "2")];
    assert_eq!(list_of(&list(&kinds), "a"), found("li.mail", 2));
}

#[test]
fn the_place_of_a_list_has_no_value_of_the_account_if_it_has_another_one() {
    let row =
        |text: &str| format!("\n   li class=lovelace\n    a\n     \"{text}\"\n    b\n     \"x\"");
    let rows = [row("a"), row("b")].concat();
    let page = page(&format!("html\n body\n  ul id=lovelace-orders class=orders{rows}"));
    let list = |known: &KnownValues| {
        let list = propose_list(&page, with_text(&page, "a"), known, &select).unwrap();
        (list.at, list.each.unwrap())
    };
    let place = |at: &str, each: &str| (at.to_owned(), each.to_owned());
    assert_eq!(list(&KnownValues::new()), place("#lovelace-orders", "li.lovelace"));
    let known = [("team".to_owned(), "Lovelace".to_owned())].into();
    assert_eq!(list(&known), place("ul.orders", "li"));
}

#[test]
fn the_place_of_rows_is_there_without_rows() {
    let row = |number: &str| {
        format!("\n    tr\n     th\n      \"{number}\"\n     td\n      \"paid {number}\"")
    };
    let heading =
        "\n   thead\n    tr\n     th\n      \"Number\"\n     th\n      \"State\"".to_owned();
    let table = "html\n body\n  table class=orders".to_owned() + &heading;
    let body = format!("\n   tbody{}{}", row("1"), row("2"));
    let place = "table.orders".to_owned();
    let found = list_of(&(table.clone() + &body), "paid 2");
    assert_eq!(found, Some((place.clone(), "tr:has(> td)".to_owned(), 2)));
    // Months of orders, say.
    let found = list_of(&(table.clone() + &body + &body), "paid 2");
    assert_eq!(found, Some((place.clone(), "tr:has(> td)".to_owned(), 4)));
    let total = "\n   tfoot\n    tr\n     td\n      \"Total\"";
    let found = list_of(&(table + &body + total), "paid 2");
    assert_eq!(found, Some((place, "tbody > tr:has(> td)".to_owned(), 2)));
}

#[test]
fn labels_and_names_come_from_the_page() {
    let page = page(ACCOUNT);
    assert_eq!(label_of(&page, with_text(&page, "1. März 2019")), "Mitglied seit");
    assert_eq!(label_of(&page, with_text(&page, "20,00 €")), "Betrag");
    assert_eq!(name_of("Mitglied seit"), "mitgliedSeit");
    assert_eq!(name_of("createdAt"), "createdAt");
    assert_eq!(name_of("§ 1"), "value");
}

/// The label and the name that are proposed for the element with a text in the body of a page.
fn named(body: &str, text: &str) -> (String, String) {
    let page = page(&format!("html\n body\n{body}"));
    let label = label_of(&page, with_text(&page, text));
    let name = name_of(&label);
    (label, name)
}

#[test]
fn a_value_is_named_by_its_term() {
    let row =
        |head: &str| format!("  table\n   tr\n    {head}\n     \"Plan\"\n    td\n     \"Pro\"");
    let pair = |term: &str| format!("  div\n   {term}\n    \"Plan\"\n   div\n    \"Pro\"");
    let colon = "  p\n   \"Plan: \"\n   b\n    \"Pro\"";
    let around = "  div\n   div\n    span\n     \"Plan\"\n   div\n    span\n     \"Pro\"";
    let heading = "  h3\n   \"Plan\"\n  svg\n  p\n   \"Pro\"";
    let actions =
        "  table\n   tr\n    th\n     \"Plan\"\n    td\n     \"Pro\"\n    td\n     \"Change\"";
    for body in [
        "  dl\n   dt\n    \"Plan\"\n   dd\n    \"Free\"\n   dd\n    span\n     \"Pro\"",
        &row("th"),
        &row("td"),
        &pair("span"),
        &pair("div class=label"),
        colon,
        around,
        heading,
        actions,
    ] {
        assert_eq!(named(body, "Pro"), ("Plan".to_owned(), "plan".to_owned()), "{body}");
    }
    let term = |text: &str| format!("  dl\n   dt\n    \"{text}\"\n   dd\n    \"Pro\"");
    for (text, label, name) in [
        ("E-mail", "E-mail", "eMail"),
        ("IBAN", "IBAN", "iban"),
        ("größe des Käufers：", "Größe des Käufers", "groesseDesKaeufers"),
        ("Référence", "Référence", "reference"),
    ] {
        assert_eq!(named(&term(text), "Pro"), (label.to_owned(), name.to_owned()), "{text}");
    }
}

#[test]
fn what_is_no_term_is_no_label() {
    let none = (String::new(), "value".to_owned());
    let long = "Plan ".repeat(13);
    for body in [
        // Entries of a list, and rows of one without headings.
        "  ul\n   li\n    \"Ada\"\n   li\n    \"Pro\"",
        "  div\n   a\n    \"Ada\"\n   a\n    \"Bert\"\n   a\n    \"Pro\"",
        "  table\n   tr\n    td\n     \"A-1\"\n    td\n     \"Pro\"",
        // Parts of a sentence, numbers, and long texts.
        "  p\n   \"You have the plan\"\n   b\n    \"Pro\"",
        "  div\n   span\n    \"24 points\"\n   div\n    \"Pro\"",
        &format!("  div\n   span\n    \"{long}\"\n   div\n    \"Pro\""),
        "  div\n   span id=:r1:\n    \"Pro\"",
    ] {
        assert_eq!(named(body, "Pro"), none, "{body}");
    }
}

#[test]
fn a_form_field_is_named_by_its_label() {
    let field = "input name=f1 id=mail placeholder=you@example.com";
    for (body, label) in [
        (format!("  label\n   \"E-mail\"\n   {field}"), "E-mail"),
        (
            "  label\n   span\n    \"Tariff\"\n   select name=f1\n    option\n     \"Pro\""
                .to_owned(),
            "Tariff",
        ),
        (format!("  p\n   {field}\n  label for=mail\n   \"E-mail *\""), "E-mail"),
        (format!("  p\n   {field} aria-label=Your+e-mail"), "Your e-mail"),
        (
            format!(
                "  h2 id=a\n   \"Contact\"\n  p id=b\n   \"e-mail\"\n  p\n   \
                 {field} aria-labelledby=a+b aria-label=Other"
            ),
            "Contact e-mail",
        ),
        (format!("  div\n   \"E-mail:\"\n   {field}"), "E-mail"),
        (format!("  p\n   {field}"), "You@example.com"),
        ("  p\n   input name=last_name".to_owned(), "Last name"),
    ] {
        let page = page(&format!("html\n body\n{body}"));
        let is_field = |node: &PageNode| matches!(node.tag.as_deref(), Some("input" | "select"));
        let field = page.nodes.iter().position(is_field).unwrap();
        assert_eq!(label_of(&page, field), label, "{body}");
    }
}

#[test]
fn values_are_read_by_their_look() {
    for (sample, language, kind, value) in [
        ("1. März 2019", "de", FieldType::String, json!("2019-03-01")),
        ("Member since May 3, 2020", "en", FieldType::String, json!("2020-05-03")),
        ("20:55, 23 November 2026", "en", FieldType::String, json!("2026-11-23T20:55:00")),
        ("2026-02-09T10:11:12.951454Z", "en", FieldType::String, json!("2026-02-09T10:11:12Z")),
        ("2026/11/28 00:15", "en", FieldType::String, json!("2026-11-28T00:15:00")),
        ("1.234,50 €", "de", FieldType::Number, json!(1234.5)),
        ("$1,234.50", "en", FieldType::Number, json!(1234.5)),
        ("42", "en", FieldType::Integer, json!(42)),
        ("7 edits", "en", FieldType::String, json!("7 edits")),
        ("  Ada \n Lovelace ", "en", FieldType::String, json!("Ada Lovelace")),
    ] {
        let proposals = propose_values(sample, language);
        let first = proposals.first().unwrap();
        assert_eq!((first.kind, &first.value), (kind, &value), "{sample}: {proposals:?}");
    }
    let edits = propose_values("7 edits", "en");
    assert!(edits.iter().any(|one| one.kind == FieldType::Integer && one.value == json!(7)));
    let link = propose_values("/users/4711/profile", "en");
    assert!(link.iter().any(|one| one.value == json!("4711")), "{link:?}");
    let money = propose_values("1.234,50 €", "de");
    assert_eq!(money.first().unwrap().currency, Some("EUR"));
}

#[test]
fn dates_are_proposed_as_a_site_writes_them() {
    for (sample, language, value) in [
        ("30 Nov 2026, 04:44 PM", "en", "2026-11-30T16:44:00"),
        ("30 Nov 2026, 04:44PM", "en", "2026-11-30T16:44:00"),
        ("Last seen: 30 November 2026 4:44 p.m.", "en", "2026-11-30T16:44:00"),
        ("30-Nov-2026 04:44:05 pm", "en", "2026-11-30T16:44:05"),
        ("Nov 30, 2026 at 4:44 PM", "en", "2026-11-30T16:44:00"),
        ("Monday, November 30, 2026, 4:44:05 PM", "en", "2026-11-30T16:44:05"),
        ("4:44 PM, 30 November 2026", "en", "2026-11-30T16:44:00"),
        ("2026-11-30 04:44 PM", "en", "2026-11-30T16:44:00"),
        ("Tue, 01 Dec 2026 05:00:58 +0000", "en", "2026-12-01T05:00:58+00:00"),
        ("2026-12-01T05:00+02:00", "en", "2026-12-01T05:00:00+02:00"),
        ("2026-12-01 05:00:58.123", "en", "2026-12-01T05:00:58"),
        ("1. März 2019, 14:30 Uhr", "de", "2019-03-01T14:30:00"),
        ("Registriert am 1. März 2019 um 14:30", "de", "2019-03-01T14:30:00"),
        ("E-Mail bestätigt am 1.3.2019.", "de", "2019-03-01"),
        ("Alta: 2 de marzo de 2026", "es", "2026-03-02"),
        ("(Member since November 2019)", "en", "2019-11"),
        ("Due 13/05/2026", "en", "2026-05-13"),
    ] {
        let proposals = propose_values(sample, language);
        let first = proposals.first().unwrap();
        assert_eq!(first.value, json!(value), "{sample}: {proposals:?}");
        assert!(first.format.is_some(), "{sample}");
    }
}

#[test]
fn no_date_is_proposed_without_what_changes_its_meaning() {
    for (sample, language) in [
        ("30 Nov 2026, 04:44 م", "ar"),
        ("30 نوفمبر 2026، 04:44 م", "ar"),
        ("1 Aralık 2026 04:44 ÖS", "tr"),
        ("1 dic 2026, 4:44 p. m.", "es"),
        ("1 December 2026 04:44 UTC", "en"),
        ("UTC 04:44, 1 December 2026", "en"),
        ("PM 04:44, 1 December 2026", "en"),
        ("PM, 1 December 2026 04:44", "en"),
        ("1 December 2026 04:44 GMT+2", "en"),
        ("1 December 2026 04:44 PST", "en"),
        ("Tue, 01 Dec 2026 05:00:58 GMT", "en"),
        ("1 December 2026 BC", "en"),
        ("AH 1900-05-06", "en"),
        ("1403-05-06 SH", "en"),
        ("-2026-12-01", "en"),
        ("< 2026-12-01", "en"),
        ("1 Dec 2026 \u{2013} 3 Dec 2026", "en"),
        ("1 Dec 2026 - 3 Dec 2026", "en"),
        ("December \u{2013} January 2026", "en"),
        ("December to January 2026", "en"),
        ("1 to 3 Dec 2026", "en"),
        ("1 Dec 2026, 3 changes", "en"),
        ("2026-12-01 05:00:58,5", "en"),
    ] {
        let proposals = propose_values(sample, language);
        assert!(proposals.iter().all(|one| one.format.is_none()), "{sample}: {proposals:?}");
    }
}

#[test]
fn what_may_be_read_in_two_ways_is_chosen_by_the_author() {
    for (sample, language, one, other) in [
        ("04/05/2026", "en", json!("2026-04-05"), json!("2026-05-04")),
        (
            "Due 04/05/2026, 4:44 PM",
            "en",
            json!("2026-04-05T16:44:00"),
            json!("2026-05-04T16:44:00"),
        ),
        ("04-05-2026", "nl", json!("2026-04-05"), json!("2026-05-04")),
        ("1,234", "en", json!(1234), json!(1.234)),
        ("1.234", "de", json!(1.234), json!(1234)),
        ("1.234 \u{20ac}", "de", json!(1.234), json!(1234)),
    ] {
        let proposals = propose_values(sample, language);
        let first = proposals.first().unwrap();
        assert_eq!((first.kind, &first.value), (FieldType::String, &json!(sample)));
        for value in [one, other] {
            let found = proposals.iter().find(|proposal| proposal.value == value);
            let description =
                &found.unwrap_or_else(|| panic!("{sample}: {proposals:?}")).description;
            assert!(description.contains("does not show"), "{sample}: {description}");
        }
    }
    // Of other accounts the two differ.
    let same = propose_values("03/03/2026", "en");
    assert_eq!(same.first().unwrap().value, json!("03/03/2026"));
    assert_eq!(same.iter().filter(|one| one.value == json!("2026-03-03")).count(), 2);
    for (sample, value) in [("1,234.50", json!(1234.5)), ("1.5", json!(1.5)), ("1,5", json!(1.5))] {
        assert_eq!(propose_values(sample, "en").first().unwrap().value, value, "{sample}");
    }
}

#[test]
fn a_number_without_a_mark_has_the_mark_of_its_page() {
    let (comma, point) = (DecimalMark::Comma, DecimalMark::Point);
    for (sample, language, value, mark) in [
        ("5 €", "de", json!(5), comma),
        ("5 €", "de-AT", json!(5), comma),
        ("5 €", "de-CH", json!(5), point),
        ("1'234 CHF", "de-CH", json!(1234), point),
        ("5 Beiträge", "de", json!(5), comma),
        ("42", "fr", json!(42), comma),
        ("42", "en", json!(42), point),
        ("$42", "es-MX", json!(42), point),
        ("\u{665}", "ar-EG", json!(5), comma),
        ("6 von 12 Aufgaben", "de", json!(6), comma),
        // These show it.
        ("5.00 €", "de", json!(5), point),
        ("1.234,50 €", "en", json!(1234.5), comma),
        ("1.234.567", "en", json!(1_234_567), comma),
    ] {
        let proposals = propose_values(sample, language);
        let found = proposals.iter().find(|one| one.value == value);
        let found = found.unwrap_or_else(|| panic!("{sample}: {proposals:?}"));
        let number = Converter::Number(NumberFormat { decimal_mark: mark });
        assert_eq!(found.convert.last(), Some(&number), "{sample}, {language}");
        let named = if mark == comma { "comma" } else { "point" };
        assert!(found.description.contains(named), "{sample}: {}", found.description);
    }
}

#[test]
fn a_number_that_begins_with_zero_is_a_text_at_first() {
    for (sample, number) in [
        ("0012345", json!(12345)),
        ("0301234567", json!(301_234_567)),
        ("No. 007", json!(7)),
        ("05,50 €", json!(5.5)),
    ] {
        let proposals = propose_values(sample, "de");
        let first = proposals.first().unwrap();
        assert_eq!((first.kind, &first.value), (FieldType::String, &json!(sample)));
        let found = proposals.iter().find(|one| one.value == number);
        let description = &found.unwrap_or_else(|| panic!("{proposals:?}")).description;
        assert!(description.ends_with("The zero at its beginning is lost"), "{description}");
    }
    for (sample, number) in [
        ("0.5", json!(0.5)),
        ("0,5", json!(0.5)),
        ("0", json!(0)),
        ("0,00 €", json!(0)),
        ("100", json!(100)),
        ("-0,5", json!(-0.5)),
    ] {
        let proposals = propose_values(sample, "de");
        let first = proposals.first().unwrap();
        assert_eq!(first.value, number, "{sample}: {proposals:?}");
        assert!(!first.description.contains("zero"), "{sample}");
    }
}

#[test]
fn the_language_tag_of_a_page_has_its_region() {
    for (lang, tag) in [
        ("de", "de"),
        ("de-ch", "de-CH"),
        ("DE_AT", "de-AT"),
        ("zh-Hant-TW", "zh-TW"),
        ("es-419", "es-419"),
        ("en-x-private", "en"),
        ("x", "en"),
        ("", "en"),
    ] {
        let page = page(&format!("html lang={lang}\n body"));
        assert_eq!(page_language_tag(&page), tag, "{lang}");
        assert_eq!(page_language(&page), tag.split('-').next().unwrap());
    }
}

#[test]
fn the_first_and_the_last_of_a_few_numbers_are_proposed() {
    for (sample, first, last) in [
        ("6 of 12 Tasks", Some(json!(6)), Some(json!(12))),
        ("Page 3/12", Some(json!(3)), Some(json!(12))),
        ("1.5 of 2 GB, 3 files", Some(json!(1.5)), Some(json!(3))),
        ("-5 of 1,234.50", Some(json!(-5)), Some(json!(1234.5))),
        ("1.2K of 5 million", None, None),
        ("10-12 items", None, None),
        ("6 Tasks", None, None),
        ("1 of 2 of 3 of 4 of 5", None, None),
    ] {
        let proposals = propose_values(sample, "en");
        assert_eq!(proposals.first().unwrap().value, json!(sample), "{proposals:?}");
        let of = |name: &str| {
            let found = proposals.iter().find(|one| one.description.starts_with(name));
            found.map(|one| one.value.clone())
        };
        assert_eq!(of("First number"), first, "{sample}");
        assert_eq!(of("Last number"), last, "{sample}");
    }
}

#[test]
fn a_currency_is_a_whole_sign_or_code() {
    for (sample, currency) in [
        ("R$ 50,00", Some("BRL")),
        ("A$50.00", Some("AUD")),
        ("AU$50.00", Some("AUD")),
        ("CA$50.00", Some("CAD")),
        ("NZ$50.00", Some("NZD")),
        ("HK$50.00", Some("HKD")),
        ("S$50.00", Some("SGD")),
        ("MX$50.00", Some("MXN")),
        ("US$50.00", Some("USD")),
        ("NT$50.00", Some("TWD")),
        ("$50.00", Some("USD")),
        ("-$50.00", Some("USD")),
        ("$50.00 CAD", Some("CAD")),
        ("50,00 EUR", Some("EUR")),
        ("50,00 \u{20ac}", Some("EUR")),
        ("Z$50.00", None),
        ("50,00 kr", None),
        ("Rs 50.00", None),
        ("50.00 USDT", None),
        ("\u{20ac}/\u{a3} 50.00", None),
        ("NZ $50.00", Some("NZD")),
        ("Balance CA $50.00", Some("CAD")),
        ("50,00 $ CA", Some("CAD")),
        ("50.00 $ US", Some("USD")),
        ("You have a $50.00", Some("USD")),
        ("A $50.00", None),
        ("JM $50.00", None),
        ("$50.00 ARS", None),
        ("COP $50,000.00", None),
        ("50,00 $ CLP", None),
        ("\u{a3}50.00 EGP", None),
        ("NET 50,00 EUR", Some("EUR")),
        ("\u{a5}50", None),
        ("\u{a5}50 CNY", None),
        ("\u{a5}50 JPY", Some("JPY")),
    ] {
        let proposals = propose_values(sample, "en");
        let number = proposals.iter().find(|one| one.kind == FieldType::Number);
        let number = number.or_else(|| proposals.iter().find(|one| one.kind == FieldType::Integer));
        let found = number.and_then(|one| one.currency);
        assert_eq!(found, currency, "{sample}: {proposals:?}");
        assert!(number.is_some() || currency.is_none(), "{sample}");
    }
}

#[test]
fn the_sign_of_the_yen_is_that_of_the_yuan_on_other_pages() {
    for (language, currency) in [("ja", Some("JPY")), ("ja-JP", Some("JPY")), ("zh-CN", None)] {
        let proposals = propose_values("\u{a5}1,234", language);
        let found = proposals.iter().find(|one| one.value == json!(1234)).unwrap();
        assert_eq!(found.currency, currency, "{language}");
    }
}

#[test]
fn pages_are_told_apart_by_what_only_they_have() {
    let form = KnownPage {
        url: "https://a.test/login".into(),
        tree: page("html\n body\n  nav class=user-menu\n  form\n   input type=password name=pw"),
    };
    let account = KnownPage { url: "https://a.test/home".into(), tree: page(ACCOUNT) };
    // Each marked page of a kind counts.
    let blank = KnownPage { url: "https://a.test/sso".into(), tree: page("html\n body") };
    let forms = [form.clone(), blank].map(Arc::new).to_vec();
    let others: BTreeMap<_, _> = [("signIn".to_owned(), forms)].into();
    let found = conditions(PageKind::SignedIn, &account, None, &others);
    let best = found.first().unwrap();
    assert_eq!(best.condition, Condition::Selector("form[action*=\"logout\"]".into()));
    assert!(best.also_on.is_empty());
    assert!(found.iter().any(|one| one.condition == Condition::Url("/home".into())));
    let found = conditions(PageKind::SignIn, &form, None, &BTreeMap::new());
    assert_eq!(found.first().unwrap().condition, Condition::Selector("input[name=\"pw\"]".into()));
}

fn any_page() -> impl Strategy<Value = PageTree> {
    let tag = prop::sample::select(vec!["div", "a", "tr", "td", "li", "p", "span", "my-tag"]);
    let name = prop::sample::select(vec!["id", "class", "name", "href", "role", "data-testid"]);
    let value =
        prop_oneof!["[a-z]{1,5}", "[a-z\\\\\"' .:#\\[>]{0,12}", Just("x1y2z3w4".to_owned())];
    let attributes = prop::collection::btree_map(name.prop_map(str::to_owned), value, 0..3);
    let node = (any::<prop::sample::Index>(), tag, attributes, 0..6_u8);
    prop::collection::vec(node, 1..40).prop_map(|parts| {
        let mut nodes = vec![PageNode::default()];
        for (parent, tag, attributes, kind) in parts {
            // Texts have no children.
            let parents: Vec<_> = (0..nodes.len()).filter(|at| nodes[*at].text.is_none()).collect();
            let parent = parents[parent.index(parents.len())];
            let is_root = kind == 0 && nodes[parent].tag.is_some();
            let element = PageNode {
                parent: Some(parent),
                tag: (!is_root && kind != 1).then(|| tag.to_owned()),
                text: (kind == 1 && !is_root).then(|| "text".to_owned()),
                attributes: if kind > 1 { attributes } else { BTreeMap::new() },
                visible: kind > 1,
                ..PageNode::default()
            };
            nodes.push(element);
        }
        PageTree { nodes }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_selector_finds_its_element_first(page in any_page(), at in any::<prop::sample::Index>()) {
        let node = at.index(page.nodes.len());
        for proposal in propose_selectors(&page, node, &select) {
            let found = find_elements(&page, 0, &proposal.selector, &select);
            prop_assert!(found.contains(&node), "{}: {found:?}", proposal.selector);
            if !proposal.selector.contains(">>>") {
                prop_assert_eq!(found.first(), Some(&node));
                prop_assert_eq!(found.len(), proposal.matches);
            }
        }
        // Nothing of these is a reason to stop.
        if let Some(list) = propose_list(&page, node, &KnownValues::new(), &select) {
            for proposal in propose_columns(&page, node, &list, &KnownValues::new(), &select) {
                prop_assert!((1..=list.rows).contains(&proposal.found), "{proposal:?}");
                prop_assert!(proposal.elsewhere < proposal.found, "{proposal:?}");
            }
        }
        let _ = propose_next_page(&page, node, &select);
        let _ = label_of(&page, node);
        for kind in [PageKind::SignIn, PageKind::Code, PageKind::WrongPassword] {
            let known = KnownPage { url: "https://a.test/x1".into(), tree: page.clone() };
            let _ = conditions(kind, &known, Some(node), &BTreeMap::new());
        }
    }

    #[test]
    fn every_value_is_what_its_converters_make_of_the_sample(sample in "\\PC{0,40}", language in "[a-z]{0,3}") {
        for proposal in propose_values(&sample, &language) {
            let value = proposal.convert.iter().try_fold(Value::from(sample.clone()), |v, c| c.apply(&v));
            prop_assert_eq!(value, Some(proposal.value));
        }
        let name = name_of(&sample);
        prop_assert!(name.starts_with(|c: char| c.is_ascii_alphabetic()));
    }
}
