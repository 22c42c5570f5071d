//! What a process keeps on disk beside the database: its key, and its browsers' folder.

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
use system::clock::SystemRandom;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Reads a key of this deployment, if it is there.
pub(crate) fn read_key(path: &Path) -> Result<Option<[u8; 32]>, Failure> {
    match fs::read(path) {
        Ok(bytes) => {
            let key = bytes.try_into();
            let damaged = |_| format!("{} is damaged: it must have 32 bytes", path.display());
            Ok(Some(key.map_err(damaged)?))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{} cannot be read: {error}", path.display()).into()),
    }
}

/// Writes a key that its owner alone reads, whole or not at all; whether there was none before.
pub(crate) fn add_key(path: &Path, key: &[u8; 32]) -> Result<bool, Failure> {
    let whole = write_beside(path, key)?;
    let linked = fs::hard_link(&whole, path);
    let _ = fs::remove_file(&whole);
    match linked {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(format!("cannot make {}: {error}", path.display()).into()),
    }
}

/// Puts a key in the place of another, which is kept at `earlier`, where nothing may be yet.
pub(crate) fn replace_key(path: &Path, earlier: &Path, key: &[u8; 32]) -> Result<(), Failure> {
    let whole = write_beside(path, key)?;
    let kept = fs::hard_link(path, earlier);
    let replaced = kept.and_then(|()| fs::rename(&whole, path));
    replaced.map_err(|error| {
        let _ = fs::remove_file(&whole);
        format!("cannot keep {} as {}: {error}", path.display(), earlier.display()).into()
    })
}

fn write_beside(path: &Path, key: &[u8; 32]) -> Result<PathBuf, Failure> {
    let whole = path.with_extension(format!("{:x}", SystemRandom.new_id()));
    let failed = |error| format!("cannot make {}: {error}", whole.display());
    let made = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&whole);
    let mut file = made.map_err(failed)?;
    file.write_all(key).and_then(|()| file.sync_all()).map_err(failed)?;
    Ok(whole)
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
pub(crate) fn browsers_folder(node: InstanceId) -> io::Result<PathBuf> {
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
