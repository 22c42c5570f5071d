//! Makes a request through the attestor's relay, and has what was answered attested: the TLS
//! client whose secrets we know, the conversation with the attestor, and the proof, which is made
//! in a process of its own.
//!
//! **Invariant:** nothing is told to the attestor before the connection is over and its recording
//! is the one that we saw. What comes back is verified like anybody else's.

mod attested;
mod channel;
mod connection;
mod conversation;
mod plan;
mod proving;
mod reader;
mod words;

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use attestation::signed::hex;
use ports::attestor::{AttestError, AttestOrder, Attested, Attestor, Reached};
use rustls::RootCertStore;
use tokio::sync::Semaphore;

pub use self::{
    plan::{descriptor, request},
    proving::work,
    reader::PackageReader,
};

/// What the proving process is started with: the first argument of a program that calls [`work`]
/// then.
pub const PROVE: &str = "prove-requests";
/// How long one proof may take, and how long with the one that it waits for; an attestor may leave
/// less.
const PROVING: Duration = Duration::from_secs(180);
const TELLING: Duration = Duration::from_secs(360);
/// From what opens the recording to the attestation, at most; an attestor says how much of it it
/// may need.
const EXAMINING: Duration = Duration::from_secs(600);
/// For each attempt in all, with the time that it waits for a place: more than its parts may take.
const PATIENCE: Duration = Duration::from_secs(1200);
/// How long is waited before the second attempt, at least, and how much longer at most.
const PAUSE: Duration = Duration::from_secs(1);
const JITTER: u64 = 2000;

/// Where the attestor is and who it has to be.
#[derive(Clone)]
pub struct Address {
    pub host: String,
    pub port: u16,
    /// What it knows us by; empty where it takes everybody.
    pub token: String,
    /// Its public keys, Ed25519: one, or both while one follows the other.
    pub keys: Vec<[u8; 32]>,
}

impl fmt::Debug for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not what it knows us by.
        write!(out, "{}:{}", self.host, self.port)
    }
}

/// Our side of every attestation.
pub struct Prover {
    address: Address,
    /// The usual ones, and the operator's.
    roots: Arc<RootCertStore>,
    extra: Vec<Vec<u8>>,
    pool: jobs::Pool,
    /// Twice as many as there are proofs at once: while one is proved another is recorded. Whoever
    /// waits does so before anything is recorded, which does not keep.
    room: Semaphore,
}

impl Prover {
    /// A prover that believes the usual roots and these, DER, and makes so many proofs at once with
    /// this program.
    ///
    /// # Errors
    /// One of the roots is no certificate.
    pub fn new(
        address: Address,
        extra: Vec<Vec<u8>>,
        program: PathBuf,
        at_once: usize,
    ) -> Result<Self, rustls::Error> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        for root in &extra {
            roots.add(root.clone().into())?;
        }
        let pool = jobs::Pool::new(program, PROVE, at_once, PROVING);
        let room = Semaphore::new(2 * at_once);
        Ok(Self { address, roots: Arc::new(roots), extra, pool, room })
    }
}

impl Prover {
    async fn attempt(
        &self,
        order: &AttestOrder,
        salt: [u8; 32],
        reached: Reached<'_>,
    ) -> Result<Attested, AttestError> {
        let work = async {
            let _place = self.room.acquire().await.map_err(|_| AttestError::TimedOut)?;
            self.converse(order, salt, reached).await
        };
        let done = tokio::time::timeout(PATIENCE, work).await;
        done.unwrap_or(Err(AttestError::TimedOut)).map_err(words::bounded)
    }
}

#[async_trait]
impl Attestor for Prover {
    async fn attest(
        &self,
        order: AttestOrder,
        reached: Reached<'_>,
    ) -> Result<Attested, AttestError> {
        let mut salt = [0; 32];
        getrandom::fill(&mut salt).map_err(|error| AttestError::Proof(error.to_string()))?;
        let mut done = self.attempt(&order, salt, reached).await;
        if let Err(error) = &done
            && error.is_temporary()
        {
            tracing::warn!(session.id = %order.session, %error, "an attestation is tried again");
            let mut chance = [0; 8];
            let _ = getrandom::fill(&mut chance);
            let jitter = Duration::from_millis(u64::from_ne_bytes(chance) % JITTER);
            tokio::time::sleep(PAUSE + jitter).await;
            // Everything is made anew, the platform's response too. The session's name stays, so
            // that the attestor counts this attempt as its second.
            done = self.attempt(&order, salt, reached).await;
        }
        match &done {
            Ok(attested) => {
                let key = hex(&attested.package.issuer.public_key);
                tracing::info!(session.id = %order.session, "attested with key {key}");
            }
            Err(error) => {
                tracing::warn!(session.id = %order.session, %error, "there is no attestation");
            }
        }
        done
    }
}
