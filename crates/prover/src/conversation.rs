//! The conversation with the attestor.

use std::time::Duration;

use attestation::{
    attest::{Disclosure, capture_hash, partner_name, session_name},
    descriptor::{Descriptor, Mode},
    evidence::Evidence,
    http::response::BadResponse,
    protocol::{FromAttestor, FromProver, LONGEST_DATA, Open, Telling},
    signed::{self, Attestation, hex},
    tlog::{BadLog, LogProof},
};
use domain::{
    session::{Certifying, ExtractedData, ProofHash},
    workflow::AttestMode,
};
use ports::attestor::{AttestError, AttestOrder, Attested, Issuer, Package, Reached};
use tokio::time::{Instant, timeout_at};

use crate::{
    Prover,
    channel::{Channel, unexpected},
    connection::Connection,
    plan::{mode, of, request},
    proving::Job,
};

/// From the order to the server's last word; the attestor has a bound of its own.
const RELAYING: Duration = Duration::from_secs(60);
/// From what opens the recording to the attestation.
const EXAMINING: Duration = Duration::from_secs(120);

/// What passed, and its name.
struct Recorded {
    id: [u8; 16],
    connection: Connection,
}

/// What of an order the attestation has to repeat.
struct Ordered {
    session: [u8; 32],
    partner: [u8; 32],
    challenge: Vec<u8>,
}

