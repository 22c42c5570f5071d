//! The interpreter with the sandbox's definition, and the validation of invalid definitions.

use std::{fmt::Write as _, sync::Arc};

use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{error_code::ErrorCode, session::Collected};

type Mutation = fn(&mut serde_json::Value);

fn sandbox() -> Definition {
    serde_json::from_str(include_str!("../../platforms/sandbox.json")).unwrap()
}

fn noon() -> DateTime<Utc> {
    DateTime::from_timestamp(1_767_268_800, 0).unwrap()
}

fn run() -> Run {
    Run::new(Arc::new(sandbox()), noon())
}

fn page_with(selectors: &[&str]) -> StepResult {
    StepResult::Seen(Observation {
        settled: true,
        cookies: ["acme_sid".to_owned()].into(),
        present: selectors.iter().map(|s| (*s).to_owned()).collect(),
        ..Observation::default()
    })
}

/// Feeds the results to the run in order and returns the last step.
fn play(run: &mut Run, results: impl IntoIterator<Item = StepResult>) -> RunStep {
    results.into_iter().map(|result| run.next(result, noon())).last().unwrap()
}

/// Ends the pause before a further attempt, and returns the step of the attempt.
fn after_pause(run: &mut Run) -> RunStep {
    assert_eq!(run.next(StepResult::Waited, noon()).command, Command::Watch, "it pauses");
    run.next(page_with(&["main#account"]), noon() + TimeDelta::milliseconds(500))
}

fn signed_in() -> [StepResult; 3] {
    [StepResult::Begin, StepResult::Arrived, page_with(&["main#account"])]
}

#[test]
fn a_successful_run_asks_for_consent_before_it_shares() {
    let mut run = run();
    let step =
        play(&mut run, [StepResult::Begin, StepResult::Arrived, page_with(&["form#sign-in"])]);
    assert!(matches!(&step.shown, PublicPhase::Awaiting(ask) if ask.kind == PromptKind::Login));
    let step = play(&mut run, [page_with(&["main#account"]), page_with(&["main#account"])]);
    assert!(matches!(step.command, Command::Fetch { .. }), "{step:?}");
    let me = json!({"id": "42", "name": "Ada", "memberSince": "2019"});
    let step = play(
        &mut run,
        [
            StepResult::Read(me),
            StepResult::Read(json!({"tier": "gold"})),
            StepResult::Read(json!({"followers": 7})),
        ],
    );
    let Command::Consent { fields, .. } = &step.command else { panic!("{step:?}") };
    let names: Vec<_> = fields.iter().map(|field| field.name.as_str()).collect();
    let order = ["displayName", "accountId", "memberSince", "tier", "followers"];
    assert_eq!(names, order, "the order of the definition");
    let step = play(&mut run, [StepResult::Answered { share: true }]);
    let Command::End(End::Done(collected)) = step.command else { panic!("{step:?}") };
    assert_eq!(collected.missing, Vec::<String>::new());
    assert_eq!(collected.data.get("followers"), Some(&json!(7)));
    let path = ["open", "route", "login", "route", "profile", "badge", "stats", "review", "end"];
    assert_eq!(run.path(), path);
}

#[test]
fn declining_ends_without_data() {
    let mut run = run();
    play(&mut run, signed_in());
    let me = json!({"id": "42", "name": "Ada", "memberSince": "2019"});
    play(&mut run, [StepResult::Read(me), StepResult::Read(json!({})), StepResult::Unreadable]);
    after_pause(&mut run);
    let step = play(&mut run, [StepResult::Unreadable]);
    assert!(matches!(step.command, Command::Consent { .. }), "{step:?}");
    let step = play(&mut run, [StepResult::Answered { share: false }]);
    assert_eq!(step.command, Command::End(End::Declined));
}

