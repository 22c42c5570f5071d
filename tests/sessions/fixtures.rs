//! `avouch workflow run --record` and `--replay`: a run of a site in a real browser is captured, and
//! repeated without one.

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Output, Stdio},
    time::{Duration, Instant},
};

use acceptance::{
    applicant::Applicant, database::Kind, eventually, service::Deployment,
    shop_platform::ShopPlatform,
};
use serde_json::Value;

const LINK: &str = "open this and play the applicant: ";

/// Plays the applicant of a run that is captured; returns what was printed on standard error.
async fn record(deployment: &Deployment, definition: &Path, fixture: &Path) -> Vec<String> {
    let mut command = deployment.command();
    command.env("AVOUCH_LOG", "warn").args(["workflow", "run", "--record"]);
    command.arg(fixture).arg(definition).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map(Result::unwrap);
    let link = lines.by_ref().find_map(|line| line.strip_prefix(LINK).map(str::to_owned));
    let rest = std::thread::spawn(move || lines.collect::<Vec<_>>());
    let applicant = Applicant::visit(&link.expect("a link")).await;
    let embed = applicant.top_level();
    embed.click("[data-testid=start]").await;
    embed.sign_in("ada", "wrong-secret").await;
    embed.until_prompted("Shop did not accept that").await;
    embed.sign_in_again("", "right-secret").await;
    embed.click("[data-testid=consent-approve]").await;
    let status = eventually("the end of the run", Duration::from_secs(60), async || {
        process.try_wait().unwrap()
    });
    assert_eq!(status.await.code(), Some(0));
    applicant.close().await;
    rest.join().unwrap()
}

fn replay(deployment: &Deployment, definition: &Path, fixture: &Path) -> Output {
    let mut command = deployment.command();
    command.args(["workflow", "run", "--replay"]).arg(fixture).arg(definition);
    command.output().unwrap()
}

/// Writes a definition in which a text is replaced.
fn changed(definition: &Path, from: &str, to: &str) -> PathBuf {
    let text = std::fs::read_to_string(definition).unwrap();
    assert!(text.contains(from), "{from}");
    let file = definition.with_extension("changed.json");
    std::fs::write(&file, text.replace(from, to)).unwrap();
    file
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_captured_run_is_repeated_without_a_browser() {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    let site = ShopPlatform::start().await;
    site.allow(&mut deployment);
    let definition = deployment.folder.path().join("shop.json");
    let fixture = deployment.folder.path().join("shop.fixture.json");
    site.write(&definition);
    let printed = record(&deployment, &definition, &fixture).await;
    let last = printed.last().unwrap();
    assert_eq!(*last, format!("fixture written to {}", fixture.display()), "{printed:#?}");

    // What was typed, cookies and the token against cross-site request forgery are not in it.
    let text = std::fs::read_to_string(&fixture).unwrap();
    for secret in ["-secret", "t%2B1", "t+1", "=in"] {
        assert!(!text.contains(secret), "{secret}");
    }
    let captured: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(captured["expected"]["data"]["balance"], 1234.5);
    assert_eq!(captured["expected"]["data"]["orders"].as_array().unwrap().len(), 6);

    let started = Instant::now();
    let output = replay(&deployment, &definition, &fixture);
    let took = started.elapsed();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{printed}");
    assert_eq!(printed, format!("{}: as expected\n", fixture.display()));
    println!("{} bytes, replayed by a process of {took:?}", text.len());

    // What a change of the definition leads to is seen without the site.
    let file = changed(&definition, "\"#phone\"", "\"i + b, span\"");
    let file = changed(&file, "\"keine Angabe\"", "\"none\"");
    let output = replay(&deployment, &file, &fixture);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(4), "{printed}");
    let difference = "  phone: expected missing, but it was \"Keine  Angabe\"\n";
    assert!(printed.contains(difference), "{printed}");

    let file = changed(&definition, "input[type=password]\" },", "input[type=passwort]\" },");
    let file = changed(&file, "\"fragment\": \"/home*\"", "\"fragment\": \"/haus*\"");
    let output = replay(&deployment, &file, &fixture);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(4), "{printed}");
    assert!(printed.contains("path: after login, expected all, but it was the end"), "{printed}");
    assert!(printed.contains("error: expected none, but it was USER_INPUT_TIMEOUT"), "{printed}");
}
