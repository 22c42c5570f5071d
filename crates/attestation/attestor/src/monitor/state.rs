//! The saved state of a monitor: the last verified checkpoint and the right edge of its tree.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use attestation::{
    signed::{hex, unhex},
    tlog::{NoteKey, RightEdge, SignedCheckpoint},
};
use serde::{Deserialize, Serialize};

use crate::log::write_durably;

/// Maximum length of the file: eight levels of 255 hashes in hexadecimal, and a note.
const MAX_FILE_BYTES: u64 = 256 * 1024;

#[derive(Default)]
pub(super) struct MonitorState {
    /// `None` before the first check.
    pub(super) checkpoint: Option<SignedCheckpoint>,
    pub(super) edge: RightEdge,
}

/// The state as the file contains it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StateFile {
    key: String,
    checkpoint: String,
    /// The hashes of the partial tiles by level, concatenated per level.
    edge: Vec<String>,
}

impl MonitorState {
    /// Reads the state of a log with this key; empty if there is no file.
    pub(super) fn read(path: &Path, key: &NoteKey) -> Result<Self, String> {
        let describe = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        let mut text = String::new();
        match File::open(path) {
            Ok(file) => {
                let read = file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text);
                read.map_err(|error| describe(&error))?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(describe(&error)),
        }
        let file: StateFile = serde_json::from_str(&text).map_err(|error| describe(&error))?;
        file.state(key).map_err(|why| describe(&why))
    }

    pub(super) fn write(&self, path: &Path, key: &NoteKey) -> Result<(), String> {
        let checkpoint = self.checkpoint.as_ref().map(SignedCheckpoint::write);
        let edge = self.edge.levels().iter().map(|hashes| hex(&hashes.concat())).collect();
        let file =
            StateFile { key: key.to_string(), checkpoint: checkpoint.unwrap_or_default(), edge };
        let text = serde_json::to_vec_pretty(&file).map_err(|error| error.to_string())?;
        write_durably(path, &text).map_err(|error| format!("{}: {error}", path.display()))
    }
}

impl StateFile {
    fn state(&self, key: &NoteKey) -> Result<MonitorState, String> {
        if self.key != key.to_string() {
            return Err("it is the state of a log with another key".into());
        }
        let signed = SignedCheckpoint::parse(self.checkpoint.as_bytes());
        let signed = signed.map_err(|error| error.to_string())?;
        let checkpoint = signed.verify(key).map_err(|error| error.to_string())?;
        let level = |text: &String| {
            let bytes = unhex(text)?;
            let (hashes, rest) = bytes.as_chunks();
            rest.is_empty().then(|| hashes.to_vec())
        };
        let levels: Option<Vec<_>> = self.edge.iter().map(level).collect();
        let levels = levels.ok_or("its hashes are not in hexadecimal")?;
        let edge = RightEdge::new(checkpoint.size, levels).map_err(|error| error.to_string())?;
        if edge.root() != checkpoint.root {
            return Err("its hashes do not match its checkpoint".into());
        }
        Ok(MonitorState { checkpoint: Some(signed), edge })
    }
}
