//! The public files: checkpoint, tiles and entry bundles (C2SP tlog-tiles). Each is written to a
//! temporary file and renamed once it is on the disk.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use attestation::tlog::{
    self, MAX_NOTE_BYTES, RightEdge, SignedCheckpoint, TILE_WIDTH, Tile, TlogError, entries_path,
    leaf_hash, write_bundle,
};

use super::file_error;

const CHECKPOINT: &str = "checkpoint";

/// The public folder, and the entries of the last bundle.
pub(super) struct PublicFiles {
    folder: PathBuf,
    /// The index and the entries of the last bundle.
    last_bundle: (u64, Vec<Vec<u8>>),
}

impl PublicFiles {
    pub(super) const fn new(folder: PathBuf) -> Self {
        Self { folder, last_bundle: (0, vec![]) }
    }

    pub(super) fn folder(&self) -> PathBuf {
        self.folder.clone()
    }

    /// Returns whether nothing was ever published here.
    pub(super) fn is_empty(&self) -> bool {
        !self.folder.join("tile").exists() && !self.folder.join(CHECKPOINT).exists()
    }

    pub(super) fn checkpoint(&self) -> Result<Option<Vec<u8>>, String> {
        self.read(CHECKPOINT, MAX_NOTE_BYTES)
    }

    /// Appends the entry of an attestation in memory and returns the tiles that it completes.
    pub(super) fn append(
        &mut self,
        edge: &mut RightEdge,
        hash: &[u8; 32],
    ) -> Result<Vec<Tile>, TlogError> {
        let entry = tlog::entry(hash);
        let index = edge.size() / u64::from(TILE_WIDTH);
        let full = edge.push(leaf_hash(&entry))?;
        if self.last_bundle.0 != index {
            self.last_bundle = (index, vec![]);
        }
        self.last_bundle.1.push(entry);
        Ok(full)
    }

    /// Writes every file that the last entry changed, except the checkpoint.
    pub(super) fn write(&self, edge: &RightEdge, full: &[Tile]) -> io::Result<()> {
        let (path, bytes) = self.bundle_file(self.last_bundle.1.len()).map_err(io::Error::other)?;
        self.write_file(&path, &bytes)?;
        for tile in full {
            self.write_file(&tile.path(), &tile.bytes())?;
        }
        let changed = edge.partial_tiles();
        let changed = changed.iter().find(|tile| usize::from(tile.level) == full.len());
        changed.map_or(Ok(()), |tile| self.write_file(&tile.path(), &tile.bytes()))
    }

    pub(super) fn write_checkpoint(&self, checkpoint: &SignedCheckpoint) -> io::Result<()> {
        self.write_file(CHECKPOINT, checkpoint.write().as_bytes())
    }

