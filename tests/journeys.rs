//! Whole journeys: a real Chromium on both sides, the service as a process, a partner's page.

use std::time::Duration;

use acceptance::{applicant::Applicant, database::Kind, eventually, service::{Deployment, processes_with}};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(30);

macro_rules! on_both_stores {
    ($($name:ident => $body:path;)*) => { $(
        mod $name {
            use super::*;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                $body(Kind::Sqlite).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                $body(Kind::Postgres).await;
            }
        }
    )* };
}

on_both_stores! {
    an_applicant_who_signs_in_and_agrees_is_verified => signs_in;
}

async fn signs_in(kind: Kind) {
    let deployment = Deployment::start(kind).await;
    let applicant = Applicant::visit(&deployment.demo).await;
    let embed = applicant.begin().await;
    embed.sign_in("ok", "any").await;
    std::fs::write("/tmp/shot0.b64", applicant.screenshot().await).unwrap();
    embed.until("consent", "document.querySelector('#consent').hidden === false").await;
    std::fs::write("/tmp/shot.b64", applicant.screenshot().await).unwrap();
    embed.click("[data-testid=consent-approve]").await;
    assert_eq!(embed.until_outcome().await, "COMPLETED");
    let id = applicant.evaluate("document.querySelector('iframe').src").await;
    eprintln!("{id}");
    applicant.leave().await;
    let _ = (eventually(" ", SOON, async || Some(())).await, json!({}), Value::Null, processes_with(&deployment.browsers()));
}
