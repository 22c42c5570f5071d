//! Archives whose bytes depend only on the names, contents and modes of the files in them.

use std::{path::Path, process::Command};

use crate::{Failure, command::run};

/// Packs the folder `name` in `parent`. All files have one time, in seconds since 1970, and belong to
/// root.
pub(super) fn pack(parent: &Path, name: &str, time: &str, archive: &Path) -> Result<(), Failure> {
    let mut tar = Command::new("tar");
    tar.args(["--create", "--format=gnu", "--sort=name", "--owner=0", "--group=0"]);
    tar.args(["--numeric-owner", "--mode=u=rwX,go=rX"]).arg(format!("--mtime=@{time}"));
    // The time and the name of the archive are not in the header.
    tar.arg("--use-compress-program=gzip --best --no-name");
    run(tar.arg("--file").arg(archive).arg("--directory").arg(parent).arg(name))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

    use super::pack;

    /// Writes the same files in an order, with a mode and at a time of its own.
    fn packed(files: [&str; 3], mode: u32, folder: &Path) -> Vec<u8> {
        let content = folder.join("avouch");
        fs::create_dir_all(content.join("bin")).unwrap();
        for file in files {
            fs::write(content.join(file), file).unwrap();
            fs::set_permissions(content.join(file), fs::Permissions::from_mode(mode)).unwrap();
        }
        let archive = folder.join("archive.tar.gz");
        pack(folder, "avouch", "1700000000", &archive).unwrap();
        fs::read(archive).unwrap()
    }

    #[test]
    fn the_bytes_depend_on_names_contents_and_executable_files_alone() {
        let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let [one, other, executable] = &folders;
        let first = packed(["b", "a", "bin/c"], 0o644, one.path());
        let later = fs::metadata(one.path().join("avouch/a")).unwrap().modified().unwrap();
        let second = packed(["bin/c", "a", "b"], 0o600, other.path());
        let file = fs::File::open(other.path().join("avouch/a")).unwrap();
        file.set_modified(later + std::time::Duration::from_secs(100)).unwrap();
        pack(other.path(), "avouch", "1700000000", &other.path().join("again")).unwrap();
        assert_eq!(first, second);
        assert_eq!(first, fs::read(other.path().join("again")).unwrap());
        assert_ne!(first, packed(["b", "a", "bin/c"], 0o755, executable.path()));
    }
}
