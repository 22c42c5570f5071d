//! How a page that asks for a code is recognized, and what tells that a code was refused.

use std::{collections::BTreeMap, sync::Arc};

use domain::{
    error_code::ErrorCode,
    workflow::{Condition, Definition, Hint, Node, WorkflowExit},
};

use super::{changes::with_orders, conditions, drafts::errors, page};
use crate::{
    draft::{DraftError, Marking, PageKind, mark_page, remove_page},
    signals::KnownPage,
};

/// Returns the first condition that is proposed for a page with these lines in its body.
fn first(lines: &str, others: &[&str]) -> Option<Condition> {
    let known = |lines: &str| KnownPage {
        url: "https://a.test/".into(),
        tree: page(&format!("html\n body\n{lines}")),
    };
    let others = others.iter().map(|lines| Arc::new(known(lines))).collect();
    let others: BTreeMap<_, _> = [("signIn".to_owned(), others)].into();
    let found = conditions(PageKind::Code, &known(lines), None, &others);
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

fn hints(definition: &Definition, node: &str) -> Vec<Hint> {
    let Some(Node::AwaitUser { hints, .. }) = definition.nodes.get(node) else { return vec![] };
    hints.clone()
}

#[test]
fn a_refused_code_counts_where_the_code_is_asked_for() {
    let mut definition = with_orders();
    let mark = |definition: &mut Definition, kind: PageKind, selector: &str| {
        mark_page(definition, kind, Condition::Selector(selector.to_owned()), Marking::Instead)
    };
    let before = definition.clone();
    let refused = mark(&mut definition, PageKind::WrongCode, "#error");
    assert_eq!((refused, &definition), (Err(DraftError::NoCodePage), &before));
    mark(&mut definition, PageKind::WrongPassword, "#error").unwrap();
    mark(&mut definition, PageKind::Code, "#otp").unwrap();
    let text = definition.texts.get("en").unwrap().get("code").unwrap();
    assert_eq!(text, "Enter the code to sign in", "it may be one of a message or of an app");
    let without = definition.clone();
    mark(&mut definition, PageKind::WrongCode, "#error").unwrap();
    assert_eq!(errors(&definition), [""; 0]);
    let hint = Hint {
        when: "wrongCode".to_owned(),
        text_key: "wrongCode".to_owned(),
        count: 3,
        then: WorkflowExit::Fail(ErrorCode::MfaFailed),
    };
    assert_eq!(hints(&definition, "code"), std::slice::from_ref(&hint));
    let of_sign_in = hints(&definition, "signIn");
    assert_eq!(of_sign_in, hints(&without, "signIn"), "a password is another attempt");
    let text = definition.texts.get("en").unwrap().get("wrongCode").unwrap();
    assert_eq!(text, "The code is incorrect. Try again.");

    // Another message, and the page that asks for the code again.
    mark(&mut definition, PageKind::WrongCode, "#refused").unwrap();
    mark(&mut definition, PageKind::Code, "#code").unwrap();
    assert_eq!(hints(&definition, "code"), [hint]);
    assert_eq!(errors(&definition), [""; 0]);
    mark(&mut definition, PageKind::Code, "#otp").unwrap();
    let whole = definition.clone();
    remove_page(&mut definition, "wrongCode").unwrap();
    assert_eq!(definition, without);

    // Without the page, nothing of its message is left.
    definition = whole;
    remove_page(&mut definition, "code").unwrap();
    remove_page(&mut definition, "wrongPassword").unwrap();
    assert_eq!(definition, before);
    assert!(remove_page(&mut definition, "wrongCode").is_err());
}
