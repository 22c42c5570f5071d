//! No delivery is lost: sessions end while processes are killed, the database crashes, and webhook
//! endpoints fail in various ways. Two processes serve throughout.
//!
//! `LOSING_SESSIONS=10000 LOSING_KILLS=30 LOSING_CRASHES=3` is the full run; by default it is
//! shorter.

mod session_maker;

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher as _, RandomState},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use acceptance::{
    database::Database,
    eventually,
    postgres::OwnPostgres,
    second_process::SupervisedProcess,
    service::Deployment,
    webhook_endpoint::{Attempt, Endpoint, Reply},
};
use tokio::{sync::Mutex, task::JoinSet};

use self::session_maker::SessionMaker;

const SESSION_MAKERS: usize = 8;
/// Every delivery is delivered or exhausted within this time.
const TIMEOUT: Duration = Duration::from_secs(400);
/// For each webhook, by its path: of a hundred attempts, the numbers that are answered with 500,
/// reset, closed within the response, and never answered.
const ENDPOINTS: &[(&str, [u64; 4])] = &[
    ("/well", [0, 0, 0, 0]),
    ("/poor", [20, 5, 5, 1]),
    ("/bad", [35, 10, 10, 2]),
    ("/gone", [0, 0, 0, 0]),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn no_delivery_is_lost_while_processes_and_the_database_crash() {
    let number = |name: &str, usual: usize| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
    };
    let (sessions, kills, crashes) =
        (number("LOSING_SESSIONS", 600), number("LOSING_KILLS", 6), number("LOSING_CRASHES", 1));
    let postgres = OwnPostgres::start();
    let endpoint = Endpoint::start(behave).await;
    let mut deployment = Deployment::on(Database { url: postgres.url.clone() });
    deployment.set("AVOUCH_EGRESS_ALLOW", "127.0.0.1/32");
    deployment.set("AVOUCH_LOG", "warn");
    let team = deployment.team.clone();
    let listed = deployment.admin(&["list-webhooks", "--team", &team]);
    let demo = listed["webhooks"][0]["webhookId"].as_str().expect("a webhook").to_owned();
    deployment.admin(&["set-webhook", &demo, "--active", "false"]);
    for (path, _) in ENDPOINTS {
        let url = endpoint.url(&path[1..]);
        let order = ["create-webhook", "--team", &team, "--url", &url, "--timeout-seconds", "2"];
        deployment.admin(&order);
    }
    let mut processes = Vec::new();
    for _ in 0..2 {
        processes.push(SupervisedProcess::start(&deployment));
    }
    let processes = Arc::new(processes);
    let ended = Arc::new(Mutex::new(HashSet::new()));
    let remaining = Arc::new(AtomicUsize::new(sessions));
    let mut makers = JoinSet::new();
    for number in 0..SESSION_MAKERS {
        let addresses = processes.iter().map(|process| process.address.clone()).collect();
        let maker = SessionMaker::new(&deployment.api_key, addresses, number);
        makers.spawn(maker.work(remaining.clone(), ended.clone()));
    }
    let faults = inject_faults(&postgres, &processes, kills, crashes, &remaining);
    // A maker that fails ends the test, whose log then says why.
    let all_made = async {
        while let Some(made) = makers.join_next().await {
            made.expect("the session maker finishes");
        }
    };
    let (faults, ()) = tokio::join!(faults, all_made);
    let ended = ended.lock().await.clone();
    assert_eq!(ended.len(), sessions);
    println!("{sessions} sessions ended, {faults}");
    check(&postgres, &endpoint, &ended, &processes).await;
}

/// Kills processes and crashes the database, spread over the time in which sessions are made.
async fn inject_faults(
    postgres: &OwnPostgres,
    processes: &[SupervisedProcess],
    kills: usize,
    crashes: usize,
    remaining: &AtomicUsize,
) -> String {
    let (began, all) = (Instant::now(), remaining.load(Ordering::SeqCst));
    let (mut killed, mut database_crashes) = (0, 0);
    while killed < kills || database_crashes < crashes || remaining.load(Ordering::SeqCst) > 0 {
        tokio::time::sleep(Duration::from_millis(400 + chance() % 900)).await;
        for process in processes {
            process.restart_if_ended().await;
        }
        let done = all - remaining.load(Ordering::SeqCst);
        if killed < kills && done * kills >= killed * all {
            processes[killed % processes.len()].kill().await;
            killed += 1;
        }
        if database_crashes < crashes && done * (crashes + 1) >= (database_crashes + 1) * all {
            postgres.crash();
            database_crashes += 1;
        }
    }
    let took = began.elapsed().as_secs();
    format!("{killed} kills and {database_crashes} crashes of the database in {took} s")
}

