//! The engine over the sandbox's definition, and the checks over broken ones.

use std::{fmt::Write as _, sync::Arc};

use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{error_code::ErrorCode, session::Collected};

type Spoil = fn(&mut serde_json::Value);

fn sandbox() -> Definition {
    serde_json::from_str(include_str!("../../platforms/sandbox.json")).unwrap()
}

fn noon() -> DateTime<Utc> {
    DateTime::from_timestamp(1_767_268_800, 0).unwrap()
}

fn run() -> Run {
    Run::new(Arc::new(sandbox()), noon())
}

fn seeing(selectors: &[&str]) -> StepResult {
    StepResult::Seen(Observation {
        settled: true,
        cookies: ["acme_sid".to_owned()].into(),
        present: selectors.iter().map(|s| (*s).to_owned()).collect(),
        ..Observation::default()
    })
}

/// Plays the news in order and answers the last turn.
fn play(run: &mut Run, news: impl IntoIterator<Item = StepResult>) -> RunStep {
    news.into_iter().map(|news| run.next(news, noon())).last().unwrap()
}

fn signed_in() -> [StepResult; 3] {
    [StepResult::Begin, StepResult::Arrived, seeing(&["main#account"])]
}

#[test]
fn the_happy_road_asks_before_it_shares() {
    let mut run = run();
    let turn = play(&mut run, [StepResult::Begin, StepResult::Arrived, seeing(&["form#sign-in"])]);
    assert!(matches!(&turn.shown, PublicPhase::Awaiting(ask) if ask.kind == PromptKind::Login));
    let turn = play(&mut run, [seeing(&["main#account"]), seeing(&["main#account"])]);
    assert!(matches!(turn.command, Command::Fetch { .. }), "{turn:?}");
    let me = json!({"id": "42", "name": "Ada", "memberSince": "2019"});
    let turn = play(
        &mut run,
        [
            StepResult::Read(me),
            StepResult::Read(json!({"[data-field=tier]": "gold"})),
            StepResult::Read(json!({"followers": 7})),
        ],
    );
    assert!(matches!(&turn.command, Command::Consent { fields } if fields.len() == 5), "{turn:?}");
    let turn = play(&mut run, [StepResult::Answered { share: true }]);
    let Command::End(End::Done(collected)) = turn.command else { panic!("{turn:?}") };
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
    let news = [
        StepResult::Read(me),
        StepResult::Read(json!({})),
        StepResult::Unreadable,
        StepResult::Unreadable,
    ];
    let turn = play(&mut run, news);
    assert!(matches!(turn.command, Command::Consent { .. }), "{turn:?}");
    let turn = play(&mut run, [StepResult::Answered { share: false }]);
    assert_eq!(turn.command, Command::End(End::Declined));
}

#[test]
fn what_is_optional_may_be_missing_and_is_named() {
    let mut run = run();
    play(&mut run, signed_in());
    let me = json!({"id": "42", "name": "Ada", "memberSince": 5});
    let dom = json!({"[data-field=tier]": "gold"});
    play(&mut run, [StepResult::Read(me.clone()), StepResult::Read(me), StepResult::Read(dom)]);
    let end = play(
        &mut run,
        [StepResult::Unreadable, StepResult::Unreadable, StepResult::Answered { share: true }],
    );
    let Command::End(End::Done(Collected { missing, .. })) = end.command else { panic!("{end:?}") };
    assert_eq!(missing, ["memberSince", "followers"]);
}

#[test]
fn what_is_required_is_tried_again_and_then_fails() {
    let mut run = run();
    play(&mut run, signed_in());
    let turn = play(&mut run, [StepResult::Unreadable]);
    assert!(matches!(turn.command, Command::Fetch { .. }));
    let turn = play(&mut run, [StepResult::Unreadable]);
    assert_eq!(turn.command, Command::End(End::Failed(ErrorCode::NoData)));
}

#[test]
fn a_third_wrong_password_ends_it() {
    let mut run = run();
    play(&mut run, [StepResult::Begin, StepResult::Arrived, seeing(&["form#sign-in"])]);
    let wrong = || seeing(&["form#sign-in", ".error[data-code=bad_credentials]"]);
    let turn = play(&mut run, [wrong(), wrong(), wrong()]);
    let PublicPhase::Awaiting(ask) = &turn.shown else { panic!("{turn:?}") };
    assert_eq!(ask.text_key, "wrong_password", "the same page seen thrice is one mistake");
    let blank = || seeing(&["form#sign-in"]);
    let turn = play(&mut run, [blank(), wrong(), blank(), wrong()]);
    assert_eq!(turn.command, Command::End(End::Failed(ErrorCode::CredentialsInvalid)));
}

