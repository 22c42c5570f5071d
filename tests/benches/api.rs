//! The partner API's throughput, compared with bare servers and the database alone in the same run:
//! `cargo xtask bench api`.

use std::{
    fs,
    time::{Duration, Instant},
};

use acceptance::{
    database::Kind,
    free_port,
    load::{compare, pgbench, wrk},
    root,
    service::Deployment,
};
use actix_web::{App, HttpResponse, HttpServer, rt, web};
use serde_json::json;
use tokio::sync::OnceCell;
use tokio_postgres::{Client, NoTls, Statement};

const STARTS: usize = 20;

#[tokio::main]
async fn main() {
    let mut report = Vec::new();
    let small = served(1).await;
    let large = served(1000).await;
    let idle = large.resident_kib();
    let key = format!("x-api-key: {}", large.api_key);
    let session = newest(&large).await;
    let url = |path: &str| {
        let address = large.setting("AVOUCH_PUBLIC_URL").expect("an address");
        format!("{address}/v1/partner/{path}")
    };
    let bare = bare_server(&large.database.url);
    let poll = url(&format!("browser-session/{session}"));
    let row = format!("{bare}/session/{session}");
    let (few, many) = (other_key(&small).await, other_key(&large).await);
    let ids = sessions_of(&large, &many).await;
    let (polls, rows) = (
        each(&large, "polls.lua", "/v1/partner/browser-session/", &ids),
        each(&large, "rows.lua", "/session/", &ids),
    );
    let owner = format!("x-api-key: {many}");
    let mine = || wrk(&[&poll, "-H", &owner, "-s", &polls]);

    report.push(compare("GET session", mine, "bare SELECT", || wrk(&[&row, "-s", &rows])));
    report.push(compare("GET session", mine, "pgbench join", || pgbench(&large, 16, &join())));
    let hello = format!("{bare}/hello");
    let hello = || wrk(&[&hello]);
    // The share of a bare server's throughput that remains when each request queries the database.
    report.push(compare("bare SELECT", || wrk(&[&row, "-s", &rows]), "bare hello", hello));
    report.push(compare("401", || wrk(&[&poll]), "bare hello", hello));
    for lookup in ["browser-platforms", "email-templates", "error-codes", "supported-countries"] {
        let path = url(lookup);
        report.push(compare(lookup, || wrk(&[&path, "-H", &key]), "bare hello", hello));
    }
    let post = creating(&large);
    let create = url("browser-session");
    let inserts = inserts(&large, &session).await;
    report.push(compare(
        "POST create",
        || wrk(&[&create, "-H", &key, "-s", &post]),
        "pgbench inserts",
        || pgbench(&large, 64, &inserts),
    ));
    let list = |deployment: &Deployment, key: &str| {
        let address = deployment.setting("AVOUCH_PUBLIC_URL").expect("an address");
        let path = format!("{address}/v1/partner/browser-sessions");
        wrk(&[&path, "-H", &format!("x-api-key: {key}")])
    };
    report.push(compare(
        "GET sessions of 1,000,000",
        || list(&large, &many),
        "GET sessions of 1,000",
        || list(&small, &few),
    ));
    let loaded = large.resident_kib();
    println!("resident memory: idle {} MiB, after load {} MiB", idle / 1024, loaded / 1024);
    let cold = cold_start(large).await;
    println!("cold start to /readyz: median {cold:.1} ms of {STARTS}");
    report.push(json!({ "idleKiB": idle, "loadedKiB": loaded, "coldStartMs": cold }));
    let folder = root().join("target/bench");
    fs::create_dir_all(&folder).expect("a folder");
    let text = serde_json::to_string_pretty(&json!({ "figures": report })).expect("a report");
    fs::write(folder.join("api.json"), text).expect("a file");
}

/// Starts a deployment with this many keys, each with 1,000 sessions.
async fn served(keys: u32) -> Deployment {
    let mut deployment = Deployment::prepare(Kind::Postgres).await;
    deployment.set("AVOUCH_LOG", "warn");
    deployment.run().await;
    deployment.create(&json!({})).await;
    let client = connect(&deployment.database.url).await;
    client
        .batch_execute(&format!(
            "INSERT INTO api_keys (id, team, environment, hash, created_at)
               SELECT gen_random_uuid(), team, environment, sha256(n::text::bytea), created_at
               FROM api_keys, generate_series(1, {keys}) n;
             INSERT INTO sessions (id, owner, terms, state, status, progress, version, created_at,
                 expires_at, platform)
               SELECT gen_random_uuid(), k.id, s.terms, s.state, s.status, s.progress, s.version,
                 s.created_at + n * interval '1 second', s.expires_at, s.platform
               FROM api_keys k, sessions s, generate_series(1, 1000) n WHERE k.id <> s.owner;"
        ))
        .await
        .expect("sessions");
    client.batch_execute("VACUUM ANALYZE").await.expect("statistics");
    deployment
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("a connection");
    tokio::spawn(connection);
    client
}

async fn newest(deployment: &Deployment) -> String {
    let list = deployment.partner.get("browser-sessions").await;
    list.at("/data/sessions/0/sessionId").as_str().expect("a session").to_owned()
}

