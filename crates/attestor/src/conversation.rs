//! One conversation with a prover, from its open message to its attestation.

mod channel;
mod refused;

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use attestation::{
    attest::capture_hash,
    body::{MAX_CHALLENGE_BYTES, Time},
    descriptor::{Descriptor, Mode},
    protocol::{
        Attested, EXPORTER, FromAttestor, FromProver, Open, Opened, Receipt, SignedReceipt,
        Telling, Welcome,
    },
    signed::key_id,
};
use jobs::JobError;
use tokio::{io::split, net::TcpStream, time::timeout};

use self::{
    channel::{Channel, WRITING},
    refused::Refused,
};
use crate::{
    Attestor, Bounds, KeyError,
    clients::{Client, Place},
    examine::{Job, Result as Examined, random},
    keys::{Key, current, read_keys},
    log::Logged,
    now,
    relay::{MOST_DOWN, MOST_UP, Recording, Relay},
};

const HANDSHAKE: Duration = Duration::from_secs(10);
const ORDER: Duration = Duration::from_secs(10);
/// Maximum length of the reason for a refusal, in characters.
const LONGEST_REASON: usize = 300;

/// Marks a session as being attested until it is dropped.
struct UnderWay<'a>(&'a Attestor, [u8; 32]);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.under_way().retain(|session| *session != self.1);
    }
}

impl Attestor {
    pub(crate) async fn receive(self: Arc<Self>, stream: TcpStream, from: SocketAddr) {
        let _ = stream.set_nodelay(true);
        let Ok(Ok(stream)) = timeout(HANDSHAKE, self.acceptor.accept(stream)).await else { return };
        let exported = stream.get_ref().1.export_keying_material([0; 32], EXPORTER, None);
        let Ok(channel) = exported else { return };
        let (read, write) = split(stream);
        let mut ends = Channel { read, write };
        match self.converse(&mut ends, &channel, from.ip()).await {
            Ok(()) => tracing::info!("attested for {from}"),
            Err(refused) => {
                // The text may contain words of the prover.
                let why: String = refused.to_string().chars().take(LONGEST_REASON).collect();
                tracing::info!("refused to attest for {from}: {why}");
                let last = if refused.is_temporary() {
                    FromAttestor::Busy(why)
                } else {
                    FromAttestor::Refused(why)
                };
                ends.say(&last).await.ok();
            }
        }
        let _ = timeout(WRITING, tokio::io::AsyncWriteExt::shutdown(&mut ends.write)).await;
    }

    async fn converse(
        &self,
        ends: &mut Channel,
        channel: &[u8; 32],
        from: IpAddr,
    ) -> Result<(), Refused> {
        let per_client = self.settings.bounds.per_client;
        let newcomer = self.newcomers.take(Client::at(from), per_client);
        let newcomer = newcomer.ok_or(Refused::BusyClient)?;
        let keys = read_keys(&self.settings.keys)?;
        let key = current(&keys, now());
        let key = key.ok_or_else(|| KeyError::None(self.settings.keys.clone()))?;
        let valid = (key.valid_from, key.valid_to);
        ends.say(&FromAttestor::Welcome(Welcome::new(&key.signing, valid, channel))).await?;
        let FromProver::Open(order) = ends.hear(ORDER).await? else {
            return Err(Refused::OutOfPlace);
        };
        let (place, descriptor, mode) = self.ordered(&order, from)?;
        drop(newcomer);
        let _room = self.room.try_acquire().map_err(|_| Refused::Busy)?;
        let _under_way = self.begin(order.session)?;
        let mut relay = Relay::open(&self.settings, &descriptor.host).await?;
        // From here on the attempt counts, regardless of its result.
        let (client, Open { challenge, session, .. }) = (place.client(), &order);
        let attempt = self.attempts().count(client, challenge, session, now());
        let attempt = attempt.ok_or(Refused::Challenges)?;
        let (id, bound) = (random(), self.settings.bounds.relay);
        ends.say(&FromAttestor::Opened(self.opened(id))).await?;
        let passed = timeout(bound, ends.pass_on(&mut relay)).await;
        let recording = relay.close();
        passed.map_err(|_| Refused::TooSlow(bound))??;
        ends.say(&FromAttestor::Receipt(receipt(id, &recording, key)?)).await?;
        let FromProver::Reveal(telling) = ends.hear(self.settings.bounds.proving).await? else {
            return Err(Refused::OutOfPlace);
        };
        let told = match &telling {
            Telling::FullReveal(_) => Mode::FullReveal,
            Telling::Proved(reveal) => reveal.mode(),
        };
        if told != mode {
            return Err(Refused::OtherMode);
        }
        let attested =
            self.attest((id, attempt), &order, descriptor, key, recording, telling).await?;
        ends.say(&FromAttestor::Attested(attested)).await
    }

