//! Makes films of sessions that ended in ERROR, and sees that nothing else that was recorded stays.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::{id::SessionId, recording::Recording};
use ports::{
    StoreError,
    recording::{EncodeError, RecordingClaim, RecordingOutcome, RecordingState},
};

use super::{Workers, log_error};

const PACE: Duration = Duration::from_secs(1);
/// A process that ends is followed by another after so long.
const LEASE: TimeDelta = TimeDelta::seconds(60);
const RENEW_EVERY: Duration = Duration::from_secs(15);
const ATTEMPTS: i32 = 3;
const PAUSE: TimeDelta = TimeDelta::seconds(10);
/// How often what crashes left behind is looked for.
const TIDY_EVERY: TimeDelta = TimeDelta::minutes(10);
const TIDY_AT_ONCE: usize = 1000;

impl Workers {
    pub(crate) async fn make_films(&self) {
        let mut tidied = DateTime::<Utc>::MIN_UTC;
        loop {
            let now = self.core.clock.now();
            if now - tidied >= TIDY_EVERY {
                tidied = now;
                if let Err(error) = self.tidy().await {
                    log_error(
                        &error,
                        "failed to delete leftover parts of recordings; trying again in ten minutes",
                    );
                }
            }
            match self.recordings.claim_recordings(now, LEASE, 1).await {
                Ok(claims) if claims.is_empty() => tokio::time::sleep(PACE).await,
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
                    tokio::time::sleep(PACE).await;
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
            Err(EncodeError::Failed(why)) if claim.attempt < ATTEMPTS => {
                tracing::warn!(session.id = %session, "no film of session {session} yet: {why}");
                RecordingOutcome::RetryAt(self.core.clock.now() + PAUSE)
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
            tokio::time::sleep(RENEW_EVERY).await;
            let until = self.core.clock.now() + LEASE;
            match self.recordings.renew_recording(claim, until).await {
                Ok(true) => (),
                Ok(false) => return,
                Err(error) => log_error(&error, "failed to renew the lease of a recording"),
            }
        }
    }

    /// Deletes what is left of sessions that need no film, or have one.
    async fn tidy(&self) -> Result<(), StoreError> {
        for session in self.vault.unfinished(TIDY_AT_ONCE).await? {
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
