//! What a process keeps on disk beside the database: key files, private folders, and the folder of
//! its browsers.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::{
        DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
    },
    path::{Path, PathBuf},
};

use domain::id::InstanceId;
use ports::random::RandomSource as _;
use rustix::process::geteuid;

use crate::clock::SystemRandom;

/// The length of a key file.
pub(crate) const KEY_BYTES: usize = 32;

/// Why a file or a folder of a process was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    #[error("{} is damaged: it must have {KEY_BYTES} bytes", .0.display())]
    Damaged(PathBuf),
    #[error("{} cannot be read", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot make {}", .path.display())]
    Create { path: PathBuf, source: io::Error },
    #[error("cannot keep {} as {}", .path.display(), .earlier.display())]
    Replace { path: PathBuf, earlier: PathBuf, source: io::Error },
}

/// Returns what makes an error of a path that cannot be created.
fn cannot_create(path: &Path) -> impl Fn(io::Error) -> DataDirError + '_ {
    |source| DataDirError::Create { path: path.to_owned(), source }
}

/// Reads a key file; `None` if there is none.
///
/// # Errors
/// The file cannot be read, or has another length than a key.
pub(crate) fn read_key(path: &Path) -> Result<Option<[u8; KEY_BYTES]>, DataDirError> {
    match fs::read(path) {
        Ok(bytes) => {
            let key = bytes.try_into();
            Ok(Some(key.map_err(|_| DataDirError::Damaged(path.to_owned()))?))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(DataDirError::Read { path: path.to_owned(), source }),
    }
}

/// Writes a key file that only its owner can read, completely or not at all. Returns `false`, and
/// changes nothing, if the file exists.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn add_key(path: &Path, key: &[u8; KEY_BYTES]) -> Result<bool, DataDirError> {
    let written = write_beside(path, key)?;
    let linked = fs::hard_link(&written, path);
    // A file that remains has a name of its own and is not read.
    let _ = fs::remove_file(&written);
    match linked {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(cannot_create(path)(error)),
    }
}

/// Replaces a key file, and keeps the previous one at `earlier`, which must not exist.
///
/// # Errors
/// `earlier` exists, or a file cannot be written. The key file is unchanged then.
pub(crate) fn replace_key(
    path: &Path,
    earlier: &Path,
    key: &[u8; KEY_BYTES],
) -> Result<(), DataDirError> {
    let written = write_beside(path, key)?;
    let replaced = fs::hard_link(path, earlier).and_then(|()| fs::rename(&written, path));
    replaced.map_err(|source| {
        let _ = fs::remove_file(&written);
        DataDirError::Replace { path: path.to_owned(), earlier: earlier.to_owned(), source }
    })
}

/// Writes a key to a new file in the same folder, and returns its path.
fn write_beside(path: &Path, key: &[u8; KEY_BYTES]) -> Result<PathBuf, DataDirError> {
    let written = path.with_extension(format!("{:x}", SystemRandom.new_id()));
    let mut options = fs::OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(0o600).open(&written);
    let mut file = opened.map_err(cannot_create(&written))?;
    file.write_all(key).and_then(|()| file.sync_all()).map_err(cannot_create(&written))?;
    Ok(written)
}

/// Creates a folder, and those above it, to which only its owner has access. An existing folder is
/// left as it is.
///
/// # Errors
/// The folder cannot be created.
pub fn private_folder(path: &Path) -> Result<(), DataDirError> {
    let created = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    created.map_err(cannot_create(path))
}

/// Creates a file to which only its owner has access. An existing file of ours is restricted to its
/// owner. `SQLite` gives its write-ahead log the mode of the database.
///
/// # Errors
/// The file cannot be created, or its mode cannot be changed.
pub fn private_file(path: &Path) -> Result<(), DataDirError> {
    let failed = cannot_create(path);
    let file = fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    let file = file.map_err(&failed)?;
    let metadata = file.metadata().map_err(&failed)?;
    if metadata.uid() == geteuid().as_raw() && metadata.mode() & 0o077 != 0 {
        file.set_permissions(fs::Permissions::from_mode(0o600)).map_err(&failed)?;
    }
    Ok(())
}

