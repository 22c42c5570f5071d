//! The files of this machine that a browser needs, found once at the start of the service.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    fs::{self, File},
    io::{self, Read as _},
    os::unix::{ffi::OsStrExt as _, fs::FileExt as _},
    path::{Component, Path, PathBuf},
    process::{Command, Stdio},
};

use serde::{Deserialize, Serialize};

/// Managed policies, fonts, time zones, locales, MIME types, certificates, and the loader's cache.
/// Those that do not exist are left out.
const DATA_PATHS: &[&str] = &[
    "/etc/chromium",
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/opt/chrome",
    "/etc/opt/chrome_for_testing",
    "/etc/ssl/certs",
    "/usr/lib/locale",
    "/usr/local/share/fonts",
    "/usr/share/ca-certificates",
    "/usr/share/fontconfig",
    "/usr/share/fonts",
    "/usr/share/mime",
    "/usr/share/zoneinfo",
];
/// Folders with unrelated contents, of which only single files are made visible.
const SHARED_FOLDERS: &[&str] = &[
    "/",
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib64",
    "/media",
    "/mnt",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/srv",
    "/sys",
    "/tmp",
    "/usr",
    "/usr/bin",
    "/usr/games",
    "/usr/libexec",
    "/usr/local",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/usr/sbin",
    "/usr/share",
    "/var",
    "/var/lib",
    "/var/tmp",
];
/// The programs that distributions' scripts in `/usr/bin` start.
const WRAPPED_EXECUTABLES: &[&str] = &[
    "/usr/lib/chromium/chromium",
    "/usr/lib/chromium-browser/chromium-browser",
    "/usr/lib64/chromium-browser/chromium-browser",
    "/usr/lib64/chromium/chromium",
];
/// The names of a program that a script in the same folder starts.
const EXECUTABLE_NAMES: &[&str] =
    &["chrome", "chromium", "chromium-browser", "chrome-headless-shell", "headless_shell"];
/// Symbolic links in the resolution of one path (`path_resolution(7)`).
const MAX_SYMLINKS: usize = 40;

/// A browser's program, and the files and folders that it can read in the sandbox in addition to its
/// own profile. It can write to none of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installation {
    /// The program itself, not a script that starts it.
    pub(super) program: PathBuf,
    /// The program's folder, and those of the libraries that it is linked to.
    pub(super) programs: BTreeSet<PathBuf>,
    /// Fonts and other data; mounted noexec.
    pub(super) data: BTreeSet<PathBuf>,
    /// Symbolic links in the paths to these, and their targets.
    pub(super) links: BTreeMap<PathBuf, PathBuf>,
}

/// Shows the program, and the folders from which programs and libraries can be loaded.
impl fmt::Display for Installation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let programs: Vec<_> = self.programs.iter().map(|path| path.to_string_lossy()).collect();
        write!(f, "{} with {}", self.program.display(), programs.join(", "))
    }
}

/// The reason why an installed browser cannot be sandboxed.
#[derive(Debug, thiserror::Error)]
pub enum InstallationError {
    #[error("the browser {0} was not found: is Chromium installed?")]
    Missing(String),
    #[error("{0} is a script: name the browser's own program (an ELF file)")]
    Script(String),
    #[error(
        "{0} contains unrelated files, which the browser could read: move the browser to a folder of its own"
    )]
    Shared(String),
    #[error("failed to read {0}")]
    Unreadable(String, #[source] io::Error),
    #[error("the browser needs a library that is missing: {0}")]
    Library(String),
}

impl Installation {
    /// Finds the files that a browser needs; `executable` is a name in `PATH` or a path. Runs the program's
    /// dynamic loader, which lists the libraries; the program itself is not run.
    ///
    /// # Errors
    /// There is no such program, it is a script of an unknown kind, its folder has unrelated
    /// contents, or a library is missing.
    pub fn find(executable: &Path) -> Result<Self, InstallationError> {
        let program = program(executable)?;
        let mut found = Self {
            program: program.clone(),
            programs: BTreeSet::new(),
            data: BTreeSet::new(),
            links: BTreeMap::new(),
        };
        let folder = program.parent().unwrap_or(&program);
        if !is_bundle(folder) {
            found.programs.insert(program.clone());
        } else if is_shared(folder) {
            return Err(InstallationError::Shared(folder.display().to_string()));
        } else {
            found.programs.insert(folder.to_owned());
        }
        for library in libraries(&program)? {
            let library = found.resolve(&library)?;
            let folder = library.parent().filter(|folder| !is_shared(folder));
            found.programs.insert(folder.map_or(library.clone(), Path::to_owned));
        }
        for path in DATA_PATHS.iter().map(Path::new).filter(|path| path.exists()) {
            let path = found.resolve(path)?;
            found.data.insert(path);
        }
        found.prune();
        Ok(found)
    }

