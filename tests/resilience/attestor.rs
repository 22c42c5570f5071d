//! The attestor is killed or suspended while sessions need it.

use std::time::{Duration, Instant};

use acceptance::{
    applicant::Applicant, attestor::with_attestor, database::Kind, eventually, platform,
    service::Deployment,
};
use serde_json::{Value, json};

/// A proof takes every core.
const TIMEOUT: Duration = Duration::from_secs(180);
/// How long the attestor is gone: longer than the pause before an order is repeated.
const OUTAGE: Duration = Duration::from_secs(5);

/// Killed before the applicant consents, and again while the proof is made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attestor_that_returns_within_seconds_costs_no_attestation() {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    // The shortest proof: of a request whose response sets no cookie, and which stays open.
    let definition = platform::write(&deployment, "acme-open", |definition| {
        definition["attest"]["modes"] = json!(["zktls-request"]);
        definition["attest"]["fields"] = json!({ "followers": "/followers" });
        definition["requests"]["certified"]["url"] = json!("https://sandbox.localhost/api/stats");
    });
    let mut attestor = with_attestor(&mut deployment, std::slice::from_ref(&definition)).await;
    let published = deployment.admin(&["publish-platform", &definition.display().to_string()]);
    let asked = json!({ "generateAttestation": true, "platformId": published["platformId"] });
    let visit = Visit::up_to_consent(&deployment, &asked).await;
    attestor.kill();
    visit.consent().await;
    tokio::time::sleep(OUTAGE).await;
    assert_eq!(deployment.session(&visit.id).await["progress"], 85);
    attestor.restart().await;
    eventually("the response to be recorded", TIMEOUT, async || {
        (deployment.session(&visit.id).await["progress"].as_i64() >= Some(90)).then_some(())
    })
    .await;
    attestor.kill();
    tokio::time::sleep(OUTAGE).await;
    attestor.restart().await;
    let session = visit.end(&deployment).await;
    assert_eq!(session["status"], "COMPLETED", "{session}");
    assert_eq!(session["hasAttestation"], true);
    assert_eq!(session["attestedFields"], json!(["followers"]));
}

/// Suspended, it accepts connections and answers nothing; then it is killed, and does not return.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attestor_that_stays_away_costs_the_attestation_alone() {
    let mut deployment = Deployment::prepare(Kind::Sqlite).await;
    let mut attestor = with_attestor(&mut deployment, &[platform::sandbox()]).await;
    let asked = json!({ "generateAttestation": true });
    let (first, second) = tokio::join!(
        Visit::up_to_consent(&deployment, &asked),
        Visit::up_to_consent(&deployment, &asked)
    );
    attestor.suspend();
    let began = Instant::now();
    first.consent().await;
    unattested(&first.end(&deployment).await);
    assert!(began.elapsed() < Duration::from_secs(100), "{:?}", began.elapsed());
    attestor.kill();
    let began = Instant::now();
    second.consent().await;
    unattested(&second.end(&deployment).await);
    // The outage is known: not every session waits for its whole time once more.
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

/// The data is shared as the applicant consented.
fn unattested(session: &Value) {
    assert_eq!(session["status"], "PARTIAL_COMPLETE", "{session}");
    assert_eq!(session["errorCode"], "ATTESTATION_FAILED");
    assert_eq!(session["hasAttestation"], false);
    assert_eq!(session["extractedData"]["accountId"], "acme-ok-4711");
}

/// An applicant whose session is to be attested.
struct Visit {
    id: String,
    applicant: Applicant,
}

impl Visit {
    /// Signs in, and waits for the question for consent.
    async fn up_to_consent(deployment: &Deployment, asked: &Value) -> Self {
        let session = deployment.create(asked).await;
        let applicant = Applicant::visit(session["embedUrl"].as_str().unwrap()).await;
        let page = applicant.top_level();
        page.click("[data-testid=start]").await;
        page.sign_in("ok", "any").await;
        page.until("the question", "!document.getElementById('consent').hidden").await;
        Self { id: session["sessionId"].as_str().unwrap().to_owned(), applicant }
    }

    /// Agrees, and waits until the attestation begins.
    async fn consent(&self) {
        let page = self.applicant.top_level();
        page.click("[data-testid=consent-approve]").await;
        let told = "document.getElementById('note').textContent.includes('This may take a moment')";
        page.until("the note about the running attestation", told).await;
    }

    /// Waits for the end of the session, of which applicant and partner are told.
    async fn end(self, deployment: &Deployment) -> Value {
        let session = eventually("the end", TIMEOUT, async || {
            let session = deployment.session(&self.id).await;
            (session["status"] != "VERIFYING").then_some(session)
        })
        .await;
        assert_eq!(session["status"], self.applicant.top_level().until_outcome().await);
        let told = async || deployment.deliveries(&self.id).await.pop();
        let payload = eventually("a delivery", TIMEOUT, told).await["payload"].clone();
        assert_eq!(payload["status"], session["status"]);
        assert_eq!(payload["extractedData"], session["extractedData"]);
        self.applicant.close().await;
        session
    }
}
