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

use super::{Step, step};

/// The capabilities that the init process needs, for mounts, the loopback interface and the bounding
/// set.
const INIT_CAPABILITIES: CapabilitySet =
    CapabilitySet::SYS_ADMIN.union(CapabilitySet::NET_ADMIN).union(CapabilitySet::SETPCAP);

/// Creates namespaces, among them a user namespace in which our user has the same number as outside.
pub(super) fn user_namespace(others: CloneFlags) -> Step {
    let (user, group) = (Uid::effective(), Gid::effective());
    step("user namespace", unshare(others | CloneFlags::CLONE_NEWUSER))?;
    step("user map", fs::write("/proc/self/setgroups", "deny"))?;
    step("user map", fs::write("/proc/self/uid_map", format!("{user} {user} 1")))?;
    step("group map", fs::write("/proc/self/gid_map", format!("{group} {group} 1")))
}

/// Keeps capabilities over `execve`, which clears all but ambient ones for users other than root.
pub(super) fn raise_ambient() -> Step {
    let own = step("capabilities", capabilities(None))?;
    let sets = CapabilitySets { inheritable: own.inheritable | INIT_CAPABILITIES, ..own };
    step("capabilities", set_capabilities(None, sets))?;
    for capability in INIT_CAPABILITIES {
        step("ambient capabilities", configure_capability_in_ambient_set(capability, true))?;
    }
    Ok(())
}

/// Changes from root to an unprivileged user, irrevocably.
pub(super) fn switch_user(user: Uid, group: Gid) -> Step {
    step("groups", setgroups(&[]))?;
    step("group", setresgid(group, group, group))?;
    step("user", setresuid(user, user, user))
}

/// Changes from root to an unprivileged user, and creates a user namespace in which no other user of
/// the machine is mapped.
pub(super) fn switch_user_in_namespace(user: Uid, group: Gid) -> Step {
    switch_user(user, group)?;
    // A process that changed its user is not dumpable, and could not write its own `uid_map`.
    step("process attributes", prctl::set_dumpable(true))?;
    user_namespace(CloneFlags::empty())
}

/// Clears the bounding set, so that no program can gain a capability in this user namespace.
pub(super) fn clear_bounding_set() -> Step {
    // The kernel answers EINVAL to the first number that it has no capability for.
    for number in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match remove_capability_from_bounding_set(capability) {
            Err(rustix::io::Errno::INVAL) => break,
            done => step("bounding set", done)?,
        }
    }
    Ok(())
}

/// Drops every capability, and sets `no_new_privs`.
pub(super) fn drop_all() -> Step {
    step("ambient capabilities", clear_ambient_capability_set())?;
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    step("capabilities", set_capabilities(None, none))?;
    step("privileges", prctl::set_no_new_privs())
}
