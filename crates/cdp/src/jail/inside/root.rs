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
    super::{MissingFeatures, Order, roots::POLICIES},
    Step, at,
};

/// Character devices that neither store nor reveal anything.
const DEVICES: [&str; 5] = ["full", "null", "random", "urandom", "zero"];
/// fontconfig's cache of the machine's fonts: without it every browser would scan all of them.
const FONT_CACHE: &str = "/var/cache/fontconfig";
const NOTHING: Option<&Path> = None;
const NO_SUID_DEV: MsFlags = MsFlags::MS_NOSUID.union(MsFlags::MS_NODEV);
const NO_SUID_DEV_EXEC: MsFlags = NO_SUID_DEV.union(MsFlags::MS_NOEXEC);

/// Builds the root file system and switches to it with `pivot_root(2)`; the old one is unmounted.
/// Returns what the kernel lacks of it.
pub(super) fn enter(order: &Order) -> Step<u8> {
    // The browser's user has to be able to read what the service's umask might make private.
    let before = umask(Mode::from_raw_mode(0o022));
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    at("private mounts", mount(NOTHING, "/", NOTHING, private, NOTHING))?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let own = at("browser's folder", open(&order.folder, flags, Mode::empty()))?;
    // It is built over the browser's own folder, which exists and is used by nothing else.
    let root = Root { at: order.folder.clone() };
    tmpfs(&root.at, "size=1m,nr_inodes=4k,mode=755")?;
    root.folder("/tmp", Some("size=64m,nr_inodes=4k,mode=1777"))?;
    root.folder("/dev", Some("size=64k,nr_inodes=64,mode=755"))?;
    root.folder("/dev/shm", Some("size=64m,nr_inodes=4k,mode=1777"))?;
    let seen = &order.installation;
    let policies = order.policies.as_deref();
    for path in seen.programs.iter().chain(&seen.data) {
        if policies.is_none() || !POLICIES.iter().any(|policy| path == Path::new(policy)) {
            root.bind(path, path)?;
        }
    }
    for at in POLICIES.iter().filter(|_| policies.is_some()) {
        root.bind(policies.unwrap_or(Path::new("")), Path::new(at))?;
    }
    for device in DEVICES {
        let device = Path::new("/dev").join(device);
        root.bind(&device, &device)?;
    }
    root.write_etc(order)?;
    root.links(order)?;
    // Not recursively: the new root itself is mounted on this folder.
    let held = format!("/proc/self/fd/{}", own.as_raw_fd());
    make_folder(&root.inside(&order.folder))?;
    let target = root.inside(&order.folder);
    at(
        "browser's folder",
        mount(Some(held.as_str()), &target, NOTHING, MsFlags::MS_BIND, NOTHING),
    )?;
    root.font_cache(order)?;
    let whole_proc = root.proc()?;
    root.restrict_mounts(order)?;
    at("root", chdir(&root.at))?;
    // The old root is then mounted over the new one, and is unmounted (pivot_root(2)).
    at("root", pivot_root(".", "."))?;
    at("root", umount2(".", MntFlags::MNT_DETACH))?;
    at("root", chdir("/"))?;
    umask(before);
    Ok(if whole_proc { MissingFeatures::WHOLE_PROC } else { 0 })
}

fn tmpfs(path: &Path, options: &str) -> Step {
    at(
        "file system in memory",
        mount(Some("tmpfs"), path, Some("tmpfs"), NO_SUID_DEV_EXEC, Some(options)),
    )
}

fn make_folder(path: &Path) -> Step {
    at("folder", DirBuilder::new().recursive(true).mode(0o755).create(path))
}

struct Root {
    at: PathBuf,
}

impl Root {
    /// Where a path of the new root is before the switch.
    fn inside(&self, path: &Path) -> PathBuf {
        self.at.join(path.strip_prefix("/").unwrap_or(path))
    }

    fn folder(&self, path: &str, own: Option<&str>) -> Step {
        let path = self.inside(Path::new(path));
        make_folder(&path)?;
        own.map_or(Ok(()), |options| tmpfs(&path, options))
    }

    /// Bind-mounts a file or a folder of the machine.
    fn bind(&self, what: &Path, path: &Path) -> Step {
        let target = self.inside(path);
        if at("bind mount", fs::metadata(what))?.is_dir() {
            make_folder(&target)?;
        } else {
            make_folder(target.parent().unwrap_or(&self.at))?;
            at("file", File::create(&target))?;
        }
        // Recursively: an unprivileged user may not leave out mounts below it (EINVAL).
        let bind = MsFlags::MS_BIND | MsFlags::MS_REC;
        at("bind mount", mount(Some(what), &target, NOTHING, bind, NOTHING))
    }

