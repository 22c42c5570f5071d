//! Zero-knowledge proofs about the parts that are hidden from the attestor: they, and all revealed
//! bytes, are what the client encrypted with the keys of the recorded handshake.

mod circuit;
mod classes;
mod sha;
mod spartan;
mod verifier;
mod words;

/// Mutates a proof according to input bytes and asserts that the result is refused.
#[cfg(fuzzing)]
pub use self::verifier::tests::refuse;
pub use self::{circuit::synthesize, spartan::Spartan, verifier::ProofError};

/// Length of a `ChaCha20` block (RFC 8439, section 2.3).
pub(crate) const BLOCK_BYTES: usize = 64;
/// Number of blocks of the largest circuit.
pub(crate) const MAX_BLOCKS: usize = 150;
/// Maximum length of what a proof covers: the request, and in `zktls-full` also the response.
pub const MAX_PROVED_BYTES: usize = MAX_BLOCKS * BLOCK_BYTES;

/// The statement of a proof, which the verifier derives independently from its recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The transcript hashes of both hellos, and up to the server's Finished.
    pub hellos: [u8; 32],
    pub transcript: [u8; 32],
    /// The handshake traffic secrets of both sides.
    pub server_handshake: [u8; 32],
    pub client_handshake: [u8; 32],
    pub server: ServerData,
    /// Of the client's application data.
    pub client_iv: [u8; 12],
    pub blocks: Vec<Block>,
}

/// The revealed part of the server's application data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerData {
    /// The traffic secret, which reveals all of it. No block of the server is proved.
    TrafficSecret([u8; 32]),
    /// Only the IV; the key stays hidden, and blocks state the revealed bytes.
    Proved([u8; 12]),
}

/// The proved class of a hidden byte, which prevents it from ending the value that contains it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteClass {
    /// In the value of a header: not a control character, 0x20 or higher.
    Printable,
    /// In a JSON string: not a control character, quotation mark or backslash.
    Text,
    /// In a JSON number or literal (`true`, `false`, `null`): `(` to `/` except the comma, `0` to
    /// `9`, `@` to `Z`, `` ` `` to `z`.
    Scalar,
}

impl ByteClass {
    /// Returns whether a byte belongs to the class. The circuit has the same constraints.
    #[must_use]
    pub const fn contains(self, byte: u8) -> bool {
        match self {
            Self::Printable => byte >= 0x20,
            Self::Text => byte >= 0x20 && byte != b'"' && byte != b'\\',
            Self::Scalar => {
                matches!(byte, b'('..=b'+' | b'-'..=b'/' | b'0'..=b'9' | b'@'..=b'Z' | b'`'..=b'z')
            }
        }
    }
}

/// The stream that a block belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

/// A block of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub side: Side,
    pub nonce: [u8; 12],
    pub counter: u32,
    pub ciphertext: [u8; BLOCK_BYTES],
    /// By byte, the first in the lowest bit: whether it is revealed in `plain`.
    pub revealed: u64,
    /// By byte: whether it is proved to belong to each class; all but the first are zeros if the
    /// server's stream is not proved.
    pub printable: u64,
    pub text: u64,
    pub scalar: u64,
    /// The revealed bytes; zeros elsewhere.
    pub plain: [u8; BLOCK_BYTES],
}

impl Block {
    /// A block that reveals and proves nothing.
    pub const BLANK: Self = Self {
        side: Side::Client,
        nonce: [0; 12],
        counter: 0,
        ciphertext: [0; BLOCK_BYTES],
        revealed: 0,
        printable: 0,
        text: 0,
        scalar: 0,
        plain: [0; BLOCK_BYTES],
    };

    /// Returns its public values except the revealed bytes: everything that is fixed before the
    /// proof.
    fn inputs(&self, server: ServerData) -> BlockInputs {
        let mut masks = [self.revealed.to_le_bytes(), self.printable.to_le_bytes()].concat();
        let side = match server {
            ServerData::TrafficSecret(_) => None,
            ServerData::Proved(_) => {
                masks.extend([self.text.to_le_bytes(), self.scalar.to_le_bytes()].concat());
                Some(self.side)
            }
        };
        let place = [self.nonce.as_slice(), &self.counter.to_le_bytes()].concat();
        BlockInputs { place, side, ciphertext: self.ciphertext.to_vec(), masks }
    }

    fn public(&self, server: ServerData) -> Vec<Vec<u8>> {
        let BlockInputs { place, side, ciphertext, masks } = self.inputs(server);
        let side = side.map(|side| vec![u8::from(side == Side::Server)]);
        std::iter::once(place).chain(side).chain([ciphertext, masks, self.plain.to_vec()]).collect()
    }
}

/// The public inputs of a block.
struct BlockInputs {
    /// Nonce and counter.
    place: Vec<u8>,
    /// `None` if only the client's stream is proved.
    side: Option<Side>,
    ciphertext: Vec<u8>,
    /// Masks of 8 bytes each: revealed and printable; and text and scalar if the server's stream is
    /// proved.
    masks: Vec<u8>,
}

impl Statement {
    /// Returns all public values as bytes, in the order of the circuit: up to 16 bytes of a field
    /// are one value.
    pub(crate) fn public(&self) -> Vec<Vec<u8>> {
        let fields = [
            self.hellos.to_vec(),
            self.transcript.to_vec(),
            self.server_handshake.to_vec(),
            self.client_handshake.to_vec(),
            match self.server {
                ServerData::TrafficSecret(secret) => secret.to_vec(),
                ServerData::Proved(iv) => iv.to_vec(),
            },
            self.client_iv.to_vec(),
        ];
        let blocks = self.blocks.iter().flat_map(|block| block.public(self.server));
        let fields = fields.into_iter().chain(blocks);
        fields.flat_map(|field| field.chunks(16).map(<[u8]>::to_vec).collect::<Vec<_>>()).collect()
    }
}

/// A zero-knowledge proof system.
pub trait ZkBackend {
    /// Returns its name and version, as attestations state it.
    fn name(&self) -> &'static str;

    /// Proves a statement with the handshake secret, which the proof does not reveal.
    fn prove(&self, statement: &Statement, secret: &[u8; 32]) -> Result<Vec<u8>, ZkError>;

    /// Returns the digest of the circuit for a statement.
    fn circuit(&self, statement: &Statement) -> Result<[u8; 32], ZkError>;

    /// Verifies a proof of a statement.
    fn verify(&self, statement: &Statement, proof: &[u8]) -> Result<(), ZkError>;
}

/// Why a statement cannot be proved, or a proof is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ZkError {
    #[error("request and response are too long to be proved")]
    TooLong,
    #[error("the statement does not hold, or cannot be proved: {0}")]
    Prove(String),
    #[error("the proof is refused: {0}")]
    Proof(#[from] ProofError),
}