    /// Resolves a path, and records the symbolic links in it.
    fn resolve(&mut self, path: &Path) -> Result<PathBuf, InstallationError> {
        let unreadable = |error| InstallationError::Unreadable(path.display().to_string(), error);
        let mut remaining: VecDeque<_> =
            path.components().map(|part| part.as_os_str().to_owned()).collect();
        let (mut real, mut links) = (PathBuf::from("/"), 0);
        while let Some(part) = remaining.pop_front() {
            match Path::new(&part).components().next() {
                Some(Component::RootDir) => real = PathBuf::from("/"),
                Some(Component::ParentDir) => drop(real.pop()),
                Some(Component::Normal(name)) => real.push(name),
                Some(Component::CurDir | Component::Prefix(_)) | None => (),
            }
            if !real.symlink_metadata().map_err(unreadable)?.is_symlink() {
                continue;
            }
            links += 1;
            if links > MAX_SYMLINKS {
                return Err(unreadable(io::ErrorKind::InvalidInput.into()));
            }
            let target = fs::read_link(&real).map_err(unreadable)?;
            for part in target.components().rev() {
                remaining.push_front(part.as_os_str().to_owned());
            }
            self.links.insert(real.clone(), target);
            real.pop();
        }
        Ok(real)
    }

    /// Removes paths that are below others.
    fn prune(&mut self) {
        let (programs, data) = (self.programs.clone(), self.data.clone());
        let is_covered = |path: &Path| {
            let contains = |folder: &PathBuf| path != folder && path.starts_with(folder);
            programs.iter().chain(&data).any(contains)
        };
        self.programs.retain(|path| !is_covered(path));
        self.data.retain(|path| !is_covered(path));
        self.links.retain(|path, _| !is_covered(path));
    }
}

/// Returns the program of a name or path; if that is a script, the program that it starts.
fn program(executable: &Path) -> Result<PathBuf, InstallationError> {
    let missing = || InstallationError::Missing(executable.display().to_string());
    let named = if executable.components().count() > 1 {
        executable.to_owned()
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut all = std::env::split_paths(&path).map(|folder| folder.join(executable));
        all.find(|path| path.is_file()).ok_or_else(missing)?
    };
    let real = fs::canonicalize(named).map_err(|_| missing())?;
    if is_program(&real) {
        return Ok(real);
    }
    let folder = real.parent().unwrap_or(&real);
    let mut all: Vec<_> = if is_shared(folder) {
        WRAPPED_EXECUTABLES.iter().map(PathBuf::from).collect()
    } else {
        EXECUTABLE_NAMES.iter().map(|name| folder.join(name)).collect()
    };
    all.retain(|path| is_program(path));
    let found = all.into_iter().next();
    let found = found.ok_or_else(|| InstallationError::Script(real.display().to_string()))?;
    fs::canonicalize(found).map_err(|_| missing())
}

/// Whether the file is an ELF file (elf(5)).
fn is_program(path: &Path) -> bool {
    let mut magic = [0; 4];
    File::open(path)
        .is_ok_and(|mut file| file.read_exact(&mut magic).is_ok() && magic == *b"\x7fELF")
}

/// Whether a folder is a browser's, which contains resources that every Chromium has.
fn is_bundle(folder: &Path) -> bool {
    let all = fs::read_dir(folder).into_iter().flatten().flatten();
    all.map(|entry| PathBuf::from(entry.file_name()))
        .any(|name| name == Path::new("icudtl.dat") || name.extension() == Some("pak".as_ref()))
}

/// Whether the folder is a system folder or a whole home folder.
fn is_shared(folder: &Path) -> bool {
    let home = std::env::var_os("HOME").is_some_and(|home| folder == Path::new(&home));
    let in_home = folder.parent() == Some(Path::new("/home"));
    home || in_home || SHARED_FOLDERS.iter().any(|shared| folder == Path::new(shared))
}