/// Compares the received requests and the delivery log with the sessions that were ended.
async fn check(
    postgres: &OwnPostgres,
    endpoint: &Endpoint,
    ended: &HashSet<String>,
    processes: &[SupervisedProcess],
) {
    let (database, connection) =
        tokio_postgres::connect(&postgres.url, tokio_postgres::NoTls).await.expect("a connection");
    tokio::spawn(connection);
    eventually("every delivery to be delivered or exhausted", TIMEOUT, async || {
        for process in processes {
            process.restart_if_ended().await;
        }
        let row = database.query_one("SELECT count(*) FROM delivery_queue", &[]).await.ok()?;
        (row.get::<_, i64>(0) == 0).then_some(())
    })
    .await;
    let rows = database
        .query(
            "SELECT d.id::text, d.session::text, w.url, d.exhausted_at IS NOT NULL, \
             (SELECT count(*) FROM delivery_attempts a WHERE a.delivery = d.id), \
             s.status FROM deliveries d JOIN webhooks w ON w.id = d.webhook \
             LEFT JOIN sessions s ON s.id = d.session AND s.closed_at IS NOT NULL",
            &[],
        )
        .await
        .expect("deliveries");
    let attempts = endpoint.take();
    let mut taken: HashMap<&str, usize> = HashMap::new();
    for attempt in attempts.iter().filter(|attempt| succeeds(attempt)) {
        *taken.entry(attempt.header("webhook-id")).or_default() += 1;
    }
    let (mut owed, mut exhausted, mut twice) = (HashSet::new(), 0, 0);
    for row in &rows {
        let text = |column| row.get::<_, String>(column);
        let (id, session, url) = (text(0), text(1), text(2));
        assert_eq!(
            row.get::<_, Option<String>>(5).as_deref(),
            Some("TERMINATED"),
            "the session's status"
        );
        let (given_up, attempts) = (row.get::<_, bool>(3), row.get::<_, i64>(4));
        if given_up {
            let gone = url.ends_with("/gone");
            assert_eq!(attempts, if gone { 1 } else { 4 }, "{url}: the number of attempts");
            exhausted += 1;
        } else {
            assert!(taken.contains_key(id.as_str()), "{id} to {url} never arrived");
        }
        twice += taken.get(id.as_str()).map_or(0, |times| times - 1);
        assert!(owed.insert((session, url)), "one delivery for a session and a webhook");
    }
    for session in ended {
        let told = ENDPOINTS
            .iter()
            .filter(|(path, _)| owed.contains(&(session.clone(), endpoint.url(&path[1..]))));
        assert_eq!(told.count(), ENDPOINTS.len(), "{session} has a delivery for each webhook");
    }
    assert_retries_keep_the_identifier(&attempts);
    println!(
        "{} deliveries, {} requests, {exhausted} exhausted after all attempts, {twice} delivered twice",
        rows.len(),
        attempts.len()
    );
}

/// Every attempt of one session's delivery to one webhook has the same identifier.
fn assert_retries_keep_the_identifier(attempts: &[Attempt]) {
    let mut names: HashMap<(&str, &str), HashSet<&str>> = HashMap::new();
    for attempt in attempts {
        let name = (attempt.path.as_str(), attempt.field("sessionId"));
        names.entry(name).or_default().insert(attempt.header("webhook-id"));
    }
    assert!(names.values().all(|ids| ids.len() == 1), "retries keep the identifier");
}

/// Decides by the content of a request, so that its response can be determined again afterwards.
fn behave(attempt: &Attempt) -> Reply {
    let shares = ENDPOINTS.iter().find(|(path, _)| *path == attempt.path).map(|(_, shares)| shares);
    let Some([fail, reset, close, hang]) = shares.copied() else { return Reply::Status(404) };
    if attempt.path == "/gone" {
        return Reply::Status(410);
    }
    // The draw changes every second: a retry has a new timestamp.
    let name = format!("{}.{}", attempt.header("webhook-id"), attempt.header("webhook-timestamp"));
    let draw = name
        .bytes()
        .fold(17_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
        % 100;
    if draw < fail {
        Reply::Status(500)
    } else if draw < fail + reset {
        Reply::Reset
    } else if draw < fail + reset + close {
        Reply::CloseWithin
    } else if draw < fail + reset + close + hang {
        Reply::Hang(Duration::from_secs(5))
    } else {
        Reply::Status(204)
    }
}

fn succeeds(attempt: &Attempt) -> bool {
    matches!(behave(attempt), Reply::Status(204))
}

fn chance() -> u64 {
    RandomState::new().hash_one(0)
}
