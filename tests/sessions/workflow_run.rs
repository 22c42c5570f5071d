//! `avouch workflow run`: its exit code, and what it leaves behind.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Child, Command, Stdio},
    thread::JoinHandle,
    time::Duration,
};

use acceptance::{
    applicant::Applicant,
    database::Kind,
    eventually,
    platform::write,
    service::Deployment,
    viewer::{Viewer, secret},
};
use serde_json::{Value, json};

const LINK: &str = "open this and play the applicant: ";

/// A running command, and the link that it printed.
struct Trial {
    process: Child,
    link: String,
    /// Returns the lines printed on standard error after the link.
    trace: JoinHandle<Vec<String>>,
}

impl Trial {
    fn start(deployment: &Deployment, change: impl FnOnce(&mut Value)) -> Self {
        Self::start_with(deployment, &[], change)
    }

    fn start_with(
        deployment: &Deployment,
        options: &[&str],
        change: impl FnOnce(&mut Value),
    ) -> Self {
        let file = write(deployment, "acme-trial", change);
        let mut command = deployment.command();
        command.env("AVOUCH_LOG", "warn").args(["workflow", "run"]).args(options).arg(file);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let link = lines
            .by_ref()
            .map(Result::unwrap)
            .find_map(|line| line.strip_prefix(LINK).map(str::to_owned));
        // What follows is read at once, so that the process can write it.
        let trace = std::thread::spawn(move || lines.map(Result::unwrap).collect());
        Self { process, link: link.expect("a link"), trace }
    }

    /// Waits for the end; returns the exit code and what was printed.
    async fn end(self) -> (Option<i32>, String) {
        let (code, printed, _) = self.end_with_trace().await;
        (code, printed)
    }

    /// Waits for the end; returns the exit code, what was printed, and the trace.
    async fn end_with_trace(mut self) -> (Option<i32>, String, Vec<String>) {
        let status = eventually("the end of the run", Duration::from_secs(60), async || {
            self.process.try_wait().unwrap()
        });
        let code = status.await.code();
        let mut printed = String::new();
        self.process.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
        (code, printed, self.trace.join().unwrap())
    }
}

fn left_behind(deployment: &Deployment) -> Vec<String> {
    let entries = std::fs::read_dir(deployment.browsers()).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_exit_code_tells_whether_data_was_shared() {
    let deployment = Deployment::prepare(Kind::Sqlite).await;
    let trial = Trial::start(&deployment, |_| ());
    let applicant = Applicant::visit(&trial.link).await;
    let embed = applicant.top_level();
    embed.click("[data-testid=start]").await;
    embed.sign_in("ok", "any").await;
    embed.click("[data-testid=consent-approve]").await;
    let (code, printed, trace) = trial.end_with_trace().await;
    applicant.close().await;
    let printed: Value = serde_json::from_str(&printed).expect("JSON alone");
    assert_eq!((code, &printed["status"]), (Some(0), &json!("COMPLETED")));
    assert_eq!(printed["missingColumns"], json!([]), "there is no list");
    let is_traced = |text: &str| trace.iter().any(|line| line.contains(text));
    for text in ["node login", "true: loginForm;", "tier: \"gold\"", "followers: 1289", "node end"]
    {
        assert!(is_traced(text), "{text}: {trace:#?}");
    }
    assert!(!is_traced("any\""), "what the applicant types is in no trace: {trace:#?}");

    let trial = Trial::start(&deployment, |definition| {
        let login = definition["nodes"]["open"]["url"].as_str().unwrap().to_owned();
        definition["nodes"]["open"]["url"] = format!("{login}/no-such-page").into();
        // A failure after which no other attempt is offered.
        definition["nodes"]["open"]["onFail"] = json!({ "fail": "ACCOUNT_LOCKED" });
    });
    let _viewer = Viewer::open(&trial.link, &secret('a')).await;
    let (code, printed) = trial.end().await;
    let printed: Value = serde_json::from_str(&printed).expect("JSON alone");
    assert_eq!((code, &printed["status"]), (Some(3), &json!("ERROR")), "{printed}");
    assert_eq!(left_behind(&deployment), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_ends_the_run_without_leaving_files() {
    let deployment = Deployment::prepare(Kind::Sqlite).await;
    for signal in ["-TERM", "-HUP", "-INT"] {
        let trial = Trial::start(&deployment, |_| ());
        assert_ne!(left_behind(&deployment), Vec::<String>::new(), "it has a folder meanwhile");
        let id = trial.process.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        assert_eq!(trial.end().await.0, Some(1), "{signal}");
        assert_eq!(left_behind(&deployment), Vec::<String>::new(), "{signal}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_definition_begins_anew_in_the_same_browser() {
    let deployment = Deployment::prepare(Kind::Sqlite).await;
    let change = |text: &str, wanted: &str| {
        let (text, wanted) = (text.to_owned(), wanted.to_owned());
        move |definition: &mut Value| {
            definition["texts"]["en"]["sign_in"] = text.into();
            definition["nodes"]["stats"]["fields"]["followers"] = wanted.into();
        }
    };
    let mut trial = Trial::start_with(&deployment, &["--watch"], change("Sign in once", "/none"));
    let applicant = Applicant::visit(&trial.link).await;
    let embed = applicant.top_level();
    embed.click("[data-testid=start]").await;
    embed.until_prompted("Sign in once").await;
    embed.sign_in("ok", "any").await;
    embed.click("[data-testid=consent-approve]").await;
    let shared = "document.querySelectorAll('#consent-fields > dt').length";
    tokio::time::sleep(Duration::from_secs(1)).await;
    // The file cannot be published at first; then the applicant is signed in already.
    write(&deployment, "acme-trial", |definition| definition["start"] = "nowhere".into());
    tokio::time::sleep(Duration::from_secs(1)).await;
    write(&deployment, "acme-trial", change("Sign in once", "/followers"));
    embed
        .until(
            "five fields",
            &format!("!document.querySelector('#consent').hidden && {shared} === 5"),
        )
        .await;
    embed.click("[data-testid=consent-approve]").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let id = trial.process.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let status =
        eventually("the end", Duration::from_secs(60), async || trial.process.try_wait().unwrap());
    assert_eq!(status.await.code(), Some(0));
    let trace = trial.trace.join().unwrap();
    let count = |text: &str| trace.iter().filter(|line| line.contains(text)).count();
    assert_eq!((count("node login"), count("starting over")), (1, 1), "{trace:#?}");
    assert_eq!(count("complete: {"), 2, "{trace:#?}");
    assert!(count("there is no node `nowhere`") > 0, "{trace:#?}");
    applicant.close().await;
    assert_eq!(left_behind(&deployment), Vec::<String>::new());
}
