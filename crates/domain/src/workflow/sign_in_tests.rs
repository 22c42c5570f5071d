//! Shared sign-ins: written out as plain nodes, with findings at their places in the document.

use std::{collections::BTreeSet, sync::Arc};

use chrono::{DateTime, Utc};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{language_tests::document, *};
use crate::error_code::ErrorCode;

fn noon() -> DateTime<Utc> {
    DateTime::from_timestamp(1_767_268_800, 0).unwrap()
}

/// The definition of the other tests, whose sign-in is at a provider.
fn with_sign_in() -> Value {
    let mut document = document();
    document["nodes"]["open"]["next"] = json!("atProvider");
    document["nodes"]["atProvider"] = json!({ "type": "signIn", "signIn": "sso", "next": "login" });
    document["signIns"] = json!({ "sso": {
        "ssoHosts": ["login.test", "shop.test"],
        "signals": {
            "provider": { "host": "login.test" },
            "form": { "all": [{ "signal": "provider" }, { "selector": "form" }] },
            "wrong": { "all": [{ "signal": "form" }, { "selector": ".error" }] },
            "back": { "not": { "signal": "provider" } },
            "locked": { "selector": "#locked" },
        },
        "interrupts": [{ "when": "locked", "then": { "fail": "ACCOUNT_LOCKED" } }],
        "start": "password",
        "nodes": {
            "password": {
                "type": "awaitUser", "kind": "login", "textKey": "sign_in", "timeoutSeconds": 300,
                "until": ["back"],
                "hints": [{ "when": "wrong", "textKey": "wrong", "count": 3, "then": { "fail": "CREDENTIALS_INVALID" } }],
                "next": "end", "onTimeout": { "next": "gaveUp" },
            },
            "gaveUp": { "type": "fail", "code": "USER_INPUT_TIMEOUT" },
            "end": { "type": "done" },
        },
        "texts": { "en": { "sign_in": "Sign in", "wrong": "Wrong" }, "fr": { "sign_in": "Connexion" } },
    } });
    document
}

fn written(document: &Value) -> WrittenOut {
    write_out(document).unwrap().expect("sign-ins")
}

