//! The seccomp filter: an allow-list of the system calls that Chromium makes (seccomp(2)).
//!
//! Any other call fails with `ENOSYS`, as on a kernel without it, for which programs and libraries
//! have a fallback. Deliberately not permitted: mounts, namespaces that Chromium's own sandbox does
//! not create, kernel modules, BPF, `io_uring`, `userfaultfd`, performance counters, kernel keys,
//! access to other processes, setting clocks, System V and POSIX message queues, and calls that later
//! kernels add.

mod allowed;

use std::{collections::BTreeMap, io};

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

use self::allowed::{FILES, LEGACY, MAX_PROCESSES, MEMORY, SANDBOX, SOCKETS, TIME};

/// Namespaces that Chromium's sandbox does not create, in which mounts, host names and clocks could be
/// changed. It does create user, PID and network namespaces.
const OTHER_NAMESPACES: i32 =
    libc::CLONE_NEWNS | libc::CLONE_NEWUTS | libc::CLONE_NEWIPC | libc::CLONE_NEWCGROUP;
/// A namespace of `unshare` alone; the bit has another meaning in `clone`.
const CLONE_NEWTIME: i32 = 0x80;
/// TIOCSTI, TIOCLINUX and TIOCSETD: input for a terminal, and line disciplines.
const TERMINAL_IOCTLS: [u64; 3] = [0x5412, 0x541c, 0x5423];

/// Installs the filter for this process and its descendants.
pub(super) fn install_filter() -> io::Result<()> {
    let program = program().map_err(io::Error::other)?;
    apply_filter(&program).map_err(io::Error::other)
}

fn program() -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules = BTreeMap::new();
    for calls in [FILES, MEMORY, MAX_PROCESSES, SOCKETS, TIME, SANDBOX, LEGACY] {
        rules.extend(calls.iter().map(|call| (*call, vec![])));
    }
    // `clone3` has its flags in memory, which a filter cannot read. On ENOSYS libc uses `clone`.
    let clone = [(0, SeccompCmpOp::MaskedEq(bits(OTHER_NAMESPACES)), 0)];
    let unshare = [(0, SeccompCmpOp::MaskedEq(bits(OTHER_NAMESPACES | CLONE_NEWTIME)), 0)];
    rules.insert(libc::SYS_clone, vec![rule(&clone)?]);
    rules.insert(libc::SYS_unshare, vec![rule(&unshare)?]);
    // No AF_NETLINK: with capabilities in a user namespace it would give access to nftables and
    // traffic control, where most privilege escalations of recent years were. Chromium only watches
    // interfaces through it, and assumes to be online when it cannot.
    let families = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];
    let families = families.map(|family| rule(&[(0, SeccompCmpOp::Eq, bits(family))]));
    rules.insert(libc::SYS_socket, families.into_iter().collect::<Result<_, _>>()?);
    let pair = rule(&[(0, SeccompCmpOp::Eq, bits(libc::AF_UNIX))])?;
    rules.insert(libc::SYS_socketpair, vec![pair]);
    let not_terminal = TERMINAL_IOCTLS.map(|request| (1, SeccompCmpOp::Ne, request));
    rules.insert(libc::SYS_ioctl, vec![rule(&not_terminal)?]);
    let errno = u32::try_from(libc::ENOSYS).unwrap_or_default();
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Errno(errno),
        SeccompAction::Allow,
        std::env::consts::ARCH.try_into()?,
    )?;
    filter.try_into()
}

/// Returns a rule that requires all conditions. Each compares the lower 32 bits of an argument: the kernel
/// ignores the upper ones in all of these calls.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, seccompiler::BackendError> {
    let conditions = conditions.iter().map(|(argument, operator, value)| {
        SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, operator.clone(), *value)
    });
    SeccompRule::new(conditions.collect::<Result<_, _>>()?)
}

fn bits(flags: i32) -> u64 {
    u64::from(flags.cast_unsigned())
}
