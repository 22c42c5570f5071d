//! The primary PostgreSQL server is lost, and its standby takes over: sessions and deliveries go on
//! there, and running processes do not go back to the old primary.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use acceptance::{
    database::Database, eventually, partner::Partner, postgres::OwnPostgres, service::Deployment,
    visit::Visit,
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

const TIMEOUT: Duration = Duration::from_secs(60);
/// The number of sessions that are created before the loss, and after the standby took over.
const CREATED: usize = 10;
const PAUSE: Duration = Duration::from_millis(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_and_deliveries_go_on_at_the_standby_when_the_primary_is_killed() {
    let pair = Pair::start().await;
    let mut deployment = Deployment::on(pair.database());
    deployment.run().await;
    let other = deployment.second_process().await;
    let (signing_in, watched) = (Visit::start(&deployment).await, Visit::start(&deployment).await);
    let creations = Creations::start(&deployment.partner);
    creations.until(CREATED).await;
    let owed = terminated(&deployment).await;

    let lost_at = Instant::now();
    pair.primary.kill().await;
    pair.standby.promote().expect("the standby is promoted");
    let promoted = lost_at.elapsed();
    creations.until(creations.count() + CREATED).await;
    let (answered, pause) = creations.end();
    eprintln!(
        "the standby accepted writes after {:.1} s; no session was created for {:.1} s",
        promoted.as_secs_f64(),
        pause.as_secs_f64()
    );

    // What was answered before is there, and the applicant's browser has not been ended meanwhile.
    until_found(&deployment.partner, &answered).await;
    let completed = signing_in.complete().await;
    let timeline = deployment.partner.timeline(&completed).await;
    // A browser ends when its lease has not been renewed for 16 s, of which up to 5 s had passed.
    if pause < Duration::from_secs(10) {
        assert!(timeline.iter().all(|(event, _)| event != "BrowserLost"), "{timeline:?}");
    }
    assert_eq!(deployment.session(&completed).await["status"], "COMPLETED");
    is_told(&deployment, &completed, "COMPLETED").await;
    is_told(&deployment, &owed, "TERMINATED").await;

    // Processes notice each other's changes.
    let began = Instant::now();
    let deleted = other.partner.delete(&format!("browser-session/{}", watched.id)).await;
    assert_eq!(deleted.at("/data/status"), "TERMINATED");
    assert_eq!(watched.applicant.top_level().until_outcome().await, "TERMINATED");
    let took = began.elapsed().as_secs_f64();
    eprintln!("a DELETE at another process reached the applicant's page within {took:.1} s");
    watched.applicant.close().await;
    is_told(&deployment, &watched.id, "TERMINATED").await;
}

/// The old primary is back, accepts writes, and is the first one in the URL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn running_processes_do_not_go_back_to_the_old_primary() {
    let pair = Pair::start().await;
    let mut deployment = Deployment::on(pair.database());
    // Longer than the standby may need on a busy machine.
    deployment.set("AVOUCH_DATABASE_CONNECT_SECONDS", "20");
    deployment.run().await;
    pair.primary.kill().await;
    pair.standby.promote().expect("the standby is promoted");
    let before = created(&deployment.partner).await;

    pair.primary.run().expect("the old primary starts");
    let (old, new) = (alone(&pair.primary), alone(&pair.standby));
    assert_eq!(old.value("SELECT pg_is_in_recovery()::text").await, "false");
    let end_all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                   WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    new.execute(end_all).await;
    let after = created(&deployment.partner).await;
    until_found(&deployment.partner, &[before.clone(), after.clone()]).await;
    for id in [before, after] {
        let count = format!("SELECT count(*)::text FROM sessions WHERE id::text = '{id}'");
        let found = (old.value(&count).await, new.value(&count).await);
        assert_eq!(found, ("0".to_owned(), "1".to_owned()), "{id}");
    }
    let connected = "SELECT count(*)::text FROM pg_stat_activity \
                     WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    eventually("the test alone to be connected to the old primary", TIMEOUT, async || {
        (old.value(connected).await == "0").then_some(())
    })
    .await;
}

