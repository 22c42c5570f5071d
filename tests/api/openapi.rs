//! The interface description matches the service: generated requests reveal no deviation, and
//! generated clients in TypeScript and Python each drive a session.

use std::{path::PathBuf, process::Command};

use acceptance::{database::Kind, root, service::Deployment};
use hyper::Method;

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
        let mut command = Command::new(tool("python/bin/st"));
        command.arg("--config-file").arg(root().join("tests/openapi/schemathesis.toml"));
        command.arg("run").arg(url(&deployment, "/v1/openapi.json"));
        command.args(["--url", &url(&deployment, "/v1"), "--checks", "all", "--no-color"]);
        // A terminated session stays readable, so that its end can be read.
        command.args(["--exclude-checks", "use_after_free"]);
        command.args([
            "--max-examples",
            &cases,
            "--seed",
            &seed,
            "--header",
            &format!("x-api-key: {key}"),
        ]);
        command.current_dir(deployment.folder.path());
        succeed(&mut command);
    }
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
