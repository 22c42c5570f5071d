//! Rate limits counted in a Redis that accepts TLS only, and in one that hangs.

use std::{fs, time::Duration};

use acceptance::{
    database::{Database, Kind},
    eventually,
    service::Deployment,
};
use serde_json::json;
use testkit::{
    certificates::{Authority, Certified},
    redis::RedisServer,
};

use super::{TlsServer, lines};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_connections_use_tls() {
    let secured = TlsServer::start().await;
    let redis = RedisServer::start_tls(&secured.authority.valid(&["127.0.0.1"]));
    let mut deployment = Deployment::on(Database { url: secured.verified() });
    deployment.set("AVOUCH_REDIS_URL", redis.url());
    deployment.set("AVOUCH_REDIS_ROOTS", secured.file("ours.pem"));
    deployment.set("AVOUCH_RATE_LIMIT", "1000/60");
    deployment.run().await;
    let another = deployment.second_process().await;
    let session = deployment.create(&json!({})).await;
    let path = format!("browser-session/{}", session["sessionId"].as_str().unwrap());
    let mut left = vec![];
    for partner in [&deployment.partner, &another.partner, &deployment.partner] {
        let answer = partner.get(&path).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let header = answer.headers["x-ratelimit-remaining"].to_str().unwrap();
        left.push(header.parse::<u32>().unwrap());
    }
    assert_eq!((left[0] - left[1], left[1] - left[2]), (1, 1), "counted together: {left:?}");
    let count = "SELECT count(*), count(*) FILTER (WHERE ssl) FROM pg_stat_ssl \
                 JOIN pg_stat_activity USING (pid) WHERE usename = 'postgres'";
    let row = secured.client().await.query_one(count, &[]).await.unwrap();
    let (all, over_tls): (i64, i64) = (row.get(0), row.get(1));
    println!("{over_tls} of {all} connections of two processes are over TLS");
    assert!(all >= 4 && all == over_tls, "{over_tls} of {all}");
    assert_eq!(lines(&deployment.log(), "Redis is away"), Vec::<String>::new());
    assert_eq!(lines(&deployment.log(), "on the way to PostgreSQL"), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_with_an_unverifiable_certificate_counts_as_unavailable() {
    let (ours, others) = (Authority::new("ours"), Authority::new("others"));
    let host = ["127.0.0.1"];
    let cases: [(&str, Certified, &str); 4] = [
        ("in order", ours.valid(&host), ""),
        ("wrong CA", others.valid(&host), "UnknownIssuer"),
        ("expired", ours.expired(&host), "expired"),
        ("wrong host", ours.valid(&["cache.example"]), "not valid for name"),
    ];
    for (name, certified, told) in cases {
        let redis = RedisServer::start_tls(&certified);
        let mut deployment = Deployment::prepare(Kind::Sqlite).await;
        let roots = deployment.folder.path().join("roots.pem");
        fs::write(&roots, ours.pem()).unwrap();
        deployment.set("AVOUCH_REDIS_URL", redis.url());
        deployment.set("AVOUCH_REDIS_ROOTS", roots.display().to_string());
        deployment.set("AVOUCH_RATE_LIMIT", "1000/60");
        deployment.run().await;
        // The service continues and counts in its own memory.
        assert_eq!(deployment.partner.get("browser-sessions").await.status, 200, "{name}");
        let away = lines(&deployment.log(), "Redis is away");
        println!("{name}: {away:?}");
        if told.is_empty() {
            assert!(away.is_empty(), "{name}: {away:?}");
        } else {
            assert_eq!(away.len(), 1, "{name}");
            assert!(away[0].contains(told), "{name}: {away:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hanging_redis_delays_no_request() {
    let redis = RedisServer::start();
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    deployment.set("AVOUCH_REDIS_URL", redis.url());
    deployment.set("AVOUCH_RATE_LIMIT", "1000/60");
    deployment.run().await;
    assert_eq!(deployment.partner.get("browser-sessions").await.status, 200);
    signal("-STOP", redis.process());
    let began = std::time::Instant::now();
    assert_eq!(deployment.partner.get("browser-sessions").await.status, 200);
    let took = began.elapsed();
    println!("a request while Redis is paused: {took:?}; {:?}", lines(&deployment.log(), "Redis"));
    assert!(took < Duration::from_secs(3), "{took:?}");
    assert_eq!(lines(&deployment.log(), "Redis is away").len(), 1);
    signal("-CONT", redis.process());
    eventually("Redis to be used again", Duration::from_secs(60), async || {
        deployment.partner.get("browser-sessions").await;
        (!lines(&deployment.log(), "Redis is back").is_empty()).then_some(())
    })
    .await;
}

fn signal(name: &str, process: u32) {
    let sent = std::process::Command::new("kill").args([name, &process.to_string()]).status();
    assert!(sent.unwrap().success(), "{name}");
}
