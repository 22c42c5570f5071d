//! The test clock of development keys.

use std::time::Duration;

use acceptance::{applicant::Applicant, database::Kind, service::Deployment};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_passes_for_the_sessions_of_a_development_key() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let partner = &deployment.partner;
    let advance = async |seconds: i64| {
        partner.post("test-clock", &json!({ "advanceSeconds": seconds })).await
    };
    let waiting = deployment.create(&json!({ "maxAttempts": 1 })).await;
    let waiting = waiting["sessionId"].as_str().unwrap().to_owned();
    let unused = deployment.create(&json!({ "expiresInHours": 1 })).await;
    let unused = unused["sessionId"].as_str().unwrap().to_owned();
    let applicant = Applicant::visit("about:blank").await;
    let url = deployment.session(&waiting).await["embedUrl"].clone();
    applicant.navigate(url.as_str().expect("a link")).await;
    let embed = applicant.top_level();
    embed.click("[data-testid=start]").await;
    embed.until_prompted("Sign in to Acme").await;
    let deadline = deployment.session(&waiting).await["nextAction"]["deadline"].clone();

    let moved = advance(300).await;
    assert_eq!((moved.status, moved.at("/data/sessions")), (200, &json!(2)));
    assert_eq!(moved.at("/data/advancedSeconds"), 300);
    let session = deployment.session(&waiting).await;
    assert_eq!(session["status"], "AWAITING_USER", "{session}");
    let nearer = &session["nextAction"]["deadline"];
    let seconds = |text: &serde_json::Value| {
        chrono::DateTime::parse_from_rfc3339(text.as_str().unwrap()).unwrap().timestamp()
    };
    assert!((290..=310).contains(&(seconds(&deadline) - seconds(nearer))), "{deadline} {nearer}");

    advance(301).await;
    assert_eq!(embed.until_outcome().await, "ERROR");
    assert_eq!(deployment.session(&waiting).await["errorCode"], "USER_INPUT_TIMEOUT");
    let session = deployment.session(&unused).await;
    assert_eq!(session["status"], "CREATED", "{session}");

    let moved = advance(3000).await;
    assert_eq!(moved.at("/data/sessions"), 1, "the other one has ended");
    let session = deployment.until(&unused, "ERROR", Duration::from_secs(60)).await;
    assert_eq!(session["errorCode"], "SESSION_EXPIRED");

    for (body, message) in [
        (json!({}), "advanceSeconds is required"),
        (json!({ "advanceSeconds": 0 }), "advanceSeconds must be between 1 and 2592000"),
    ] {
        let refused = partner.post("test-clock", &body).await;
        assert_eq!((refused.status, refused.at("/message")), (400, &json!(message)));
    }
    let key = ["create-key", "--team", &deployment.team, "--environment", "production"];
    let key = deployment.admin(&key)["apiKey"].clone();
    let production = partner.with_key(key.as_str());
    let refused = production.post("test-clock", &json!({ "advanceSeconds": 1 })).await;
    assert_eq!((refused.status, refused.at("/code")), (403, &json!("FORBIDDEN")));
    applicant.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_sessions_are_found_behind_many_that_have_ended() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let partner = &deployment.partner;
    let waiting = deployment.create(&json!({ "expiresInHours": 1 })).await;
    let waiting = waiting["sessionId"].as_str().unwrap().to_owned();
    for _ in 0..110 {
        let ended = partner.create(&json!({})).await;
        let ended = ended.at("/data/sessionId").as_str().unwrap().to_owned();
        assert_eq!(partner.delete(&format!("browser-session/{ended}")).await.status, 200);
    }
    for _ in 0..120 {
        assert_eq!(partner.create(&json!({})).await.status, 201);
    }
    let moved = partner.post("test-clock", &json!({ "advanceSeconds": 3600 })).await;
    assert_eq!((moved.status, moved.at("/data/sessions")), (200, &json!(121)));
    let session = deployment.until(&waiting, "ERROR", Duration::from_secs(60)).await;
    assert_eq!(session["errorCode"], "SESSION_EXPIRED");
}
