//! The prover's side of the conversation with the attestor.

use std::time::Duration;

use attestation::{
    Trust,
    attest::{partner_name, session_name},
    descriptor::{Descriptor, Mode},
    evidence::Evidence,
    full_reveal::{self, Findings},
    http::response::BadResponse,
    protocol::{FromAttestor, FromProver, LONGEST_DATA, Open, Opened, Telling},
    zk::Spartan,
    zktls::examine_own,
};
use domain::{session::Certifying, workflow::AttestMode};
use ports::attestor::{AttestError, AttestOrder, Attested, Issuer, Package, Reached};
use rustls::pki_types::UnixTime;
use tokio::time::{Instant, timeout, timeout_at};

use crate::{
    EXAMINING, Prover, TELLING,
    attested::{Ordered, Recorded, is_for, verified},
    channel::{Channel, unexpected},
    connection::Connection,
    plan::{check, mode, of, request},
    proving::{Job, not_told},
};

/// Time limit from the open message to the receipt; the attestor has its own limit.
const RELAYING: Duration = Duration::from_secs(60);
/// Time for sending the reveal message and receiving the attestation.
const ON_THE_WAY: Duration = Duration::from_secs(30);

/// The reveal message, the evidence for later verifiers, and the findings about the connection.
type Told = (Telling, Option<Vec<u8>>, Findings);

impl Prover {
    pub(crate) async fn converse(
        &self,
        order: &AttestOrder,
        salt: [u8; 32],
        reached: Reached<'_>,
    ) -> Result<Attested, AttestError> {
        let descriptor = of(&order.plan, &order.url);
        let descriptor =
            descriptor.ok_or_else(|| AttestError::Plan("its request does not use https".into()))?;
        descriptor.check().map_err(|error| AttestError::Plan(error.to_string()))?;
        let planned = order.plan.mode();
        let planned = planned.ok_or_else(|| AttestError::Plan("it has no mode".into()))?;
        // Nothing that the attestor or the server does selects another mode: an attacker that can
        // break this connection could otherwise force a mode that reveals the credentials.
        self.attest_as(order, salt, &descriptor, planned, reached).await
    }

    async fn attest_as(
        &self,
        order: &AttestOrder,
        salt: [u8; 32],
        descriptor: &Descriptor,
        planned: AttestMode,
        reached: Reached<'_>,
    ) -> Result<Attested, AttestError> {
        let session = session_name(&salt, order.session.as_uuid().as_bytes());
        let asked = request(order, descriptor);
        let checked = check(&asked, descriptor, mode(planned));
        checked
            .map_err(|error| AttestError::Plan(format!("failed to build its request: {error}")))?;
        let mut channel = self.connect().await?;
        let ordered = Ordered {
            session,
            partner: partner_name(&salt, order.tenant.team.as_uuid().as_bytes()),
            challenge: order.challenge.clone(),
        };
        let open = Open {
            descriptor: descriptor.sha256(),
            mode: mode(planned).number(),
            session,
            partner: ordered.partner,
            challenge: ordered.challenge.clone(),
            token: self.address.token.clone(),
        };
        let until = Instant::now() + RELAYING;
        let relaying = self.relay_through(&mut channel, open, descriptor, mode(planned), asked);
        let recorded = timeout_at(until, relaying).await.map_err(|_| AttestError::TimedOut)??;
        reached(Certifying::Recorded);
        let telling = timeout(recorded.proving, self.tell(&recorded, descriptor, planned)).await;
        let (telling, evidence, found) = telling.map_err(|_| AttestError::TimedOut)??;
        reached(Certifying::Proved);
        let given = async {
            channel.say(&FromProver::Reveal(telling)).await?;
            let heard = channel.hear().await?;
            let FromAttestor::Attested(given) = heard else { return Err(unexpected(heard)) };
            Ok(given)
        };
        let given = timeout(recorded.examining, given).await;
        let given = given.map_err(|_| AttestError::TimedOut)??;
        let welcome = channel.welcome;
        let issuer = Issuer {
            public_key: welcome.public_key,
            valid_from: welcome.valid_from,
            valid_to: welcome.valid_to,
        };
        let (proof, values) =
            verified(&given, &issuer, (&recorded, &ordered), (&found, descriptor))?;
        let attestation::protocol::Attested { attestation, disclosure, inclusion } = given;
        let inclusion = Some(inclusion);
        let package =
            Package { mode: planned, salt, attestation, disclosure, evidence, inclusion, issuer };
        Ok(Attested { proof, values, package })
    }

