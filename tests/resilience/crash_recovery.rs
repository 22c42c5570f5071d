//! The service is killed while sessions run, and started again.

use std::time::Duration;

use acceptance::{
    applicant::Applicant, database::Kind, eventually, processes::processes_with,
    service::Deployment,
};
use serde_json::{Value, json};

const SESSIONS: usize = 20;
/// The number of sessions that are ended just before the process is killed.
const ENDED_SESSIONS: usize = 5;
const TIMEOUT: Duration = Duration::from_secs(240);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_service_loses_no_session_and_no_webhook_on_sqlite() {
    killed_in_the_middle(Kind::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_service_loses_no_session_and_no_webhook_on_postgres() {
    killed_in_the_middle(Kind::Postgres).await;
}

/// Forty browsers at once are too many for a small machine. Under nextest, where each test is a process,
/// `.config/nextest.toml` sees to this.
static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

async fn killed_in_the_middle(kind: Kind) {
    let _alone = ONE_AT_A_TIME.lock().await;
    let mut deployment = Deployment::start(kind).await;
    let applicant = Applicant::visit(&deployment.demo).await;
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        sessions.push(deployment.create(&json!({})).await);
    }
    open_all(&applicant, &sessions).await;
    let ids: Vec<_> = sessions.iter().filter_map(|s| s["sessionId"].as_str()).collect();
    until_all(&deployment, &ids, "AWAITING_USER").await;
    assert_eq!(browsers(&deployment), SESSIONS, "one Chromium per session");

    let (ended, running) = ids.split_at(ENDED_SESSIONS);
    for id in ended {
        deployment.partner.delete(&format!("browser-session/{id}")).await;
    }
    deployment.kill();
    eventually("no Chromium to outlive the service", TIMEOUT, async || {
        processes_with(&deployment.browsers()).is_empty().then_some(())
    })
    .await;

    deployment.run().await;
    // The store still has the state of before; the browsers show that the sessions started again.
    eventually("each session to have a browser again", TIMEOUT, async || {
        (browsers(&deployment) >= running.len()).then_some(())
    })
    .await;
    until_all(&deployment, running, "AWAITING_USER").await;
    for id in running {
        let answer = deployment.partner.delete(&format!("browser-session/{id}")).await;
        assert_eq!(answer.at("/data/status"), "TERMINATED");
    }
    let mut deliveries = 0;
    for id in &ids {
        let delivered = eventually("the session's webhook", TIMEOUT, async || {
            Some(deployment.deliveries(id).await).filter(|deliveries| !deliveries.is_empty())
        })
        .await;
        deliveries += delivered.len();
        assert!(delivered.iter().all(|one| one["id"] == delivered[0]["id"]), "{delivered:?}");
        assert_eq!(delivered[0]["payload"]["status"], "TERMINATED");
    }
    println!("{deliveries} deliveries for {SESSIONS} sessions");
    eventually("no Chromium to remain", TIMEOUT, async || {
        processes_with(&deployment.browsers()).is_empty().then_some(())
    })
    .await;
    applicant.close().await;
}

/// Counts the running browsers: of the processes of each, only the first one has the pipe. The two
/// of its sandbox have the same arguments and are not counted.
fn browsers(deployment: &Deployment) -> usize {
    let processes = processes_with(&deployment.browsers());
    processes
        .iter()
        .filter(|line| line.contains("--remote-debugging-pipe") && !line.contains("--type="))
        .filter(|line| !line.contains(" jail {"))
        .count()
}

/// Shows every session in an iframe of one page.
async fn open_all(applicant: &Applicant, sessions: &[Value]) {
    let urls: Vec<_> = sessions.iter().map(|session| &session["embedUrl"]).collect();
    let open = format!(
        "{}.forEach((url) => {{ const f = document.createElement('iframe'); f.src = url; \
         f.style.height = '400px'; document.body.append(f); }})",
        json!(urls)
    );
    eventually("the partner's page", TIMEOUT, async || {
        let ready = applicant.evaluate("document.readyState === 'complete' && location.port > 0");
        (ready.await == true).then_some(())
    })
    .await;
    applicant.evaluate(&open).await;
}

async fn until_all(deployment: &Deployment, ids: &[&str], status: &str) {
    for id in ids {
        deployment.until(id, status, TIMEOUT).await;
    }
}
