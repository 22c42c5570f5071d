//! Makes films of sessions that ended in ERROR, and sees that nothing else that was recorded stays.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::{id::SessionId, recording::Recording};
use ports::{
    StoreError,
    recording::{EncodeError, RecordingClaim, RecordingOutcome, RecordingState},
};

use super::{Workers, log_error};

const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// A process that ends is followed by another after so long.
const LEASE_TTL: TimeDelta = TimeDelta::seconds(60);
const LEASE_RENEW_INTERVAL: Duration = Duration::from_secs(15);
const MAX_ATTEMPTS: i32 = 3;
const RETRY_DELAY: TimeDelta = TimeDelta::seconds(10);
/// How often what crashes left behind is looked for.
const CLEANUP_INTERVAL: TimeDelta = TimeDelta::minutes(10);
const CLEANUP_BATCH: usize = 1000;

impl Workers {
    pub(crate) async fn make_films(&self) {
        let mut tidied = DateTime::<Utc>::MIN_UTC;
        loop {
            let now = self.core.clock.now();
            if now - tidied >= CLEANUP_INTERVAL {
                tidied = now;
                if let Err(error) = self.tidy().await {
                    log_error(
                        &error,
                        "failed to delete leftover parts of recordings; trying again in ten minutes",
                    );
                }
            }
            match self.recordings.claim_recordings(now, LEASE_TTL, 1).await {
                Ok(claims) if claims.is_empty() => tokio::time::sleep(POLL_INTERVAL).await,
                Ok(claims) => {
                    for claim in claims {
                        if let Err(error) = self.make_film(&claim).await {
                            log_error(
                                &error,
                                "failed to record the result of an encoding; it is tried again",
                            );
                        }
                    }
                }
                Err(error) => {
                    log_error(&error, "failed to claim recordings, retrying");
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
            }
        }
    }

    async fn make_film(&self, claim: &RecordingClaim) -> Result<(), StoreError> {
        let session = claim.session;
        let made = tokio::select! {
            made = self.film(session) => made,
            () = self.keep_claim(claim) => return self.lost(session).await,
        };
        let verdict = match made {
            Ok(()) => RecordingOutcome::Kept,
            Err(EncodeError::Failed(why)) if claim.attempt < MAX_ATTEMPTS => {
                tracing::warn!(session.id = %session, "no film of session {session} yet: {why}");
                RecordingOutcome::RetryAt(self.core.clock.now() + RETRY_DELAY)
            }
            Err(error) => {
                tracing::error!(session.id = %session, %error, "no film of session {session}");
                RecordingOutcome::Failed(told(&error).to_owned())
            }
        };
        let ended = !matches!(verdict, RecordingOutcome::RetryAt(_));
        if !self.recordings.complete_recording(claim, verdict).await? {
            return self.lost(session).await;
        }
        if ended {
            self.vault.delete_segments(session).await?;
        }
        Ok(())
    }

    /// A claim was lost: to another process, which puts a film of its own, or because all of the
    /// session was erased, and then a film that came too late goes too.
    async fn lost(&self, session: SessionId) -> Result<(), StoreError> {
        match self.recordings.recording(session).await? {
            Some(RecordingState::Erased) => self.vault.delete_all(session).await,
            _ => Ok(()),
        }
    }

    async fn film(&self, session: SessionId) -> Result<(), EncodeError> {
        let failed = |error: StoreError| EncodeError::Failed(crate::error_chain(&error));
        let reels = self.vault.segments(session).await.map_err(failed)?;
        let film = Recording::of(reels);
        let film = film.ok_or_else(|| EncodeError::Impossible("nothing was recorded".into()))?;
        let began = tokio::time::Instant::now();
        let length = film.length.as_millis();
        let mp4 = self.encoder.encode(film).await?;
        let took = began.elapsed().as_millis();
        tracing::info!(
            session.id = %session, film.length_ms = length, film.took_ms = took,
            film.bytes = mp4.len(), "the film of session {session} was made in {took} ms"
        );
        self.vault.store_recording(session, mp4).await.map_err(failed)
    }

    /// Comes back when the claim was lost.
    async fn keep_claim(&self, claim: &RecordingClaim) {
        loop {
            tokio::time::sleep(LEASE_RENEW_INTERVAL).await;
            let until = self.core.clock.now() + LEASE_TTL;
            match self.recordings.renew_recording(claim, until).await {
                Ok(true) => (),
                Ok(false) => return,
                Err(error) => log_error(&error, "failed to renew the lease of a recording"),
            }
        }
    }

    /// Deletes what is left of sessions that need no film, or have one.
    async fn tidy(&self) -> Result<(), StoreError> {
        for session in self.vault.unfinished(CLEANUP_BATCH).await? {
            let open = self.core.sessions.find_unscoped(session).await?;
            let open = open.is_some_and(|session| !session.state.is_closed());
            let waited_for = matches!(
                self.recordings.recording(session).await?,
                Some(RecordingState::Pending | RecordingState::InProgress)
            );
            if !open && !waited_for {
                self.vault.delete_segments(session).await?;
            }
        }
        Ok(())
    }
}

/// The partner's word for it.
const fn told(error: &EncodeError) -> &'static str {
    match error {
        EncodeError::Impossible(_) => "Nothing was recorded of this session.",
        EncodeError::Failed(_) => "The recording could not be encoded.",
    }
}
