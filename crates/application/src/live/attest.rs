//! The end of a run that is to be attested: the request that the definition names is made once more,
//! through the attestor, with what the browser would send.

use std::{pin::pin, sync::atomic::Ordering};

use domain::{
    fairness::Tenant,
    session::{AttestationStep, Collected, Event, IssuedAttestation, Phase, Session, State},
    workflow::Attest,
};
use ports::{
    StoreError,
    attestor::{AttestError, AttestationOrder, OnProgress},
    browser::{BrowserCredentials, BrowserError},
};
use tokio::{sync::watch, time::Instant};

use super::runner::WorkflowRunner;
use crate::advance::AdvanceError;

/// Why a session ends without an attestation.
#[derive(Debug, thiserror::Error)]
enum AttestationFailure {
    #[error("the definition has no plan for an attestation")]
    NoPlan,
    #[error("failed to read the browser's credentials: {0}")]
    Browser(#[from] BrowserError),
    #[error(transparent)]
    Attestor(#[from] AttestError),
    #[error("the attested value of `{0}` differs from what the browser was shown")]
    Differs(String),
    #[error("the session has ended meanwhile")]
    SessionEnded,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Records how long an attestation took, the wait for a turn included, and how it ended.
fn measure_attestation(attested: &Result<IssuedAttestation, AttestationFailure>, began: Instant) {
    let outcome = attested.as_ref().map_or_else(AttestationFailure::metric_label, |_| "issued");
    metrics::histogram!("avouch_attestation_seconds", "outcome" => outcome).record(began.elapsed());
}

impl AttestationFailure {
    /// Returns the word for the cause in metrics: the one on whom it depends whether the next
    /// attestation succeeds.
    const fn metric_label(&self) -> &'static str {
        match self {
            Self::NoPlan | Self::Attestor(AttestError::Plan(_) | AttestError::Credentials(_)) => {
                "definition"
            }
            Self::Browser(_) | Self::SessionEnded => "session",
            Self::Attestor(AttestError::None) => "not_configured",
            Self::Attestor(AttestError::Lost(_)) => "unreachable",
            Self::Attestor(AttestError::Busy(_)) => "busy",
            Self::Attestor(AttestError::TimedOut) => "timed_out",
            Self::Attestor(AttestError::Platform(_)) | Self::Differs(_) => "platform",
            Self::Attestor(
                AttestError::Attestor(_) | AttestError::Refused(_) | AttestError::Untrue(_),
            ) => "refused",
            Self::Attestor(AttestError::Proof(_)) => "proof",
            Self::Store(_) => "store",
        }
    }
}

impl WorkflowRunner {
    /// Returns whether the applicant has agreed and the data is complete, so that neither the applicant nor the
    /// browser is needed any more: all that is left is to save the data, or to have it attested.
    pub(super) fn has_all_data(&self) -> bool {
        let state = self.live.state.borrow();
        let is_saved = state.session.as_ref().is_some_and(|session| {
            matches!(session.state, State::Live { phase: Phase::Verifying { .. }, .. })
        });
        is_saved || self.is_complete.load(Ordering::Relaxed)
    }

    /// Returns when the browser has ended while it was still needed.
    pub(super) async fn wait_for_loss(&self) {
        self.browser.ended().await;
        if self.has_all_data() {
            std::future::pending::<()>().await;
        }
    }

    /// Has the collected data attested, and ends the session with or without an attestation.
    pub(super) async fn attest(&self, collected: &Collected) -> Result<(), AdvanceError> {
        let began = Instant::now();
        let (progress, mut steps) = watch::channel(AttestationStep::default());
        let on_progress = |step: AttestationStep| {
            progress.send_if_modified(|last| {
                let is_later = step > *last;
                *last = step.max(*last);
                is_later
            });
        };
        let mut attested = pin!(self.attested(collected, &on_progress));
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
        measure_attestation(&attested, began);
        let event = match attested {
            Ok(attestation) => Event::AttestationIssued { attestation },
            Err(error) => {
                tracing::warn!(session.id = %self.id, %error, "session {} is not attested", self.id);
                Event::AttestationRefused
            }
        };
        self.apply(event).await.map(drop)
    }

    async fn attested(
        &self,
        collected: &Collected,
        on_progress: OnProgress<'_>,
    ) -> Result<IssuedAttestation, AttestationFailure> {
        let order = self.order().await?;
        let attested = self.attestations.attestor.attest(order, on_progress).await?;
        for (field, value) in &attested.values {
            if collected.data.get(field) != Some(value) {
                return Err(AttestationFailure::Differs(field.clone()));
            }
        }
        if self.attestations.store.keep(self.id, &attested.proof, &attested.package).await? {
            Ok(IssuedAttestation {
                proof: attested.proof,
                fields: attested.values.keys().cloned().collect(),
                mode: Some(attested.package.mode),
            })
        } else {
            Err(AttestationFailure::SessionEnded)
        }
    }

    async fn order(&self) -> Result<AttestationOrder, AttestationFailure> {
        let plan: &Attest = self.definition.attest.as_ref().ok_or(AttestationFailure::NoPlan)?;
        let request =
            self.definition.requests.get(&plan.request).ok_or(AttestationFailure::NoPlan)?;
        let url = request.url.clone();
        let BrowserCredentials { cookies, user_agent } = self.browser.credentials(&url).await?;
        let session = self.live.state.borrow().session.clone();
        let Session { owner, terms, .. } = session.ok_or(AttestationFailure::SessionEnded)?;
        let key =
            self.attestations.keys.key(owner).await?.ok_or(AttestationFailure::SessionEnded)?;
        Ok(AttestationOrder {
            session: self.id,
            tenant: Tenant { team: key.team, environment: terms.environment },
            challenge: terms
                .attestation_challenge
                .map_or_else(Vec::new, |challenge| challenge.bytes()),
            url,
            plan: plan.clone(),
            cookies,
            user_agent,
        })
    }
}
