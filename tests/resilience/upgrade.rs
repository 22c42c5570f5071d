//! A release replaces the one before it, process by process, while partners go on sending requests.

use std::{
    collections::BTreeMap,
    env,
    path::PathBuf,
    process::Stdio,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use acceptance::{
    database::Kind,
    free_port,
    partner::Partner,
    second_process::SecondProcess,
    service::{Deployment, binary},
};
use hyper::Method;
use serde_json::{Value, json};

/// Partners that send one request after the other.
const PARTNERS: usize = 4;
/// How long each phase takes.
const PHASE: Duration = Duration::from_secs(6);
/// How long a process that no request goes to any more is left running.
const DEREGISTRATION: Duration = Duration::from_millis(500);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs the program of an earlier release: cargo xtask upgrade-test"]
async fn no_request_fails_while_a_release_replaces_the_one_before() {
    let previous: PathBuf = env::var_os("AVOUCH_PREVIOUS_BIN").expect("a program").into();
    let mut deployment = Deployment::prepare_with(Kind::Postgres, previous.clone()).await;
    let settings = [("AVOUCH_MIGRATE", "never"), ("AVOUCH_LOG", "warn")];
    let start = async |deployment: &Deployment| {
        let address = format!("127.0.0.1:{}", free_port());
        // A release that does not know the setting ignores it.
        deployment.second_process_at(&address, &settings).await
    };
    let (one, two) = (start(&deployment).await, start(&deployment).await);
    let load = Load::start(&deployment, "1 old and old", &[&one, &two]).await;
    load.phase_ends().await;

    deployment.program = binary();
    load.begin("2 old and old, migrating", &[&one, &two]).await;
    let began = Instant::now();
    let migrate = deployment.command().arg("migrate").stderr(Stdio::inherit()).output();
    let (migrate, took) = (migrate.expect("avouch runs"), began.elapsed());
    assert!(migrate.status.success(), "{migrate:?}");
    println!("migrate took {took:?}: {}", String::from_utf8_lossy(&migrate.stdout).trim());
    load.phase_ends().await;

    let three = start(&deployment).await;
    load.begin("3 old and new", &[&one, &three]).await;
    assert!(two.terminate().await.success());
    load.phase_ends().await;

    // A process of the release before that starts on the new schema.
    deployment.program = previous;
    let again = start(&deployment).await;
    load.begin("4 old, restarted, and new", &[&again, &three]).await;
    assert!(one.terminate().await.success());
    load.phase_ends().await;

    deployment.program = binary();
    let four = start(&deployment).await;
    load.begin("5 new and new", &[&three, &four]).await;
    assert!(again.terminate().await.success());
    load.phase_ends().await;
    load.end().await;
}

/// What was sent in a phase.
#[derive(Default)]
struct Figures {
    took: Vec<Duration>,
    failures: Vec<String>,
}

/// The phase, and the processes between which requests alternate.
#[derive(Clone)]
struct Target {
    phase: &'static str,
    processes: Partner,
    platform: Value,
}

struct Load {
    target: Arc<Mutex<Target>>,
    figures: Arc<Mutex<BTreeMap<&'static str, Figures>>>,
    stop: Arc<AtomicBool>,
    partners: Vec<tokio::task::JoinHandle<()>>,
}

impl Load {
    async fn start(
        deployment: &Deployment,
        phase: &'static str,
        processes: &[&SecondProcess; 2],
    ) -> Self {
        let processes = both(processes);
        let platforms =
            processes.with_key(Some(&deployment.api_key)).get("browser-platforms").await;
        let platform = platforms.at("/data/0/id").clone();
        let target = Arc::new(Mutex::new(Target { phase, processes, platform }));
        let (figures, stop) = (Arc::default(), Arc::default());
        let partners = (0..PARTNERS).map(|_| {
            tokio::spawn(one_partner(target.clone(), Arc::clone(&figures), Arc::clone(&stop)))
        });
        let partners = partners.collect();
        Self { target, figures, stop, partners }
    }

    /// Sends requests to other processes from now on.
    async fn begin(&self, phase: &'static str, processes: &[&SecondProcess; 2]) {
        {
            let mut target = self.target.lock().unwrap();
            (target.phase, target.processes) = (phase, both(processes));
        }
        // As a load balancer waits before a process is asked to end that it has taken out.
        tokio::time::sleep(DEREGISTRATION).await;
    }

    async fn phase_ends(&self) {
        tokio::time::sleep(PHASE).await;
    }

    /// Prints the figures; panics if a request failed.
    async fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for partner in self.partners {
            partner.await.unwrap();
        }
        let mut figures = std::mem::take(&mut *self.figures.lock().unwrap());
        let mut failures = Vec::new();
        for (phase, Figures { took, failures: failed }) in &mut figures {
            took.sort();
            let at = |percent: usize| took[(took.len() - 1) * percent / 100].as_secs_f64() * 1e3;
            println!(
                "{phase}: {} requests, {} failed; p50 {:.1} ms, p99 {:.1} ms, longest {:.1} ms",
                took.len(),
                failed.len(),
                at(50),
                at(99),
                at(100)
            );
            failures.extend(failed.iter().map(|failure| format!("{phase}: {failure}")));
        }
        let shown = failures.iter().take(10).map(String::as_str).collect::<Vec<_>>().join("\n");
        assert!(failures.is_empty(), "{} requests failed, the first:\n{shown}", failures.len());
        assert_eq!(figures.len(), 5, "every phase had requests");
    }
}

fn both([one, two]: &[&SecondProcess; 2]) -> Partner {
    one.partner.round_robin_with(&two.partner)
}

/// Creates a session, polls it and lists it, and ends it; each request goes to another process than the
/// one before, until the load ends.
async fn one_partner(
    target: Arc<Mutex<Target>>,
    figures: Arc<Mutex<BTreeMap<&'static str, Figures>>>,
    stop: Arc<AtomicBool>,
) {
    let send = async |method: Method, path: &str, body: Value, expected: u16| {
        let Target { phase, processes, .. } = target.lock().unwrap().clone();
        let began = Instant::now();
        let answer = processes.try_call(method.clone(), path, &body).await;
        let took = began.elapsed();
        let mut figures = figures.lock().unwrap();
        let figures = figures.entry(phase).or_default();
        figures.took.push(took);
        match answer {
            Ok(answer) if answer.status == expected => Some(answer),
            Ok(answer) => {
                let text = format!("{method} {path}: {} {}", answer.status, answer.body);
                figures.failures.push(text);
                None
            }
            Err(error) => {
                figures.failures.push(format!("{method} {path}: {error}"));
                None
            }
        }
    };
    while !stop.load(Ordering::Relaxed) {
        let platform = target.lock().unwrap().platform.clone();
        let body = json!({
            "platformId": platform, "location": { "country": "US" },
            "externalReferenceId": "upgrade",
        });
        let Some(created) = send(Method::POST, "browser-session", body, 201).await else {
            continue;
        };
        let id = created.at("/data/sessionId").as_str().unwrap_or_default().to_owned();
        let path = format!("browser-session/{id}");
        for read in [&path, &format!("{path}/events"), &path] {
            send(Method::GET, read, Value::Null, 200).await;
        }
        send(Method::DELETE, &path, Value::Null, 200).await;
    }
}
