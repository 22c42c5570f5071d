//! Signed notes (C2SP signed-note) with Ed25519, and their verifier keys.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use sha2::{Digest as _, Sha256};

use super::{MAX_NOTE_BYTES, TlogError};
use crate::signed::{hex, unhex};

/// The signature type of Ed25519.
const ED25519: u8 = 1;
/// Maximum number of signatures of a note, and maximum length of a key's name in characters.
const MAX_SIGNATURES: usize = 32;
const MAX_NAME_CHARS: usize = 200;
const DASH: &str = "\u{2014} ";

/// A key with its name, as monitors receive it: `name+id+key`, where the id is the first four bytes
/// of SHA-256 over the name, a newline, the signature type and the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteKey {
    name: String,
    id: [u8; 4],
    key: VerifyingKey,
}

impl NoteKey {
    /// # Errors
    /// The name or the key is malformed.
    pub fn new(name: &str, public_key: &[u8; 32]) -> Result<Self, TlogError> {
        if !is_key_name(name) {
            return Err(TlogError::Malformed(
                "the key's name has characters that it must not have",
            ));
        }
        let key = VerifyingKey::from_bytes(public_key);
        let key = key.map_err(|_| TlogError::Malformed("the key is not an Ed25519 key"))?;
        let hash: [u8; 32] =
            Sha256::digest([name.as_bytes(), &[b'\n', ED25519], public_key].concat()).into();
        let [first, second, third, fourth, ..] = hash;
        Ok(Self { name: name.to_owned(), id: [first, second, third, fourth], key })
    }

    /// Parses the textual form for monitors.
    ///
    /// # Errors
    /// It is malformed.
    pub fn parse(text: &str) -> Result<Self, TlogError> {
        let wrong = || TlogError::Malformed("a key is written as name+id+key");
        let mut parts = text.splitn(3, '+');
        let (name, id, key) = (parts.next(), parts.next(), parts.next());
        let ((name, id), key) = name.zip(id).zip(key).ok_or_else(wrong)?;
        let bytes = STANDARD.decode(key).map_err(|_| wrong())?;
        let [ED25519, key @ ..] = bytes.as_slice() else {
            return Err(TlogError::Malformed("the key is not an Ed25519 key"));
        };
        let known = Self::new(name, key.try_into().map_err(|_| wrong())?)?;
        if unhex(id).as_deref() == Some(&known.id) { Ok(known) } else { Err(wrong()) }
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for NoteKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = STANDARD.encode([&[ED25519], self.key.as_bytes().as_slice()].concat());
        write!(out, "{}+{}+{key}", self.name, hex(&self.id))
    }
}

/// Returns whether a key may have this name: not empty, without spaces, control characters and `+`,
/// and up to 200 characters.
#[must_use]
pub fn is_key_name(name: &str) -> bool {
    let is_valid =
        |character: char| !character.is_whitespace() && !character.is_control() && character != '+';
    (1..=MAX_NAME_CHARS).contains(&name.chars().count()) && name.chars().all(is_valid)
}

/// A text with signatures that are not verified yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SignedNote {
    /// Ends with a newline.
    text: String,
    signatures: Vec<NoteSignature>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct NoteSignature {
    name: String,
    id: [u8; 4],
    signature: Vec<u8>,
}

impl SignedNote {
    /// Signs a text with keys of one name.
    ///
    /// # Errors
    /// The name is malformed.
    pub(super) fn sign(text: String, name: &str, keys: &[&SigningKey]) -> Result<Self, TlogError> {
        let sign = |key: &&SigningKey| {
            let NoteKey { name, id, .. } = NoteKey::new(name, key.verifying_key().as_bytes())?;
            let signature = key.sign(text.as_bytes()).to_bytes().to_vec();
            Ok(NoteSignature { name, id, signature })
        };
        let signatures = keys.iter().map(sign).collect::<Result<_, TlogError>>()?;
        Ok(Self { text, signatures })
    }

    /// # Errors
    /// It is malformed or too long.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, TlogError> {
        if bytes.len() > MAX_NOTE_BYTES {
            return Err(TlogError::TooLong(MAX_NOTE_BYTES));
        }
        let note =
            str::from_utf8(bytes).map_err(|_| TlogError::Malformed("the note is not in UTF-8"))?;
        if note.chars().any(|character| character < ' ' && character != '\n') {
            return Err(TlogError::Malformed("the note has control characters"));
        }
        let split = note.rfind("\n\n").and_then(|at| note.split_at_checked(at + 1));
        let (text, lines) = split.ok_or(TlogError::Malformed("the note has no signatures"))?;
        let lines = lines.strip_prefix('\n').and_then(|lines| lines.strip_suffix('\n'));
        let lines = lines.ok_or(TlogError::Malformed("the note does not end with a newline"))?;
        let signatures = lines.split('\n').take(MAX_SIGNATURES + 1).map(NoteSignature::parse);
        let signatures = signatures.collect::<Result<Vec<_>, _>>()?;
        if signatures.len() > MAX_SIGNATURES {
            return Err(TlogError::Malformed("the note has too many signatures"));
        }
        Ok(Self { text: text.to_owned(), signatures })
    }

    pub(super) fn write(&self) -> String {
        let line = |signature: &NoteSignature| {
            let bytes = [&signature.id, signature.signature.as_slice()].concat();
            format!("{DASH}{} {}\n", signature.name, STANDARD.encode(bytes))
        };
        let lines: String = self.signatures.iter().map(line).collect();
        format!("{}\n{lines}", self.text)
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Verifies that this key signed it. Ignores signatures of other keys, as the specification
    /// requires.
    ///
    /// # Errors
    /// There is no signature by this key, or it is invalid.
    pub(super) fn verify(&self, key: &NoteKey) -> Result<(), TlogError> {
        let by =
            |signature: &&NoteSignature| (&signature.name, signature.id) == (&key.name, key.id);
        let mut found = self.signatures.iter().filter(by).peekable();
        if found.peek().is_none() {
            return Err(TlogError::Unsigned(key.name.clone()));
        }
        let holds = |signature: &NoteSignature| {
            Signature::from_slice(&signature.signature).is_ok_and(|signature| {
                key.key.verify_strict(self.text.as_bytes(), &signature).is_ok()
            })
        };
        if found.all(holds) { Ok(()) } else { Err(TlogError::Signature(key.name.clone())) }
    }
}

impl NoteSignature {
    fn parse(line: &str) -> Result<Self, TlogError> {
        let wrong = || TlogError::Malformed("a signature is written as a dash, a name and base64");
        let (name, text) =
            line.strip_prefix(DASH).and_then(|rest| rest.split_once(' ')).ok_or_else(wrong)?;
        let bytes = STANDARD.decode(text).map_err(|_| wrong())?;
        let (id, signature) = bytes.split_first_chunk().ok_or_else(wrong)?;
        if !is_key_name(name) || signature.is_empty() {
            return Err(wrong());
        }
        Ok(Self { name: name.to_owned(), id: *id, signature: signature.to_vec() })
    }
}
