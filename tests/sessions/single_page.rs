//! A platform whose pages report an applicant's mistakes only by the responses of its API.

use std::time::Duration;

use acceptance::{
    applicant::Applicant, database::Kind, service::Deployment, small_platform::SmallPlatform,
};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_third_refused_sign_in_ends_the_session() {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    let site = SmallPlatform::start().await;
    site.allow(&mut deployment);
    deployment.run().await;
    let platform = site.publish_single_page(&deployment);
    let session = deployment.create(&json!({ "platformId": platform })).await;
    let id = session["sessionId"].as_str().unwrap();
    let applicant = Applicant::visit(session["embedUrl"].as_str().unwrap()).await;
    let embed = applicant.top_level();
    embed.click("[data-testid=start]").await;
    embed.sign_in("ada", "wrong").await;
    embed.until_prompted("Acme did not accept that").await;
    applicant.press("Enter").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(deployment.session(id).await["status"], "AWAITING_USER", "two mistakes");
    applicant.press("Enter").await;
    assert_eq!(embed.until_outcome().await, "ERROR");
    assert_eq!(deployment.session(id).await["errorCode"], "CREDENTIALS_INVALID");
    applicant.close().await;
}
