//! The browser's root file system: a tmpfs, and bind mounts of what the browser needs.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, File},
    io,
    os::{
        fd::AsRawFd as _,
        unix::{
            ffi::OsStringExt as _,
            fs::{DirBuilderExt as _, chown, symlink},
        },
    },
    path::{Path, PathBuf},
};

use nix::{
    mount::{MntFlags, MsFlags, mount, umount2},
    sys::statvfs::{FsFlags, statvfs},
    unistd::{Gid, Uid, chdir, pivot_root},
};
use rustix::{
    fs::{Mode, OFlags, open},
    process::umask,
};

use super::{
    super::{MissingFeatures, SandboxConfig, root_certificates::POLICY_FOLDERS},
    Step, step,
};

/// Character devices that neither store nor reveal anything.
const DEVICES: [&str; 5] = ["full", "null", "random", "urandom", "zero"];
/// fontconfig's cache of the machine's fonts: without it every browser would scan all of them.
const FONT_CACHE: &str = "/var/cache/fontconfig";
const NO_PATH: Option<&Path> = None;
const NO_SUID_DEV: MsFlags = MsFlags::MS_NOSUID.union(MsFlags::MS_NODEV);
const NO_SUID_DEV_EXEC: MsFlags = NO_SUID_DEV.union(MsFlags::MS_NOEXEC);

/// Builds the root file system and switches to it with `pivot_root(2)`; the old one is unmounted.
/// Returns the procfs features that the kernel lacks, as bits of [`MissingFeatures`].
pub(super) fn enter(config: &SandboxConfig) -> Step<u8> {
    // The browser's user has to be able to read what the service's umask might make private.
    let previous = umask(Mode::from_raw_mode(0o022));
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    step("private mounts", mount(NO_PATH, "/", NO_PATH, private, NO_PATH))?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let own = step("browser's folder", open(&config.folder, flags, Mode::empty()))?;
    // It is built over the browser's own folder, which exists and is used by nothing else.
    let root = RootFileSystem { mount_point: config.folder.clone() };
    tmpfs(&root.mount_point, "size=1m,nr_inodes=4k,mode=755")?;
    root.folder("/tmp", Some("size=64m,nr_inodes=4k,mode=1777"))?;
    root.folder("/dev", Some("size=64k,nr_inodes=64,mode=755"))?;
    root.folder("/dev/shm", Some("size=64m,nr_inodes=4k,mode=1777"))?;
    let installation = &config.installation;
    let policies = config.policies.as_deref();
    for path in installation.programs.iter().chain(&installation.data) {
        if policies.is_none() || !POLICY_FOLDERS.iter().any(|policy| path == Path::new(policy)) {
            root.bind(path, path)?;
        }
    }
    for at in POLICY_FOLDERS.iter().filter(|_| policies.is_some()) {
        root.bind(policies.unwrap_or(Path::new("")), Path::new(at))?;
    }
    for device in DEVICES {
        let device = Path::new("/dev").join(device);
        root.bind(&device, &device)?;
    }
    root.write_etc(config)?;
    root.links(config)?;
    // Not recursively: the new root itself is mounted on this folder.
    let folder = format!("/proc/self/fd/{}", own.as_raw_fd());
    make_folder(&root.host_path(&config.folder))?;
    let target = root.host_path(&config.folder);
    step(
        "browser's folder",
        mount(Some(folder.as_str()), &target, NO_PATH, MsFlags::MS_BIND, NO_PATH),
    )?;
    root.font_cache(config)?;
    let full_proc = root.proc()?;
    root.restrict_mounts(config)?;
    step("root", chdir(&root.mount_point))?;
    // The old root is then mounted over the new one, and is unmounted (pivot_root(2)).
    step("root", pivot_root(".", "."))?;
    step("root", umount2(".", MntFlags::MNT_DETACH))?;
    step("root", chdir("/"))?;
    umask(previous);
    Ok(if full_proc { MissingFeatures::FULL_PROC } else { 0 })
}