/// Creates a folder for the browsers of this process, in the folder for temporary files: Chromium
/// binds a socket in it, whose path has at most 108 bytes (unix(7)), so that the data folder might
/// be too deep. Each process holds a lock in its folder while it lives; folders without one are
/// removed.
///
/// # Errors
/// The folder for temporary files cannot be read, or the folder cannot be created.
pub fn browsers_folder(instance: InstanceId) -> io::Result<PathBuf> {
    browsers_folder_in(&std::env::temp_dir(), instance)
}

fn browsers_folder_in(parent: &Path, instance: InstanceId) -> io::Result<PathBuf> {
    for entry in fs::read_dir(parent)?.flatten() {
        let named = entry.file_name().to_str().is_some_and(|name| name.starts_with("avouch-"));
        let owned = entry.metadata().is_ok_and(|folder| folder.uid() == geteuid().as_raw());
        let lock = fs::File::open(entry.path().join("lock"));
        if named && owned && lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let (_, short) = instance.as_uuid().as_u64_pair();
    let folder = parent.join(format!("avouch-{short:x}"));
    fs::DirBuilder::new().mode(0o700).create(&folder)?;
    let lock = fs::File::create(folder.join("lock"))?;
    lock.lock()?;
    // The lock is held until the process ends, however it ends.
    std::mem::forget(lock);
    fs::canonicalize(folder)
}

/// A folder in the folder for temporary files, to which only its owner has access. It is removed
/// with this value.
pub struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Creates a folder whose name begins with `prefix`.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn new(prefix: &str) -> Result<Self, DataDirError> {
        let folder = std::env::temp_dir().join(format!("{prefix}-{:x}", SystemRandom.new_id()));
        let created = fs::DirBuilder::new().mode(0o700).create(&folder);
        created.map_err(cannot_create(&folder))?;
        Ok(Self(folder))
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // What cannot be removed now is removed with the machine's temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn a_key_file_is_written_once_and_only_its_owner_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret.key");
        assert_eq!(read_key(&path).unwrap(), None);
        assert!(add_key(&path, &[1; 32]).unwrap());
        assert!(!add_key(&path, &[2; 32]).unwrap());
        assert_eq!(read_key(&path).unwrap(), Some([1; 32]));
        assert_eq!(mode(&path), 0o600);
        assert_eq!(names(folder.path()), ["secret.key"]);
        fs::write(&path, [1; 31]).unwrap();
        assert!(matches!(read_key(&path), Err(DataDirError::Damaged(_))));
    }

    #[test]
    fn a_replaced_key_is_kept_and_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let [path, earlier] = ["secret.key", "secret.key.old"].map(|name| folder.path().join(name));
        assert!(replace_key(&path, &earlier, &[2; 32]).is_err(), "there is no key to keep");
        add_key(&path, &[1; 32]).unwrap();
        replace_key(&path, &earlier, &[2; 32]).unwrap();
        assert!(replace_key(&path, &earlier, &[3; 32]).is_err());
        let keys = [&path, &earlier].map(|path| read_key(path).unwrap());
        assert_eq!(keys, [Some([2; 32]), Some([1; 32])]);
        assert_eq!(names(folder.path()), ["secret.key", "secret.key.old"]);
    }

    #[test]
    fn files_and_folders_are_restricted_to_their_owner() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("one/two");
        private_folder(&deep).unwrap();
        private_folder(&deep).unwrap();
        let file = deep.join("avouch.db");
        fs::write(&file, "kept").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        private_file(&file).unwrap();
        assert_eq!((mode(&deep), mode(&file)), (0o700, 0o600));
        assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
        let error = private_folder(&file.join("below")).unwrap_err();
        assert!(error.to_string().starts_with("cannot make "), "{error}");
    }

    #[test]
    fn browser_folders_of_ended_processes_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let ended = parent.path().join("avouch-1");
        fs::create_dir(&ended).unwrap();
        fs::write(ended.join("lock"), "").unwrap();
        let [one, two] = [1, 2].map(|number| InstanceId::from_u128(number << 8));
        let first = browsers_folder_in(parent.path(), one).unwrap();
        let second = browsers_folder_in(parent.path(), two).unwrap();
        assert!(!ended.exists() && first.exists() && second.exists());
        assert_eq!(mode(&first), 0o700);
    }

    #[test]
    fn a_temporary_folder_is_removed_with_its_value() {
        let folder = TemporaryFolder::new("avouch-test").unwrap();
        let path = folder.path().to_owned();
        fs::write(path.join("file"), "").unwrap();
        assert_eq!(mode(&path), 0o700);
        drop(folder);
        assert!(!path.exists());
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}
