//! Sessions that open an address of their own: from the partner, or from the applicant.

use std::time::Duration;

use acceptance::{
    applicant::Applicant, database::Kind, service::Deployment, small_platform::SmallPlatform,
};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_opens_the_address_that_the_partner_or_the_applicant_gives() {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    let site = SmallPlatform::start().await;
    site.allow(&mut deployment);
    deployment.run().await;
    let platform = site.publish_with_custom_url(&deployment);
    let listed = deployment.partner.get("browser-platforms").await;
    let listed = listed.at("/data").as_array().unwrap();
    let listed = listed.iter().find(|one| one["id"] == platform).unwrap();
    assert_eq!(listed["allowCustomUrl"], true, "{listed}");
    assert_eq!(listed["config"]["customUrlPattern"], "/account*");

    let given = site.address("/account?tab=profile");
    for wrong in [
        site.address("/login"),
        "https://elsewhere.example/account".to_owned(),
        "/account".to_owned(),
    ] {
        let body = json!({ "platformId": platform, "customUrl": wrong });
        let refused = deployment.partner.create(&body).await;
        assert_eq!(refused.status, 400);
        let message = refused.at("/message").as_str().unwrap();
        assert!(
            message.starts_with("customUrl must be an https URL on small.localhost"),
            "{message}"
        );
    }

    let body = json!({ "platformId": platform, "customUrl": given });
    let session = deployment.create(&body).await;
    let applicant = Applicant::visit(session["embedUrl"].as_str().unwrap()).await;
    complete(&applicant).await;
    applicant.close().await;

    let session = deployment.create(&json!({ "platformId": platform })).await;
    let id = session["sessionId"].as_str().unwrap();
    let applicant = Applicant::visit(session["embedUrl"].as_str().unwrap()).await;
    let embed = applicant.top_level();
    embed.click("[data-testid=start]").await;
    embed.until("the question", &shown("Enter the address of your account")).await;
    let session = deployment.until(id, "AWAITING_USER", Duration::from_secs(60)).await;
    assert_eq!(session["nextAction"]["kind"], "custom_url");
    enter(&applicant, "elsewhere.example/account").await;
    embed.until("the same question", &shown("That is no address of an account")).await;
    enter(&applicant, &site.address("/login")).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(embed.evaluate(&shown("That is no address of an account")).await, true);
    enter(&applicant, &given).await;
    complete_from_sign_in(&applicant).await;
    applicant.close().await;
    let session = deployment.session(id).await;
    assert_eq!(session["extractedData"]["accountId"], "acme-small-4711");
}

/// A condition that holds while the address is asked for with a text.
fn shown(text: &str) -> String {
    format!(
        "!document.querySelector('[data-testid=address]').hidden && \
         document.querySelector('#address-text').textContent.includes({text:?})"
    )
}

async fn enter(applicant: &Applicant, address: &str) {
    let script =
        format!("document.querySelector('[data-testid=address-input]').value = {address:?}");
    let embed = applicant.top_level();
    embed.evaluate(&script).await;
    embed.click("[data-testid=address-continue]").await;
}

async fn complete(applicant: &Applicant) {
    applicant.top_level().click("[data-testid=start]").await;
    complete_from_sign_in(applicant).await;
}

async fn complete_from_sign_in(applicant: &Applicant) {
    let embed = applicant.top_level();
    embed.sign_in("ada", "right").await;
    embed.until_prompted("Enter the code").await;
    embed.answer("123456").await;
    embed.click("[data-testid=consent-approve]").await;
    assert_eq!(embed.until_outcome().await, "COMPLETED");
}