fn tmpfs(path: &Path, options: &str) -> Step {
    step(
        "file system in memory",
        mount(Some("tmpfs"), path, Some("tmpfs"), NO_SUID_DEV_EXEC, Some(options)),
    )
}

fn make_folder(path: &Path) -> Step {
    step("folder", DirBuilder::new().recursive(true).mode(0o755).create(path))
}

/// The new root file system, before the switch to it.
struct RootFileSystem {
    mount_point: PathBuf,
}

impl RootFileSystem {
    /// Returns the path that a path of the new root has before the switch.
    fn host_path(&self, path: &Path) -> PathBuf {
        self.mount_point.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Creates a folder, with a tmpfs of its own if there are options for it.
    fn folder(&self, path: &str, tmpfs_options: Option<&str>) -> Step {
        let path = self.host_path(Path::new(path));
        make_folder(&path)?;
        tmpfs_options.map_or(Ok(()), |options| tmpfs(&path, options))
    }

    /// Bind-mounts a file or a folder of the machine.
    fn bind(&self, source: &Path, path: &Path) -> Step {
        let target = self.host_path(path);
        if step("bind mount", fs::metadata(source))?.is_dir() {
            make_folder(&target)?;
        } else {
            make_folder(target.parent().unwrap_or(&self.mount_point))?;
            step("file", File::create(&target))?;
        }
        // Recursively: an unprivileged user may not leave out mounts below it (EINVAL).
        let bind = MsFlags::MS_BIND | MsFlags::MS_REC;
        step("bind mount", mount(Some(source), &target, NO_PATH, bind, NO_PATH))
    }

    /// Writes minimal files of users, groups and host names instead of the machine's.
    fn write_etc(&self, config: &SandboxConfig) -> Step {
        let user = config.user.unwrap_or(Uid::effective().as_raw());
        let group = config.user.unwrap_or(Gid::effective().as_raw());
        let home = config.folder.display();
        make_folder(&self.host_path(Path::new("/etc")))?;
        for (name, text) in [
            ("group", format!("browser:x:{group}:\n")),
            ("hosts", "127.0.0.1 localhost\n::1 localhost\n".to_owned()),
            ("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n".to_owned()),
            ("passwd", format!("browser:x:{user}:{group}::{home}:/nonexistent\n")),
        ] {
            step("file", fs::write(self.host_path(&Path::new("/etc").join(name)), text))?;
        }
        Ok(())
    }

    /// Creates the symbolic links of the installation and of `/dev`.
    fn links(&self, config: &SandboxConfig) -> Step {
        let own = [("/dev/fd", "/proc/self/fd"), ("/dev/stdin", "/proc/self/fd/0")];
        let own = own.map(|(link, target)| (PathBuf::from(link), PathBuf::from(target)));
        for (link, target) in
            config.installation.links.iter().chain(own.iter().map(|(l, t)| (l, t)))
        {
            let link = self.host_path(link);
            make_folder(link.parent().unwrap_or(&self.mount_point))?;
            match symlink(target, link) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
                done => step("link", done)?,
            }
        }
        Ok(())
    }

    /// Mounts fontconfig's cache in the browser's home folder, where fontconfig looks for it as well.
    fn font_cache(&self, config: &SandboxConfig) -> Step {
        let cache = config.folder.join(".cache");
        if !Path::new(FONT_CACHE).is_dir() {
            return Ok(());
        }
        let fonts = cache.join("fontconfig");
        make_folder(&self.host_path(&fonts))?;
        for path in [&cache, &fonts] {
            step("folder", chown(self.host_path(path), config.user, config.user))?;
        }
        self.bind(Path::new(FONT_CACHE), &fonts)
    }

