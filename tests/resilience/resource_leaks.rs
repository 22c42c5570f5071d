//! Resource leaks: however a session ends, it leaves no process, folder, socket or recording.
//! `LEAK_SESSIONS=200` sets the number of sessions; by default there are fewer.

use std::{fs, path::Path, time::Duration};

use acceptance::{
    applicant::Applicant,
    database::Kind,
    eventually,
    platform::publish,
    processes::{process_ids_with, processes_with},
    service::Deployment,
    video::files,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const ENDINGS: usize = 6;
const TIMEOUT: Duration = Duration::from_secs(60);
/// The limit of the runs whose applicant disconnects: without it, they are waited for for ten minutes.
const RUN_SECONDS: u16 = 90;
const LONG_TIMEOUT: Duration = Duration::from_secs(150);
/// The service itself is killed once in this many rounds.
const KILLED_EVERY: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ended_sessions_leave_no_process_file_or_socket() {
    let sessions = std::env::var("LEAK_SESSIONS").ok().and_then(|count| count.parse().ok());
    let rounds = sessions.unwrap_or(24_usize).div_ceil(ENDINGS);
    let mut deployment = Deployment::start(Kind::Sqlite).await;
    let short = publish(&deployment, "acme-short", |definition| {
        definition["budgets"]["totalSeconds"] = RUN_SECONDS.into();
    });
    let mut open_files = 0;
    let mut gone = vec![];
    for round in 0..rounds {
        if round % KILLED_EVERY == 1 {
            // The first round leaves resources that do not grow with their number: pools and
            // prepared statements.
            open_files = descriptors(deployment.process());
        }
        let killed = round % KILLED_EVERY == KILLED_EVERY - 1 && round + 1 < rounds;
        let ids = play(&mut deployment, &short, killed).await;
        if killed {
            deployment.partner.delete(&format!("browser-session/{}", ids[0])).await;
        } else {
            gone.push(ids[0].clone());
        }
        for id in &ids[1..] {
            let session = deployment.session(id).await;
            assert!(!session["completedAt"].is_null(), "{session}");
        }
    }
    for id in &gone {
        // Sessions whose applicant disconnected end when their run's time is over; one that lost
        // its browser as well has none, and waits to be opened again.
        eventually("the disconnected applicant's session to end", LONG_TIMEOUT, async || {
            let session = deployment.session(id).await;
            ["ERROR", "CREATED"].contains(&session["status"].as_str()?).then_some(())
        })
        .await;
        // A session that waits to be opened again keeps the recording of its first browser.
        deployment.partner.delete(&format!("browser-session/{id}")).await;
    }
    eventually("no browser to remain", TIMEOUT, async || {
        processes_with(&deployment.browsers()).is_empty().then_some(())
    })
    .await;
    eventually("no folder to remain", TIMEOUT, async || {
        let left: Vec<_> = files(&deployment.browsers());
        left.iter().all(|(name, _)| name.ends_with("/lock")).then_some(())
    })
    .await;
    let folders = fs::read_dir(deployment.browsers()).unwrap().count();
    assert_eq!(folders, 1, "the folder of the process that runs");
    let reels = deployment.data().join("objects/reels");
    eventually("no recorded segment to remain", TIMEOUT, async || {
        files(&reels).is_empty().then_some(())
    })
    .await;
    eventually("no more open files than before", TIMEOUT, async || {
        let now = descriptors(deployment.process());
        (now <= open_files + 4).then_some(()).or_else(|| {
            println!("{now} open files, {open_files} before");
            None
        })
    })
    .await;
    println!("{} sessions, {open_files} open files before and after", rounds * ENDINGS);
}

/// Opens a session for each way to end, and ends them; the applicant of the first one disconnects.
async fn play(deployment: &mut Deployment, short: &Value, kill_service: bool) -> Vec<String> {
    let applicant = Applicant::visit(&deployment.demo).await;
    let location = json!({ "country": "DE" });
    let first = json!({ "platformId": short, "location": location });
    let mut sessions = vec![deployment.create(&first).await];
    for _ in 1..ENDINGS {
        sessions.push(deployment.create(&json!({})).await);
    }
    show_all(&applicant, &sessions).await;
    let text = |session: &Value, name: &str| session[name].as_str().unwrap().to_owned();
    let ids: Vec<_> = sessions.iter().map(|session| text(session, "sessionId")).collect();
    for id in &ids {
        deployment.until(id, "AWAITING_USER", TIMEOUT).await;
    }
    let embed = applicant.embed_at(&sessions[1]["embedUrl"]).await;
    embed.pass_introduction().await;
    embed.until_prompted("Sign in").await;
    embed.sign_in_again("ok", "any").await;
    embed.click("[data-testid=consent-approve]").await;
    deployment.until(&ids[1], "COMPLETED", TIMEOUT).await;
    deployment.partner.delete(&format!("browser-session/{}", ids[2])).await;

    let before = deployment.session(&ids[3]).await;
    assert_eq!(before["status"], "AWAITING_USER");
    kill(deployment.browsers().as_path(), |line| !line.contains("--type="));
    kill(deployment.browsers().as_path(), |line| line.contains("--type=renderer"));
    if kill_service {
        deployment.kill();
        eventually("no browser to outlive the service", TIMEOUT, async || {
            processes_with(&deployment.browsers()).is_empty().then_some(())
        })
        .await;
        deployment.run().await;
    }
    applicant.close().await;
    for id in &ids[3..] {
        deployment.partner.delete(&format!("browser-session/{id}")).await;
    }
    ids
}

/// Kills one process of a browser, as `kill -9` does.
fn kill(browsers: &Path, fits: impl Fn(&str) -> bool) {
    let found = process_ids_with(browsers).into_iter().find(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        fits(&String::from_utf8_lossy(&line))
    });
    let pid = found.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    // The process may have ended by itself at this moment.
    let _ = pid.map(|pid| kill_process(pid, Signal::KILL));
}

async fn show_all(applicant: &Applicant, sessions: &[Value]) {
    eventually("the partner's page", TIMEOUT, async || {
        let ready = "document.readyState === 'complete' && location.port > 0";
        (applicant.evaluate(ready).await == true).then_some(())
    })
    .await;
    let urls: Vec<_> = sessions.iter().map(|session| &session["embedUrl"]).collect();
    let show = format!(
        "document.body.replaceChildren(...{}.map((url) => {{ const f = document.createElement('iframe'); \
         f.src = url; f.style.cssText = 'width:600px;height:310px'; return f; }}))",
        json!(urls)
    );
    applicant.evaluate(&show).await;
}

fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}
