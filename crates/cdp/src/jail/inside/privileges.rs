//! Users and capabilities of the helper, and how it drops them.

use std::fs;

use nix::{
    sched::{CloneFlags, unshare},
    sys::prctl,
    unistd::{Gid, Uid, setgroups, setresgid, setresuid},
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    configure_capability_in_ambient_set, remove_capability_from_bounding_set, set_capabilities,
};

use super::{Step, at};

/// Needed by the init process: mounts, the loopback interface, the bounding set.
const NEEDED: CapabilitySet =
    CapabilitySet::SYS_ADMIN.union(CapabilitySet::NET_ADMIN).union(CapabilitySet::SETPCAP);

/// Creates namespaces, among them a user namespace in which our user has the same number as outside.
pub(super) fn user_namespace(others: CloneFlags) -> Step {
    let (user, group) = (Uid::effective(), Gid::effective());
    at("user namespace", unshare(others | CloneFlags::CLONE_NEWUSER))?;
    at("user map", fs::write("/proc/self/setgroups", "deny"))?;
    at("user map", fs::write("/proc/self/uid_map", format!("{user} {user} 1")))?;
    at("group map", fs::write("/proc/self/gid_map", format!("{group} {group} 1")))
}

/// Keeps capabilities over `execve`, which clears all but ambient ones for users other than root.
pub(super) fn raise_ambient() -> Step {
    let own = at("capabilities", capabilities(None))?;
    let sets = CapabilitySets { inheritable: own.inheritable | NEEDED, ..own };
    at("capabilities", set_capabilities(None, sets))?;
    for one in NEEDED {
        at("ambient capabilities", configure_capability_in_ambient_set(one, true))?;
    }
    Ok(())
}

/// Changes from root to an unprivileged user, irrevocably.
pub(super) fn switch_user(user: Uid, group: Gid) -> Step {
    at("groups", setgroups(&[]))?;
    at("group", setresgid(group, group, group))?;
    at("user", setresuid(user, user, user))
}

/// The same, followed by a user namespace: no user of the machine but this one is mapped in it.
pub(super) fn switch_user_in_namespace(user: Uid, group: Gid) -> Step {
    switch_user(user, group)?;
    // A process that changed its user is not dumpable, and could not write its own `uid_map`.
    at("process attributes", prctl::set_dumpable(true))?;
    user_namespace(CloneFlags::empty())
}

/// From here on no program can get a capability in this user namespace.
pub(super) fn clear_bounding_set() -> Step {
    // The kernel answers EINVAL to the first number that it has no capability for.
    for number in 0..64 {
        let one = CapabilitySet::from_bits_retain(1 << number);
        match remove_capability_from_bounding_set(one) {
            Err(rustix::io::Errno::INVAL) => break,
            done => at("bounding set", done)?,
        }
    }
    Ok(())
}

/// Drops every capability, and sets `no_new_privs`.
pub(super) fn drop_all() -> Step {
    at("ambient capabilities", clear_ambient_capability_set())?;
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    at("capabilities", set_capabilities(None, none))?;
    at("privileges", prctl::set_no_new_privs())
}