    /// Relays the connection to the platform's server, from its first byte to the attestor's
    /// receipt.
    async fn relay_through(
        &self,
        channel: &mut Channel,
        open: Open,
        descriptor: &Descriptor,
        mode: Mode,
        asked: Vec<u8>,
    ) -> Result<Recorded, AttestError> {
        let platform = |error: &dyn std::error::Error| AttestError::Platform(error.to_string());
        channel.say(&FromProver::Open(open)).await?;
        let heard = channel.hear().await?;
        let FromAttestor::Opened(opened) = heard else { return Err(unexpected(heard)) };
        let (proving, examining) = times(&opened)?;
        let connection = Connection::new(descriptor, self.roots.clone(), mode, asked);
        let mut connection = connection.map_err(|error| platform(&error))?;
        loop {
            let outgoing = connection.outgoing().map_err(|error| platform(&error))?;
            within(&opened, &connection)?;
            for part in outgoing.chunks(LONGEST_DATA) {
                channel.say(&FromProver::Data(part.to_vec())).await?;
            }
            if connection.is_over() {
                break;
            }
            let heard = channel.hear().await?;
            let FromAttestor::Data(bytes) = heard else { return Err(unexpected(heard)) };
            connection.heard(&bytes).map_err(|error| platform(&error))?;
        }
        answered(&connection)?;
        channel.say(&FromProver::End).await?;
        let signed = loop {
            match channel.hear().await? {
                FromAttestor::Receipt(signed) => break signed,
                // These bytes were in transit, and are part of the recording.
                FromAttestor::Data(bytes) => {
                    connection.heard(&bytes).map_err(|error| platform(&error))?;
                }
                other @ (FromAttestor::Welcome(_)
                | FromAttestor::Opened(_)
                | FromAttestor::Attested(_)
                | FromAttestor::Refused(_)
                | FromAttestor::Busy(_)) => return Err(unexpected(other)),
            }
        };
        answered(&connection)?;
        if !signed.is_by(&channel.welcome.public_key) {
            return Err(AttestError::Untrue("its receipt has an invalid signature".into()));
        }
        let (id, receipt) = (opened.id, signed.receipt);
        if !is_for(&receipt, &id, &connection) {
            return Err(AttestError::Untrue("its receipt is for other bytes".into()));
        }
        Ok(Recorded { id, connection, receipt, proving, examining })
    }

    /// Prepares the reveal message for the attestor, and the evidence for later verifiers.
    /// Everything that the attestor will check is checked before, so that nothing is revealed in
    /// vain.
    async fn tell(
        &self,
        recorded: &Recorded,
        descriptor: &Descriptor,
        planned: AttestMode,
    ) -> Result<Told, AttestError> {
        let secret = recorded.connection.secret();
        let secret = secret.ok_or_else(|| AttestError::Proof("there is no handshake secret".into()))?;
        let capture = recorded.connection.capture();
        let trust = Trust { roots: &self.roots.roots, now: UnixTime::now() };
        if planned == AttestMode::FullReveal {
            let found = full_reveal::examine(capture, &secret, descriptor, &trust);
            let found = found.map_err(|refusal| not_told(&refusal))?;
            return Ok((Telling::FullReveal(secret), None, found));
        }
        let text = serde_json::to_string(descriptor).unwrap_or_default();
        let job = Job {
            client: capture.client.to_vec(),
            server: capture.server.to_vec(),
            secret,
            descriptor: text.clone(),
            roots: self.extra.iter().cloned().map(Into::into).collect(),
        };
        let reveal = job.run(&self.pool).await?;
        let found = examine_own(capture, &reveal, &Spartan::default(), descriptor, &trust);
        let found = found.map_err(|refusal| not_told(&refusal))?;
        let Job { client, server, .. } = job;
        let evidence = Evidence { client, server, reveal: reveal.clone(), descriptor: text };
        let evidence = evidence.write().map_err(|error| AttestError::Proof(error.to_string()))?;
        Ok((Telling::Proved(reveal), Some(evidence), found))
    }
}

/// Returns the time limits for the reveal message and for the attestation after it, as the attestor
/// states them, capped by local limits.
fn times(opened: &Opened) -> Result<(Duration, Duration), AttestError> {
    let Opened { time, up, down, proving, examining, .. } = *opened;
    if [time, up, down, proving, examining].contains(&0) {
        return Err(AttestError::Attestor("it allows no time or no bytes".into()));
    }
    let [proving, examining] = [proving, examining].map(|time| Duration::from_millis(time.into()));
    Ok((proving.min(TELLING), examining.min(EXAMINING) + ON_THE_WAY))
}

/// Checks that no more bytes were sent and received than the attestor accepts.
fn within(opened: &Opened, connection: &Connection) -> Result<(), AttestError> {
    let capture = connection.capture();
    let takes = |bytes: &[u8], most: u32| u32::try_from(bytes.len()).is_ok_and(|it| it <= most);
    if takes(capture.client, opened.up) && takes(capture.server, opened.down) {
        Ok(())
    } else {
        Err(AttestError::Attestor("it accepts fewer bytes than there are".into()))
    }
}

/// Checks that the response may be revealed to the attestor. A response that the attestor would
/// refuse is not revealed, nor are credentials that the server sets.
fn answered(connection: &Connection) -> Result<(), AttestError> {
    connection.outcome().map_err(|error| {
        if let BadResponse::Credentials(header) = error {
            AttestError::Credentials(header)
        } else {
            AttestError::Platform(format!("the response is refused: {error}"))
        }
    })
}
