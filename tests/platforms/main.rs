//! The definitions of `platforms/`, each with the real application that it is for: an applicant signs
//! in, at a desktop and with a phone, and exactly the account's data is collected.
//!
//! Two of them are always run; `cargo xtask test-platforms` runs all of them.

use std::path::{Path, PathBuf};

use acceptance::{
    database::Kind,
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
    for entry in std::fs::read_dir(root().join("platforms")).expect("platforms").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() {
            let call = format!("collects_from(\"{name}\")");
            assert!(include_str!("main.rs").contains(&call), "{name} has no test");
            assert!(table.contains(&format!("]({name}/definition.json)")), "{name} has no row");
        }
    }
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
