//! Forgeries and mutants of proofs about a recorded connection, with the circuit of 19 blocks, as
//! examiners receive them.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{LazyLock, Mutex},
};

use bincode::Options as _;
use rustls_pki_types::{CertificateDer, TrustAnchor, UnixTime};

use super::super::{Circuit, CircuitKind, Snark, Spartan, blank_statement, options, values};
use crate::{
    attest::{AttestationContext, attest},
    body::{AttestationTimes, AttestorBuild, LogPosition},
    descriptor::{ClaimDescriptor, Descriptor, RevealMode},
    error::ExaminationError,
    evidence::{Evidence, EvidenceError},
    full_reveal::{Capture, Findings},
    tls::flight::CertificateTrust,
    zk::{
        Block, ProofError, ServerData, Statement, ZkBackend, ZkError,
        verifier::tests::{Deviation, Forger, Node, Sources},
    },
    zktls::{HidePolicy, Reveal, examine, reveal},
};
use spartan2::traits::snark::R1CSSNARKTrait;

/// Written by `a_connection_is_recorded_for_the_tests_of_the_verifier` in
/// `tests/attacks/hidden.rs`.
const RECORDED: &[u8] = include_bytes!("recorded.bin");
/// Within the validity of its certificates: 2026-06-01.
const NOW: u64 = 1_780_272_000;

static SPARTAN: LazyLock<Spartan> = LazyLock::new(Spartan::default);

struct Recorded {
    secret: [u8; 32],
    client: Vec<u8>,
    server: Vec<u8>,
    roots: Vec<TrustAnchor<'static>>,
    descriptor: Descriptor,
    /// The reveal message without a proof.
    revealed: Reveal,
}

static CONNECTION: LazyLock<Recorded> = LazyLock::new(|| {
    let mut rest = RECORDED;
    let mut part = || {
        let (length, after) = rest.split_first_chunk().unwrap();
        let (part, after) = after.split_at(usize::try_from(u32::from_be_bytes(*length)).unwrap());
        rest = after;
        part.to_vec()
    };
    let [secret, root, client, server] = [part(), part(), part(), part()];
    let roots =
        vec![webpki::anchor_from_trusted_cert(&CertificateDer::from(root)).unwrap().to_owned()];
    let secret = secret.try_into().unwrap();
    let descriptor = descriptor();
    let capture = Capture { client: &client, server: &server };
    let (hide, trust) = (HidePolicy::of(&descriptor), trust(&roots));
    let revealed =
        reveal(capture, &secret, &hide, &StatementRecorder::default(), &descriptor.host, &trust);
    let revealed = revealed.unwrap();
    drop(hide);
    Recorded { secret, client, server, roots, descriptor, revealed }
});

fn descriptor() -> Descriptor {
    Descriptor {
        platform: 1,
        version: 3,
        host: "platform.test".into(),
        target: "/api/v1/me".into(),
        headers: vec!["accept".into(), "cookie".into()],
        values: std::collections::BTreeMap::new(),
        hidden: vec!["cookie".into()],
        content_type: "application/json".into(),
        modes: vec![RevealMode::ZktlsRequest],
        claims: vec![ClaimDescriptor { field: "user_id".into(), pointer: "/user/id".into() }],
    }
}

fn trust<'a>(roots: &'a [TrustAnchor<'static>]) -> CertificateTrust<'a> {
    let now = std::time::Duration::from_secs(NOW);
    CertificateTrust { roots, now: UnixTime::since_unix_epoch(now) }
}

/// Accepts every proof, and records the statement.
#[derive(Default)]
struct StatementRecorder(Mutex<Option<Statement>>);

impl ZkBackend for StatementRecorder {
    fn name(&self) -> &'static str {
        SPARTAN.name()
    }

    fn prove(&self, _: &Statement, _: &[u8; 32]) -> Result<Vec<u8>, ZkError> {
        Ok(vec![])
    }

    fn circuit(&self, statement: &Statement) -> Result<[u8; 32], ZkError> {
        SPARTAN.circuit(statement)
    }

    fn verify(&self, statement: &Statement, _: &[u8]) -> Result<(), ZkError> {
        *self.0.lock().unwrap() = Some(statement.clone());
        Ok(())
    }
}