#[test]
fn missing_optional_fields_are_reported_by_name() {
    let mut run = run();
    play(&mut run, signed_in());
    let me = json!({"id": "42", "name": "Ada", "memberSince": 5});
    let dom = json!({"tier": "gold"});
    play(&mut run, [StepResult::Read(me.clone())]);
    after_pause(&mut run);
    play(&mut run, [StepResult::Read(me), StepResult::Read(dom), StepResult::Unreadable]);
    after_pause(&mut run);
    let end = play(&mut run, [StepResult::Unreadable, StepResult::Answered { share: true }]);
    let Command::End(End::Done(Collected { missing, .. })) = end.command else { panic!("{end:?}") };
    assert_eq!(missing, ["memberSince", "followers"]);
}

#[test]
fn a_missing_required_field_is_retried_and_then_fails() {
    let mut run = run();
    play(&mut run, signed_in());
    let step = play(&mut run, [StepResult::Unreadable]);
    assert_eq!(step.command, Command::Watch);
    assert!(matches!(after_pause(&mut run).command, Command::Fetch { .. }));
    let step = play(&mut run, [StepResult::Unreadable]);
    assert_eq!(step.command, Command::End(End::Failed(ErrorCode::NoData)));
}

#[test]
fn a_page_that_does_not_answer_is_read_again_and_then_fails() {
    let mut run = run();
    play(&mut run, signed_in());
    let step = play(&mut run, [StepResult::Waited]);
    assert_eq!(step.command, Command::Watch);
    assert!(matches!(after_pause(&mut run).command, Command::Fetch { .. }));
    let step = play(&mut run, [StepResult::Waited]);
    assert_eq!(step.command, Command::End(End::Failed(ErrorCode::NoData)));
}

#[test]
fn a_third_wrong_password_ends_the_run() {
    let mut run = run();
    play(&mut run, [StepResult::Begin, StepResult::Arrived, page_with(&["form#sign-in"])]);
    let wrong = || page_with(&["form#sign-in", ".error[data-code=bad_credentials]"]);
    let step = play(&mut run, [wrong(), wrong(), wrong()]);
    let PublicPhase::Awaiting(ask) = &step.shown else { panic!("{step:?}") };
    assert_eq!(ask.text_key, "wrong_password", "three observations of one page are one mistake");
    let blank = || page_with(&["form#sign-in"]);
    let step = play(&mut run, [blank(), wrong(), blank(), wrong()]);
    assert_eq!(step.command, Command::End(End::Failed(ErrorCode::CredentialsInvalid)));
}

#[test]
fn the_same_mistake_after_a_reload_counts_again() {
    let mut run = run();
    play(&mut run, [StepResult::Begin, StepResult::Arrived, page_with(&["form#sign-in"])]);
    let wrong = |document| {
        let StepResult::Seen(page) =
            page_with(&["form#sign-in", ".error[data-code=bad_credentials]"])
        else {
            panic!("not an observation")
        };
        StepResult::Seen(Observation { document, ..page })
    };
    let step = play(&mut run, [wrong(1), wrong(1), wrong(2), wrong(2)]);
    assert!(matches!(step.shown, PublicPhase::Awaiting(_)), "two mistakes: {step:?}");
    let step = play(&mut run, [wrong(3)]);
    assert_eq!(step.command, Command::End(End::Failed(ErrorCode::CredentialsInvalid)));
}

/// A definition whose sign-in page reports mistakes only by responses.
fn single_page_run() -> Run {
    let mut document = serde_json::to_value(sandbox()).unwrap();
    document["signals"]["badLogin"] = json!({ "response": { "url": "/api/login", "status": 401 } });
    document["signals"]["badAnswer"] =
        json!({ "response": { "url": "/api/login", "status": 401 } });
    let definition = serde_json::from_value(document).unwrap();
    assert_eq!(check(&definition), []);
    let mut run = Run::new(Arc::new(definition), noon());
    play(&mut run, [StepResult::Begin, StepResult::Arrived, page_with(&["form#sign-in"])]);
    run
}

