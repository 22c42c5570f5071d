//! Access to what the service stores and serves beside the API: file modes, the API documentation's
//! policy, metrics, and HSTS.

use std::{os::unix::fs::PermissionsExt as _, time::Duration};

use acceptance::{
    applicant::Applicant, database::Kind, eventually, partner::Partner, portal_user::base,
    service::Deployment,
};
use hyper::Method;
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stored_files_are_readable_by_their_owner_only() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    deployment.create(&json!({})).await;
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&deployment.data()), 0o700);
    let database = deployment.database.url.trim_start_matches("sqlite://").to_owned();
    for suffix in ["", "-wal", "-shm"] {
        let file = format!("{database}{suffix}");
        assert_eq!(mode(file.as_ref()), 0o600, "{file}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_documentation_works_under_a_strict_content_security_policy() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let base = base(&deployment);
    let page = Partner::new(&base, None);
    for (path, status) in [("/docs/", 200), ("/docs/reference.html", 200), ("/docs/none", 404)] {
        let answer = page.send(Method::GET, path, String::new()).await;
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        assert_eq!(answer.status, status, "{path}");
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{path}: {policy}");
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{path}: {policy}");
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
    }
    let reader = Applicant::visit(&format!("{base}/docs/reference.html")).await;
    let shown = async |what: &str, condition: &str| {
        eventually(what, Duration::from_secs(60), async || {
            (reader.evaluate(condition).await == true).then_some(())
        })
        .await;
    };
    shown("the reference", "!!document.getElementById('createSession')").await;
    let own = format!("document.body.innerText.includes('The base URL is {base}/v1')");
    shown("the address of this deployment", &own).await;
    shown("a mark of the page", "!!document.querySelector('.contents [aria-current=page]')").await;
    // The script runs: it reveals the search, which loads its index.
    shown("the search", "document.getElementById('search').hidden === false").await;
    let search = "query.value = 'ACCOUNT_LOCKED'; query.dispatchEvent(new Event('input')); true";
    reader.evaluate(search).await;
    let found = "[...document.querySelectorAll('#results a')]\
        .some((link) => link.href.endsWith('/docs/errors.html#account_locked'))";
    shown("a result", found).await;
    reader.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_are_served_to_this_machine_only_and_hsts_is_sent() {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    deployment.set("AVOUCH_PUBLIC_URL", "https://avouch.example");
    deployment.run().await;
    let get = async |path: &str, headers: &[(&str, &str)]| {
        deployment.partner.send_with(Method::GET, path, String::new(), headers).await
    };
    assert_eq!(get("/metrics", &[]).await.status, 200);
    for header in ["x-forwarded-for", "forwarded", "via"] {
        assert_eq!(get("/metrics", &[(header, "203.0.113.9")]).await.status, 404, "{header}");
    }
    let hsts = get("/healthz", &[]).await.headers["strict-transport-security"].clone();
    assert_eq!(hsts, "max-age=63072000");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_outlives_the_pauses_between_polls() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let deployment = Deployment::start(Kind::Sqlite).await;
    let address = base(&deployment).trim_start_matches("http://").to_owned();
    let mut connection = tokio::net::TcpStream::connect(&address).await.unwrap();
    for pause in [0, 1, 8] {
        tokio::time::sleep(Duration::from_secs(pause)).await;
        let request = format!("GET /healthz HTTP/1.1\r\nhost: {address}\r\n\r\n");
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut answer = [0; 15];
        let read =
            tokio::time::timeout(Duration::from_secs(60), connection.read_exact(&mut answer));
        read.await.unwrap().unwrap_or_else(|error| panic!("after {pause} s: {error}"));
        assert_eq!(&answer, b"HTTP/1.1 200 OK", "after {pause} s");
        let mut rest = [0; 4096];
        while tokio::time::timeout(Duration::from_millis(300), connection.read(&mut rest))
            .await
            .is_ok_and(|read| read.unwrap() > 0)
        {}
    }
}
