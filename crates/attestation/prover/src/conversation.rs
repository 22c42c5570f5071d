//! The prover's side of the conversation with the attestor.

use std::time::Duration;

use attestation::{
    CertificateTrust,
    attest::{partner_hash, session_hash},
    descriptor::{Descriptor, RevealMode},
    evidence::Evidence,
    full_reveal::{self, Findings},
    http::response::ResponseError,
    protocol::{
        AttestorMessage, ConnectionLimits, MAX_DATA_BYTES, OpenRequest, ProverMessage,
        RevealMessage,
    },
    zk::Spartan,
    zktls::examine_unproved,
};
use domain::{session::AttestationStep, workflow::AttestMode};
use ports::attestor::{
    AttestError, AttestationOrder, AttestationPackage, Attested, Issuer, OnProgress,
};
use rustls::pki_types::UnixTime;
use tokio::time::{Instant, timeout, timeout_at};

use crate::{
    EXAMINATION_TIMEOUT, Prover, REVEAL_TIMEOUT,
    channel::{AttestorChannel, unexpected_message},
    connection::PlatformConnection,
    plan::{check_request, descriptor_for, request, to_mode},
    proving::{ProvingJob, reveal_error},
    verification::{ExpectedContext, RecordedConnection, matches_receipt, verify_attestation},
};

/// Time limit from the open message to the receipt; the attestor has its own limit.
const RELAY_TIMEOUT: Duration = Duration::from_secs(60);
/// Time for sending the reveal message and receiving the attestation.
const TRANSFER_TIME: Duration = Duration::from_secs(30);

/// The reveal message, the evidence for later verifiers, and the findings about the connection.
type PreparedReveal = (RevealMessage, Option<Vec<u8>>, Findings);

impl Prover {
    pub(crate) async fn run_conversation(
        &self,
        order: &AttestationOrder,
        salt: [u8; 32],
        reached: OnProgress<'_>,
    ) -> Result<Attested, AttestError> {
        let descriptor = descriptor_for(&order.plan, &order.url);
        let descriptor =
            descriptor.ok_or_else(|| AttestError::Plan("its request does not use https".into()))?;
        descriptor.check().map_err(|error| AttestError::Plan(error.to_string()))?;
        let planned = order.plan.mode();
        let planned = planned.ok_or_else(|| AttestError::Plan("it has no mode".into()))?;
        // Nothing that the attestor or the server does selects another mode: an attacker that can
        // break this connection could otherwise force a mode that reveals the credentials.
        self.attest_with_mode(order, salt, &descriptor, planned, reached).await
    }

    async fn attest_with_mode(
        &self,
        order: &AttestationOrder,
        salt: [u8; 32],
        descriptor: &Descriptor,
        planned: AttestMode,
        reached: OnProgress<'_>,
    ) -> Result<Attested, AttestError> {
        let session = session_hash(&salt, order.session.as_uuid().as_bytes());
        let request = request(order, descriptor);
        let checked = check_request(&request, descriptor, to_mode(planned));
        checked
            .map_err(|error| AttestError::Plan(format!("failed to build its request: {error}")))?;
        let mut channel = self.connect(order.session).await?;
        let expected = ExpectedContext {
            session,
            partner: partner_hash(&salt, order.tenant.team.as_uuid().as_bytes()),
            challenge: order.challenge.clone(),
        };
        let open = OpenRequest {
            descriptor: descriptor.sha256(),
            mode: to_mode(planned).number(),
            session,
            partner: expected.partner,
            challenge: expected.challenge.clone(),
            token: self.address.token.clone(),
        };
        let deadline = Instant::now() + RELAY_TIMEOUT;
        let relaying =
            self.relay_connection(&mut channel, open, descriptor, to_mode(planned), request);
        let recording =
            timeout_at(deadline, relaying).await.map_err(|_| AttestError::TimedOut)??;
        reached(AttestationStep::Recorded);
        let reveal = timeout(
            recording.proving_timeout,
            self.prepare_reveal(&recording, descriptor, planned),
        )
        .await;
        let (reveal, evidence, findings) = reveal.map_err(|_| AttestError::TimedOut)??;
        reached(AttestationStep::Proved);
        let signed = async {
            channel.send(&ProverMessage::Reveal(reveal)).await?;
            let received = channel.receive().await?;
            let AttestorMessage::Attested(signed) = received else {
                return Err(unexpected_message(received));
            };
            Ok(signed)
        };
        let signed = timeout(recording.examination_timeout, signed).await;
        let signed = signed.map_err(|_| AttestError::TimedOut)??;
        let welcome = channel.welcome;
        let issuer = Issuer {
            public_key: welcome.public_key,
            valid_from: welcome.valid_from,
            valid_to: welcome.valid_to,
        };
        let (proof, values) =
            verify_attestation(&signed, &issuer, (&recording, &expected), (&findings, descriptor))?;
        let attestation::protocol::SignedAttestation { attestation, disclosure, inclusion } =
            signed;
        let inclusion = Some(inclusion);
        let package = AttestationPackage {
            mode: planned,
            salt,
            attestation,
            disclosure,
            evidence,
            inclusion,
            issuer,
        };
        Ok(Attested { proof, values, package })
    }

