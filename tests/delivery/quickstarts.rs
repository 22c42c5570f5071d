//! The quickstarts of the documentation, word for word: the code blocks of the page are saved and run
//! in their order, a real browser plays the applicant, and the page's own code verifies the webhook.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use acceptance::{
    applicant::Applicant, database::Kind, eventually, free_port, root, service::Deployment,
};

const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_node_quickstart_leads_to_a_verified_webhook() {
    follow("quickstart-node.md", "webhook.mjs").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_python_quickstart_leads_to_a_verified_webhook() {
    follow("quickstart-python.md", "webhook.py").await;
}

/// Follows a page from top to bottom. `endpoint` is the program that keeps running.
async fn follow(page: &str, endpoint: &str) {
    let (mut deployment, port) = (Deployment::prepare(Kind::Sqlite).await, free_port());
    deployment.set("AVOUCH_EGRESS_ALLOW", format!("127.0.0.1:{port}"));
    let url = format!("http://127.0.0.1:{port}/");
    let created = ["create-webhook", "--team", &deployment.team, "--url", &url];
    let secret = deployment.admin(&created)["secret"].as_str().expect("a secret").to_owned();
    deployment.run().await;
    let base = format!("{}/v1", deployment.setting("AVOUCH_PUBLIC_URL").expect("an address"));
    let mut environment = BTreeMap::from([("PORT".to_owned(), port.to_string())]);
    let own = [
        ("AVOUCH_BASE_URL", base),
        ("AVOUCH_API_KEY", deployment.api_key.clone()),
        ("AVOUCH_WEBHOOK_SECRET", secret),
    ];

    let folder = deployment.folder.path().join("quickstart");
    fs::create_dir(&folder).expect("a folder");
    let said = folder.join("endpoint.log");
    let (mut running, mut session, mut results) = (None, String::new(), Vec::new());
    for step in steps(page) {
        match step {
            Step::Save(name, code) => fs::write(folder.join(name), code).expect("a file"),
            Step::Run(commands) if commands.starts_with("export ") => {
                for line in commands.lines() {
                    let name =
                        line.trim_start_matches("export ").split('=').next().expect("a name");
                    let value = own.iter().find(|(own, _)| *own == name);
                    let (_, value) = value.unwrap_or_else(|| panic!("the page sets {name}"));
                    environment.insert(name.to_owned(), value.clone());
                }
            }
            Step::Run(command) if command.contains(endpoint) => {
                let log = fs::File::create(&said).expect("a log");
                let process = shell(&command, &folder, &environment).stdout(log).spawn();
                running = Some(Running(process.expect("the endpoint starts")));
                eventually("the endpoint", TIMEOUT, async || {
                    tokio::net::TcpStream::connect(("127.0.0.1", port)).await.ok()
                })
                .await;
            }
            Step::Run(command) => {
                let output = shell(&command, &folder, &environment).output().expect("it runs");
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                let error = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{command}: {text}{error}");
                if let Some(link) = text.lines().find_map(|line| line.strip_prefix("Open: ")) {
                    let id = text.lines().find_map(|line| line.strip_prefix("Session: "));
                    id.expect("a session").clone_into(&mut session);
                    play_the_applicant(link).await;
                    environment.insert("SESSION_ID".to_owned(), session.clone());
                }
                results.push(text);
            }
        }
    }

    let verified = format!("Verified: session {session} is COMPLETED");
    eventually("a verified webhook", TIMEOUT, async || {
        fs::read_to_string(&said).ok().filter(|said| said.contains(&verified))
    })
    .await;
    let result = results.last().expect("a result");
    assert!(result.contains("COMPLETED") && result.contains("acme-ok-4711"), "{result}");
    // A request that the service did not sign is refused.
    let forged = acceptance::partner::Partner::new(&format!("http://127.0.0.1:{port}"), None);
    let body = format!("{{\"sessionId\":\"{session}\",\"status\":\"COMPLETED\"}}");
    assert_eq!(forged.send(hyper::Method::POST, "/", body).await.status, 401);
    drop(running);
}

async fn play_the_applicant(link: &str) {
    let applicant = Applicant::visit(link).await;
    let page = applicant.top_level();
    page.click("[data-testid=start]").await;
    page.sign_in("ok", "any").await;
    page.click("[data-testid=consent-approve]").await;
    assert_eq!(page.until_outcome().await, "COMPLETED");
    applicant.close().await;
}

fn shell(command: &str, folder: &Path, environment: &BTreeMap<String, String>) -> Command {
    let mut shell = Command::new("sh");
    // `exec`, so that the program itself is killed, and not the shell alone.
    shell.arg("-c").arg(format!("exec {command}")).current_dir(folder).envs(environment);
    shell.stdin(Stdio::null());
    shell
}

/// A program that runs until it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the page tells its reader to do.
enum Step {
    /// Saves the code under this name.
    Save(String, String),
    /// Runs the commands in a terminal.
    Run(String),
}

/// Returns the steps of a page: blocks of shell commands, and blocks of code after a line that begins
/// with "Save as `NAME`".
fn steps(page: &str) -> Vec<Step> {
    let source = root().join("docs/site/src");
    let text = fs::read_to_string(source.join(page)).expect("the page");
    let (mut steps, mut name, mut lines) = (Vec::new(), None, text.lines());
    while let Some(line) = lines.next() {
        if let Some((_, rest)) = line.split_once("ave as `") {
            name = rest.split('`').next().map(str::to_owned);
        }
        let Some(language) = line.strip_prefix("```") else { continue };
        let mut block = String::new();
        for line in lines.by_ref().take_while(|line| *line != "```") {
            // mdBook replaces this by the content of the file.
            let included = line.strip_prefix("{{#include ").and_then(|it| it.strip_suffix("}}"));
            if let Some(file) = included {
                block.push_str(&fs::read_to_string(source.join(file)).expect("a file"));
            } else {
                block.push_str(line);
                block.push('\n');
            }
        }
        match (language, name.take()) {
            ("sh", _) => steps.push(Step::Run(block.trim_end().to_owned())),
            ("text" | "json", _) => (),
            (_, Some(name)) => steps.push(Step::Save(name, block)),
            (_, None) => panic!("{page}: a block of {language} without a name"),
        }
    }
    steps
}
