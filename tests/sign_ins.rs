//! What is recorded of people who try to sign in to the portal.

use std::time::Duration;

use acceptance::{
    database::Kind,
    eventually,
    person::{Person, base, user},
    service::Deployment,
};
use serde_json::Value;

const ADA: &str = "ada@lender.example";
const WRONG: &str = "correct horse battery stapler";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_sign_ins_are_in_the_audit_log_and_in_the_log() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let password = user(&deployment, &deployment.team, ADA, "owner");
    let stranger = Person::new(&base(&deployment));
    for email in [ADA, "nobody@lender.example", "no address"] {
        assert_ne!(stranger.sign_in(email, WRONG).await.status, 303, "{email}");
    }
    let ada = Person::new(&base(&deployment));
    assert_eq!(ada.sign_in(ADA, &password).await.status, 303);
    let refused = eventually("the refusal", Duration::from_secs(10), async || {
        let log = ada.get("/portal/audit/entries.jsonl").await.text;
        let entries = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let refused: Vec<_> =
            entries.filter(|entry| entry["action"] == "sign-in.refused").collect();
        (!refused.is_empty()).then_some(refused)
    });
    let refused = refused.await;
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0]["actor"], ADA);
    assert_eq!(refused[0]["subject"], "password");
    assert_eq!(refused[0]["address"], "127.0.0.1");
    let log = std::fs::read_to_string(deployment.log()).unwrap();
    assert_eq!(log.matches("a sign-in was refused").count(), 3, "{log}");
    for secret in [WRONG, password.as_str(), "nobody@lender.example"] {
        assert!(!log.contains(secret), "{secret}");
    }
}
