//! The interface description matches the service: generated requests reveal no deviation, and
//! generated clients in TypeScript and Python each drive a session.

use std::{path::PathBuf, process::Command, time::Duration};

use acceptance::{applicant::Applicant, database::Kind, eventually, root, service::Deployment};
use hyper::Method;
use serde_json::{Value, json};

/// A proof takes every core, and a link is sent again after a minute.
const SEED_TIMEOUT: Duration = Duration::from_secs(180);
/// The operations that answer 404 unless there is an attestation, a recording or a channel: with the
/// method and the route by which metrics count them.
const SEEDED: [(&str, &str, &str); 4] = [
    ("verifyAttestation", "POST", "attestations/verify"),
    ("getAttestation", "GET", "browser-session/{id}/attestation"),
    ("getRecording", "GET", "browser-session/{id}/recording"),
    ("resendNotification", "POST", "browser-session/{id}/resend-notification"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn generated_requests_match_the_description_with_a_key_of_each_environment() {
    let mut deployment = Deployment::prepare(Kind::Postgres).await;
    // Rate limits are on, so that their headers are sent, and so high that they never apply.
    deployment.set("AVOUCH_RATE_LIMIT", "1000000/3600");
    deployment.set("AVOUCH_CREATE_LIMIT", "1000000/3600");
    deployment.set("AVOUCH_LOG", "warn");
    deployment.run().await;
    let key = ["create-key", "--team", &deployment.team, "--environment", "production"];
    let production = deployment.admin(&key)["apiKey"].as_str().unwrap().to_owned();
    let set =
        |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let cases = set("SCHEMATHESIS_EXAMPLES", "25");
    // The seed is fixed: the same requests are sent each time, so that a failure is reproducible.
    // Another seed generates others.
    let seed = set("SCHEMATHESIS_SEED", "1");
    for key in [&deployment.api_key, &production] {
        let mut command = schemathesis(&deployment, key);
        command.args(["--max-examples", &cases, "--seed", &seed]);
        succeed(&mut command);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn generated_requests_reach_attestations_recordings_and_channels_that_exist() {
    let mut deployment = Deployment::prepare(Kind::Postgres).await;
    deployment.set("AVOUCH_LOG", "warn");
    deployment.run().await;
    let channel = json!({ "notificationPlatformId": 1,
        "receiverData": { "email": "ada@example.com" } });
    let notified = text(&deployment.create(&channel).await, "sessionId");
    let created = tokio::time::Instant::now();
    let failed = played(&deployment, &json!({ "maxAttempts": 1 }), "site_down").await;
    eventually("a recording", SEED_TIMEOUT, async || {
        (deployment.recording(&failed).await["status"] == "completed").then_some(())
    })
    .await;
    let attested = played(&deployment, &json!({ "generateAttestation": true }), "ok").await;
    let delivered = eventually("a webhook", SEED_TIMEOUT, async || {
        deployment.deliveries(&attested).await.pop()
    })
    .await;
    let proof = text(&delivered["payload"], "proofHash");
    tokio::time::sleep_until(created + Duration::from_secs(61)).await;

    let seeds = json!({
        "verifyAttestation": { "body": { "proofHash": proof } },
        "getAttestation": { "path": { "id": attested } },
        "getRecording": { "path": { "id": failed } },
        "resendNotification": { "path": { "id": notified } },
    });
    let mut command = schemathesis(&deployment, &deployment.api_key);
    command.args(["--mode", "positive", "--phases", "examples,coverage,fuzzing"]);
    command.args(["--max-examples", "10", "--seed", "1"]);
    for (operation, ..) in SEEDED {
        command.args(["--include-operation-id", operation]);
    }
    command.env("SEEDS", seeds.to_string());
    command.env("SCHEMATHESIS_HOOKS", root().join("tests/openapi/seeds.py"));
    succeed(&mut command);

    let metrics = deployment.partner.send(Method::GET, "/metrics", String::new()).await.bytes;
    let metrics = String::from_utf8_lossy(&metrics);
    for (operation, method, route) in SEEDED {
        let labels = format!("method=\"{method}\",route=\"{route}\",status=\"2xx\"");
        assert!(metrics.contains(&labels), "{operation} never succeeded:\n{metrics}");
    }
}

/// Plays a session of the sandbox to its end; returns its identifier.
async fn played(deployment: &Deployment, asked: &Value, user: &str) -> String {
    let session = deployment.create(asked).await;
    let id = text(&session, "sessionId");
    let applicant = Applicant::visit(&deployment.demo).await;
    let embed = applicant.show(session["embedUrl"].as_str().unwrap()).await;
    embed.sign_in(user, "any").await;
    if user == "ok" {
        embed.click("[data-testid=consent-approve]").await;
    }
    eventually("the end", SEED_TIMEOUT, async || {
        (!deployment.session(&id).await["completedAt"].is_null()).then_some(())
    })
    .await;
    applicant.close().await;
    id
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no {name} in {value}")).to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_generated_typescript_client_drives_a_session() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let clients = root().join("tests/openapi/typescript");
    let description = description(&deployment).await;
    let types = clients.join("node_modules/.generated.d.ts");
    let generate = clients.join("node_modules/.bin/openapi-typescript");
    succeed(Command::new(generate).arg(&description).arg("--output").arg(types));
    succeed(Command::new(clients.join("node_modules/.bin/tsc")).current_dir(&clients));
    let mut drive = Command::new("node");
    drive.arg(clients.join("drive.mjs"));
    succeed(told(&mut drive, &deployment));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_generated_python_client_drives_a_session() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let description = description(&deployment).await;
    let client = deployment.folder.path().join("client");
    let mut generate = Command::new(tool("python/bin/openapi-python-client"));
    generate.args(["generate", "--meta", "none", "--path"]).arg(description);
    generate.arg("--output-path").arg(client.join("avouch_client"));
    generate.env("PATH", format!("{}:/usr/bin:/bin", tool("python/bin").display()));
    succeed(&mut generate);
    let mut drive = Command::new(tool("python/bin/python"));
    drive.arg(root().join("tests/openapi/drive.py")).env("PYTHONPATH", client);
    succeed(told(&mut drive, &deployment));
}

async fn description(deployment: &Deployment) -> PathBuf {
    let path = "/v1/openapi.json";
    let document = deployment.partner.send(Method::GET, path, String::new()).await.body;
    let file = deployment.folder.path().join("openapi.json");
    std::fs::write(&file, document.to_string()).unwrap();
    file
}

/// The generator of requests, which performs all its checks.
fn schemathesis(deployment: &Deployment, key: &str) -> Command {
    let mut command = Command::new(tool("python/bin/st"));
    command.arg("--config-file").arg(root().join("tests/openapi/schemathesis.toml"));
    command.arg("run").arg(url(deployment, "/v1/openapi.json"));
    command.args(["--url", &url(deployment, "/v1"), "--checks", "all", "--no-color"]);
    // A terminated session stays readable, so that its end can be read.
    command.args(["--exclude-checks", "use_after_free"]);
    command.args(["--header", &format!("x-api-key: {key}")]);
    command.current_dir(deployment.folder.path());
    command
}

fn url(deployment: &Deployment, path: &str) -> String {
    format!("{}{path}", deployment.setting("AVOUCH_PUBLIC_URL").unwrap())
}

fn told<'a>(command: &'a mut Command, deployment: &Deployment) -> &'a mut Command {
    let base = url(deployment, "/v1");
    command.env("AVOUCH_BASE", base).env("AVOUCH_KEY", &deployment.api_key)
}

/// A program that `cargo xtask test` installs.
fn tool(path: &str) -> PathBuf {
    let tool = root().join("target/tools").join(path);
    assert!(tool.exists(), "{} is missing: run `cargo xtask test`", tool.display());
    tool
}

fn succeed(command: &mut Command) {
    let output = command.output().expect("the program runs");
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}\n{out}\n{err}");
    println!("{}", out.lines().rev().take(12).collect::<Vec<_>>().join("\n"));
}