    /// Relays the connection to the platform's server, from its first byte to the attestor's
    /// receipt.
    async fn relay_connection(
        &self,
        channel: &mut AttestorChannel,
        open: OpenRequest,
        descriptor: &Descriptor,
        mode: RevealMode,
        request: Vec<u8>,
    ) -> Result<RecordedConnection, AttestError> {
        let platform = |error: &dyn std::error::Error| AttestError::Platform(error.to_string());
        channel.send(&ProverMessage::Open(open)).await?;
        let received = channel.receive().await?;
        let AttestorMessage::Opened(opened) = received else {
            return Err(unexpected_message(received));
        };
        let (proving, examining) = timeouts(&opened)?;
        let connection = PlatformConnection::new(descriptor, self.roots.clone(), mode, request);
        let mut connection = connection.map_err(|error| platform(&error))?;
        loop {
            let outgoing = connection.outgoing().map_err(|error| platform(&error))?;
            check_limits(&opened, &connection)?;
            for part in outgoing.chunks(MAX_DATA_BYTES) {
                channel.send(&ProverMessage::Data(part.to_vec())).await?;
            }
            if connection.is_complete() {
                break;
            }
            let received = channel.receive().await?;
            let AttestorMessage::Data(bytes) = received else {
                return Err(unexpected_message(received));
            };
            connection.receive(&bytes).map_err(|error| platform(&error))?;
        }
        check_response(&connection)?;
        channel.send(&ProverMessage::End).await?;
        let signed = loop {
            match channel.receive().await? {
                AttestorMessage::Receipt(signed) => break signed,
                // These bytes were in transit, and are part of the recording.
                AttestorMessage::Data(bytes) => {
                    connection.receive(&bytes).map_err(|error| platform(&error))?;
                }
                other @ (AttestorMessage::Welcome(_)
                | AttestorMessage::Opened(_)
                | AttestorMessage::Attested(_)
                | AttestorMessage::Refused(_)
                | AttestorMessage::Busy(_)) => return Err(unexpected_message(other)),
            }
        };
        check_response(&connection)?;
        if !signed.is_signed_by(&channel.welcome.public_key) {
            return Err(AttestError::Untrue("its receipt has an invalid signature".into()));
        }
        let (id, receipt) = (opened.id, signed.receipt);
        if !matches_receipt(&receipt, &id, &connection) {
            return Err(AttestError::Untrue("its receipt is for other bytes".into()));
        }
        Ok(RecordedConnection {
            id,
            connection,
            receipt,
            proving_timeout: proving,
            examination_timeout: examining,
        })
    }

    /// Prepares the reveal message for the attestor, and the evidence for later verifiers.
    /// Everything that the attestor will check is checked before, so that nothing is revealed in
    /// vain.
    async fn prepare_reveal(
        &self,
        recording: &RecordedConnection,
        descriptor: &Descriptor,
        planned: AttestMode,
    ) -> Result<PreparedReveal, AttestError> {
        let secret = recording.connection.handshake_secret();
        let secret =
            secret.ok_or_else(|| AttestError::Proof("there is no handshake secret".into()))?;
        let capture = recording.connection.capture();
        let trust = CertificateTrust { roots: &self.roots.roots, now: UnixTime::now() };
        if planned == AttestMode::FullReveal {
            let findings = full_reveal::examine(capture, &secret, descriptor, &trust);
            let findings = findings.map_err(|refusal| reveal_error(&refusal))?;
            return Ok((RevealMessage::FullReveal(secret), None, findings));
        }
        let text = serde_json::to_string(descriptor).unwrap_or_default();
        let job = ProvingJob {
            client: capture.client.to_vec(),
            server: capture.server.to_vec(),
            secret,
            descriptor: text.clone(),
            roots: self.extra.iter().cloned().map(Into::into).collect(),
        };
        let reveal = job.run(&self.pool).await?;
        let findings = examine_unproved(capture, &reveal, &Spartan::default(), descriptor, &trust);
        let findings = findings.map_err(|refusal| reveal_error(&refusal))?;
        let ProvingJob { client, server, .. } = job;
        let evidence = Evidence { client, server, reveal: reveal.clone(), descriptor: text };
        let evidence = evidence.write().map_err(|error| AttestError::Proof(error.to_string()))?;
        Ok((RevealMessage::Proved(reveal), Some(evidence), findings))
    }
}

/// Returns the time limits for the reveal message and for the attestation after it, as the attestor
/// states them, capped by local limits.
fn timeouts(opened: &ConnectionLimits) -> Result<(Duration, Duration), AttestError> {
    let ConnectionLimits { time, up, down, proving, examining, .. } = *opened;
    if [time, up, down, proving, examining].contains(&0) {
        return Err(AttestError::Attestor("it allows no time or no bytes".into()));
    }
    let [proving, examining] = [proving, examining].map(|time| Duration::from_millis(time.into()));
    Ok((proving.min(REVEAL_TIMEOUT), examining.min(EXAMINATION_TIMEOUT) + TRANSFER_TIME))
}

/// Checks that no more bytes were sent and received than the attestor accepts.
fn check_limits(
    opened: &ConnectionLimits,
    connection: &PlatformConnection,
) -> Result<(), AttestError> {
    let capture = connection.capture();
    let fits = |bytes: &[u8], max: u32| u32::try_from(bytes.len()).is_ok_and(|it| it <= max);
    if fits(capture.client, opened.up) && fits(capture.server, opened.down) {
        Ok(())
    } else {
        Err(AttestError::Attestor("it accepts fewer bytes than there are".into()))
    }
}

/// Checks that the response may be revealed to the attestor. A response that the attestor would
/// refuse is not revealed, nor are credentials that the server sets.
fn check_response(connection: &PlatformConnection) -> Result<(), AttestError> {
    connection.outcome().map_err(|error| {
        if let ResponseError::Credentials(header) = error {
            AttestError::Credentials(header)
        } else {
            AttestError::Platform(format!("the response is refused: {error}"))
        }
    })
}
