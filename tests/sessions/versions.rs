//! Versions of a platform: chosen, tried with a share of sessions, and counted.

use std::time::Duration;

use acceptance::{
    applicant::{Applicant, Embed},
    database::Kind,
    eventually,
    platform::publish,
    service::Deployment,
};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_are_chosen_and_counted() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let platform = version(&deployment, "1.0.0", "Sign in to Acme");
    let id = platform.to_string();
    let applicant = Applicant::visit("about:blank").await;
    let started = deployment.create(&json!({ "platformId": platform })).await;
    let embed = start(&applicant, &started).await;
    embed.until_prompted("Sign in to Acme").await;

    version(&deployment, "1.1.0", "Sign in to the new Acme");
    let list = deployment.admin(&["list-platform-versions", &id]);
    assert_eq!(list["version"], "1.1.0", "{list}");
    let versions: Vec<_> = list["versions"].as_array().unwrap().iter().collect();
    assert_eq!(versions.iter().map(|one| &one["version"]).collect::<Vec<_>>(), ["1.1.0", "1.0.0"]);

    // The session has begun, and keeps its version: also for an applicant who comes back.
    applicant.reload().await;
    embed.until_prompted("Sign in to Acme").await;
    embed.sign_in("unexpected", "any").await;
    // Another attempt is offered, and declined.
    assert_eq!(embed.until_outcome().await, "ERROR");

    let next = deployment.create(&json!({ "platformId": platform })).await;
    start(&applicant, &next).await.until_prompted("Sign in to the new Acme").await;
    let chosen = deployment.admin(&[
        "set-platform-version",
        &id,
        "1.0.0",
        "--canary",
        "1.1.0",
        "--canary-percent",
        "99",
    ]);
    assert_eq!(chosen["canary"], json!({ "version": "1.1.0", "percent": 99 }));
    deployment.admin(&["set-platform-version", &id, "1.0.0"]);
    let back = deployment.create(&json!({ "platformId": platform })).await;
    let embed = start(&applicant, &back).await;
    embed.until_prompted("Sign in to Acme").await;
    embed.sign_in("ok", "any").await;
    embed.click("[data-testid=consent-approve]").await;
    assert_eq!(embed.until_outcome().await, "COMPLETED");

    let health = eventually("the runs to be counted", Duration::from_secs(60), async || {
        let platforms = deployment.partner.get("browser-platforms").await;
        let platforms = platforms.at("/data").as_array()?.clone();
        let found = platforms.into_iter().find(|one| one["id"] == platform)?;
        let health = found["config"]["health"].clone();
        (health["versions"][0]["runs"] == 2).then_some(health)
    })
    .await;
    let counted = &health["versions"][0];
    assert_eq!((&health["state"], &counted["version"]), (&json!("unknown"), &json!("1.0.0")));
    assert_eq!(counted["successRate"], Value::Null, "too few runs: {health}");
    assert_eq!(counted["failingNode"], "route", "{health}");
    applicant.close().await;
}

/// Publishes a version whose sign-in has a text.
fn version(deployment: &Deployment, version: &str, text: &str) -> Value {
    publish(deployment, "acme-versions", |definition| {
        definition["version"] = version.into();
        definition["texts"]["en"]["sign_in"] = text.into();
    })
}

async fn start<'a>(applicant: &'a Applicant, session: &Value) -> Embed<'a> {
    applicant.navigate(session["embedUrl"].as_str().expect("a link")).await;
    let embed = applicant.top_level();
    embed.click("[data-testid=start]").await;
    embed
}
