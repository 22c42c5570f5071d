//! What is proved of the parts that a witness does not see: that they, and all that is opened, are
//! what the client encrypted with the keys that follow from the very handshake that was recorded.

mod circuit;
mod sha;
mod spartan;
mod verifier;
mod words;

/// Mutates a proof as bytes say and asserts that what comes of it is refused.
#[cfg(fuzzing)]
pub use self::verifier::tests::refuse;
pub use self::{circuit::synthesize, spartan::Spartan, verifier::Refused};

/// Bytes of a block of `ChaCha20` (RFC 8439, section 2.3).
pub(crate) const BLOCK: usize = 64;

/// Everything that a proof says, and that whoever verifies it makes anew from what it recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The hashes of both hellos, and of all up to the server's Finished.
    pub hellos: [u8; 32],
    pub transcript: [u8; 32],
    /// The secrets of the handshake, of both sides; and of what the server said.
    pub server_handshake: [u8; 32],
    pub client_handshake: [u8; 32],
    pub server_data: [u8; 32],
    /// Of what the client said.
    pub client_iv: [u8; 12],
    pub blocks: Vec<Block>,
}

/// A block of the client's stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub nonce: [u8; 12],
    pub counter: u32,
    pub ciphertext: [u8; BLOCK],
    /// By byte, the first in the lowest bit: whether it is opened, and stands in `plain`.
    pub opened: u64,
    /// By byte: whether it is proved to be no control character.
    pub printable: u64,
    /// What is opened; zeros elsewhere.
    pub plain: [u8; BLOCK],
}

impl Block {
    /// One that says nothing.
    pub const BLANK: Self = Self {
        nonce: [0; 12],
        counter: 0,
        ciphertext: [0; BLOCK],
        opened: 0,
        printable: 0,
        plain: [0; BLOCK],
    };

    fn public(&self) -> [Vec<u8>; 4] {
        [
            [self.nonce.as_slice(), &self.counter.to_le_bytes()].concat(),
            self.ciphertext.to_vec(),
            [self.opened.to_le_bytes(), self.printable.to_le_bytes()].concat(),
            self.plain.to_vec(),
        ]
    }
}

impl Statement {
    /// All of it as bytes, in the order of the circuit's public values: 16 of them, or the last few
    /// of a field, are one value.
    pub(crate) fn public(&self) -> Vec<Vec<u8>> {
        let fields = [
            self.hellos.to_vec(),
            self.transcript.to_vec(),
            self.server_handshake.to_vec(),
            self.client_handshake.to_vec(),
            self.server_data.to_vec(),
            self.client_iv.to_vec(),
        ];
        let fields = fields.into_iter().chain(self.blocks.iter().flat_map(Block::public));
        fields.flat_map(|field| field.chunks(16).map(<[u8]>::to_vec).collect::<Vec<_>>()).collect()
    }
}

/// A system of zero-knowledge proofs.
pub trait ZkBackend {
    /// Its name and version, as it stands in attestations.
    fn name(&self) -> &'static str;

    /// Proves a statement with the handshake secret, which nobody learns from the proof.
    fn prove(&self, statement: &Statement, secret: &[u8; 32]) -> Result<Vec<u8>, ZkError>;

    /// What names the circuit that a statement of that many blocks is proved by; seconds where it
    /// is the first of its size.
    fn circuit(&self, blocks: usize) -> Result<[u8; 32], ZkError>;

    /// Whether this proof is one of this statement.
    fn verify(&self, statement: &Statement, proof: &[u8]) -> Result<(), ZkError>;
}

/// Why there is no proof, or why one is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ZkError {
    #[error("the request is too long to be proved")]
    TooLong,
    #[error("the statement does not hold, or cannot be proved: {0}")]
    Prove(String),
    #[error("the proof is refused: {0}")]
    Proof(#[from] Refused),
}