/// The page with a selector and the responses of a sign-in API, as (number, status).
fn page_after(selector: &str, document: u64, responses: &[(u64, u16)]) -> StepResult {
    let StepResult::Seen(page) = page_with(&[selector]) else { panic!("not an observation") };
    let responses = responses.iter().map(|(number, status)| SeenResponse {
        number: *number,
        url: "https://sandbox.localhost/api/login".into(),
        status: *status,
        ..SeenResponse::default()
    });
    StepResult::Seen(Observation { document, responses: responses.collect(), ..page })
}

#[test]
fn each_response_to_a_mistake_counts() {
    let mut run = single_page_run();
    let form = |responses| page_after("form#sign-in", 1, responses);
    let once = || form(&[(3, 401)]);
    let step = play(&mut run, [form(&[]), once(), once(), form(&[(3, 401), (4, 200)])]);
    let PublicPhase::Awaiting(ask) = &step.shown else { panic!("{step:?}") };
    assert_eq!(ask.text_key, "wrong_password", "one mistake");
    let twice = || form(&[(3, 401), (4, 200), (7, 401)]);
    let step = play(&mut run, [twice(), twice()]);
    assert!(matches!(step.shown, PublicPhase::Awaiting(_)), "two mistakes: {step:?}");
    // The oldest responses are no longer kept.
    let step = play(&mut run, [form(&[(7, 401)]), form(&[(7, 401), (9, 401)])]);
    assert_eq!(step.command, Command::End(End::Failed(ErrorCode::CredentialsInvalid)));
}

#[test]
fn a_response_counts_once_even_if_the_page_loads_again() {
    let mut run = single_page_run();
    let form = |document| page_after("form#sign-in", document, &[(3, 401)]);
    let step = play(&mut run, [form(1), form(2), form(3), form(4)]);
    assert!(matches!(step.shown, PublicPhase::Awaiting(_)), "one mistake: {step:?}");
}

#[test]
fn a_response_from_before_a_node_is_no_mistake_in_it() {
    let mut run = single_page_run();
    let code = "input[autocomplete=one-time-code]";
    let before = [(3, 401), (4, 401), (5, 200)];
    let step = play(
        &mut run,
        [
            page_after("form#sign-in", 1, &before),
            page_after(code, 1, &before),
            page_after(code, 1, &before),
            page_after(code, 1, &before),
        ],
    );
    let PublicPhase::Awaiting(ask) = &step.shown else { panic!("{step:?}") };
    assert_eq!((ask.kind, ask.text_key.as_str()), (PromptKind::Otp, "enter_code"));
    let step = play(&mut run, [page_after(code, 1, &[(5, 200), (6, 401)])]);
    let PublicPhase::Awaiting(ask) = &step.shown else { panic!("{step:?}") };
    assert_eq!(ask.text_key, "wrong_code");
}

#[test]
fn a_sign_out_during_a_second_step_leads_back_to_the_sign_in() {
    for page in ["input[autocomplete=one-time-code]", "form#security-question"] {
        let mut run = run();
        play(&mut run, [StepResult::Begin, StepResult::Arrived, page_with(&["form#sign-in"])]);
        play(&mut run, [page_with(&[page]), page_with(&[page])]);
        let step = play(&mut run, [page_with(&["form#sign-in"]), page_with(&["form#sign-in"])]);
        let PublicPhase::Awaiting(ask) = &step.shown else { panic!("{step:?}") };
        assert_eq!(ask.kind, PromptKind::Login, "{page}");
    }
}

#[test]
fn interrupts_end_any_node_that_observes_a_page() {
    let mut run = run();
    let locked = page_with(&["form#sign-in", ".error[data-code=locked]"]);
    let step = play(
        &mut run,
        [StepResult::Begin, StepResult::Arrived, page_with(&["form#sign-in"]), locked],
    );
    assert_eq!(step.command, Command::End(End::Failed(ErrorCode::AccountLocked)));
}

