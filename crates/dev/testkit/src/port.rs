//! Free TCP ports for servers that a test starts.

use std::{
    env,
    net::TcpListener,
    process,
    sync::{
        LazyLock,
        atomic::{AtomicU16, Ordering},
    },
};

const FIRST: u16 = 10_000;
/// The number of ports. They stay below the ephemeral ports that Linux (from 32,768) and other
/// systems (from 49,152, RFC 6335 section 6) assign to a bind of port 0 and to outgoing connections,
/// so that neither takes a port before the test's server has bound it.
const COUNT: u16 = 22_000;
/// The number of ports of one test if nextest runs several concurrently, each in its own process.
const PER_SLOT: u16 = 500;

/// Returns a loopback port on which no process listens, and which this process has not been
/// given before.
///
/// # Panics
///
/// If no port is free.
pub fn free_port() -> u16 {
    static GIVEN: AtomicU16 = AtomicU16::new(0);
    static RANGE: LazyLock<Range> = LazyLock::new(Range::of_this_process);
    for _ in 0..RANGE.count {
        let given = u32::from(GIVEN.fetch_add(1, Ordering::Relaxed));
        let at = (RANGE.begin + given) % u32::from(RANGE.count);
        let port = RANGE.first + u16::try_from(at).expect("below the count");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no port is free");
}

/// The ports that a process chooses from, and the first one that it tries.
struct Range {
    first: u16,
    count: u16,
    begin: u32,
}

impl Range {
    /// Returns the range of this process. Each process starts at a different port, since a port that
    /// another process was given is free until its server binds it. Under nextest, concurrent tests
    /// have separate ranges, since their slots differ.
    fn of_this_process() -> Self {
        let slot = env::var("NEXTEST_TEST_GLOBAL_SLOT");
        let slot = slot.ok().and_then(|slot| slot.parse::<u16>().ok());
        let (first, count) = match slot {
            Some(slot) => (FIRST + slot % (COUNT / PER_SLOT) * PER_SLOT, PER_SLOT),
            None => (FIRST, COUNT),
        };
        Self { first, count, begin: process::id().wrapping_mul(7_919) % u32::from(count) }
    }
}