/// Returns a key whose record owns 1,000 sessions: one of the records is rotated to a known key.
async fn other_key(deployment: &Deployment) -> String {
    let client = connect(&deployment.database.url).await;
    let query = "SELECT id::text FROM api_keys WHERE hash = sha256('1'::bytea)";
    let record: String = client.query_one(query, &[]).await.expect("a record").get(0);
    deployment.admin(&["rotate-key", &record])["apiKey"].as_str().expect("a key").to_owned()
}

/// Returns the sessions that a key owns.
async fn sessions_of(deployment: &Deployment, key: &str) -> Vec<String> {
    let client = connect(&deployment.database.url).await;
    let query = "SELECT s.id::text FROM sessions s JOIN api_keys k ON k.id = s.owner \
                 WHERE k.hash = sha256($1::text::bytea)";
    let rows = client.query(query, &[&key]).await.expect("sessions");
    assert_eq!(rows.len(), 1000);
    rows.iter().map(|row| row.get(0)).collect()
}

/// Writes a script for wrk that requests the sessions one after another.
fn each(deployment: &Deployment, name: &str, path: &str, ids: &[String]) -> String {
    let file = deployment.folder.path().join(name);
    let script = format!(
        "local ids = {{ '{}' }}\nlocal at = 0\nlocal requests = {{}}\n\
         function init(args)\n\
           for i, id in ipairs(ids) do requests[i] = wrk.format('GET', '{path}' .. id) end\nend\n\
         function request() at = at % #requests + 1; return requests[at] end\n",
        ids.join("', '")
    );
    fs::write(&file, script).expect("a script");
    file.display().to_string()
}

/// Writes a script for wrk that creates sessions.
fn creating(deployment: &Deployment) -> String {
    let post = deployment.folder.path().join("post.lua");
    let body = r#"{"platformId":1,"location":{"country":"US"}}"#;
    let script = format!(
        "wrk.method='POST'\nwrk.body='{body}'\nwrk.headers['content-type']='application/json'\n"
    );
    fs::write(&post, script).expect("a script");
    post.display().to_string()
}

/// Starts actix-web without anything around it: it serves a text, and one row by its key over a
/// pipelined connection of each worker, as the service does.
fn bare_server(database: &str) -> String {
    let (port, database) = (free_port(), database.to_owned());
    std::thread::spawn(move || {
        let serve = async move {
            HttpServer::new(move || {
                let row: web::Data<OnceCell<(Client, Statement)>> = web::Data::new(OnceCell::new());
                App::new()
                    .app_data(row)
                    .app_data(web::Data::new(database.clone()))
                    .route("/hello", web::get().to(async || "hello"))
                    .route("/session/{id}", web::get().to(one_row))
            })
            .bind(("127.0.0.1", port))?
            .run()
            .await
        };
        rt::System::new().block_on(serve)
    });
    format!("http://127.0.0.1:{port}")
}

async fn one_row(
    row: web::Data<OnceCell<(Client, Statement)>>,
    database: web::Data<String>,
    id: web::Path<uuid::Uuid>,
) -> HttpResponse {
    let query = "SELECT id::text, terms, state, status FROM sessions WHERE id = $1::text::uuid";
    let (client, statement) = row
        .get_or_init(|| async {
            let client = connect(&database).await;
            let statement = client.prepare(query).await.expect("a statement");
            (client, statement)
        })
        .await;
    let found = client.query_one(statement, &[&id.to_string()]).await.expect("a row");
    let text = |column: usize| found.get::<_, String>(column);
    HttpResponse::Ok()
        .json(json!({ "id": text(0), "terms": text(1), "state": text(2), "status": text(3) }))
}

/// The statement of a poll, for the database alone.
fn join() -> String {
    format!(
        "\\set n random(1, 1000)\nSELECT k.*, s.*, p.id, p.name, p.display_name, p.icon, p.login_url \
         FROM api_keys k LEFT JOIN sessions s ON s.owner = k.id AND s.id = '{}' \
         LEFT JOIN platforms p ON p.id = s.platform WHERE k.hash = sha256((:n)::text::bytea);\n",
        uuid::Uuid::nil()
    )
}

/// The inserts of a session's creation, for the database alone.
async fn inserts(deployment: &Deployment, like: &str) -> String {
    let client = connect(&deployment.database.url).await;
    let query = "SELECT owner::text, terms, state FROM sessions WHERE id = $1::text::uuid";
    let row = client.query_one(query, &[&like]).await.expect("a row");
    let (owner, terms, state): (String, String, String) = (row.get(0), row.get(1), row.get(2));
    // pgbench takes a colon before a word for a variable.
    let (terms, state) = (terms.replace(':', ": "), state.replace(':', ": "));
    format!(
        "BEGIN;\nINSERT INTO sessions (id, owner, terms, state, status, progress, version, \
         created_at, expires_at, platform) VALUES (gen_random_uuid(), '{owner}', '{terms}', \
         '{state}', 'CREATED', 0, 1, now(), now(), 1) RETURNING id \\gset\n\
         INSERT INTO session_events (session, version, at, event, status) \
         VALUES (:id::uuid, 1, now(), 'SessionCreated', 'CREATED');\nCOMMIT;\n"
    )
}

/// Returns the median of the milliseconds from starting the process to its first successful
/// `/readyz`, on a database that has data.
async fn cold_start(mut deployment: Deployment) -> f64 {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        deployment.kill();
        tokio::time::sleep(Duration::from_millis(200)).await;
        let began = Instant::now();
        deployment.run().await;
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    times[STARTS / 2]
}
