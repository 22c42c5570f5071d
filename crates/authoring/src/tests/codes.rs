//! How a page that asks for a code is recognized.

use std::{collections::BTreeMap, sync::Arc};

use domain::workflow::Condition;

use super::{page, select};
use crate::{
    draft::PageKind,
    signals::{KnownPage, propose_conditions},
};

/// Returns the first condition that is proposed for a page with these lines in its body.
fn first(lines: &str, others: &[&str]) -> Option<Condition> {
    let known = |lines: &str| KnownPage {
        url: "https://a.test/".into(),
        tree: page(&format!("html\n body\n{lines}")),
    };
    let others = others.iter().map(|lines| Arc::new(known(lines))).collect();
    let others: BTreeMap<_, _> = [("signIn".to_owned(), others)].into();
    let found = propose_conditions(PageKind::Code, &known(lines), None, &others, &select);
    found.first().map(|proposal| proposal.condition.clone())
}

#[test]
fn the_field_for_the_code_is_proposed_first() {
    let selector = |text: &str| Some(Condition::Selector(text.to_owned()));
    let tokens = "  div id=code-hints\n  form id=f\n   input type=hidden name=csrf_token\n   \
        input name=otp_backup style=visibility:hidden\n";
    let otp = format!("{tokens}   input name=entry autocomplete=one-time-code");
    assert_eq!(first(&otp, &[]), selector("input[name=\"entry\"]"));
    let named = format!("{tokens}   input name=device type=checkbox\n   input name=mfa_code");
    assert_eq!(first(&named, &[]), selector("input[name=\"mfa_code\"]"));
    let labelled = format!(
        "{tokens}   input name=q type=search\n   label for=second\n    \"Verification code\"\n   input id=second name=entry"
    );
    assert_eq!(first(&labelled, &[]), selector("#second"));
    let typed = format!("{tokens}   input name=again type=checkbox\n   input name=entry type=tel");
    assert_eq!(first(&typed, &[]), selector("input[name=\"entry\"]"));
}

#[test]
fn an_empty_element_comes_after_those_with_something_in_them() {
    let empty = "  form id=f action=/code";
    let fields = "  input name=email type=text";
    // Also if what can be seen is on another page as well.
    let found = first(&format!("{empty}\n{fields}"), &[fields]);
    assert_eq!(found, Some(Condition::Selector("input[name=\"email\"]".to_owned())));
    assert!(first(empty, &[]).is_some(), "there is nothing else");
    assert_eq!(first("  input type=hidden name=code", &[]), None);
}