    /// Returns the message that tells the prover the limits of the conversation.
    fn opened(&self, id: [u8; 16]) -> Opened {
        let milliseconds = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        let Bounds { relay, proving, waiting, examining, .. } = self.settings.bounds;
        Opened {
            id,
            time: milliseconds(relay),
            up: u32::try_from(MOST_UP).unwrap_or(u32::MAX),
            down: u32::try_from(MOST_DOWN).unwrap_or(u32::MAX),
            proving: milliseconds(proving),
            examining: milliseconds(waiting.saturating_add(examining)),
        }
    }

    /// Checks an open message and returns the client's permit, the descriptor and the mode.
    fn ordered(
        &self,
        order: &Open,
        from: IpAddr,
    ) -> Result<(Place<'_>, &Descriptor, Mode), Refused> {
        let client = self.settings.clients.find(&order.token, from).ok_or(Refused::Client)?;
        if order.challenge.len() > MAX_CHALLENGE_BYTES {
            return Err(Refused::Challenge);
        }
        let mut descriptors = self.settings.descriptors.iter();
        let descriptor = descriptors.find(|descriptor| descriptor.sha256() == order.descriptor);
        let descriptor = descriptor.ok_or(Refused::Descriptor)?;
        let mut modes = descriptor.modes.iter();
        let mode = modes.find(|mode| mode.number() == order.mode).ok_or(Refused::Mode)?;
        let place = self.conversations.take(client, self.settings.bounds.per_client);
        Ok((place.ok_or(Refused::BusyClient)?, descriptor, *mode))
    }

    /// Marks a session as being attested. No session is attested twice.
    fn begin(&self, session: [u8; 32]) -> Result<UnderWay<'_>, Refused> {
        if self.log().has(&session) {
            return Err(Refused::Session);
        }
        let mut under_way = self.under_way();
        if under_way.contains(&session) {
            return Err(Refused::Session);
        }
        under_way.push(session);
        Ok(UnderWay(self, session))
    }

    async fn attest(
        &self,
        (id, attempt): ([u8; 16], u32),
        order: &Open,
        descriptor: &Descriptor,
        key: &Key,
        recording: Recording,
        telling: Telling,
    ) -> Result<Attested, Refused> {
        let Recording { client, server, address, resolver, opened, closed } = recording;
        let job = Job {
            client,
            server,
            telling,
            descriptor: serde_json::to_string(descriptor).unwrap_or_default(),
            roots: self.roots.clone(),
            roots_sha256: self.roots_sha256,
            id,
            issuer: key_id(&key.signing.verifying_key().to_bytes()),
            session: order.session,
            partner: order.partner,
            attempt,
            challenge: order.challenge.clone(),
            address,
            resolver,
            time: Time { opened, closed, signed: 0 },
            build: self.build.clone(),
        };
        let result = self.examined(&job.write().ok_or(Refused::Broken)?).await?;
        match Examined::read(&result) {
            Some(Examined::Found(body, disclosure)) => {
                // The examiner process parses untrusted input, so values that are known here are
                // checked.
                if !job.is_answered_by(&body, descriptor) {
                    return Err(Refused::Examiner);
                }
                self.may_still_sign(key)?;
                let Logged { attestation, inclusion } =
                    tokio::task::block_in_place(|| self.log().sign(*body, now(), &key.signing))?;
                Ok(Attested { attestation, disclosure, inclusion })
            }
            Some(Examined::Refused(why)) => Err(Refused::Recording(why)),
            None => Err(Refused::Job(JobError::Died)),
        }
    }
}

impl Attestor {
    /// Checks that a key may still sign: it may have expired or been revoked since the conversation
    /// began, and verifiers would refuse a signature made after that.
    fn may_still_sign(&self, key: &Key) -> Result<(), Refused> {
        let (public, now) = (key.signing.verifying_key(), now());
        let keys = read_keys(&self.settings.keys)?;
        let may = keys.iter().any(|other| {
            other.signing.verifying_key() == public
                && (other.valid_from..other.valid_to).contains(&now)
        });
        if may { Ok(()) } else { Err(Refused::KeyEnded) }
    }

    /// Runs a job in an examiner process once one is free. The number of waiting jobs and their
    /// waiting time are limited.
    async fn examined(&self, job: &[u8]) -> Result<Vec<u8>, Refused> {
        let _waiting = self.queue.try_acquire().map_err(|_| Refused::Queue)?;
        let bound = self.settings.bounds.waiting;
        let examiner = timeout(bound, self.examiners.acquire()).await;
        let _examiner = examiner.ok().and_then(Result::ok).ok_or(Refused::Waited(bound))?;
        Ok(self.pool.run(job).await?)
    }
}

fn receipt(id: [u8; 16], recording: &Recording, key: &Key) -> Result<SignedReceipt, Refused> {
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
    SignedReceipt::new(receipt, &key.signing).map_err(|error| Refused::NotSigned(error.into()))
}