impl Prover {
    pub(crate) async fn converse(
        &self,
        order: &AttestOrder,
        salt: [u8; 32],
        reached: Reached<'_>,
    ) -> Result<Attested, AttestError> {
        let descriptor = of(&order.plan, &order.url);
        let descriptor =
            descriptor.ok_or_else(|| AttestError::Plan("its request is not over https".into()))?;
        descriptor.check().map_err(|error| AttestError::Plan(error.to_string()))?;
        let planned = order.plan.mode();
        let planned = planned.ok_or_else(|| AttestError::Plan("it has no mode".into()))?;
        // Nothing that the witness or the server does leads to another mode: who can break this
        // connection could otherwise choose to see the credentials.
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
        let mut channel = self.connect().await?;
        let ordered = Ordered {
            session,
            partner: partner_name(&salt, order.partner.as_uuid().as_bytes()),
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
        let asked = request(order, descriptor);
        let relaying = self.relay_through(&mut channel, open, descriptor, mode(planned), asked);
        let recorded = timeout_at(until, relaying).await.map_err(|_| AttestError::TimedOut)??;
        reached(Certifying::Recorded);
        let (telling, evidence) = self.tell(&recorded, descriptor, planned).await?;
        reached(Certifying::Proved);
        let until = Instant::now() + EXAMINING;
        let given = async {
            channel.say(&FromProver::Reveal(telling)).await?;
            let heard = channel.hear().await?;
            let FromAttestor::Attested(given) = heard else { return Err(unexpected(heard)) };
            Ok(given)
        };
        let given = timeout_at(until, given).await.map_err(|_| AttestError::TimedOut)??;
        let welcome = channel.welcome;
        let issuer = Issuer {
            public_key: welcome.public_key,
            valid_from: welcome.valid_from,
            valid_to: welcome.valid_to,
        };
        let (proof, values) =
            verified(&given, &issuer, (&recorded, &ordered, descriptor), mode(planned))?;
        let attestation::protocol::Attested { attestation, disclosure, inclusion } = given;
        let inclusion = Some(inclusion);
        let package =
            Package { mode: planned, salt, attestation, disclosure, evidence, inclusion, issuer };
        Ok(Attested { proof, values, package })
    }

    /// The connection to the platform's server, from its first byte to the attestor's receipt.
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
        let connection = Connection::new(descriptor, self.roots.clone(), mode, asked);
        let mut connection = connection.map_err(|error| platform(&error))?;
        loop {
            let outgoing = connection.outgoing().map_err(|error| platform(&error))?;
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
                // It was on its way, and is in the recording.
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
        let true_capture = capture_hash(&opened.id, connection.capture());
        let receipt = &signed.receipt;
        if !signed.is_by(&channel.welcome.public_key)
            || (receipt.id, receipt.capture) != (opened.id, true_capture)
        {
            return Err(AttestError::Untrue("its receipt is for other bytes".into()));
        }
        Ok(Recorded { id: opened.id, connection })
    }

    /// What opens the recording to the attestor, and to others later.
    async fn tell(
        &self,
        recorded: &Recorded,
        descriptor: &Descriptor,
        planned: AttestMode,
    ) -> Result<(Telling, Option<Vec<u8>>), AttestError> {
        let secret = recorded.connection.secret();
        let secret = secret.ok_or_else(|| AttestError::Proof("there is no secret".into()))?;
        if planned == AttestMode::FullReveal {
            return Ok((Telling::FullReveal(secret), None));
        }
        let capture = recorded.connection.capture();
        let descriptor = serde_json::to_string(descriptor).unwrap_or_default();
        let job = Job {
            client: capture.client.to_vec(),
            server: capture.server.to_vec(),
            secret,
            descriptor: descriptor.clone(),
            roots: self.extra.iter().cloned().map(Into::into).collect(),
        };
        let reveal = job.run(&self.pool).await?;
        let Job { client, server, .. } = job;
        let evidence = Evidence { client, server, reveal: reveal.clone(), descriptor };
        let evidence = evidence.write().map_err(|error| AttestError::Proof(error.to_string()))?;
        Ok((Telling::Proved(reveal), Some(evidence)))
    }
}

/// Whether the response may be opened to the witness. What it would refuse it is not shown, and
/// credentials that the server sets are nothing that it may see.
fn answered(connection: &Connection) -> Result<(), AttestError> {
    connection.outcome().map_err(|error| {
        if let BadResponse::Credentials(header) = error {
            AttestError::Credentials(header)
        } else {
            AttestError::Platform(format!("the response is refused: {error}"))
        }
    })
}

/// Whether what was given is an attestation of this connection; its hash and values.
fn verified(
    given: &attestation::protocol::Attested,
    issuer: &Issuer,
    (recorded, ordered, descriptor): (&Recorded, &Ordered, &Descriptor),
    mode: Mode,
) -> Result<(ProofHash, ExtractedData), AttestError> {
    let untrue = |why: &str| AttestError::Untrue(why.to_owned());
    let known = signed::Issuer {
        name: String::new(),
        public_key: hex(&issuer.public_key),
        valid_from: issuer.valid_from,
        valid_to: issuer.valid_to,
        revoked_at: None,
    };
    let attestation = signed::verify(&given.attestation, &[known]);
    let attestation = attestation.map_err(|error| untrue(&error.to_string()))?;
    logged(&given.inclusion, &attestation, issuer).map_err(|error| untrue(&error.to_string()))?;
    let body = &attestation.body;
    let disclosure = Disclosure::read(&given.disclosure);
    let disclosure = disclosure.map_err(|error| untrue(&error.to_string()))?;
    disclosure.opens(body).map_err(|error| untrue(&error.to_string()))?;
    let capture = capture_hash(&recorded.id, recorded.connection.capture());
    let ours = (body.id, body.session, body.capture.sha256, body.mode)
        == (recorded.id, ordered.session, capture, mode.number())
        && (body.partner, &body.challenge) == (ordered.partner, &ordered.challenge);
    let planned = descriptor.claims.iter().map(|claim| (&claim.field, &claim.pointer));
    let claimed = body.claims.iter().map(|claim| (&claim.field, &claim.pointer));
    if !ours || body.descriptor != descriptor.name() || !planned.eq(claimed) {
        return Err(untrue("it is of another connection"));
    }
    let values = disclosure.claims(body).ok_or_else(|| untrue("it does not open its claims"))?;
    let proof = ProofHash::new(&attestation.proof_hash);
    Ok((proof.ok_or_else(|| untrue("its hash is none"))?, values))
}

/// Whether an attestation is in the attestor's log, by a checkpoint that its key signed.
fn logged(inclusion: &[u8], attestation: &Attestation, issuer: &Issuer) -> Result<(), BadLog> {
    let proof = LogProof::read(inclusion)?;
    let key = proof.key_of(&issuer.public_key)?;
    proof.verify_attestation(attestation, &key).map(|_| ())
}
