//! One conversation with a prover, from its open message to its attestation.

mod channel;
mod error;

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use attestation::{
    attest::capture_hash,
    body::{AttestationTimes, MAX_CHALLENGE_BYTES},
    descriptor::{Descriptor, RevealMode},
    protocol::{
        AttestorMessage, ConnectionLimits, EXPORTER_LABEL, OpenRequest, ProverMessage, Receipt,
        RevealMessage, SignedAttestation, SignedReceipt, Welcome,
    },
    signed::key_id,
};
use tokio::{io::split, net::TcpStream, time::timeout};
use worker_process::JobError;

use self::{
    channel::{ProverChannel, WRITE_TIMEOUT},
    error::ConversationError,
};
use crate::{
    AttestorLimits, AttestorServer, KeyError,
    clients::{AllowedClient, Permit},
    examine::{ExaminationJob, ExaminationResult, random_bytes},
    keys::{NotaryKey, current, read_keys},
    log::LoggedAttestation,
    now,
    relay::{MAX_CLIENT_BYTES, MAX_SERVER_BYTES, Relay, TlsRecording},
};

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of the reason for a refusal, in characters.
const MAX_REASON_CHARS: usize = 300;

/// Marks a session as being attested until it is dropped.
struct ActiveSession<'a>(&'a AttestorServer, [u8; 32]);

impl Drop for ActiveSession<'_> {
    fn drop(&mut self) {
        self.0.active_sessions().retain(|session| *session != self.1);
    }
}

impl AttestorServer {
    pub(crate) async fn handle_connection(self: Arc<Self>, stream: TcpStream, from: SocketAddr) {
        let _ = stream.set_nodelay(true);
        let Ok(Ok(stream)) = timeout(HANDSHAKE_TIMEOUT, self.acceptor.accept(stream)).await else {
            return;
        };
        let exported = stream.get_ref().1.export_keying_material([0; 32], EXPORTER_LABEL, None);
        let Ok(binding) = exported else { return };
        let (read, write) = split(stream);
        let mut channel = ProverChannel { read, write };
        match self.run_conversation(&mut channel, &binding, from.ip()).await {
            Ok(()) => tracing::info!("attested for {from}"),
            Err(refused) => {
                // The text may contain words of the prover.
                let reason: String = refused.to_string().chars().take(MAX_REASON_CHARS).collect();
                tracing::info!("refused to attest for {from}: {reason}");
                let reply = if refused.is_temporary() {
                    AttestorMessage::Busy(reason)
                } else {
                    AttestorMessage::Refused(reason)
                };
                channel.send(&reply).await.ok();
            }
        }
        let _ =
            timeout(WRITE_TIMEOUT, tokio::io::AsyncWriteExt::shutdown(&mut channel.write)).await;
    }

    async fn run_conversation(
        &self,
        channel: &mut ProverChannel,
        binding: &[u8; 32],
        from: IpAddr,
    ) -> Result<(), ConversationError> {
        let per_client = self.settings.limits.per_client;
        let pending =
            self.pending_connections.try_acquire(AllowedClient::from_address(from), per_client);
        let pending = pending.ok_or(ConversationError::TooManyOfClient)?;
        let keys = read_keys(&self.settings.keys)?;
        let key = current(&keys, now());
        let key = key.ok_or_else(|| KeyError::NoValidKey(self.settings.keys.clone()))?;
        let valid = (key.valid_from, key.valid_to);
        channel.send(&AttestorMessage::Welcome(Welcome::new(&key.signing, valid, binding))).await?;
        let ProverMessage::Open(request) = channel.receive(OPEN_TIMEOUT).await? else {
            return Err(ConversationError::UnexpectedMessage);
        };
        let (permit, descriptor, mode) = self.validate_open(&request, from)?;
        drop(pending);
        let _conversation = self
            .conversation_permits
            .try_acquire()
            .map_err(|_| ConversationError::TooManyConversations)?;
        let _active = self.begin_session(request.session)?;
        let mut relay = Relay::open(&self.settings, &descriptor.host).await?;
        // From here on the attempt counts, regardless of its result.
        let (client, OpenRequest { challenge, session, .. }) = (permit.client(), &request);
        let attempt = self.attempts().count(client, challenge, session, now());
        let attempt = attempt.ok_or(ConversationError::TooManyChallenges)?;
        let (id, bound) = (random_bytes(), self.settings.limits.relay_timeout);
        channel.send(&AttestorMessage::Opened(self.opened_message(id))).await?;
        let relayed = timeout(bound, channel.relay_to_server(&mut relay)).await;
        let recording = relay.close();
        relayed.map_err(|_| ConversationError::RelayTimeout(bound))??;
        channel.send(&AttestorMessage::Receipt(receipt(id, &recording, key)?)).await?;
        let ProverMessage::Reveal(reveal) =
            channel.receive(self.settings.limits.proving_timeout).await?
        else {
            return Err(ConversationError::UnexpectedMessage);
        };
        let revealed = match &reveal {
            RevealMessage::FullReveal(_) => RevealMode::FullReveal,
            RevealMessage::Proved(reveal) => reveal.mode(),
        };
        if revealed != mode {
            return Err(ConversationError::ModeMismatch);
        }
        let attested =
            self.attest((id, attempt), &request, descriptor, key, recording, reveal).await?;
        channel.send(&AttestorMessage::Attested(attested)).await
    }

