//! An applicant at the sign-in of a session, who goes on when a test asks for it.

use serde_json::{Value, json};

use crate::{applicant::Applicant, service::Deployment};

/// A session whose applicant is asked to sign in.
pub struct Visit {
    pub id: String,
    pub applicant: Applicant,
}

impl Visit {
    /// Creates a session with one attempt, and opens it.
    pub async fn start(deployment: &Deployment) -> Self {
        Self::of(&deployment.create(&json!({ "maxAttempts": 1 })).await).await
    }

    /// Opens a session that was created, up to its sign-in.
    pub async fn of(session: &Value) -> Self {
        let text = |name: &str| session[name].as_str().expect("a text");
        let applicant = Applicant::visit(text("embedUrl")).await;
        let page = applicant.top_level();
        page.click("[data-testid=start]").await;
        page.until_prompted("Sign in").await;
        Self { id: text("sessionId").to_owned(), applicant }
    }

    /// Signs in, consents and leaves; returns the session, which has completed.
    pub async fn complete(self) -> String {
        let page = self.applicant.top_level();
        page.sign_in("ok", "any").await;
        page.click("[data-testid=consent-approve]").await;
        assert_eq!(page.until_outcome().await, "COMPLETED");
        self.applicant.close().await;
        self.id
    }
}
