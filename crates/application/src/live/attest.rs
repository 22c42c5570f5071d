//! The end of a run that is to be attested: the named request is made once more, through the
//! witness, with what the browser would send.

use std::pin::pin;

use domain::{
    fairness::Tenant,
    session::{AttestationStep, Collected, Event, IssuedAttestation, Phase, Session, State},
    workflow::Attest,
};
use ports::{
    StoreError,
    attestor::{AttestError, AttestationOrder, OnProgress},
    browser::{BrowserError, Credentials},
};
use tokio::sync::watch;

use super::runner::WorkflowRunner;
use crate::advance::AdvanceError;

/// Why a session goes without an attestation.
#[derive(Debug, thiserror::Error)]
enum AttestationFailure {
    #[error("the definition has no plan for it")]
    NoPlan,
    #[error("the browser does not tell what it would send: {0}")]
    Browser(#[from] BrowserError),
    #[error(transparent)]
    Attestor(#[from] AttestError),
    #[error("`{0}` is not what the browser was shown")]
    Differs(String),
    #[error("it ended meanwhile")]
    Over,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl WorkflowRunner {
    /// Whether the applicant's part is done, and the browser's.
    pub(super) fn is_verifying(&self) -> bool {
        let inside = self.room.state.borrow();
        inside.session.as_ref().is_some_and(|session| {
            matches!(session.state, State::Live { phase: Phase::Verifying { .. }, .. })
        })
    }

    /// Comes back when the browser has ended before it had done its part.
    pub(super) async fn wait_for_loss(&self) {
        self.browser.ended().await;
        if self.is_verifying() {
            std::future::pending::<()>().await;
        }
    }

    /// Has what was collected attested, and ends the session with or without that.
    pub(super) async fn attest(&self, collected: &Collected) -> Result<(), AdvanceError> {
        let (reached, mut steps) = watch::channel(AttestationStep::default());
        let reached = |step: AttestationStep| {
            reached.send_if_modified(|at| {
                let later = step > *at;
                *at = step.max(*at);
                later
            });
        };
        let mut attested = pin!(self.attested(collected, &reached));
        let attested = loop {
            tokio::select! {
                biased;
                attested = &mut attested => break attested,
                Ok(()) = steps.changed() => {
                    let to = *steps.borrow_and_update();
                    self.apply(Event::AttestationAdvanced { to }).await?;
                }
            }
        };
        let news = match attested {
            Ok(attestation) => Event::AttestationIssued { attestation },
            Err(error) => {
                tracing::warn!(session.id = %self.id, %error, "session {} is not attested", self.id);
                Event::AttestationRefused
            }
        };
        self.apply(news).await.map(drop)
    }

    async fn attested(
        &self,
        collected: &Collected,
        reached: OnProgress<'_>,
    ) -> Result<IssuedAttestation, AttestationFailure> {
        let order = self.order().await?;
        let attested = self.core.attestations.attestor.attest(order, reached).await?;
        for (field, value) in &attested.values {
            if collected.data.get(field) != Some(value) {
                return Err(AttestationFailure::Differs(field.clone()));
            }
        }
        let store = &self.core.attestations.attestations;
        if store.keep(self.id, &attested.proof, &attested.package).await? {
            Ok(IssuedAttestation {
                proof: attested.proof,
                fields: attested.values.keys().cloned().collect(),
                mode: Some(attested.package.mode),
            })
        } else {
            Err(AttestationFailure::Over)
        }
    }

    async fn order(&self) -> Result<AttestationOrder, AttestationFailure> {
        let plan: &Attest = self.definition.attest.as_ref().ok_or(AttestationFailure::NoPlan)?;
        let request =
            self.definition.requests.get(&plan.request).ok_or(AttestationFailure::NoPlan)?;
        let url = request.url.clone();
        let Credentials { cookies, user_agent } = self.browser.credentials(&url).await?;
        let session = self.room.state.borrow().session.clone();
        let Session { owner, terms, .. } = session.ok_or(AttestationFailure::Over)?;
        let key = self.core.attestations.keys.key(owner).await?.ok_or(AttestationFailure::Over)?;
        Ok(AttestationOrder {
            session: self.id,
            tenant: Tenant { team: key.team, environment: terms.environment },
            challenge: terms.attestation_challenge.map_or_else(Vec::new, |it| it.bytes()),
            url,
            plan: plan.clone(),
            cookies,
            user_agent,
        })
    }
}
