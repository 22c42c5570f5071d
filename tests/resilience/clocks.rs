//! The clock of a machine is set while its instance has sessions.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use acceptance::{
    database::Kind, free_port, partner::Partner, processes::process_ids_with, service::Deployment,
    visit::Visit,
};
use serde_json::json;

/// Longer than the lease of a browser, which is renewed in the meantime.
const OBSERVED: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_whose_clock_is_set_keeps_its_browsers() {
    keeps_the_browser(true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_whose_clock_is_set_takes_no_browser_of_another() {
    keeps_the_browser(false).await;
}

/// A function of the same name that is found first stands for the clock of the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn setting_the_clock_of_the_database_ends_no_browser() {
    let mut deployment = Deployment::prepare(Kind::Postgres).await;
    let name = deployment.database.value("SELECT current_database()::text").await;
    let clock = "CREATE SCHEMA fake; CREATE TABLE fake.clock (ahead interval);
         INSERT INTO fake.clock VALUES ('0');
         CREATE FUNCTION fake.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS
             'SELECT pg_catalog.clock_timestamp() + ahead FROM fake.clock';";
    deployment.database.execute(clock).await;
    let path = format!("ALTER DATABASE {name} SET search_path = fake, pg_catalog, public");
    deployment.database.execute(&path).await;
    deployment.run().await;
    let other = deployment.second_process().await;
    let visit = Visit::start(&deployment).await;
    // Longer than leases, and shorter than the time that an applicant has.
    for ahead in ["2 minutes", "-2 minutes"] {
        let set = format!("UPDATE fake.clock SET ahead = '{ahead}'");
        deployment.database.execute(&set).await;
        stays(&deployment, &other.partner, &visit.id, ahead).await;
        let created = deployment.create(&json!({})).await["createdAt"].as_str().unwrap().to_owned();
        let query = format!(
            "SELECT (abs(extract(epoch FROM '{created}'::timestamptz - now() - '{ahead}'::interval)) < 5)::text"
        );
        assert_eq!(
            deployment.database.value(&query).await,
            "true",
            "the service follows: {created}"
        );
    }
    visit.complete().await;
}

/// Has a session begin at an instance, and sets the clock of this or of another instance an hour forward and
/// then back.
async fn keeps_the_browser(of_its_own: bool) {
    let mut deployment = Deployment::prepare(Kind::Postgres).await;
    let clock = deployment.folder.path().join("clock");
    fs::write(&clock, "+0").unwrap();
    let faked = [
        ("LD_PRELOAD", library().display().to_string()),
        ("FAKETIME_TIMESTAMP_FILE", clock.display().to_string()),
        ("FAKETIME_NO_CACHE", "1".to_owned()),
        // Intervals are measured by a clock that nobody can set.
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
    ];
    let mut of_other = vec![("LD_PRELOAD", "")];
    if of_its_own {
        for (name, value) in &faked {
            deployment.set(name, value.clone());
        }
    } else {
        of_other = faked.iter().map(|(name, value)| (*name, value.as_str())).collect();
    }
    deployment.run().await;
    let address = format!("127.0.0.1:{}", free_port());
    let other = deployment.second_process_at(&address, &of_other).await;

    let visit = Visit::start(&deployment).await;
    for (set_to, name) in [("+3600", "an hour ahead"), ("-3600", "an hour behind")] {
        fs::write(&clock, set_to).unwrap();
        stays(&deployment, &other.partner, &visit.id, name).await;
    }
    let log = if of_its_own { "log" } else { "log-another" };
    let log = fs::read_to_string(deployment.folder.path().join(log)).unwrap();
    let mut hours: Vec<_> = log.lines().filter_map(|line| line.get(..13)).collect();
    hours.dedup();
    assert!(hours.len() > 2, "the clock was not set: {hours:?}");
    visit.complete().await;
}

/// The session keeps its browser and waits for its applicant for some time.
async fn stays(deployment: &Deployment, other: &Partner, id: &str, when: &str) {
    // The first process of a browser starts all others.
    let browser = || process_ids_with(&deployment.browsers()).into_iter().min();
    let started = browser();
    assert!(started.is_some());
    let end = Instant::now() + OBSERVED;
    while Instant::now() < end {
        for partner in [&deployment.partner, other] {
            let answer = partner.get(&format!("browser-session/{id}")).await;
            assert_eq!(answer.at("/data/status"), "AWAITING_USER", "{when}");
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    assert_eq!(browser(), started, "{when}");
}

/// Returns the library that fakes the clock of a program.
fn library() -> PathBuf {
    let folders = fs::read_dir("/usr/lib").unwrap().flatten();
    let mut files = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    files.find(|file| file.exists()).expect("Debian's package libfaketime")
}
