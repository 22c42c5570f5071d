//! An instance that is cut off from the database, but not from its applicant.

use std::time::{Duration, Instant};

use acceptance::{
    applicant::Applicant, cuttable_proxy::CuttableProxy, database::Kind, eventually, free_port,
    processes::processes_with, service::Deployment,
};
use serde_json::json;

const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_without_the_database_ends_a_browser_before_another_may_have_the_session() {
    let mut deployment = Deployment::prepare(Kind::Postgres).await;
    let direct = deployment.database.url.clone();
    let mut url = url::Url::parse(&direct).unwrap();
    let server = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap_or(5432));
    let proxy = CuttableProxy::to(&server).await;
    url.set_host(Some("127.0.0.1")).unwrap();
    url.set_port(Some(proxy.port)).unwrap();
    deployment.set("AVOUCH_DATABASE_URL", url.as_str());
    deployment.run().await;
    let address = format!("127.0.0.1:{}", free_port());
    let other = deployment.second_process_at(&address, &[("AVOUCH_DATABASE_URL", &direct)]).await;

    let session = deployment.create(&json!({})).await;
    let id = session["sessionId"].as_str().unwrap();
    let applicant = Applicant::visit(session["embedUrl"].as_str().unwrap()).await;
    let page = applicant.top_level();
    page.click("[data-testid=start]").await;
    page.until_prompted("Sign in").await;
    let status = async || {
        let answer = other.partner.get(&format!("browser-session/{id}")).await;
        answer.at("/data/status").as_str().map(str::to_owned)
    };
    assert_eq!(status().await.as_deref(), Some("AWAITING_USER"));
    let browsers = || processes_with(&deployment.browsers()).len();
    assert!(browsers() > 0);

    proxy.silence();
    let cut_at = Instant::now();
    let ended = eventually("the browser to end", TIMEOUT, async || {
        let has_session = status().await.as_deref() == Some("AWAITING_USER");
        let left = browsers();
        assert!(has_session || left == 0, "another may have the session, and the browser runs");
        (left == 0).then(|| cut_at.elapsed())
    });
    println!("the browser ended after {:.1} s", ended.await.as_secs_f64());
    let taken = eventually("the session to be taken over", TIMEOUT, async || {
        (status().await.as_deref() != Some("AWAITING_USER")).then(|| cut_at.elapsed())
    });
    println!("the session was without it after {:.1} s", taken.await.as_secs_f64());

    proxy.reconnect();
    deployment.until(id, "AWAITING_USER", TIMEOUT).await;
    page.until("a picture", "document.querySelector('canvas').dataset.pictures > 0").await;
    page.until_prompted("Sign in").await;
    page.sign_in_again("ok", "any").await;
    page.click("[data-testid=consent-approve]").await;
    assert_eq!(page.until_outcome().await, "COMPLETED");
    applicant.close().await;
}