impl Recorded {
    fn capture(&self) -> Capture<'_> {
        Capture { client: &self.client, server: &self.server }
    }

    fn examined(
        &self,
        revealed: &Reveal,
        backend: &dyn ZkBackend,
    ) -> Result<Findings, ExaminationError> {
        examine(self.capture(), revealed, backend, &self.descriptor, &trust(&self.roots))
    }

    fn statement(&self, revealed: &Reveal) -> Statement {
        let asked = StatementRecorder::default();
        self.examined(revealed, &asked).unwrap();
        asked.0.into_inner().unwrap().unwrap()
    }

    /// Returns another request than the sent one, with a change in a visible header.
    fn lie(&self) -> Reveal {
        let mut revealed = self.revealed.clone();
        let at = revealed
            .request_bytes
            .windows(16)
            .position(|part| part == b"application/json")
            .unwrap();
        revealed.request_bytes[at..at + 16].copy_from_slice(b"text/x-forgeries");
        revealed
    }

    /// Returns why this proof is refused, by the attestor and by a verifier of the evidence.
    fn refuses(&self, revealed: &Reveal, proof: Vec<u8>) -> ProofError {
        let revealed = Reveal { proof, ..revealed.clone() };
        let refused = self.examined(&revealed, &*SPARTAN).unwrap_err();
        let found = self.examined(&revealed, &StatementRecorder::default()).unwrap();
        let (body, _) = attest(&found, self.capture(), &self.descriptor, context(), || [0; 16]);
        let evidence = Evidence {
            client: self.client.clone(),
            server: self.server.clone(),
            reveal: revealed,
            descriptor: serde_json::to_string(&self.descriptor).unwrap(),
        };
        let again = evidence.verify(&body, None, &*SPARTAN, &self.roots);
        assert_eq!(again.map(drop), Err(EvidenceError::Refused(refused.clone())));
        let ExaminationError::Zk(ZkError::Proof(refused)) = refused else { panic!("{refused}") };
        refused
    }
}

fn context() -> AttestationContext {
    let now = NOW * 1000;
    AttestationContext {
        id: [1; 16],
        issuer: [2; 32],
        session: [3; 32],
        partner: [4; 32],
        attempt: 1,
        challenge: vec![],
        server_address: vec![192, 0, 2, 1],
        egress: 0,
        resolver: 0,
        roots_sha256: [5; 32],
        time: AttestationTimes { opened: now, closed: now, signed: now },
        attestor: AttestorBuild { version: "0.1.0".into(), sha256: [6; 32] },
        log: LogPosition { index: 0, previous_hash: [7; 32] },
        blinding: [8; 32],
    }
}

const REAL: CircuitKind = CircuitKind { proves_server: false, blocks: 19 };

/// Returns the public values that spartan2's own verifier accepts as proved.
fn spartan2(proof: &[u8]) -> Option<Vec<super::super::Scalar>> {
    static KEY: LazyLock<<Snark as R1CSSNARKTrait<super::super::T256HyraxEngine>>::VerifierKey> =
        LazyLock::new(|| {
            let circuit = Circuit { statement: blank_statement(REAL), secret: [0; 32] };
            Snark::setup(circuit).unwrap().1
        });
    let proof: Snark = options().deserialize(proof).ok()?;
    proof.verify(&KEY).ok()
}

/// The three forgeries of a request that was not sent: without a witness, and each is accepted by
/// spartan2.
#[test]
fn forgeries_about_a_real_connection_are_refused_for_their_structure() {
    let lie = CONNECTION.lie();
    let mut statement = CONNECTION.statement(&lie);
    statement.blocks.resize(REAL.blocks, Block::BLANK);
    let public = values(&statement);
    let verifier = SPARTAN.verifier(REAL).unwrap();
    let by_the_rules = Forger::new(&verifier).proof(&public, &Deviation::default()).bytes();
    assert_eq!(CONNECTION.refuses(&lie, by_the_rules.clone()), ProofError::Evaluation);
    let expected = [ProofError::Count, ProofError::Option, ProofError::Count];
    for (deviation, expected) in Deviation::convincing().iter().zip(expected) {
        let mut proof = Forger::new(&verifier).proof(&public, deviation).bytes();
        assert_eq!(spartan2(&proof), Some(public.clone()), "{deviation:?}");
        assert_eq!(CONNECTION.refuses(&lie, proof.clone()), ProofError::Size, "{deviation:?}");
        proof.resize(by_the_rules.len(), 0);
        assert_eq!(CONNECTION.refuses(&lie, proof), expected, "{deviation:?}");
    }
}

