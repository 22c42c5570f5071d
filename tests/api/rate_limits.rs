//! Rate limits, keys and idempotency over HTTP: on each store, and across two processes that share
//! only PostgreSQL and Redis.

use std::time::{SystemTime, UNIX_EPOCH};

use acceptance::{
    database::Kind,
    partner::{Answer, Partner},
    service::Deployment,
};
use hyper::Method;
use serde_json::{Value, json};
use testkit::redis::RedisServer;

/// The processes to which requests go in turn: one or two.
struct Processes(Vec<Partner>);

impl Processes {
    fn with_key(&self, key: Option<&str>) -> Self {
        Self(self.0.iter().map(|process| process.with_key(key)).collect())
    }

    fn nth(&self, number: usize) -> &Partner {
        &self.0[number % self.0.len()]
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_hold_on_sqlite() {
    let deployment = prepared(Kind::Sqlite, None).await;
    everything(&deployment, &Processes(vec![deployment.partner.clone()])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_hold_on_postgres() {
    let deployment = prepared(Kind::Postgres, None).await;
    everything(&deployment, &Processes(vec![deployment.partner.clone()])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_hold_across_two_processes_with_postgres_and_redis() {
    let redis = RedisServer::start();
    let deployment = prepared(Kind::Postgres, Some(&redis)).await;
    let another = deployment.second_process().await;
    let processes = Processes(vec![deployment.partner.clone(), another.partner.clone()]);
    everything(&deployment, &processes).await;
}

async fn prepared(kind: Kind, redis: Option<&RedisServer>) -> Deployment {
    let mut deployment = Deployment::prepare(kind).await;
    deployment.set("AVOUCH_RATE_LIMIT", "20/60");
    deployment.set("AVOUCH_CREATE_LIMIT", "8/60");
    if let Some(redis) = redis {
        deployment.set("AVOUCH_REDIS_URL", redis.url());
    }
    deployment.run().await;
    deployment
}

async fn everything(deployment: &Deployment, processes: &Processes) {
    requests(deployment, processes).await;
    creations(deployment, processes).await;
    rotation(deployment, processes).await;
    idempotency(deployment, processes).await;
    unauthenticated_requests(processes).await;
}

fn fresh(deployment: &Deployment, processes: &Processes) -> (Processes, String) {
    let key = ["create-key", "--team", &deployment.team, "--environment", "development"];
    let made = deployment.admin(&key);
    (processes.with_key(made["apiKey"].as_str()), made["keyId"].as_str().unwrap().to_owned())
}

fn header(answer: &Answer, name: &str) -> i64 {
    let value = answer.headers.get(name).unwrap_or_else(|| panic!("no {name}: {answer:?}"));
    value.to_str().unwrap().parse().unwrap()
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs().try_into().unwrap()
}

async fn requests(deployment: &Deployment, processes: &Processes) {
    let (processes, record) = fresh(deployment, processes);
    let paths = ["browser-sessions", "browser-session/none", "nothing", "error-codes"];
    let mut reset = None;
    for (number, left) in (0..20).rev().enumerate() {
        let answer = processes.nth(number).get(paths[number % paths.len()]).await;
        assert!([200, 404].contains(&answer.status), "{answer:?}");
        assert_eq!(header(&answer, "x-ratelimit-limit"), 20);
        assert_eq!(header(&answer, "x-ratelimit-remaining"), left);
        let resets = header(&answer, "x-ratelimit-reset");
        assert!((now()..=now() + 61).contains(&resets), "{resets}");
        assert!((resets - *reset.get_or_insert(resets)).abs() <= 1, "a window stays where it is");
    }
    let refused = processes.nth(0).get("browser-sessions").await;
    assert_eq!(refused.status, 429);
    let told = ["statusCode", "message", "code"].map(|member| &refused.body[member]);
    assert_eq!(told, [&json!(429), &json!("Too Many Requests"), &json!("RATE_LIMITED")]);
    assert_eq!(header(&refused, "x-ratelimit-remaining"), 0);
    assert!((1..=60).contains(&header(&refused, "retry-after")));

    let rotated = deployment.admin(&["rotate-key", &record])["apiKey"].clone();
    let rotated = processes.with_key(rotated.as_str());
    assert_eq!(rotated.nth(1).get("browser-sessions").await.status, 429, "the record's window");
    let (other, _) = fresh(deployment, &processes);
    assert_eq!(
        other.nth(0).get("browser-sessions").await.status,
        200,
        "each key has a window of its own"
    );
}

/// Requests without a valid key are counted by address and not for any key.
async fn unauthenticated_requests(processes: &Processes) {
    let anonymous = processes.with_key(None);
    let wrong = processes.with_key(Some("avk_dev_wrong"));
    let mut refused = 0;
    for number in 0..25 {
        let processes = if number % 2 == 0 { &anonymous } else { &wrong };
        let answer = processes.nth(number).get("browser-sessions").await;
        assert_eq!(header(&answer, "x-ratelimit-limit"), 20);
        match answer.status {
            401 => assert_eq!(answer.body["message"], "Unauthorized"),
            429 => refused += 1,
            other => panic!("{other}"),
        }
    }
    assert_eq!(refused, 25 - 20 + 4, "the revoked and rotated keys were counted here too");
    assert_eq!(
        processes.nth(0).get("error-codes").await.status,
        200,
        "requests with keys still work"
    );
}

fn order() -> Value {
    json!({ "platformId": 1, "location": { "country": "US" } })
}

async fn creations(deployment: &Deployment, processes: &Processes) {
    let (processes, _) = fresh(deployment, processes);
    for number in 0..8 {
        let answer = processes.nth(number).post("browser-session", &order()).await;
        assert_eq!(answer.status, 201, "{answer:?}");
    }
    let refused = processes.nth(0).post("browser-session", &order()).await;
    assert_eq!(refused.status, 429);
    assert_eq!(
        header(&refused, "x-ratelimit-remaining"),
        11,
        "the headers describe the other limit"
    );
    assert!((1..=60).contains(&header(&refused, "retry-after")));
    assert_eq!(processes.nth(1).get("browser-sessions").await.at("/data/total"), 8);
}

/// Rotation and revocation take effect with the next request to every process.
async fn rotation(deployment: &Deployment, processes: &Processes) {
    let (old, record) = fresh(deployment, processes);
    let created = old.nth(0).post("browser-session", &order()).await;
    let path = format!("browser-session/{}", created.at("/data/sessionId").as_str().unwrap());
    for number in 0..2 {
        assert_eq!(old.nth(number).get(&path).await.status, 200);
    }
    let new = deployment.admin(&["rotate-key", &record])["apiKey"].clone();
    let new = processes.with_key(new.as_str());
    for number in 0..2 {
        assert_eq!(old.nth(number).get(&path).await.status, 401);
        assert_eq!(
            new.nth(number).get(&path).await.status,
            200,
            "sessions stay with the key's record"
        );
    }
    let (other, _) = fresh(deployment, processes);
    assert_eq!(other.nth(1).get(&path).await.status, 404);
    deployment.admin(&["revoke-key", &record]);
    for number in 0..2 {
        assert_eq!(new.nth(number).get(&path).await.status, 401);
    }
}

async fn idempotency(deployment: &Deployment, processes: &Processes) {
    let (processes, _) = fresh(deployment, processes);
    let create = async |process: &Partner, key: &str, body: &Value| {
        let (path, headers) = ("/v1/partner/browser-session", [("idempotency-key", key)]);
        process.send_with(Method::POST, path, body.to_string(), &headers).await
    };
    // Two concurrent requests to two processes create one session, whichever comes second.
    let bodies = [order(), order()];
    let both = tokio::join!(
        create(processes.nth(0), "application-7", &bodies[0]),
        create(processes.nth(1), "application-7", &bodies[1]),
    );
    let made: Vec<_> = [both.0, both.1].into_iter().filter(|one| one.status != 409).collect();
    let first = &made[0].body;
    assert!(made.iter().all(|one| one.status == 201 && one.body == *first), "{made:?}");

    let again = create(processes.nth(1), "application-7", &order()).await;
    assert_eq!((again.status, &again.body), (201, first));
    assert_eq!(again.headers["idempotent-replayed"], "true");
    for (field, value) in [("externalReferenceId", "other"), ("attestationChallenge", "Zm9v")] {
        let mut other = order();
        other[field] = value.into();
        assert_eq!(create(processes.nth(0), "application-7", &other).await.status, 422, "{field}");
    }
    assert_eq!(create(processes.nth(0), "", &order()).await.status, 400);
    assert_eq!(create(processes.nth(0), &"x".repeat(256), &order()).await.status, 400);
    assert_eq!(processes.nth(0).get("browser-sessions").await.at("/data/total"), 1);
}