/// The system of a suspended server still accepts connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_hangs_keeps_nobody_from_the_standby() {
    let pair = Pair::start().await;
    let mut deployment = Deployment::on(pair.database());
    deployment.set("AVOUCH_DATABASE_CONNECT_SECONDS", "3");
    deployment.set("AVOUCH_DATABASE_STATEMENT_SECONDS", "3");
    deployment.run().await;
    let before = created(&deployment.partner).await;
    let hangs_since = Instant::now();
    pair.primary.pause();
    pair.standby.promote().expect("the standby is promoted");
    let after = created(&deployment.partner).await;
    let took = hangs_since.elapsed().as_secs_f64();
    eprintln!("a session was created {took:.1} s after the primary hung");
    until_found(&deployment.partner, &[before, after]).await;
}

/// A primary server, and its standby, for which each commit waits.
struct Pair {
    primary: OwnPostgres,
    standby: OwnPostgres,
}

impl Pair {
    async fn start() -> Self {
        let primary = OwnPostgres::start();
        let standby = OwnPostgres::standby_of(&primary).await;
        Self { primary, standby }
    }

    /// Both servers in one URL, of which the service uses the one that accepts writes.
    fn database(&self) -> Database {
        let [primary, standby] = [&self.primary, &self.standby].map(|server| server.port);
        let hosts = format!("127.0.0.1:{primary},127.0.0.1:{standby}");
        let attributes = "target_session_attrs=read-write";
        Database { url: format!("postgres://postgres@{hosts}/postgres?{attributes}") }
    }
}

/// One of the servers, whichever accepts writes.
fn alone(server: &OwnPostgres) -> Database {
    Database { url: server.url.clone() }
}

/// A partner who creates one session after the other, also while that fails.
struct Creations {
    /// The sessions that were answered, and when.
    answered: Arc<Mutex<Vec<(Instant, String)>>>,
    task: JoinHandle<()>,
}

impl Creations {
    fn start(partner: &Partner) -> Self {
        let answered = Arc::<Mutex<Vec<_>>>::default();
        let (partner, answers) = (partner.clone(), Arc::clone(&answered));
        let task = tokio::spawn(async move {
            loop {
                if let Some(id) = create(&partner).await {
                    answers.lock().unwrap().push((Instant::now(), id));
                }
                tokio::time::sleep(PAUSE).await;
            }
        });
        Self { answered, task }
    }

    fn count(&self) -> usize {
        self.answered.lock().unwrap().len()
    }

    async fn until(&self, count: usize) {
        eventually("sessions to be created", TIMEOUT, async || {
            (self.count() >= count).then_some(())
        })
        .await;
    }

    /// Returns the sessions, and the longest time in which none was created.
    fn end(self) -> (Vec<String>, Duration) {
        self.task.abort();
        let answered = std::mem::take(&mut *self.answered.lock().unwrap());
        let pauses = answered.windows(2).map(|pair| pair[1].0 - pair[0].0);
        let longest = pauses.max().unwrap_or_default();
        (answered.into_iter().map(|(_, id)| id).collect(), longest)
    }
}

/// Creates a session, and returns it unless that failed.
async fn create(partner: &Partner) -> Option<String> {
    let answer = partner.create(&json!({})).await;
    let id = answer.at("/data/sessionId").as_str().map(str::to_owned);
    id.filter(|_| answer.status == 201)
}

/// Tries to create a session until that succeeds.
async fn created(partner: &Partner) -> String {
    eventually("a session to be created", 2 * TIMEOUT, async || create(partner).await).await
}

/// Creates a session and terminates it, so that it owes a delivery.
async fn terminated(deployment: &Deployment) -> String {
    let id = created(&deployment.partner).await;
    let ended = deployment.partner.delete(&format!("browser-session/{id}")).await;
    assert_eq!(ended.at("/data/status"), "TERMINATED");
    id
}

/// Waits until each session is found. A request may fail, but no session may be unknown.
async fn until_found(partner: &Partner, sessions: &[String]) {
    for id in sessions {
        eventually("the session to be found", TIMEOUT, async || {
            let answer = partner.get(&format!("browser-session/{id}")).await;
            assert_ne!(answer.status, 404, "session {id} is lost");
            (answer.status == 200).then_some(())
        })
        .await;
    }
}

/// The partner is told how a session ended: at least once, always as the same delivery.
async fn is_told(deployment: &Deployment, id: &str, status: &str) {
    let told: Vec<Value> = eventually("the webhook", TIMEOUT, async || {
        Some(deployment.deliveries(id).await).filter(|deliveries| !deliveries.is_empty())
    })
    .await;
    eprintln!("{} deliveries of a session that is {status}", told.len());
    for one in &told {
        assert_eq!((&one["id"], &one["payload"]["status"]), (&told[0]["id"], &json!(status)));
    }
}
