//! The journal of the attestations, one per line, which stays with the operator. The log's entries
//! are the hashes of these attestations.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use attestation::{
    body::Body,
    signed::{self, hex, unhex},
};
use rustix::fs::{FlockOperation, flock};

use super::{LogError, file_error};

const FILE_NAME: &str = "journal";
/// Maximum length of a line; longer lines were not written by this program.
const MAX_LINE_BYTES: u64 = 2 * 1024 * 1024;

/// The journal, locked against other processes.
pub(super) struct Journal {
    file: File,
}

/// A line of the journal, decoded.
pub(super) struct JournalEntry {
    pub(super) attestation: Vec<u8>,
    pub(super) body: Body,
    pub(super) hash: [u8; 32],
}

impl Journal {
    /// Opens or creates a journal and returns its entries. An incomplete last line, as a crash
    /// leaves it, was never covered by a signed checkpoint and is truncated.
    pub(super) fn open(
        private: &Path,
    ) -> Result<(Self, impl Iterator<Item = Result<JournalEntry, String>>), LogError> {
        let path = private.join(FILE_NAME);
        let failed = |error| LogError::File(path.clone(), error);
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).mode(0o600).open(&path);
        let mut file = file.map_err(failed)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(LogError::Locked(path));
        }
        File::open(private).and_then(|folder| folder.sync_all()).map_err(failed)?;
        let whole = complete_length(&mut file).map_err(failed)?;
        if file.metadata().map_err(failed)?.len() > whole {
            tracing::warn!("the log's journal ends in an incomplete line, which is truncated");
            file.set_len(whole).and_then(|()| file.sync_data()).map_err(failed)?;
        }
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        let reader = BufReader::new(file.try_clone().map_err(failed)?);
        Ok((Self { file }, read_entries(reader, path.clone())))
    }

    /// Appends a line and returns once it is on the disk.
    pub(super) fn append(&mut self, attestation: &[u8]) -> io::Result<()> {
        self.file.write_all(format!("{}\n", hex(attestation)).as_bytes())?;
        self.file.sync_data()
    }
}

/// Returns the length of the complete lines in bytes.
fn complete_length(file: &mut File) -> io::Result<u64> {
    let length = file.metadata()?.len();
    let mut end = length;
    let mut part = [0; 4096];
    // Searched from the end: everything up to the last newline is complete.
    while end > 0 {
        let start = end.saturating_sub(4096);
        let count = usize::try_from(end - start).unwrap_or(part.len());
        let Some(part) = part.get_mut(..count) else { break };
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(part)?;
        if let Some(at) = part.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + u64::try_from(at).unwrap_or_default() + 1);
        }
        end = start;
    }
    Ok(0)
}

fn read_entries(
    mut reader: BufReader<File>,
    path: std::path::PathBuf,
) -> impl Iterator<Item = Result<JournalEntry, String>> {
    let mut number = 0_u64;
    let mut line = String::new();
    std::iter::from_fn(move || {
        line.clear();
        let read = io::Read::take(&mut reader, MAX_LINE_BYTES).read_line(&mut line);
        let at = number;
        number += 1;
        match read {
            Ok(0) => None,
            Ok(_) => Some(
                parse_entry(line.trim_end_matches('\n'))
                    .map_err(|why| file_error(&path, &format!("line {at}: {why}"))),
            ),
            Err(error) => Some(Err(file_error(&path, &error))),
        }
    })
}

fn parse_entry(line: &str) -> Result<JournalEntry, String> {
    let attestation = unhex(line).ok_or("it is not in hexadecimal, or too long")?;
    let (body, hash) =
        signed::decode_unverified(&attestation).map_err(|error| error.to_string())?;
    Ok(JournalEntry { attestation, body, hash })
}
