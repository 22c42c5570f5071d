//! A deployment of five instances under faults for a long time: every ten seconds a process is killed, each
//! server is restarted once, and applicants sign in meanwhile. Nothing may be stuck, lost or left.
//!
//! `cargo xtask soak` sets `SOAK_MINUTES`, `SOAK_APPLICANTS` and `SOAK_FOLDER`, in which the report is
//! written.

mod applicant;
mod check;
mod faults;
mod report;
mod session;

use std::{
    collections::HashMap,
    fs,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use acceptance::{
    cluster::Cluster,
    database::Database,
    platform::publish,
    postgres::OwnPostgres,
    root,
    service::Deployment,
    webhook_endpoint::{Attempt, Endpoint, Reply},
};
use testkit::{redis::RedisServer, s3::S3Server};

use self::{
    faults::{Faults, Servers},
    session::{Context, SESSION_TIMEOUT, Visit},
};

/// Instances without browsers, and with so many.
const BROWSERS: [u32; 5] = [0, 0, 0, 8, 8];
/// A delivery is refused this often at most, so that none is given up by the endpoint alone.
const MAX_REFUSALS: u32 = 2;
/// The limit of the runs that the applicant leaves, so that their browsers do not pile up.
const ABANDONED_RUN_SECONDS: u16 = 90;
/// The time between the first pages of two applicants.
const STAGGER: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "takes as long as it is told: cargo xtask soak"]
async fn nothing_is_stuck_lost_or_left_while_processes_are_killed() {
    let number = |name: &str, usual: u64| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
    };
    let (minutes, applicants) = (number("SOAK_MINUTES", 5), number("SOAK_APPLICANTS", 2));
    let folder = std::env::var_os("SOAK_FOLDER").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| root().join("target/soak"));
    let servers = Servers {
        postgres: OwnPostgres::start(),
        redis: RedisServer::start(),
        s3: S3Server::start(),
    };
    let endpoint = endpoint().await;
    let (deployment, secrets) = deployment(&servers, &endpoint);
    let cluster = Cluster::start(deployment, &BROWSERS, true).await;
    let context = Arc::new(context(&cluster.deployment).await);

    let ends = Instant::now() + Duration::from_secs(minutes * 60);
    let visits = Arc::new(Mutex::new(Vec::new()));
    let applicants: Vec<_> = (0..applicants)
        .map(|number| tokio::spawn(applicant(number, ends, context.clone(), visits.clone())))
        .collect();
    let mut faults = Faults::new(cluster, servers);
    faults.inject_until(ends).await;
    println!("no more faults; the applicants finish");
    for applicant in applicants {
        // Each of them ends by itself: after its last session.
        let joined = tokio::time::timeout(SESSION_TIMEOUT * 2, applicant).await;
        joined.expect("an applicant ends").expect("no applicant fails");
    }
    let visits = std::mem::take(&mut *visits.lock().unwrap_or_else(PoisonError::into_inner));
    let report = check::settle(faults, visits, &context, &endpoint, &secrets).await;
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("report.txt"), report.text()).expect("a file");
    fs::write(folder.join("report.json"), format!("{:#}\n", report.json())).expect("a file");
    println!("{}\nThe report is in {}.", report.text(), folder.display());
    assert!(report.faults().is_empty(), "{}", report.faults().join("\n"));
}

/// Plays sessions one after another until the time is over.
async fn applicant(
    number: u64,
    ends: Instant,
    context: Arc<Context>,
    visits: Arc<Mutex<Vec<Visit>>>,
) {
    tokio::time::sleep(STAGGER * u32::try_from(number).unwrap_or_default()).await;
    let mut turn = number;
    while Instant::now() < ends {
        let visit = session::play(turn, &context).await;
        println!("{visit}");
        visits.lock().unwrap_or_else(PoisonError::into_inner).push(visit);
        turn += 1;
    }
}

/// Two webhooks, of which one refuses each delivery up to twice before it accepts it.
async fn endpoint() -> Endpoint {
    let refused = Mutex::new(HashMap::<String, u32>::new());
    Endpoint::start(move |attempt: &Attempt| {
        if attempt.path == "/steady" {
            return Reply::Status(204);
        }
        let id = attempt.header("webhook-id").to_owned();
        let mut refused = refused.lock().unwrap_or_else(PoisonError::into_inner);
        let count = refused.entry(id.clone()).or_default();
        let kind = id.bytes().map(u32::from).sum::<u32>() % 5;
        if *count == MAX_REFUSALS || kind == 0 {
            return Reply::Status(204);
        }
        *count += 1;
        match kind {
            1 => Reply::Reset,
            2 => Reply::CloseWithin,
            3 => Reply::Hang(Duration::from_secs(3)),
            _ => Reply::Status(500),
        }
    })
    .await
}

/// The deployment on these servers, and the secrets of its webhooks by their paths.
fn deployment(servers: &Servers, endpoint: &Endpoint) -> (Deployment, HashMap<String, String>) {
    let database = Database { url: servers.postgres.url.clone() };
    let mut deployment = Deployment::on(database);
    deployment.set("AVOUCH_EGRESS_ALLOW", "127.0.0.1/32");
    deployment.set("AVOUCH_LOG", "warn");
    deployment.set("AVOUCH_REDIS_URL", servers.redis.url());
    deployment.set("AVOUCH_STORAGE_URL", servers.s3.url());
    for (name, value) in servers.s3.variables() {
        deployment.set(name, value);
    }
    let team = deployment.team.clone();
    let listed = deployment.admin(&["list-webhooks", "--team", &team]);
    let demo = listed["webhooks"][0]["webhookId"].as_str().expect("a webhook").to_owned();
    deployment.admin(&["set-webhook", &demo, "--active", "false"]);
    let secrets = ["/steady", "/poor"].map(|path| {
        let url = endpoint.url(&path[1..]);
        let new = ["create-webhook", "--team", &team, "--url", &url, "--timeout-seconds", "2"];
        let created = deployment.admin(&[&new[..], &["--retries", "10"]].concat());
        (path.to_owned(), created["secret"].as_str().expect("a secret").to_owned())
    });
    (deployment, secrets.into())
}

async fn context(deployment: &Deployment) -> Context {
    let abandoned = publish(deployment, "acme-abandoned", |definition| {
        definition["budgets"]["totalSeconds"] = ABANDONED_RUN_SECONDS.into();
    });
    Context {
        partner: deployment.partner.clone(),
        sandbox: deployment.platform("acme-sandbox").await,
        abandoned,
    }
}