/// Returns the files of the libraries that a program is linked to, including its loader.
fn libraries(program: &Path) -> Result<Vec<PathBuf>, InstallationError> {
    let unreadable = |error| InstallationError::Unreadable(program.display().to_string(), error);
    let Some(loader) = interpreter(program).map_err(unreadable)? else { return Ok(vec![]) };
    let mut command = Command::new(&loader);
    command.arg("--list").arg(program).env_clear().stdin(Stdio::null());
    let listed = command.output().map_err(unreadable)?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    if let Some(line) = listed.lines().find(|line| line.contains("not found")) {
        return Err(InstallationError::Library(line.trim().to_owned()));
    }
    let words = listed.split_whitespace().filter(|word| word.starts_with('/'));
    Ok(words.map(PathBuf::from).chain([loader]).collect())
}

/// Returns the loader of a 64-bit program (elf(5), `PT_INTERP`).
fn interpreter(program: &Path) -> io::Result<Option<PathBuf>> {
    const PT_INTERP: u32 = 3;
    let file = File::open(program)?;
    let number = |at: u64, bytes: usize| {
        let mut value = [0; 8];
        file.read_exact_at(value.get_mut(..bytes).unwrap_or_default(), at)?;
        Ok::<_, io::Error>(u64::from_le_bytes(value))
    };
    let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    for header in (0..count).map(|index| table.saturating_add(index * size)) {
        if number(header, 4)? == u64::from(PT_INTERP) {
            let (at, length) = (number(header + 8, 8)?, number(header + 32, 8)?);
            let mut path = vec![0; usize::try_from(length).unwrap_or_default().min(4096)];
            file.read_exact_at(&mut path, at)?;
            let end = path.iter().position(|byte| *byte == 0).unwrap_or(path.len());
            let path = path.get(..end).unwrap_or_default();
            return Ok(Some(PathBuf::from(std::ffi::OsStr::from_bytes(path))));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A browser's folder with a script that starts the program beside it.
    fn bundle(folder: &Path) {
        fs::create_dir_all(folder).unwrap();
        fs::copy("/bin/true", folder.join("chrome")).unwrap();
        fs::write(folder.join("icudtl.dat"), "").unwrap();
        fs::write(folder.join("google-chrome"), "#!/bin/sh\nexec ./chrome\n").unwrap();
    }

    #[test]
    fn a_script_in_the_browsers_own_folder_is_resolved_to_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let (own, link) = (folder.path().join("opt/chrome"), folder.path().join("stable"));
        bundle(&own);
        symlink(own.join("google-chrome"), &link).unwrap();
        let found = Installation::find(&link).unwrap();
        assert_eq!(found.program, own.join("chrome"));
        assert!(found.programs.contains(&own));
        assert!(found.programs.iter().any(|path| path.ends_with("x86_64-linux-gnu")), "{found}");
    }

    #[test]
    fn debians_script_is_resolved_to_the_program() {
        let found = Installation::find(Path::new("chromium")).unwrap();
        assert_eq!(found.program, Path::new("/usr/lib/chromium/chromium"));
        assert!(found.programs.contains(Path::new("/usr/lib/chromium")));
        for path in found.programs.iter().chain(&found.data) {
            assert!(!is_shared(path), "{}", path.display());
            assert!(path.starts_with("/usr") || path.starts_with("/etc"), "{}", path.display());
        }
    }

    #[test]
    fn only_the_program_of_a_shared_folder_is_visible() {
        let found = Installation::find(Path::new("/bin/true")).unwrap();
        assert!(found.programs.contains(Path::new("/usr/bin/true")), "{found}");
        assert!(!found.programs.contains(Path::new("/usr/bin")), "{found}");
        assert!(is_shared(Path::new("/home/ada")) && !is_shared(Path::new("/home/ada/chrome")));
    }

    #[test]
    fn browsers_that_cannot_be_sandboxed_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        fs::write(&script, "#!/bin/sh\n").unwrap();
        let refused = Installation::find(&script);
        assert!(matches!(refused, Err(InstallationError::Script(_))), "{refused:?}");
        let missing = Installation::find(Path::new("no-such-browser"));
        assert!(matches!(missing, Err(InstallationError::Missing(_))), "{missing:?}");
        let circle = folder.path().join("circle");
        symlink(&circle, &circle).unwrap();
        assert!(Installation::find(&circle).is_err());
    }
}
