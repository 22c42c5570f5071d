//! Encodes the recordings of sessions that ended in ERROR, and deletes the segments of all others.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{id::SessionId, recording::Recording};
use ports::{
    StoreError,
    clock::Clock,
    recording::{
        EncodeError, Encoder, RecordingClaim, RecordingOutcome, RecordingQueue, RecordingState,
        RecordingVault,
    },
    session_store::SessionStore,
};

use super::{Worker, log_error};

const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long after a process died another one takes its recording over.
const LEASE_TTL: TimeDelta = TimeDelta::seconds(60);
const LEASE_RENEW_INTERVAL: Duration = Duration::from_secs(15);
const MAX_ATTEMPTS: i32 = 3;
const RETRY_DELAY: TimeDelta = TimeDelta::seconds(10);
/// While the storage is not available the delay doubles up to this, for about a day.
const MAX_RETRY_DELAY: TimeDelta = TimeDelta::minutes(10);
const MAX_STORAGE_ATTEMPTS: i32 = 150;
/// How often segments that crashes left behind are deleted.
const CLEANUP_INTERVAL: TimeDelta = TimeDelta::minutes(10);
const CLEANUP_BATCH: usize = 1000;

/// Makes recordings from their segments.
pub struct Recordings {
    pub queue: Arc<dyn RecordingQueue>,
    pub vault: Arc<dyn RecordingVault>,
    pub encoder: Arc<dyn Encoder>,
    pub sessions: Arc<dyn SessionStore>,
    pub clock: Arc<dyn Clock>,
}

#[async_trait]
impl Worker for Recordings {
    fn name(&self) -> &'static str {
        "recordings"
    }

    async fn run(&self) {
        let mut last_cleanup = DateTime::<Utc>::MIN_UTC;
        loop {
            let now = self.clock.now();
            if now - last_cleanup >= CLEANUP_INTERVAL {
                last_cleanup = now;
                if let Err(error) = self.clean_up().await {
                    log_error(
                        &error,
                        "failed to delete leftover segments of recordings; trying again in ten minutes",
                    );
                }
            }
            match self.queue.claim_recordings(now, LEASE_TTL, 1).await {
                Ok(claims) if claims.is_empty() => tokio::time::sleep(POLL_INTERVAL).await,
                Ok(claims) => {
                    for claim in claims {
                        if let Err(error) = self.make(&claim).await {
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
}

impl Recordings {
    async fn make(&self, claim: &RecordingClaim) -> Result<(), StoreError> {
        let session = claim.session;
        let made = tokio::select! {
            made = self.encode(session) => made,
            () = self.keep_lease(claim) => return self.lost(session).await,
        };
        let outcome = match made {
            Ok(()) => RecordingOutcome::Kept,
            Err(EncodeError::Failed(why)) if claim.attempt < MAX_ATTEMPTS => {
                tracing::warn!(session.id = %session, "failed to encode the recording of session {session}, retrying: {why}");
                RecordingOutcome::RetryAt(self.clock.now() + RETRY_DELAY)
            }
            Err(EncodeError::Unavailable(why)) if claim.attempt < MAX_STORAGE_ATTEMPTS => {
                tracing::warn!(session.id = %session, "the storage of recordings is not available, retrying: {why}");
                RecordingOutcome::RetryAt(self.clock.now() + storage_delay(claim.attempt))
            }
            Err(error) => {
                tracing::error!(session.id = %session, %error, "failed to encode the recording of session {session}, giving up");
                RecordingOutcome::Failed(reason(&error).to_owned())
            }
        };
        let has_ended = !matches!(outcome, RecordingOutcome::RetryAt(_));
        if !self.queue.complete_recording(claim, outcome).await? {
            return self.lost(session).await;
        }
        if has_ended {
            self.vault.delete_segments(session).await?;
        }
        Ok(())
    }

    /// Handles a lost claim: either another process makes the recording, or the session was erased
    /// and a recording that was stored too late has to be deleted.
    async fn lost(&self, session: SessionId) -> Result<(), StoreError> {
        match self.queue.recording(session).await? {
            Some(RecordingState::Erased) => self.vault.delete_all(session).await,
            _ => Ok(()),
        }
    }

    async fn encode(&self, session: SessionId) -> Result<(), EncodeError> {
        let unavailable = |error: StoreError| EncodeError::Unavailable(crate::error_chain(&error));
        let segments = self.vault.segments(session).await.map_err(unavailable)?;
        let recording = Recording::of(segments);
        let recording =
            recording.ok_or_else(|| EncodeError::Impossible("nothing was recorded".into()))?;
        let began = tokio::time::Instant::now();
        let length = recording.length.as_millis();
        let mp4 = self.encoder.encode(recording).await?;
        let took = began.elapsed().as_millis();
        tracing::info!(
            session.id = %session, film.length_ms = length, film.took_ms = took,
            film.bytes = mp4.len(), "the recording of session {session} was encoded in {took} ms"
        );
        self.vault.store_recording(session, mp4).await.map_err(unavailable)
    }

    /// Renews the lease of a claim. Returns when the claim is lost.
    async fn keep_lease(&self, claim: &RecordingClaim) {
        loop {
            tokio::time::sleep(LEASE_RENEW_INTERVAL).await;
            let expires_at = self.clock.now() + LEASE_TTL;
            match self.queue.renew_recording(claim, expires_at).await {
                Ok(true) => (),
                Ok(false) => return,
                Err(error) => log_error(&error, "failed to renew the lease of a recording"),
            }
        }
    }

    /// Deletes segments of sessions that need no recording, or have one.
    async fn clean_up(&self) -> Result<(), StoreError> {
        for session in self.vault.unfinished(CLEANUP_BATCH).await? {
            let found = self.sessions.find_unscoped(session).await?;
            let is_open = found.is_some_and(|session| !session.state.is_closed());
            let is_queued = matches!(
                self.queue.recording(session).await?,
                Some(RecordingState::Pending | RecordingState::InProgress)
            );
            if !is_open && !is_queued {
                self.vault.delete_segments(session).await?;
            }
        }
        Ok(())
    }
}

/// Returns the reason that the partner reads.
const fn reason(error: &EncodeError) -> &'static str {
    match error {
        EncodeError::Impossible(_) => "Nothing was recorded of this session.",
        EncodeError::Failed(_) => "The recording could not be encoded.",
        EncodeError::Unavailable(_) => "The recording could not be stored.",
    }
}

/// Returns the delay after an attempt, of which the first one is 1.
fn storage_delay(attempt: i32) -> TimeDelta {
    let doublings = u32::try_from(attempt.saturating_sub(1)).unwrap_or_default().min(10);
    let delay = RETRY_DELAY.checked_mul(1 << doublings).unwrap_or(MAX_RETRY_DELAY);
    delay.min(MAX_RETRY_DELAY)
}