    /// Mounts a procfs of this PID namespace, without system-wide files if the kernel has `subset=pid`
    /// (Linux 5.8). Returns whether it lacks that.
    fn proc(&self) -> Step<bool> {
        let path = self.host_path(Path::new("/proc"));
        make_folder(&path)?;
        let proc = |options| mount(Some("proc"), &path, Some("proc"), NO_SUID_DEV_EXEC, options);
        match proc(Some("subset=pid")) {
            Err(nix::Error::EINVAL) => {
                step("a new /proc", proc(None))?;
                Ok(true)
            }
            done => {
                step("a new /proc", done)?;
                Ok(false)
            }
        }
    }

    /// Sets every mount read-only, nosuid, nodev and noexec, as far as the browser permits.
    fn restrict_mounts(&self, config: &SandboxConfig) -> Step {
        let mounts = step("mounts", fs::read_to_string("/proc/self/mountinfo"))?;
        let paths = mounts.lines().filter_map(|line| line.split(' ').nth(4)).map(unescape);
        for path in paths {
            let Ok(inside) = path.strip_prefix(&self.mount_point) else { continue };
            let inside = Path::new("/").join(inside);
            let Some(added) = mount_flags(config, &inside) else { continue };
            let current = step("mounts", current_flags(&path))?;
            let change = MsFlags::MS_REMOUNT | MsFlags::MS_BIND;
            step("mounts", mount(NO_PATH, &path, NO_PATH, change | current | added, NO_PATH))?;
        }
        Ok(())
    }
}

/// Returns the flags for a mount; `None` if it was mounted with the right ones.
fn mount_flags(config: &SandboxConfig, path: &Path) -> Option<MsFlags> {
    let programs = &config.installation.programs;
    if ["/tmp", "/dev/shm", "/proc"].iter().any(|own| path == Path::new(own)) {
        None
    } else if path == config.folder {
        Some(NO_SUID_DEV_EXEC)
    } else if path.starts_with("/dev") && path != Path::new("/dev") {
        Some(MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC)
    } else if programs.iter().any(|program| path.starts_with(program)) {
        Some(MsFlags::MS_RDONLY | NO_SUID_DEV)
    } else {
        Some(MsFlags::MS_RDONLY | NO_SUID_DEV_EXEC)
    }
}

/// Returns the current flags of a mount, which an unprivileged user may not remove
/// (`mount_namespaces(7)`).
fn current_flags(path: &Path) -> nix::Result<MsFlags> {
    let flags = statvfs(path)?.flags();
    let all = [
        (FsFlags::ST_RDONLY, MsFlags::MS_RDONLY),
        (FsFlags::ST_NOSUID, MsFlags::MS_NOSUID),
        (FsFlags::ST_NODEV, MsFlags::MS_NODEV),
        (FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
        (FsFlags::ST_NOATIME, MsFlags::MS_NOATIME),
        (FsFlags::ST_NODIRATIME, MsFlags::MS_NODIRATIME),
        (FsFlags::ST_RELATIME, MsFlags::MS_RELATIME),
    ];
    let present = all.into_iter().filter(|(flag, _)| flags.contains(*flag));
    let flags = present.fold(MsFlags::empty(), |flags, (_, flag)| flags | flag);
    let times = MsFlags::MS_NOATIME | MsFlags::MS_RELATIME;
    Ok(if flags.intersects(times) { flags } else { flags | MsFlags::MS_STRICTATIME })
}

/// Parses a path of `proc_pid_mountinfo(5)`, in which white space is escaped in octal.
fn unescape(text: &str) -> PathBuf {
    let mut path = Vec::with_capacity(text.len());
    let mut remaining = text.as_bytes();
    while let Some((first, rest)) = remaining.split_first() {
        let digits = rest.get(..3).filter(|_| *first == b'\\');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        path.push(byte.unwrap_or(*first));
        remaining = rest.get(if byte.is_some() { 3 } else { 0 }..).unwrap_or_default();
    }
    PathBuf::from(OsString::from_vec(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octal_escapes_in_paths_are_decoded() {
        assert_eq!(unescape(r"/a\040b\134c"), Path::new(r"/a b\c"));
        assert_eq!(unescape(r"/a\04"), Path::new(r"/a\04"));
    }
}
