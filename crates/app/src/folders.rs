//! What a process keeps on disk beside the database: its key, and its browsers' folder.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::{
        DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
    },
    path::{Path, PathBuf},
};

use adapters::system::SystemChance;
use domain::id::NodeId;
use ports::clock::Chance as _;
use rustix::process::geteuid;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Reads the key of this deployment, or makes one at the first start, for its owner's eyes alone.
pub(crate) fn secret_key(path: &Path) -> Result<[u8; 32], Failure> {
    let made = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match made {
        Ok(mut file) => {
            let key = SystemChance.bits();
            file.write_all(&key)?;
            Ok(key)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let bytes = fs::read(path)?;
            bytes.try_into().map_err(|_| format!("{} is damaged", path.display()).into())
        }
        Err(error) => Err(format!("cannot make {}: {error}", path.display()).into()),
    }
}

/// Makes a folder that its owner alone looks into, where there is none.
pub(crate) fn private_folder(path: &Path) -> Result<(), Failure> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| format!("cannot make {}: {error}", path.display()).into())
}

/// Makes a file that its owner alone reads, where there is none; one that is there and belongs to
/// us becomes so. `SQLite` gives its write-ahead log the mode of the database.
pub(crate) fn private_file(path: &Path) -> Result<(), Failure> {
    let failed = |error| format!("cannot make {}: {error}", path.display());
    let file = fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    let file = file.map_err(failed)?;
    let there = file.metadata().map_err(failed)?;
    if there.uid() == geteuid().as_raw() && there.mode() & 0o077 != 0 {
        file.set_permissions(fs::Permissions::from_mode(0o600)).map_err(failed)?;
    }
    Ok(())
}

/// A folder for this process's browsers, in the folder for temporary files: Chromium binds a socket
/// in it, whose path must not pass 108 bytes (unix(7)), so `data_dir` might be too deep. Folders of
/// processes that are gone are removed: each holds a lock for as long as it lives.
pub(crate) fn browsers_folder(node: NodeId) -> io::Result<PathBuf> {
    let all = std::env::temp_dir();
    for entry in fs::read_dir(&all)?.flatten() {
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with("avouch-"));
        let mine = entry.metadata().is_ok_and(|folder| folder.uid() == geteuid().as_raw());
        let lock = fs::File::open(entry.path().join("lock"));
        if ours && mine && lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let (_, short) = node.as_uuid().as_u64_pair();
    let mine = all.join(format!("avouch-{short:x}"));
    fs::DirBuilder::new().mode(0o700).create(&mine)?;
    let lock = fs::File::create(mine.join("lock"))?;
    lock.lock()?;
    // Held until the process ends, however it ends.
    std::mem::forget(lock);
    fs::canonicalize(mine)
}
