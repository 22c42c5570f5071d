//! By what a page is recognized for accounts other than that of its author.

use std::{collections::BTreeMap, sync::Arc};

use domain::workflow::Condition;
use ports::browser::Screen;

use super::{page, select};
use crate::{
    draft::{KnownValues, PageKind},
    signals::{ConditionProposal, KnownPage, OtherScreen, propose_conditions},
};

fn known(lines: &str) -> KnownPage {
    KnownPage { url: "https://a.test/".into(), tree: page(&format!("html\n body\n{lines}")) }
}

/// Returns the conditions that are proposed for a page after sign-in with these lines in its body.
fn proposed(lines: &str, values: &[&str]) -> Vec<ConditionProposal> {
    let sign_in = vec![Arc::new(known("  form\n   input type=password"))];
    let others: BTreeMap<_, _> = [("signIn".to_owned(), sign_in)].into();
    let values: KnownValues =
        values.iter().map(|value| (format!("v{value}"), (*value).to_owned())).collect();
    propose_conditions(PageKind::SignedIn, &known(lines), None, &others, &values, None, &select)
}

fn selector(text: &str) -> Condition {
    Condition::Selector(text.to_owned())
}

/// The rows of an account, each with a link to a user. Links like that tell more than a menu with an identifier.
const CHANGES: &str = "  table id=changes-list\n   tr\n    td\n     strong\n      a href=/user/ada\n       \
    \"Ada\"\n    td\n     a href=/user/bob class=user-link\n      \"Bob\"\n   tr\n    td\n     a href=/user/cy\n      \
    \"Cy\"";

#[test]
fn what_an_account_without_rows_lacks_is_proposed_last_and_never_chosen() {
    let menu = "  div id=user-dropdown\n   \"Ada\"";
    let found = proposed(&format!("{CHANGES}\n{menu}"), &[]);
    assert_eq!(found[0].condition, selector("#user-dropdown"));
    assert!(found[0].is_safe());
    let in_row: Vec<_> = found.iter().map(|one| one.in_row).collect();
    assert!(in_row.is_sorted() && in_row.contains(&true), "{found:?}");
    assert!(found.iter().all(|one| one.is_safe() != one.in_row), "{found:?}");

    let found = proposed(CHANGES, &[]);
    assert!(!found.is_empty());
    assert!(found.iter().all(|one| one.in_row && !one.is_safe()), "{found:?}");
}

#[test]
fn the_items_of_a_message_are_no_rows_of_an_account() {
    let shown = known("  ul class=errorlist\n   li id=wrong role=alert\n    \"Wrong\"");
    let (others, values) = (BTreeMap::new(), KnownValues::new());
    let of = |kind| propose_conditions(kind, &shown, None, &others, &values, None, &select);
    assert!(of(PageKind::WrongPassword).iter().all(ConditionProposal::is_safe));
}

#[test]
fn a_condition_that_counts_elements_comes_after_others() {
    let lines = "  div id=top\n   nav\n    \"A\"\n   nav\n    \"B\"";
    let found = proposed(lines, &[]);
    let positional: Vec<_> = found.iter().map(|one| one.positional).collect();
    assert!(positional.is_sorted() && positional.contains(&true), "{found:?}");
    let counts = |one: &ConditionProposal| one.text.contains("nth-of-type");
    assert!(found.iter().all(|one| one.positional == counts(one)), "{found:?}");
    assert!(found.iter().all(|one| one.is_safe() != one.positional), "{found:?}");
}

#[test]
fn a_condition_with_a_value_of_the_account_is_never_chosen() {
    let lines = "  div id=user-lovelace\n   \"Profile\"";
    let own = selector("#user-lovelace");
    assert_eq!(proposed(lines, &[])[0].condition, own);
    let found = proposed(lines, &["Lovelace"]);
    assert_eq!(found[0].condition, selector("div"));
    assert!(found[0].is_safe());
    let last = found.last().unwrap();
    assert_eq!((&last.condition, last.may_be_own, last.is_safe()), (&own, true, false));
    // Also in the address.
    let shown = KnownPage { url: "https://a.test/teams/lovelace".into(), ..known("") };
    let values: KnownValues = [("team".to_owned(), "lovelace".to_owned())].into();
    let others = BTreeMap::new();
    let found =
        propose_conditions(PageKind::SignedIn, &shown, None, &others, &values, None, &select);
    let path = Condition::Url("/teams/lovelace".to_owned());
    assert_eq!((&found[0].condition, found[0].may_be_own), (&path, true));
}

#[test]
fn what_another_screen_does_not_show_is_never_chosen() {
    let menu = |hidden: &str| {
        known(&format!(
            "  button id=account-toggle\n   \"Menu\"\n  div id=user-dropdown{hidden}\n   \"Ada\""
        ))
    };
    let on = |screen: Screen, hidden: &str| {
        let other = OtherScreen { screen, page: menu(hidden) };
        let (others, values) = (BTreeMap::new(), KnownValues::new());
        let kind = PageKind::SignedIn;
        propose_conditions(kind, &menu(""), None, &others, &values, Some(&other), &select)
    };
    let dropdown = selector("#user-dropdown");
    let found = on(Screen::Phone, " hidden");
    let (last, safe): (Vec<_>, Vec<_>) =
        found.iter().partition(|one| one.hidden_on == Some("phone"));
    assert!(last.iter().any(|one| one.condition == dropdown), "{found:?}");
    assert!(last.iter().all(|one| !one.is_safe()) && safe.iter().all(|one| one.is_safe()));
    assert!(found.is_sorted_by_key(|one| one.hidden_on.is_some()), "{found:?}");
    assert_eq!(found[0].condition, selector("#account-toggle"));
    let found = on(Screen::Desktop, " hidden");
    assert!(found.iter().any(|one| one.hidden_on == Some("desktop")));
    let found = on(Screen::Phone, "");
    assert!(found.iter().all(|one| one.hidden_on.is_none()), "{found:?}");
}
