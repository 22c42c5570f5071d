//! A session on one of the sandbox platforms, with an applicant who looks at the picture.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    applicant::{Applicant, IN_NO_PASSWORD_FIELD},
    eventually,
    journey::{Screen, go_on, play, visit},
    service::Deployment,
};

const TIMEOUT: Duration = Duration::from_secs(60);

/// A session that the applicant has started.
pub struct SandboxSession<'a> {
    deployment: &'a Deployment,
    applicant: Applicant,
    id: String,
}

impl<'a> SandboxSession<'a> {
    /// Creates a session with one attempt, starts it, and plays the first steps.
    pub async fn start(deployment: &'a Deployment, platform: &str, steps: &Value) -> Self {
        let platform = deployment.platform(platform).await;
        let body = json!({ "platformId": platform, "maxAttempts": 1 });
        let created = deployment.create(&body).await;
        let link = created["embedUrl"].as_str().expect("a link");
        let applicant = visit(link, Screen::Desktop).await;
        play(&applicant.top_level(), Screen::Desktop, steps).await;
        let id = created["sessionId"].as_str().expect("an id").to_owned();
        Self { deployment, applicant, id }
    }

    /// Plays further steps.
    pub async fn go_on(&self, steps: &Value) {
        go_on(&self.applicant.top_level(), Screen::Desktop, steps).await;
    }

    /// Waits until the remote page is another one than that on which a password was sent.
    pub async fn until_password_sent(&self) {
        let page = self.applicant.top_level();
        page.until("the page after the password was sent", IN_NO_PASSWORD_FIELD).await;
    }

    /// Waits until something has happened in the session, of which its status may tell for a moment only.
    pub async fn until_event(&self, name: &str) {
        eventually(name, TIMEOUT, async || {
            let timeline = self.deployment.partner.timeline(&self.id).await;
            timeline.iter().any(|(event, _)| event == name).then_some(())
        })
        .await;
    }

    /// Waits until the session has a status.
    pub async fn until(&self, status: &str) {
        self.deployment.until(&self.id, status, TIMEOUT).await;
    }

    /// Waits until the applicant is asked to do something, and returns what the partner sees of it.
    pub async fn asked(&self, prompt: &str) -> Value {
        self.applicant.top_level().until_prompted(prompt).await;
        self.deployment.session(&self.id).await["nextAction"].clone()
    }

    /// Shares what was collected, and returns the session, with which the webhook has to agree.
    pub async fn share(self) -> Value {
        self.applicant.top_level().click("[data-testid=consent-approve]").await;
        self.end().await
    }

    /// Waits for the end, and returns the session, with which the webhook has to agree.
    pub async fn end(self) -> Value {
        let Self { deployment, applicant, id } = self;
        let status = applicant.top_level().until_outcome().await;
        applicant.close().await;
        let session = deployment.session(&id).await;
        assert_eq!(session["status"], status, "{session:#}");
        let delivery =
            eventually("a delivery", TIMEOUT, async || deployment.deliveries(&id).await.pop())
                .await;
        let payload = &delivery["payload"];
        assert_eq!(payload["status"], session["status"], "{payload:#}");
        assert_eq!(payload["extractedData"], session["extractedData"]);
        assert_eq!(payload["metadata"]["errorCode"], session["errorCode"]);
        session
    }
}
