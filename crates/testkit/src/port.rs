//! Ports for servers that a test starts.

use std::{
    net::TcpListener,
    process,
    sync::atomic::{AtomicU16, Ordering},
};

const FIRST: u16 = 10_000;
/// Below what Linux (32,768 on) and others (49,152 on, RFC 6335 section 6) hand out to who binds
/// port 0 and to each connection: none of these takes the port before the test's server has it.
const COUNT: u16 = 22_000;

/// A port of this machine's loopback that nobody listens on, and that this process was not given
/// before.
///
/// # Panics
///
/// Where there is none.
pub fn free_port() -> u16 {
    static GIVEN: AtomicU16 = AtomicU16::new(0);
    // Processes beside this one begin elsewhere.
    let begin = process::id().wrapping_mul(7_919) % u32::from(COUNT);
    for _ in 0..COUNT {
        let given = u32::from(GIVEN.fetch_add(1, Ordering::Relaxed));
        let port = FIRST + u16::try_from((begin + given) % u32::from(COUNT)).expect("below COUNT");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no port is free");
}
