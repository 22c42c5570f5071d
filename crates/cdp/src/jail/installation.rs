//! The files of this machine that a browser needs: found once, at the start of the service.

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
const DATA: &[&str] = &[
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
/// Folders with unrelated contents: of these only single files are made visible.
const SHARED: &[&str] = &[
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
/// Where distributions install the program that their script in `/usr/bin` starts.
const BEHIND_SCRIPTS: &[&str] = &[
    "/usr/lib/chromium/chromium",
    "/usr/lib/chromium-browser/chromium-browser",
    "/usr/lib64/chromium-browser/chromium-browser",
    "/usr/lib64/chromium/chromium",
];
/// Names of the program where a script in the same folder starts it.
const NAMES: &[&str] =
    &["chrome", "chromium", "chromium-browser", "chrome-headless-shell", "headless_shell"];
/// Symbolic links on the way to one file (`path_resolution(7)`).
const MOST_LINKS: usize = 40;

/// A browser's program, and the files and folders that it can read in the sandbox beside its own
/// profile. It can write to none of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installation {
    /// The program itself, not a script that starts it.
    pub(super) program: PathBuf,
    /// The program's folder, and those of the libraries that it is linked to.
    pub(super) programs: BTreeSet<PathBuf>,
    /// Fonts and other data; mounted noexec.
    pub(super) data: BTreeSet<PathBuf>,
    /// Symbolic links on the way to these, and where they lead.
    pub(super) links: BTreeMap<PathBuf, PathBuf>,
}

/// The program, and the folders from which programs and libraries can be loaded.
impl fmt::Display for Installation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let programs: Vec<_> = self.programs.iter().map(|path| path.to_string_lossy()).collect();
        write!(f, "{} with {}", self.program.display(), programs.join(", "))
    }
}

/// Why an installed browser cannot be sandboxed.
#[derive(Debug, thiserror::Error)]
pub enum InstallationError {
    #[error("there is no browser {0}: is Chromium installed?")]
    Missing(String),
    #[error("{0} is a script: name the browser's own program (an ELF file)")]
    Script(String),
    #[error(
        "{0} contains unrelated files, which the browser could read: move the browser to a folder of its own"
    )]
    Shared(String),
    #[error("{0} cannot be read")]
    Unreadable(String, #[source] io::Error),
    #[error("the browser needs a library that is not there: {0}")]
    Library(String),
}

impl Installation {
    /// Finds what a browser needs; `executable` is a name in `PATH` or a path. Runs the program's
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
        for path in DATA.iter().map(Path::new).filter(|path| path.exists()) {
            let path = found.resolve(path)?;
            found.data.insert(path);
        }
        found.prune();
        Ok(found)
    }

    /// Resolves a path, and records the symbolic links on the way.
    fn resolve(&mut self, path: &Path) -> Result<PathBuf, InstallationError> {
        let unreadable = |error| InstallationError::Unreadable(path.display().to_string(), error);
        let mut left: VecDeque<_> =
            path.components().map(|part| part.as_os_str().to_owned()).collect();
        let (mut real, mut links) = (PathBuf::from("/"), 0);
        while let Some(part) = left.pop_front() {
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
            if links > MOST_LINKS {
                return Err(unreadable(io::ErrorKind::InvalidInput.into()));
            }
            let target = fs::read_link(&real).map_err(unreadable)?;
            for part in target.components().rev() {
                left.push_front(part.as_os_str().to_owned());
            }
            self.links.insert(real.clone(), target);
            real.pop();
        }
        Ok(real)
    }

    /// Removes paths below others of the list.
    fn prune(&mut self) {
        let (programs, data) = (self.programs.clone(), self.data.clone());
        let covered = |path: &Path| {
            let above = |folder: &PathBuf| path != folder && path.starts_with(folder);
            programs.iter().chain(&data).any(above)
        };
        self.programs.retain(|path| !covered(path));
        self.data.retain(|path| !covered(path));
        self.links.retain(|path, _| !covered(path));
    }
}

/// The program of a name or path; where that is a script, the program that it starts.
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
        BEHIND_SCRIPTS.iter().map(PathBuf::from).collect()
    } else {
        NAMES.iter().map(|name| folder.join(name)).collect()
    };
    all.retain(|path| is_program(path));
    let found = all.into_iter().next();
    let found = found.ok_or_else(|| InstallationError::Script(real.display().to_string()))?;
    fs::canonicalize(found).map_err(|_| missing())
}

/// Whether it is an ELF file (elf(5)).
fn is_program(path: &Path) -> bool {
    let mut magic = [0; 4];
    File::open(path)
        .is_ok_and(|mut file| file.read_exact(&mut magic).is_ok() && magic == *b"\x7fELF")
}

/// Whether a folder is a browser's: it contains resources that every Chromium has.
fn is_bundle(folder: &Path) -> bool {
    let all = fs::read_dir(folder).into_iter().flatten().flatten();
    all.map(|entry| PathBuf::from(entry.file_name()))
        .any(|name| name == Path::new("icudtl.dat") || name.extension() == Some("pak".as_ref()))
}

/// Whether it is a system folder or a home folder as a whole.
fn is_shared(folder: &Path) -> bool {
    let home = std::env::var_os("HOME").is_some_and(|home| folder == Path::new(&home));
    let person = folder.parent() == Some(Path::new("/home"));
    home || person || SHARED.iter().any(|shared| folder == Path::new(shared))
}

/// The files of the libraries that a program is linked to, its loader among them.
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

/// The loader that a program of 64 bits asks for (elf(5), `PT_INTERP`).
fn interpreter(program: &Path) -> io::Result<Option<PathBuf>> {
    const INTERPRETER: u32 = 3;
    let file = File::open(program)?;
    let number = |at: u64, bytes: usize| {
        let mut value = [0; 8];
        file.read_exact_at(value.get_mut(..bytes).unwrap_or_default(), at)?;
        Ok::<_, io::Error>(u64::from_le_bytes(value))
    };
    let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    for header in (0..count).map(|index| table.saturating_add(index * size)) {
        if number(header, 4)? == u64::from(INTERPRETER) {
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
    fn a_script_of_the_browsers_own_folder_leads_to_the_program() {
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
    fn debians_script_leads_to_the_program() {
        let found = Installation::find(Path::new("chromium")).unwrap();
        assert_eq!(found.program, Path::new("/usr/lib/chromium/chromium"));
        assert!(found.programs.contains(Path::new("/usr/lib/chromium")));
        for path in found.programs.iter().chain(&found.data) {
            assert!(!is_shared(path), "{}", path.display());
            assert!(path.starts_with("/usr") || path.starts_with("/etc"), "{}", path.display());
        }
    }

    #[test]
    fn of_a_folder_with_other_things_only_the_program_is_seen() {
        let found = Installation::find(Path::new("/bin/true")).unwrap();
        assert!(found.programs.contains(Path::new("/usr/bin/true")), "{found}");
        assert!(!found.programs.contains(Path::new("/usr/bin")), "{found}");
        assert!(is_shared(Path::new("/home/ada")) && !is_shared(Path::new("/home/ada/chrome")));
    }

    #[test]
    fn what_cannot_be_sandboxed_is_refused() {
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
