//! The size and the place of a session: the viewport of the remote page, and the region that serves
//! it.

use acceptance::{
    applicant::{Applicant, SIZED},
    database::Kind,
    free_port,
    service::Deployment,
};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_remote_page_takes_the_size_of_its_frame() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let desk = Applicant::visit(&deployment.demo).await;
    let embed = desk.start_session().await;
    embed.until_prompted("Sign in").await;
    for width in ["500px", "780px"] {
        let narrow = format!("document.querySelector('iframe').style.width = '{width}'");
        desk.evaluate(&narrow).await;
        embed.until("the frame's size", &format!("innerWidth === {}", &width[..3])).await;
        embed.until("the page to have the frame's size", SIZED).await;
        // The picture has that size with one pixel for each CSS pixel.
        embed.until("its picture", "(({ width, dataset }) => width === Number(dataset.width))(document.querySelector('canvas'))").await;
    }
    embed.sign_in("ok", "any").await;
    embed.click("[data-testid=consent-approve]").await;
    assert_eq!(embed.until_outcome().await, "COMPLETED");
    desk.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_opened_in_its_region() {
    let mut deployment = Deployment::prepare(Kind::Postgres).await;
    let address = format!("127.0.0.1:{}", free_port());
    let there = format!("http://{address}");
    deployment.set("AVOUCH_REGIONS", format!("us-west={there}"));
    deployment.run().await;
    let _west = deployment.second_process_at(&address, &[("AVOUCH_REGION", "us-west")]).await;
    let session = deployment.create(&json!({ "preferredRegion": "us-west" })).await;
    let url = session["embedUrl"].as_str().unwrap().to_owned();
    assert!(url.starts_with(&format!("{there}/embed/")), "{url}");
    let other = deployment.create(&json!({ "preferredRegion": "us-east" })).await;
    assert!(!other["embedUrl"].as_str().unwrap().starts_with(&there), "{other}");
    // A page that is opened at another process redirects to the right one.
    let here = deployment.setting("AVOUCH_PUBLIC_URL").unwrap();
    let visitor = Applicant::visit(&url.replace(&there, &here)).await;
    visitor.top_level().click("[data-testid=start]").await;
    visitor.top_level().until("the other address", &format!("location.href === {url:?}")).await;
    visitor.top_level().click("[data-testid=start]").await;
    visitor.top_level().until_prompted("Sign in").await;
    visitor.close().await;
}