fn errors(mutate: &dyn Fn(&mut Value)) -> Vec<String> {
    let mut document = with_sign_in();
    mutate(&mut document);
    let errors = write_out(&document).unwrap_err();
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn a_sign_in_becomes_plain_nodes() {
    let written = written(&with_sign_in());
    let definition: Definition = serde_json::from_value(written.document.clone()).unwrap();
    assert_eq!(check(&definition), []);
    assert_eq!(definition.sso_hosts, ["login.test"], "without those of the definition");
    let nodes: BTreeSet<_> = definition.nodes.keys().map(String::as_str).collect();
    assert!(nodes.contains("atProvider.password") && nodes.contains("atProvider.gaveUp"));
    assert!(!nodes.contains("atProvider") && !nodes.contains("atProvider.end"));
    assert!(!definition.texts.contains_key("fr"), "a language of the sign-in alone");
    assert_eq!(write_out(&document()), Ok(None));

    let page = |url: &str, present: &[&str]| {
        StepResult::Seen(Observation {
            url: url.to_owned(),
            settled: true,
            present: present.iter().map(|one| (*one).to_owned()).collect(),
            ..Observation::default()
        })
    };
    let mut run = Run::new(Arc::new(definition), noon());
    run.next(StepResult::Begin, noon());
    let step = run.next(StepResult::Arrived, noon());
    assert!(matches!(&step.shown, PublicPhase::Awaiting(ask) if ask.text_key == "sso.sign_in"));
    run.next(page("https://login.test/", &["form"]), noon());
    run.next(page("https://shop.test/#/home", &[]), noon());
    assert_eq!(run.path()[..3], ["open", "atProvider.password", "login"]);
    let step = run.next(page("https://login.test/", &["#locked"]), noon());
    assert_eq!(step.command, Command::End(End::Failed(ErrorCode::AccountLocked)));
}

#[test]
fn findings_are_at_their_places_in_the_document() {
    let mut document = with_sign_in();
    let sso = &mut document["signIns"]["sso"];
    sso["nodes"]["password"]["until"] = json!(["bakc"]);
    sso["nodes"]["gaveUp"] = json!({ "type": "goto", "url": "https://evil.test/", "next": "nowhere", "onFail": { "fail": "NO_DATA" } });
    sso["signals"]["form"] = json!({ "selector": "" });
    sso["interrupts"][0]["when"] = json!("unlocked");
    sso["texts"]["en"]["spare"] = json!("Spare");
    let written = written(&document);
    let definition: Definition = serde_json::from_value(written.document.clone()).unwrap();
    let found = check(&definition);
    let found: Vec<_> =
        found.iter().map(|error| written.original(&error.path).to_string()).collect();
    for expected in [
        "$.signIns.sso.nodes.password.until[0]",
        "$.signIns.sso.nodes.gaveUp.url",
        "$.signIns.sso.nodes.gaveUp.next",
        "$.signIns.sso.signals.form.selector",
        "$.signIns.sso.interrupts[0].when",
        "$.signIns.sso.texts.en.spare",
    ] {
        assert!(found.iter().any(|path| path == expected), "{expected} is not in {found:#?}");
    }
    let own = JsonPath::root().member("nodes").member("open").member("next");
    assert_eq!(written.original(&own), own);
}

#[test]
fn one_sign_in_may_be_used_by_several_nodes() {
    let mut document = with_sign_in();
    document["start"] = json!("first");
    document["nodes"]["first"] = json!({ "type": "signIn", "signIn": "sso", "next": "open" });
    let written = written(&document);
    let definition: Definition = serde_json::from_value(written.document.clone()).unwrap();
    assert_eq!(check(&definition), []);
    assert_eq!(definition.start, "first.password");
    assert_eq!(definition.interrupts.len(), 3, "those of the sign-in once");
}

#[test]
fn errors_in_sign_ins_are_reported() {
    let sso = |change: fn(&mut Value)| errors(&|document| change(&mut document["signIns"]["sso"]));
    assert_eq!(
        errors(&|document| document["nodes"]["atProvider"]["signIn"] = json!("ssso")),
        [
            "$.nodes.atProvider.signIn: there is no sign-in `ssso`; did you mean `sso`?",
            "$.signIns.sso: is not used: no node refers to it"
        ]
    );
    assert_eq!(
        sso(|sso| sso["nodes"]["end"]["type"] = json!("review")),
        ["$.signIns.sso.nodes.end.type: a sign-in has no node of type `review`"]
    );
    assert_eq!(
        sso(|sso| sso["start"] = json!("nowhere")),
        ["$.signIns.sso.start: there is no node `nowhere`"]
    );
    assert_eq!(
        sso(|sso| sso["start"] = json!("end")),
        ["$.signIns.sso.start: must not be the end"]
    );
    assert_eq!(
        sso(|sso| sso["interrupts"][0]["then"] = json!({ "next": "end" })),
        [
            "$.signIns.sso.interrupts[0].then: must fail or act: a sign-in may be used by several nodes"
        ]
    );
    assert_eq!(
        errors(&|document| {
            document["signals"]["a.b"] = json!({ "url": "/" });
        }),
        ["$.signals[\"a.b\"]: a name must not contain `.` beside sign-ins"]
    );
    let many = errors(&|document| {
        for index in 0..10 {
            document["nodes"][format!("more{index}")] = document["nodes"]["atProvider"].clone();
        }
    });
    assert_eq!(many, ["$.nodes: must have at most 10 of type `signIn`"]);
}

proptest! {
    /// Whatever a document has, it is written out or refused; nothing is left of its sign-ins.
    #[test]
    fn every_document_is_written_out_or_refused(
        place in prop::sample::select(vec![
            "/signIns/sso/nodes/password", "/signIns/sso/nodes/password/next", "/signIns/sso/start",
            "/signIns/sso/signals/form", "/signIns/sso/interrupts", "/signIns/sso/texts",
            "/signIns/sso", "/signIns", "/nodes/atProvider", "/nodes/atProvider/next", "/nodes",
            "/interrupts", "/start", "/texts", "/signals",
        ]),
        value in prop::sample::select(vec![
            json!(null), json!(1), json!("end"), json!("atProvider"), json!([]), json!([1]), json!({}),
            json!({ "type": "signIn", "signIn": "sso", "next": "atProvider" }),
            json!({ "sso": { "nodes": { "a": { "type": "goto", "next": "a" } }, "start": "a" } }),
        ]),
    ) {
        let mut document = with_sign_in();
        if let Some(found) = document.pointer_mut(place) {
            *found = value;
        }
        if let Ok(Some(written)) = write_out(&document) {
            prop_assert!(written.document.get("signIns").is_none());
            if let Ok(definition) = serde_json::from_value::<Definition>(written.document.clone()) {
                for error in check(&definition) {
                    prop_assert!(!written.original(&error.path).to_string().is_empty());
                }
            }
        }
    }
}
