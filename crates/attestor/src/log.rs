//! The attestor's own log: every attestation, a line each, in a chain. An attestation names the
//! `proofHash` of the one before it, so that none can be left out, or slipped in with an earlier
//! time.

use std::{
    collections::HashSet,
    fs::{File, OpenOptions},
    io::{self, BufRead as _, BufReader, Seek as _, SeekFrom, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use attestation::{
    body::{Body, LogPlace},
    signed::{self, BadAttestation, hex, unhex},
};
use ed25519_dalek::SigningKey;
use rustix::fs::{FlockOperation, flock};

/// A line longer than this is none of ours.
const LONGEST_LINE: u64 = 2 * 1024 * 1024;

/// The log, open for more. One process at a time has it.
pub(crate) struct Log {
    file: File,
    next: LogPlace,
    /// The newest line's, in milliseconds since 1970.
    signed: u64,
    sessions: HashSet<[u8; 32]>,
    /// A line was not written whole: the next start cuts it off.
    torn: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("the log {0} cannot be read or written: {1}")]
    File(PathBuf, #[source] io::Error),
    #[error("another process has the log {0}")]
    Taken(PathBuf),
    #[error("line {1} of the log {0} is not what follows: {2}")]
    Broken(PathBuf, u64, String),
}

/// Why nothing was signed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotSigned {
    #[error("the attestor's clock is behind its log")]
    Clock,
    #[error("this session was attested before")]
    Session,
    #[error("the attestation cannot be written")]
    Form(#[from] BadAttestation),
    #[error("the log cannot be written; the attestor has to be started again")]
    File,
}

impl Log {
    /// Opens a log, or makes one, and goes through all of it. What a crash left of a last line was
    /// never handed out and is cut off.
    pub(crate) fn open(path: &Path) -> Result<Self, LogError> {
        let failed = |error| LogError::File(path.to_owned(), error);
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).mode(0o600).open(path);
        let file = file.map_err(failed)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(LogError::Taken(path.to_owned()));
        }
        let next = LogPlace { index: 0, before: [0; 32] };
        let mut log = Self { file, next, signed: 0, sessions: HashSet::new(), torn: false };
        let whole = log.go_through(path)?;
        if log.file.metadata().map_err(failed)?.len() > whole {
            tracing::warn!("the log ends in half a line, which is cut off");
            log.file.set_len(whole).map_err(failed)?;
        }
        log.file.seek(SeekFrom::End(0)).map_err(failed)?;
        Ok(log)
    }

    /// Reads all whole lines; answers how many bytes they are.
    fn go_through(&mut self, path: &Path) -> Result<u64, LogError> {
        let failed = |error| LogError::File(path.to_owned(), error);
        let broken = |at, why: &str| LogError::Broken(path.to_owned(), at, why.to_owned());
        let mut reader = BufReader::new(self.file.try_clone().map_err(failed)?);
        let (mut whole, mut line) = (0, String::new());
        loop {
            line.clear();
            let mut rest = io::Read::take(&mut reader, LONGEST_LINE);
            let read = rest.read_line(&mut line).map_err(failed)?;
            if !line.ends_with('\n') {
                return Ok(whole);
            }
            let number = self.next.index;
            let bytes = unhex(line.trim_end()).ok_or_else(|| broken(number, "it is no line"))?;
            let (body, hash) =
                signed::unverified(&bytes).map_err(|error| broken(number, &error.to_string()))?;
            if body.log != self.next {
                return Err(broken(number, "it has another place in the chain"));
            }
            self.came(&body, hash);
            whole += u64::try_from(read).unwrap_or_default();
        }
    }

    fn came(&mut self, body: &Body, hash: [u8; 32]) {
        self.next = LogPlace { index: body.log.index + 1, before: hash };
        self.signed = body.time.signed;
        self.sessions.insert(body.session);
    }

    pub(crate) fn has(&self, session: &[u8; 32]) -> bool {
        self.sessions.contains(session)
    }

    /// Gives a body its place, signs it, and answers once it is on the disk. Blocks.
    pub(crate) fn sign(
        &mut self,
        body: Body,
        now: u64,
        key: &SigningKey,
    ) -> Result<Vec<u8>, NotSigned> {
        let mut body = body;
        if self.torn {
            return Err(NotSigned::File);
        }
        if now < self.signed || now < body.time.closed {
            return Err(NotSigned::Clock);
        }
        if self.has(&body.session) {
            return Err(NotSigned::Session);
        }
        body.log = self.next.clone();
        body.time.signed = now;
        let attestation = signed::sign(&body, key)?;
        let (_, hash) = signed::unverified(&attestation)?;
        let line = format!("{}\n", hex(&attestation));
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            tracing::error!(%error, "the log cannot be written");
            self.torn = true;
            return Err(NotSigned::File);
        }
        self.came(&body, hash);
        Ok(attestation)
    }
}

#[cfg(test)]
mod tests;