#[test]
fn the_same_mistake_on_a_page_that_was_loaded_anew_is_another_one() {
    let mut run = run();
    play(&mut run, [StepResult::Begin, StepResult::Arrived, seeing(&["form#sign-in"])]);
    let wrong = |document| {
        let StepResult::Seen(seen) = seeing(&["form#sign-in", ".error[data-code=bad_credentials]"])
        else {
            panic!("it is seen")
        };
        StepResult::Seen(Observation { document, ..seen })
    };
    let turn = play(&mut run, [wrong(1), wrong(1), wrong(2), wrong(2)]);
    assert!(matches!(turn.shown, PublicPhase::Awaiting(_)), "two mistakes: {turn:?}");
    let turn = play(&mut run, [wrong(3)]);
    assert_eq!(turn.command, Command::End(End::Failed(ErrorCode::CredentialsInvalid)));
}

#[test]
fn interrupts_fire_wherever_a_page_is_watched() {
    let mut run = run();
    let locked = seeing(&["form#sign-in", ".error[data-code=locked]"]);
    let turn =
        play(&mut run, [StepResult::Begin, StepResult::Arrived, seeing(&["form#sign-in"]), locked]);
    assert_eq!(turn.command, Command::End(End::Failed(ErrorCode::AccountLocked)));
}

#[test]
fn every_wait_has_an_end() {
    let mut run = run();
    play(&mut run, [StepResult::Begin, StepResult::Arrived]);
    let turn = run.next(seeing(&[]), noon() + TimeDelta::seconds(20));
    assert_eq!(turn.command, Command::End(End::Failed(ErrorCode::UnexpectedPage)));

    let mut run = self::run();
    play(&mut run, [StepResult::Begin, StepResult::Arrived, seeing(&["form#sign-in"])]);
    let turn = run.next(seeing(&["form#sign-in"]), noon() + TimeDelta::seconds(600));
    assert_eq!(turn.command, Command::End(End::Failed(ErrorCode::UserInputTimeout)));
}

#[test]
fn the_sandbox_passes_the_checks() {
    assert_eq!(check(&sandbox()), []);
}

#[test]
fn broken_definitions_are_told_what_is_wrong() {
    let flaws = |spoil: fn(&mut serde_json::Value)| {
        let mut document = serde_json::to_value(sandbox()).unwrap();
        spoil(&mut document);
        let definition: Definition = serde_json::from_value(document).unwrap();
        check(&definition).iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let mut report = String::new();
    let spoils: [(&str, Spoil); 10] = [
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
        ("no text", |d| d["texts"]["en"] = json!({})),
        ("nothing that could be attested", |d| {
            d["requests"]["certified"]["url"] = json!("http://sandbox.localhost:81/api/me");
            d["requests"]["certified"]["expectStatus"] = json!(201);
            d["attest"]["modes"] = json!([]);
            d["attest"]["headers"] = json!({ "cookie": "a=1", "Accept": "x", "x-a": "b\r\nc" });
            d["attest"]["fields"] = json!({ "nothing": "id" });
        }),
    ];
    for (name, spoil) in spoils {
        writeln!(report, "# {name}\n{}", flaws(spoil)).unwrap();
    }
    insta::assert_snapshot!(report);
}

#[test]
fn an_attestation_has_one_mode() {
    use AttestMode::{FullReveal, ZktlsRequest};
    let mut two = sandbox();
    two.attest.as_mut().unwrap().modes = vec![ZktlsRequest, FullReveal];
    let flaws: Vec<_> = check(&two).iter().map(ToString::to_string).collect();
    assert_eq!(flaws, ["attest.modes: an attestation has exactly one mode"]);
    // What was stored with two still has one: that which reveals less, whatever their order.
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
    /// Whatever the world reports, a run ends within its budget of steps and time.
    #[test]
    fn every_run_ends(choices in prop::collection::vec(0_usize..9, 1..400)) {
        let mut run = run();
        let mut now = noon();
        let mut ended = false;
        for choice in choices.into_iter().cycle().take(2000) {
            let news = match choice {
                0 => StepResult::Arrived,
                1 => StepResult::Unreachable,
                2 => seeing(&["form#sign-in"]),
                3 => seeing(&["main#account"]),
                4 => seeing(&[]),
                5 => StepResult::Read(json!({"id": "1", "name": "n"})),
                6 => StepResult::Unreadable,
                7 => StepResult::Answered { share: true },
                _ => StepResult::Waited,
            };
            now += TimeDelta::seconds(1);
            if let Command::End(_) = run.next(news, now).command {
                ended = true;
                break;
            }
        }
        prop_assert!(ended);
    }
}
