//! What is proved of the parts that a witness does not see: that they, and all that is opened, are
//! what the client encrypted with the keys that follow from the very handshake that was recorded.

mod circuit;
mod classes;
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
/// Blocks that the largest circuit holds.
pub(crate) const MOST_BLOCKS: usize = 150;

/// Everything that a proof says, and that whoever verifies it makes anew from what it recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The hashes of both hellos, and of all up to the server's Finished.
    pub hellos: [u8; 32],
    pub transcript: [u8; 32],
    /// The secrets of the handshake, of both sides.
    pub server_handshake: [u8; 32],
    pub client_handshake: [u8; 32],
    pub server: ServerData,
    /// Of what the client said.
    pub client_iv: [u8; 12],
    pub blocks: Vec<Block>,
}

/// How much is told of the server's application data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerData {
    /// The traffic secret, which opens all of it. No block of the server's is proved.
    Opened([u8; 32]),
    /// The IV alone; the key stays hidden, and blocks say what is opened.
    Proved([u8; 12]),
}

/// What a hidden byte is proved to be, so that it cannot end what it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// In the value of a header: no control character, 0x20 or higher.
    Printable,
    /// In a string of JSON: no control character, no quotation mark, no backslash.
    Text,
    /// In a number or a name (`true`, `false`, `null`) of JSON: one of `(` to `/` but the comma, of
    /// `0` to `9`, of `@` to `Z`, of `` ` `` to `z`.
    Scalar,
}

impl Class {
    /// Whether a byte is of it. The circuit says the same in constraints.
    #[must_use]
    pub const fn has(self, byte: u8) -> bool {
        match self {
            Self::Printable => byte >= 0x20,
            Self::Text => byte >= 0x20 && byte != b'"' && byte != b'\\',
            Self::Scalar => {
                matches!(byte, b'('..=b'+' | b'-'..=b'/' | b'0'..=b'9' | b'@'..=b'Z' | b'`'..=b'z')
            }
        }
    }
}

/// Which of the two streams a block is of.
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
    pub ciphertext: [u8; BLOCK],
    /// By byte, the first in the lowest bit: whether it is opened, and stands in `plain`.
    pub opened: u64,
    /// By byte: whether it is proved to be of each class; all but the first are zeros where
    /// the server's stream is not proved.
    pub printable: u64,
    pub text: u64,
    pub scalar: u64,
    /// What is opened; zeros elsewhere.
    pub plain: [u8; BLOCK],
}

impl Block {
    /// One that says nothing.
    pub const BLANK: Self = Self {
        side: Side::Client,
        nonce: [0; 12],
        counter: 0,
        ciphertext: [0; BLOCK],
        opened: 0,
        printable: 0,
        text: 0,
        scalar: 0,
        plain: [0; BLOCK],
    };

    /// Its public values before what is opened: all that is decided before the proof.
    fn asked(&self, server: ServerData) -> Asked {
        let mut masks = [self.opened.to_le_bytes(), self.printable.to_le_bytes()].concat();
        let side = match server {
            ServerData::Opened(_) => None,
            ServerData::Proved(_) => {
                masks.extend([self.text.to_le_bytes(), self.scalar.to_le_bytes()].concat());
                Some(self.side)
            }
        };
        let place = [self.nonce.as_slice(), &self.counter.to_le_bytes()].concat();
        Asked { place, side, ciphertext: self.ciphertext.to_vec(), masks }
    }

    fn public(&self, server: ServerData) -> Vec<Vec<u8>> {
        let Asked { place, side, ciphertext, masks } = self.asked(server);
        let side = side.map(|side| vec![u8::from(side == Side::Server)]);
        std::iter::once(place).chain(side).chain([ciphertext, masks, self.plain.to_vec()]).collect()
    }
}

/// What a block asks to be proved.
struct Asked {
    /// Nonce and counter.
    place: Vec<u8>,
    /// None where only the client's stream is proved.
    side: Option<Side>,
    ciphertext: Vec<u8>,
    /// Of 8 bytes each: what is opened, printable; and text, scalar where the server's stream is
    /// proved.
    masks: Vec<u8>,
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
            match self.server {
                ServerData::Opened(secret) => secret.to_vec(),
                ServerData::Proved(iv) => iv.to_vec(),
            },
            self.client_iv.to_vec(),
        ];
        let blocks = self.blocks.iter().flat_map(|block| block.public(self.server));
        let fields = fields.into_iter().chain(blocks);
        fields.flat_map(|field| field.chunks(16).map(<[u8]>::to_vec).collect::<Vec<_>>()).collect()
    }
}

/// A system of zero-knowledge proofs.
pub trait ZkBackend {
    /// Its name and version, as it stands in attestations.
    fn name(&self) -> &'static str;

    /// Proves a statement with the handshake secret, which nobody learns from the proof.
    fn prove(&self, statement: &Statement, secret: &[u8; 32]) -> Result<Vec<u8>, ZkError>;

    /// What names the circuit that a statement is proved by.
    fn circuit(&self, statement: &Statement) -> Result<[u8; 32], ZkError>;

    /// Whether this proof is one of this statement.
    fn verify(&self, statement: &Statement, proof: &[u8]) -> Result<(), ZkError>;
}

/// Why there is no proof, or why one is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ZkError {
    #[error("request and response are too long to be proved")]
    TooLong,
    #[error("the statement does not hold, or cannot be proved: {0}")]
    Prove(String),
    #[error("the proof is refused: {0}")]
    Proof(#[from] Refused),
}