/// Two honest proofs of one statement.
static HONEST: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| {
    let statement = CONNECTION.statement(&CONNECTION.revealed);
    [0; 2].map(|_| SPARTAN.prove(&statement, &CONNECTION.secret).unwrap())
});

/// As many mutants as for the small circuit would take hours: a mutant with a valid structure takes
/// as long as a full verification. `ATTACK_MUTANTS=5000` tries more.
#[test]
fn no_mutant_of_a_real_proof_is_accepted_and_none_panics() {
    let mutants = std::env::var("ATTACK_MUTANTS").map_or(100, |count| count.parse().unwrap());
    let sources = Sources::of(HONEST.clone());
    let (revealed, statement) = (&CONNECTION.revealed, CONNECTION.statement(&CONNECTION.revealed));
    for proof in &*HONEST {
        let honest = Reveal { proof: proof.clone(), ..revealed.clone() };
        assert!(CONNECTION.examined(&honest, &*SPARTAN).is_ok());
    }
    // In sequence: a verification uses all cores itself.
    let refusals: Vec<_> = (0..mutants)
        .filter_map(|seed| sources.mutant(seed).map(|mutant| (seed, mutant)))
        .map(|(seed, mutant)| (seed, SPARTAN.verify(&statement, &mutant)))
        .collect();
    let accepted: Vec<_> = refusals.iter().filter(|(_, refused)| refused.is_ok()).collect();
    assert!(accepted.is_empty(), "{accepted:?}");
    let structure = refusals.iter().filter(|(_, refused)| {
        matches!(
            refused,
            Err(ZkError::Proof(ProofError::Size | ProofError::Count | ProofError::Option))
        )
    });
    let structure = structure.count();
    assert!(structure > refusals.len() / 4 && structure < refusals.len(), "{structure}");
}

#[test]
fn unequal_lengths_of_a_real_proof_are_errors_and_no_panic() {
    let mut proof = Node::of(&HONEST[0]);
    // The commitment to the witness of the random instance.
    let Some(rows) = proof.parts().swap_remove(2).parts().first().map(|rows| (*rows).clone())
    else {
        panic!("an instance has fields")
    };
    let Node::List(mut fewer) = rows else { panic!("a commitment has rows") };
    fewer.pop();
    *proof.parts().swap_remove(2).parts().swap_remove(0) = Node::List(fewer);
    let proof = proof.bytes();
    assert!(catch_unwind(AssertUnwindSafe(|| spartan2(&proof))).is_err(), "spartan2 panics");
    assert_eq!(CONNECTION.refuses(&CONNECTION.revealed, proof), ProofError::Size);
}

/// An honest proof is accepted for each circuit, and only for its own statement and circuit. The
/// one of 19 blocks is proved above; the two largest take gigabytes: `ATTACK_LARGE=1` proves them.
#[test]
fn an_honest_proof_of_each_circuit_is_accepted() {
    let large = std::env::var("ATTACK_LARGE").is_ok();
    let statement = CONNECTION.statement(&CONNECTION.revealed);
    for (kind, _) in super::super::CIRCUITS {
        if kind == REAL || kind.blocks > 64 && !large {
            continue;
        }
        // A statement that fits into no smaller circuit.
        let mut statement = statement.clone();
        if kind.proves_server {
            statement.server = ServerData::Proved(CONNECTION.server_iv(&statement.transcript));
        }
        statement.blocks.resize(kind.blocks, Block::BLANK);
        assert_eq!(CircuitKind::of(&statement), Ok(kind));
        let proof = SPARTAN.prove(&statement, &CONNECTION.secret).unwrap();
        assert_eq!(SPARTAN.verify(&statement, &proof), Ok(()), "{kind:?}");
        let mut other = statement.clone();
        other.blocks[kind.blocks - 1].nonce[11] ^= 1;
        let refused = Err(ZkError::Proof(ProofError::PublicValues));
        assert_eq!(SPARTAN.verify(&other, &proof), refused, "{kind:?}");
        other.blocks.truncate(kind.blocks - 50);
        assert!(SPARTAN.verify(&other, &proof).is_err(), "{kind:?}");
    }
}

impl Recorded {
    fn server_iv(&self, transcript: &[u8; 32]) -> [u8; 12] {
        let suite = crate::tls::key_schedule::Suite::ChaCha20Poly1305Sha256;
        suite.iv(&suite.application_traffic(&self.secret, transcript).server).unwrap()
    }
}
