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
async fn the_api_documentation_works_under_a_strict_content_security_policy() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let page = Partner::new(&base(&deployment), None);
    let (status, _) = page.fetch(&format!("{}/docs/", base(&deployment)), None).await;
    assert_eq!(status, 200);
    for path in ["/docs/", "/docs/swagger-ui.css", "/docs/swagger-initializer.js"] {
        let answer = page.send(Method::GET, path, String::new()).await;
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("frame-ancestors 'none'"), "{path}: {policy}");
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
    }
    let reader = Applicant::visit(&format!("{}/docs/", base(&deployment))).await;
    let shown = "document.body.innerText.includes('Avouch partner API')";
    eventually("the description", Duration::from_secs(20), async || {
        (reader.evaluate(shown).await == true).then_some(())
    })
    .await;
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