    /// Removes partial tiles that a full tile replaces. A failure is logged only, because they are
    /// not needed any more.
    pub(super) fn remove_partial(&self, full: &[Tile]) {
        let bundle = full.first().map(|tile| entries_path(tile.index, TILE_WIDTH));
        for path in full.iter().map(Tile::path).chain(bundle) {
            let partial = self.folder.join(format!("{path}.p"));
            if let Err(error) = fs::remove_dir_all(&partial)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(%error, "failed to remove partial tiles in {}; they stay", partial.display());
            }
        }
    }

    /// Compares the files of full tiles, and of the entry bundle below them, with the expected
    /// content.
    pub(super) fn compare_full(&self, full: &[Tile]) -> Result<(), String> {
        if full.is_empty() {
            return Ok(());
        }
        let (path, bytes) = self.bundle_file(self.last_bundle.1.len())?;
        self.compare(&path, &bytes)?;
        full.iter().try_for_each(|tile| self.compare(&tile.path(), &tile.bytes()))?;
        self.remove_partial(full);
        Ok(())
    }

    /// Compares the partial tiles at the right edge, and those of the smaller trees that they grew
    /// from, with the expected content. Wider files are refused because no checkpoint covers them,
    /// except those of `more` entries, which are about to be written again.
    pub(super) fn compare_partial(&self, edge: &RightEdge, more: usize) -> Result<(), String> {
        for tile in edge.partial_tiles() {
            let part = |width| {
                let hashes = tile.hashes.get(..width).unwrap_or_default().to_vec();
                let part = Tile { hashes, ..tile };
                Ok((part.path(), part.bytes()))
            };
            self.compare_widths(tile.hashes.len(), more, part)?;
            if tile.level == 0 {
                self.compare_widths(tile.hashes.len(), more, |width| self.bundle_file(width))?;
            }
        }
        Ok(())
    }

    /// Compares all widths of one partial tile with the expected content. The widest one must
    /// exist.
    fn compare_widths(
        &self,
        widest: usize,
        more: usize,
        part: impl Fn(usize) -> Result<(String, Vec<u8>), String>,
    ) -> Result<(), String> {
        let (path, bytes) = part(widest)?;
        self.compare(&path, &bytes)?;
        let path = self.folder.join(path);
        let folder = path.parent().unwrap_or(&self.folder);
        for file in fs::read_dir(folder).map_err(|error| file_error(folder, &error))? {
            let file = file.map_err(|error| file_error(folder, &error))?.file_name();
            let name = file.to_string_lossy();
            if name.starts_with('.') {
                continue;
            }
            let width = name.parse().ok().filter(|width| (1..=widest + more).contains(width));
            let width =
                width.ok_or_else(|| file_error(&folder.join(&file), "no checkpoint covers it"))?;
            if width <= widest {
                let (path, bytes) = part(width)?;
                self.compare(&path, &bytes)?;
            }
        }
        Ok(())
    }

    /// Returns path and content of the last bundle's file with its first `width` entries.
    fn bundle_file(&self, width: usize) -> Result<(String, Vec<u8>), String> {
        let (index, entries) = &self.last_bundle;
        let entries = entries.get(..width).unwrap_or_default();
        let bytes = write_bundle(entries.iter().map(Vec::as_slice));
        let width = u16::try_from(width).unwrap_or(TILE_WIDTH);
        Ok((entries_path(*index, width), bytes.map_err(|error| error.to_string())?))
    }

    fn compare(&self, path: &str, bytes: &[u8]) -> Result<(), String> {
        let found = self.read(path, bytes.len())?;
        let there = self.folder.join(path);
        match found {
            None => Err(file_error(&there, "the file is missing")),
            Some(found) if found == bytes => Ok(()),
            Some(_) => Err(file_error(&there, "the file was changed")),
        }
    }

    fn read(&self, path: &str, max_bytes: usize) -> Result<Option<Vec<u8>>, String> {
        let path = self.folder.join(path);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(file_error(&path, &error)),
        };
        let mut bytes = vec![];
        // One byte more detects a longer file.
        let limit = u64::try_from(max_bytes).unwrap_or(u64::MAX).saturating_add(1);
        file.take(limit).read_to_end(&mut bytes).map_err(|error| file_error(&path, &error))?;
        Ok(Some(bytes))
    }

    fn write_file(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        write_durably(&self.folder.join(path), bytes)
    }
}

/// Writes a file atomically: after a crash either the old or the new content is there, and the new
/// content once this has returned.
pub(crate) fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidFilename.into());
    };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    create_folder(folder, 0o755)?;
    let temporary = folder.join(format!(".{}.new", name.to_string_lossy()));
    let mut file = File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    File::open(folder)?.sync_all()
}

/// Creates a folder and its parents durably, so that they exist after a crash.
pub(super) fn create_folder(folder: &Path, mode: u32) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let above = folder.parent().filter(|above| !above.as_os_str().is_empty());
    let above = above.unwrap_or(Path::new("."));
    create_folder(above, 0o755)?;
    match DirBuilder::new().mode(mode).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
        result => result?,
    }
    File::open(above)?.sync_all()
}