    /// Users, groups and host names: minimal files instead of the machine's.
    fn write_etc(&self, order: &Order) -> Step {
        let user = order.user.unwrap_or(Uid::effective().as_raw());
        let group = order.user.unwrap_or(Gid::effective().as_raw());
        let home = order.folder.display();
        make_folder(&self.inside(Path::new("/etc")))?;
        for (name, text) in [
            ("group", format!("browser:x:{group}:\n")),
            ("hosts", "127.0.0.1 localhost\n::1 localhost\n".to_owned()),
            ("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n".to_owned()),
            ("passwd", format!("browser:x:{user}:{group}::{home}:/nonexistent\n")),
        ] {
            at("file", fs::write(self.inside(&Path::new("/etc").join(name)), text))?;
        }
        Ok(())
    }

    fn links(&self, order: &Order) -> Step {
        let own = [("/dev/fd", "/proc/self/fd"), ("/dev/stdin", "/proc/self/fd/0")];
        let own = own.map(|(link, target)| (PathBuf::from(link), PathBuf::from(target)));
        for (link, target) in order.installation.links.iter().chain(own.iter().map(|(l, t)| (l, t)))
        {
            let link = self.inside(link);
            make_folder(link.parent().unwrap_or(&self.at))?;
            match symlink(target, link) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
                done => at("link", done)?,
            }
        }
        Ok(())
    }

    /// In the browser's home folder, where fontconfig looks for its cache as well.
    fn font_cache(&self, order: &Order) -> Step {
        let cache = order.folder.join(".cache");
        if !Path::new(FONT_CACHE).is_dir() {
            return Ok(());
        }
        let fonts = cache.join("fontconfig");
        make_folder(&self.inside(&fonts))?;
        for path in [&cache, &fonts] {
            at("folder", chown(self.inside(path), order.user, order.user))?;
        }
        self.bind(Path::new(FONT_CACHE), &fonts)
    }

    /// A new procfs of this PID namespace, without system-wide files where the kernel has
    /// `subset=pid` (Linux 5.8). Returns whether it lacks that.
    fn proc(&self) -> Step<bool> {
        let path = self.inside(Path::new("/proc"));
        make_folder(&path)?;
        let proc = |options| mount(Some("proc"), &path, Some("proc"), NO_SUID_DEV_EXEC, options);
        match proc(Some("subset=pid")) {
            Err(nix::Error::EINVAL) => {
                at("a new /proc", proc(None))?;
                Ok(true)
            }
            done => {
                at("a new /proc", done)?;
                Ok(false)
            }
        }
    }

    /// Sets every mount read-only, nosuid, nodev, noexec, as far as the browser works with it.
    fn restrict_mounts(&self, order: &Order) -> Step {
        let mounts = at("mounts", fs::read_to_string("/proc/self/mountinfo"))?;
        let paths = mounts.lines().filter_map(|line| line.split(' ').nth(4)).map(unescape);
        for path in paths {
            let Ok(inside) = path.strip_prefix(&self.at) else { continue };
            let inside = Path::new("/").join(inside);
            let Some(wanted) = wanted(order, &inside) else { continue };
            let kept = at("mounts", kept(&path))?;
            let change = MsFlags::MS_REMOUNT | MsFlags::MS_BIND;
            at("mounts", mount(NOTHING, &path, NOTHING, change | kept | wanted, NOTHING))?;
        }
        Ok(())
    }
}

/// The flags for a mount; none where it was mounted with the right ones.
fn wanted(order: &Order, path: &Path) -> Option<MsFlags> {
    let programs = &order.installation.programs;
    if ["/tmp", "/dev/shm", "/proc"].iter().any(|own| path == Path::new(own)) {
        None
    } else if path == order.folder {
        Some(NO_SUID_DEV_EXEC)
    } else if path.starts_with("/dev") && path != Path::new("/dev") {
        Some(MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC)
    } else if programs.iter().any(|program| path.starts_with(program)) {
        Some(MsFlags::MS_RDONLY | NO_SUID_DEV)
    } else {
        Some(MsFlags::MS_RDONLY | NO_SUID_DEV_EXEC)
    }
}

/// The flags that a mount has: an unprivileged user may not remove them (`mount_namespaces(7)`).
fn kept(path: &Path) -> nix::Result<MsFlags> {
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
    let here = all.into_iter().filter(|(one, _)| flags.contains(*one));
    let kept = here.fold(MsFlags::empty(), |kept, (_, flag)| kept | flag);
    let times = MsFlags::MS_NOATIME | MsFlags::MS_RELATIME;
    Ok(if kept.intersects(times) { kept } else { kept | MsFlags::MS_STRICTATIME })
}

/// A path of `proc_pid_mountinfo(5)`, in which white space is escaped in octal.
fn unescape(text: &str) -> PathBuf {
    let mut path = Vec::with_capacity(text.len());
    let mut left = text.as_bytes();
    while let Some((first, rest)) = left.split_first() {
        let digits = rest.get(..3).filter(|_| *first == b'\\');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        path.push(byte.unwrap_or(*first));
        left = rest.get(if byte.is_some() { 3 } else { 0 }..).unwrap_or_default();
    }
    PathBuf::from(OsString::from_vec(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_blanks_are_read_as_they_are() {
        assert_eq!(unescape(r"/a\040b\134c"), Path::new(r"/a b\c"));
        assert_eq!(unescape(r"/a\04"), Path::new(r"/a\04"));
    }
}
