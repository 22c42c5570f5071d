//! The definitions of `platforms/`, each with the real application that it is for: an applicant signs
//! in, at a desktop and with a phone, and exactly the account's data is collected.
//!
//! Two of them are always run; `cargo xtask test-platforms` runs all of them. The fixture of each is
//! always replayed, without its application.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use acceptance::{
    database::Kind,
    eventually,
    journey::{Screen, play, visit},
    real_platform::RealPlatform,
    root,
    service::Deployment,
};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn canaille_asks_for_a_code_and_shares_the_profile() {
    collects_from("canaille").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ihatemoney_shares_bills_of_two_pages() {
    collects_from("ihatemoney").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes to install; run by `cargo xtask test-platforms`"]
async fn directus_shares_what_its_api_answers() {
    collects_from("directus").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes to install; run by `cargo xtask test-platforms`"]
async fn home_assistant_is_read_through_shadow_roots() {
    collects_from("home-assistant").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes to install; run by `cargo xtask test-platforms`"]
async fn mediawiki_shares_edits_of_several_pages_in_german() {
    collects_from("mediawiki").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes to install; run by `cargo xtask test-platforms`"]
async fn node_red_is_signed_in_to_through_another_host() {
    collects_from("node-red").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes to install; run by `cargo xtask test-platforms`"]
async fn redmine_was_made_verifiable_with_the_studio() {
    collects_from("redmine").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes to install; run by `cargo xtask test-platforms`"]
async fn roundcube_is_read_within_a_frame() {
    collects_from("roundcube").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes to install; run by `cargo xtask test-platforms`"]
async fn roundup_shares_issues_of_three_pages() {
    collects_from("roundup").await;
}

#[test]
fn every_platform_has_a_test_and_a_row_in_the_table() {
    let table = std::fs::read_to_string(root().join("platforms/README.md")).expect("the table");
    for name in names() {
        let call = format!("collects_from(\"{name}\")");
        assert!(include_str!("main.rs").contains(&call), "{name} has no test");
        assert!(table.contains(&format!("]({name}/definition.json)")), "{name} has no row");
    }
}

#[tokio::test]
async fn every_fixture_leads_to_the_data_of_its_account() {
    let deployment = Deployment::prepare(Kind::Sqlite).await;
    for name in names() {
        let folder = root().join("platforms").join(&name);
        let fixture = folder.join("fixture.json");
        let output = replay(&deployment, &folder.join("definition.json"), &fixture);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(printed, format!("{}: as expected\n", fixture.display()), "{name}: {errors}");
        assert_eq!(output.status.code(), Some(0), "{name}");
        let read = |file: &str| -> Value {
            let text = fs::read_to_string(folder.join(file)).expect("a file of a platform");
            serde_json::from_str(&text).expect("JSON")
        };
        let (fixture, journey) = (read("fixture.json"), read("journey.json"));
        let mut missing = fixture["expected"]["missing"].as_array().cloned().unwrap_or_default();
        missing.sort_by_key(Value::to_string);
        let expected = &journey["expected"];
        assert_eq!(fixture["expected"]["data"], expected["extractedData"], "{name}");
        assert_eq!(json!(missing), expected["missing"], "{name}");
    }
}

/// The names of the folders of `platforms/`.
fn names() -> Vec<String> {
    let entries = fs::read_dir(root().join("platforms")).expect("platforms").flatten();
    let folders = entries.filter(|entry| entry.path().is_dir());
    let mut names: Vec<_> =
        folders.map(|folder| folder.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

async fn collects_from(name: &str) {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    let platform = RealPlatform::start(name, &installations().join(name)).await;
    platform.allow(&mut deployment);
    deployment.run().await;
    let id = platform.publish(&deployment);
    for screen in [Screen::Desktop, Screen::Phone] {
        let began = std::time::Instant::now();
        let session = deployment.create(&json!({ "platformId": id })).await;
        let applicant = visit(session["embedUrl"].as_str().expect("a link"), screen).await;
        let embed = applicant.top_level();
        play(&embed, screen, &platform.journey["steps"]).await;
        embed.click("[data-testid=consent-approve]").await;
        embed.until_outcome().await;
        let session = deployment.session(session["sessionId"].as_str().expect("an id")).await;
        let expected = &platform.journey["expected"];
        assert_eq!(shared(&session), *expected, "{name}, {screen:?}: {session:#}");
        applicant.close().await;
        println!("{name}, {screen:?}: {:.1} s", began.elapsed().as_secs_f64());
    }
    record(&deployment, &platform).await;
}

/// Captures a run by `avouch workflow run`, and replays it. With `AVOUCH_TEST_RECORD`, the fixture is
/// written into the platform's folder.
async fn record(deployment: &Deployment, platform: &RealPlatform) {
    let definition = platform.write(deployment.folder.path());
    let fixture = definition.with_extension("fixture.json");
    let mut command = deployment.command();
    command.env("AVOUCH_LOG", "warn").args(["workflow", "run", "--record"]);
    command.arg(&fixture).arg(&definition).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut process = command.spawn().expect("the command starts");
    let errors = process.stderr.take().expect("its errors");
    let mut lines = BufReader::new(errors).lines().map_while(Result::ok);
    let link = "open this and play the applicant: ";
    let link = lines.by_ref().find_map(|line| line.strip_prefix(link).map(str::to_owned));
    let rest = std::thread::spawn(move || lines.collect::<Vec<_>>());
    let applicant = visit(&link.expect("a link"), Screen::Desktop).await;
    let embed = applicant.top_level();
    play(&embed, Screen::Desktop, &platform.journey["steps"]).await;
    embed.click("[data-testid=consent-approve]").await;
    let ended = eventually("the end of the run", Duration::from_secs(60), async || {
        process.try_wait().expect("its status")
    });
    let code = ended.await.code();
    let printed = rest.join().expect("its errors");
    assert_eq!(code, Some(0), "{}: {printed:#?}", platform.name);
    let written = format!("fixture written to {}", fixture.display());
    assert_eq!(printed.last(), Some(&written), "{}: {printed:#?}", platform.name);
    applicant.close().await;

    let began = Instant::now();
    let output = replay(deployment, &definition, &fixture);
    assert_eq!(output.status.code(), Some(0), "{}: {output:?}", platform.name);
    let text = fs::read_to_string(&fixture).expect("the fixture");
    let took = began.elapsed();
    println!(
        "{}: a fixture of {} bytes, replayed by a process of {took:?}",
        platform.name,
        text.len()
    );
    if std::env::var_os("AVOUCH_TEST_RECORD").is_some() {
        let kept = root().join("platforms").join(&platform.name).join("fixture.json");
        fs::write(kept, platform.without_ports(&text)).expect("the platform's folder");
    }
}

fn replay(deployment: &Deployment, definition: &Path, fixture: &Path) -> Output {
    let mut command: Command = deployment.command();
    command.args(["workflow", "run", "--replay"]).arg(fixture).arg(definition);
    command.output().expect("the command starts")
}

/// Returns what is compared of a session.
fn shared(session: &Value) -> Value {
    let mut missing = session["missing"].as_array().cloned().unwrap_or_default();
    missing.sort_by_key(Value::to_string);
    json!({
        "status": session["status"],
        "extractedData": session["extractedData"],
        "missing": missing,
    })
}

/// The folder of what the setups install, which is kept.
fn installations() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("platforms")
}