#[test]
fn every_wait_has_a_timeout() {
    let mut run = run();
    play(&mut run, [StepResult::Begin, StepResult::Arrived]);
    let step = run.next(page_with(&[]), noon() + TimeDelta::seconds(20));
    assert_eq!(step.command, Command::End(End::Failed(ErrorCode::UnexpectedPage)));

    let mut run = self::run();
    play(&mut run, [StepResult::Begin, StepResult::Arrived, page_with(&["form#sign-in"])]);
    let step = run.next(page_with(&["form#sign-in"]), noon() + TimeDelta::seconds(600));
    assert_eq!(step.command, Command::End(End::Failed(ErrorCode::UserInputTimeout)));
}

#[test]
fn the_sandbox_definition_is_valid() {
    assert_eq!(check(&sandbox()), []);
}

#[test]
fn invalid_definitions_are_reported_with_all_errors() {
    let errors = |mutate: Mutation| {
        let mut document = serde_json::to_value(sandbox()).unwrap();
        mutate(&mut document);
        let definition: Definition = serde_json::from_value(document).unwrap();
        check(&definition).iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let mut report = String::new();
    let mutations: [(&str, Mutation); 15] = [
        ("unknown target", |d| d["nodes"]["open"]["next"] = json!("nowhere")),
        ("unknown start", |d| d["start"] = json!("nowhere")),
        ("unknown signal", |d| d["nodes"]["route"]["cases"][0]["when"] = json!("nope")),
        ("no way out", |d| d["nodes"]["review"]["next"] = json!("review")),
        ("no review", |d| d["nodes"]["stats"]["next"] = json!("end")),
        ("required left out", |d| d["nodes"]["profile"]["fields"] = json!({"accountId": "/id"})),
        ("foreign host", |d| d["requests"]["me"]["url"] = json!("https://evil.test/me")),
        ("plain http", |d| {
            d["hosts"] = json!(["acme.test"]);
            d["requests"]["me"]["url"] = json!("http://acme.test/me");
        }),
        ("a port", |d| {
            d["hosts"] = json!(["acme.test"]);
            d["requests"]["me"]["url"] = json!("https://acme.test:9443/me");
            d["requests"]["me"]["expectStatus"] = json!(0);
            d["nodes"]["open"]["url"] = json!("https://user@acme.test/");
        }),
        ("hosts that are no names", |d| {
            d["hosts"] = json!(["sandbox.localhost", "https://acme.test", "acme.test:8443"]);
            d["ssoHosts"] = json!(["*.acme.test", "127.0.0.1"]);
        }),
        ("patterns that never match", |d| {
            d["signals"]["loggedIn"] = json!({ "any": [
                { "url": "https://sandbox.localhost/account" },
                { "url": "/account?tab=1" },
                { "url": "account" },
                { "response": { "url": "/api/me#x", "status": 20, "has": "id" } },
            ] });
            d["nodes"]["stats"]["via"] = json!({ "response": "api/stats" });
        }),
        ("conditions without content", |d| {
            d["signals"]["otp"] = json!({ "all": [] });
            d["signals"]["questions"] = json!({ "not": { "any": [] } });
            d["signals"]["badLogin"] = json!({ "selector": " " });
            d["signals"]["locked"] = json!({ "cookie": "a b" });
            d["signals"]["down"] = json!({ "httpStatus": [] });
            d["nodes"]["badge"]["fields"] = json!({ "tier": "" });
            d["nodes"]["profile"]["fields"]["memberSince"] = json!("/a~2b");
        }),
        ("no text", |d| d["texts"]["en"] = json!({})),
        ("output that cannot be shown", |d| {
            d["output"]["followers"]["format"] = json!("date");
            d["output"]["followers"]["valueKeys"] = json!({ "1": "one" });
            d["output"]["followers"]["currency"] = json!("euro");
            d["output"]["tier"]["currency"] = json!("EUR");
            d["outputOrder"] = json!(["tier", "tier", "nothing"]);
        }),
        ("nothing that could be attested", |d| {
            d["requests"]["certified"]["url"] = json!("http://sandbox.localhost:81/api/me");
            d["requests"]["certified"]["expectStatus"] = json!(201);
            d["attest"]["modes"] = json!([]);
            d["attest"]["headers"] = json!({ "cookie": "a=1", "Accept": "x", "x-a": "b\r\nc" });
            d["attest"]["fields"] = json!({ "nothing": "id" });
        }),
    ];
    for (name, mutate) in mutations {
        writeln!(report, "# {name}\n{}", errors(mutate)).unwrap();
    }
    insta::assert_snapshot!(report);
}

#[test]
fn an_interrupt_leads_neither_past_required_fields_nor_past_the_review() {
    // A branch between the collection and the review, and an interrupt before all others.
    let errors = |then: serde_json::Value| {
        let mut document = serde_json::to_value(sandbox()).unwrap();
        document["nodes"]["stats"]["next"] = json!("check");
        document["nodes"]["check"] = json!({
            "type": "branch", "settleSeconds": 20, "default": { "fail": "UNEXPECTED_PAGE" },
            "cases": [{ "when": "loggedIn", "next": "review" }],
        });
        let interrupts = document["interrupts"].as_array_mut().unwrap();
        interrupts.insert(0, json!({ "when": "otp", "then": then }));
        let definition: Definition = serde_json::from_value(document).unwrap();
        check(&definition).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let at = "$.interrupts[0].then: can lead to `end`";
    let lacks = format!("{at} without the required `accountId` when it interrupts `route`");
    let unseen =
        format!("{at} with data the applicant has not reviewed when it interrupts `check`");
    assert_eq!(errors(json!({ "next": "review" })), std::slice::from_ref(&lacks));
    assert_eq!(errors(json!({ "next": "end" })), [lacks.clone(), unseen.clone()]);
    let retry = |next: &str, otherwise: serde_json::Value| {
        let mut then = json!({ "retry": { "times": 1, "afterSeconds": 5, "next": next } });
        then["retry"]["otherwise"] = otherwise;
        then
    };
    let fail = || json!({ "fail": "PLATFORM_UNAVAILABLE" });
    assert_eq!(errors(retry("end", fail())), [lacks.clone(), unseen.clone()]);
    assert_eq!(errors(retry("open", json!({ "next": "end" }))), [lacks, unseen]);
    for accepted in [json!({ "next": "open" }), json!({ "next": "route" }), retry("open", fail())] {
        assert_eq!(errors(accepted), Vec::<String>::new());
    }
}

/// The sandbox's definition, in which the profile may be missing.
fn without_profile() -> serde_json::Value {
    let mut document = serde_json::to_value(sandbox()).unwrap();
    document["nodes"]["profile"]["onMissing"] = json!({ "next": "badge" });
    document
}

#[test]
fn a_node_has_not_collected_its_fields_where_one_is_missing() {
    let errors = |document: serde_json::Value| {
        let definition: Definition = serde_json::from_value(document).unwrap();
        check(&definition).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let lacks = "$.nodes.end: can be reached without the required `accountId`";
    assert_eq!(errors(without_profile()), [lacks]);
    // Another node may read them, or they may not be required.
    let mut document = without_profile();
    document["nodes"]["again"] = sandbox_node("profile");
    document["nodes"]["profile"]["onMissing"] = json!({ "next": "again" });
    assert_eq!(errors(document), Vec::<String>::new());
    let mut document = without_profile();
    for field in ["accountId", "displayName"] {
        document["output"][field]["required"] = json!(false);
    }
    assert_eq!(errors(document), Vec::<String>::new());
}

fn sandbox_node(name: &str) -> serde_json::Value {
    serde_json::to_value(sandbox()).unwrap()["nodes"][name].clone()
}

#[test]
fn a_run_without_a_required_field_shares_nothing() {
    // The definition may have been published before the validation refused it.
    let definition = serde_json::from_value(without_profile()).unwrap();
    let mut run = Run::new(Arc::new(definition), noon());
    play(&mut run, signed_in());
    play(&mut run, [StepResult::Unreadable]);
    after_pause(&mut run);
    let results = [
        StepResult::Unreadable,
        StepResult::Read(json!({"tier": "gold"})),
        StepResult::Read(json!({"followers": 7})),
    ];
    let step = play(&mut run, results);
    assert!(matches!(step.command, Command::Consent { .. }), "{step:?}");
    let step = play(&mut run, [StepResult::Answered { share: true }]);
    assert_eq!(step.command, Command::End(End::Failed(ErrorCode::ExtractionFailed)));
}

#[test]
fn a_text_of_another_language_is_no_translation() {
    let definition = sandbox();
    let translation = |language, key| definition.translation(Some(language), key);
    assert_eq!(translation("de-AT", "account_id"), Some("Kontonummer"));
    assert_eq!(translation("ja", "account_id"), None);
    assert_eq!(definition.text(Some("ja"), "account_id"), "Account number");
    assert_eq!(definition.text(Some("ja"), "unknown"), "unknown");
}

#[test]
fn the_sandbox_has_all_texts_in_each_language_of_the_applicants_page() {
    let definition = sandbox();
    let keys: Vec<_> = definition.texts["en"].keys().collect();
    let languages: Vec<_> = definition.texts.keys().map(String::as_str).collect();
    assert_eq!(languages, ["ar", "de", "en", "es", "fr", "it", "nl", "pl", "pt", "tr"]);
    for (language, texts) in &definition.texts {
        assert_eq!(texts.keys().collect::<Vec<_>>(), keys, "{language}");
    }
}

#[test]
fn members_of_a_field_that_have_no_value_do_not_change_the_hash_of_a_document() {
    let mut document = serde_json::to_value(sandbox()).unwrap();
    assert_eq!(
        document["output"]["accountId"],
        json!({
            "type": "string", "required": true, "labelKey": "account_id", "pii": true,
        })
    );
    document["outputOrder"] = json!([]);
    let definition: Definition = serde_json::from_value(document).unwrap();
    assert_eq!(serde_json::to_value(&definition).unwrap().get("outputOrder"), None);
    let names: Vec<_> = definition.ordered_output().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["accountId", "displayName", "followers", "memberSince", "tier"]);
}

#[test]
fn an_attestation_has_one_mode() {
    use AttestMode::{FullReveal, ZktlsRequest};
    let mut two = sandbox();
    two.attest.as_mut().unwrap().modes = vec![ZktlsRequest, FullReveal];
    let errors: Vec<_> = check(&two).iter().map(ToString::to_string).collect();
    assert_eq!(errors, ["$.attest.modes: an attestation has exactly one mode"]);
    // A definition stored with two modes uses the one that reveals less, in either order.
    let mut attest = sandbox().attest.clone().unwrap();
    for (modes, mode) in [
        (vec![FullReveal, ZktlsRequest], Some(ZktlsRequest)),
        (vec![ZktlsRequest, FullReveal], Some(ZktlsRequest)),
        (vec![FullReveal], Some(FullReveal)),
        (vec![], None),
    ] {
        attest.modes = modes;
        assert_eq!(attest.mode(), mode);
        let definition = Definition { attest: Some(attest.clone()), ..sandbox() };
        assert_eq!(definition.opens_all(), mode == Some(FullReveal));
    }
}

proptest! {
    /// For any results, a run ends within its budget of steps and time.
    #[test]
    fn every_run_ends(choices in prop::collection::vec(0_usize..9, 1..400)) {
        let mut run = run();
        let mut now = noon();
        let mut ended = false;
        for choice in choices.into_iter().cycle().take(2000) {
            let result = match choice {
                0 => StepResult::Arrived,
                1 => StepResult::Unreachable,
                2 => page_with(&["form#sign-in"]),
                3 => page_with(&["main#account"]),
                4 => page_with(&[]),
                5 => StepResult::Read(json!({"id": "1", "name": "n"})),
                6 => StepResult::Unreadable,
                7 => StepResult::Answered { share: true },
                _ => StepResult::Waited,
            };
            now += TimeDelta::seconds(1);
            if let Command::End(_) = run.next(result, now).command {
                ended = true;
                break;
            }
        }
        prop_assert!(ended);
    }
}
