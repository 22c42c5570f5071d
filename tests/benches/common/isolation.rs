//! The effect of webhook endpoints that hang on the others: a hundred webhooks, half of which do
//! not respond.

use std::time::Duration;

use acceptance::{
    database::Kind,
    eventually,
    service::Deployment,
    webhook_endpoint::{Endpoint, Reply},
};
use serde_json::{Value, json};

/// Endpoints of each kind.
const ENDPOINTS_PER_KIND: usize = 50;
const HANG: Duration = Duration::from_secs(30);
/// Sessions that end one after another, for longer than an endpoint hangs, so that its time-outs
/// and retries fall into the run.
const SESSIONS: usize = 180;
const PAUSE: Duration = Duration::from_millis(250);

/// Measures the time from commit to arrival at the endpoints that respond: with the hanging half
/// inactive, then active.
pub(crate) async fn isolation() -> Value {
    let well = Endpoint::start(|_| Reply::Status(204)).await;
    let hanging = Endpoint::start(|_| Reply::Hang(HANG)).await;
    let mut deployment = Deployment::prepare(Kind::Postgres).await;
    deployment.set("AVOUCH_LOG", "off");
    deployment.set("AVOUCH_EGRESS_ALLOW", "127.0.0.1/32");
    let team = deployment.team.clone();
    for number in 0..ENDPOINTS_PER_KIND {
        for endpoint in [&well, &hanging] {
            let url = endpoint.url(&number.to_string());
            deployment.admin(&["create-webhook", "--team", &team, "--url", &url]);
        }
    }
    let (database, connection) =
        tokio_postgres::connect(&deployment.database.url, tokio_postgres::NoTls)
            .await
            .expect("a connection");
    tokio::spawn(connection);
    let (mut p50, mut p99) = (vec![], vec![]);
    for ports in [vec![well.port], vec![well.port, hanging.port]] {
        let active: Vec<_> = ports.iter().map(|port| format!("url LIKE '%:{port}/%'")).collect();
        let switch = format!("UPDATE webhooks SET active = {}", active.join(" OR "));
        database.batch_execute(&switch).await.expect("webhooks on and off");
        deployment.run().await;
        let times = run(&deployment, &well).await;
        p50.push(times[(times.len() - 1) / 2]);
        p99.push(times[(times.len() - 1) * 99 / 100]);
        deployment.kill();
    }
    let ratio = p99[1] / p99[0];
    let (alone, beside) = (p99[0], p99[1]);
    println!(
        "commit to arrival, p99 at {ENDPOINTS_PER_KIND} endpoints: {beside:.1} ms with {ENDPOINTS_PER_KIND} more that hang \
         (they were called {} times), {alone:.1} ms without; ratio {ratio:.2}",
        hanging.count()
    );
    println!("p50: {:.1} ms, {:.1} ms without", p50[1], p50[0]);
    json!({ "name": "isolation", "p99Ms": beside, "base": "without those that hang",
        "baseP99Ms": alone, "ratio": ratio })
}

/// Returns the times from commit to arrival in milliseconds, sorted in ascending order.
async fn run(deployment: &Deployment, well: &Endpoint) -> Vec<f64> {
    for _ in 0..SESSIONS {
        let session = deployment.create(&json!({})).await;
        let id = session["sessionId"].as_str().expect("a session");
        deployment.partner.delete(&format!("browser-session/{id}")).await;
        tokio::time::sleep(PAUSE).await;
    }
    eventually("all deliveries", HANG, async || {
        (well.count() >= SESSIONS * ENDPOINTS_PER_KIND).then_some(())
    })
    .await;
    let mut times: Vec<_> = well.take().iter().map(crate::waited).collect();
    assert_eq!(times.len(), SESSIONS * ENDPOINTS_PER_KIND, "each delivery arrives once");
    times.sort_by(f64::total_cmp);
    times
}