    /// Returns the message that tells the prover the limits of the conversation.
    fn opened_message(&self, id: [u8; 16]) -> ConnectionLimits {
        let to_millis = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        let AttestorLimits {
            relay_timeout: relay,
            proving_timeout: proving,
            queue_timeout: waiting,
            examination_timeout: examining,
            ..
        } = self.settings.limits;
        ConnectionLimits {
            id,
            time: to_millis(relay),
            up: u32::try_from(MAX_CLIENT_BYTES).unwrap_or(u32::MAX),
            down: u32::try_from(MAX_SERVER_BYTES).unwrap_or(u32::MAX),
            proving: to_millis(proving),
            examining: to_millis(waiting.saturating_add(examining)),
        }
    }

    /// Checks an open message and returns the client's permit, the descriptor and the mode.
    fn validate_open(
        &self,
        request: &OpenRequest,
        from: IpAddr,
    ) -> Result<(Permit<'_>, &Descriptor, RevealMode), ConversationError> {
        let client = self
            .settings
            .clients
            .authenticate(&request.token, from)
            .ok_or(ConversationError::UnknownClient)?;
        if request.challenge.len() > MAX_CHALLENGE_BYTES {
            return Err(ConversationError::ChallengeTooLong);
        }
        let mut descriptors = self.settings.descriptors.iter();
        let descriptor = descriptors.find(|descriptor| descriptor.sha256() == request.descriptor);
        let descriptor = descriptor.ok_or(ConversationError::UnknownDescriptor)?;
        let mut modes = descriptor.modes.iter();
        let mode = modes
            .find(|mode| mode.number() == request.mode)
            .ok_or(ConversationError::ModeNotAllowed)?;
        let permit = self.client_conversations.try_acquire(client, self.settings.limits.per_client);
        Ok((permit.ok_or(ConversationError::TooManyOfClient)?, descriptor, *mode))
    }

    /// Marks a session as being attested. No session is attested twice.
    fn begin_session(&self, session: [u8; 32]) -> Result<ActiveSession<'_>, ConversationError> {
        if self.log().contains(&session) {
            return Err(ConversationError::DuplicateSession);
        }
        let mut active_sessions = self.active_sessions();
        if active_sessions.contains(&session) {
            return Err(ConversationError::DuplicateSession);
        }
        active_sessions.push(session);
        Ok(ActiveSession(self, session))
    }

    async fn attest(
        &self,
        (id, attempt): ([u8; 16], u32),
        request: &OpenRequest,
        descriptor: &Descriptor,
        key: &NotaryKey,
        recording: TlsRecording,
        reveal: RevealMessage,
    ) -> Result<SignedAttestation, ConversationError> {
        let TlsRecording { client, server, address, resolver, opened, closed } = recording;
        let job = ExaminationJob {
            client,
            server,
            reveal,
            descriptor: serde_json::to_string(descriptor).unwrap_or_default(),
            roots: self.roots.clone(),
            roots_sha256: self.roots_sha256,
            id,
            issuer: key_id(&key.signing.verifying_key().to_bytes()),
            session: request.session,
            partner: request.partner,
            attempt,
            challenge: request.challenge.clone(),
            address,
            resolver,
            time: AttestationTimes { opened, closed, signed: 0 },
            build: self.build.clone(),
        };
        let result =
            self.run_examination(&job.write().ok_or(ConversationError::BrokenChannel)?).await?;
        match ExaminationResult::read(&result) {
            Some(ExaminationResult::Accepted(body, disclosure)) => {
                // The examiner process parses untrusted input, so values that are known here are
                // checked.
                if !job.agrees_with(&body, descriptor) {
                    return Err(ConversationError::ResultMismatch);
                }
                self.check_still_valid(key)?;
                let LoggedAttestation { attestation, inclusion } =
                    tokio::task::block_in_place(|| self.log().sign(*body, now(), &key.signing))?;
                Ok(SignedAttestation { attestation, disclosure, inclusion })
            }
            Some(ExaminationResult::Refused(reason)) => {
                Err(ConversationError::RecordingRefused(reason))
            }
            None => Err(ConversationError::Job(JobError::Died)),
        }
    }
}

impl AttestorServer {
    /// Checks that a key may still sign: it may have expired or been revoked since the conversation
    /// began, and verifiers would refuse a signature made after that.
    fn check_still_valid(&self, key: &NotaryKey) -> Result<(), ConversationError> {
        let (public, now) = (key.signing.verifying_key(), now());
        let keys = read_keys(&self.settings.keys)?;
        let may = keys.iter().any(|other| {
            other.signing.verifying_key() == public
                && (other.valid_from..other.valid_to).contains(&now)
        });
        if may { Ok(()) } else { Err(ConversationError::KeyExpired) }
    }

    /// Runs a job in an examiner process once one is free. The number of waiting jobs and their
    /// waiting time are limited.
    async fn run_examination(&self, job: &[u8]) -> Result<Vec<u8>, ConversationError> {
        let _waiting =
            self.queue_permits.try_acquire().map_err(|_| ConversationError::QueueFull)?;
        let bound = self.settings.limits.queue_timeout;
        let examiner = timeout(bound, self.examination_permits.acquire()).await;
        let _examiner =
            examiner.ok().and_then(Result::ok).ok_or(ConversationError::QueueTimeout(bound))?;
        Ok(self.pool.run(job).await?)
    }
}

fn receipt(
    id: [u8; 16],
    recording: &TlsRecording,
    key: &NotaryKey,
) -> Result<SignedReceipt, ConversationError> {
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let receipt = Receipt {
        id,
        capture: capture_hash(&id, recording.capture()),
        client_length: length(&recording.client),
        server_length: length(&recording.server),
        opened: recording.opened,
        closed: recording.closed,
        address: recording.address.clone(),
    };
    SignedReceipt::new(receipt, &key.signing).map_err(|error| ConversationError::Sign(error.into()))
}
