//! The worker's side: a loop that reads jobs and writes results.

use std::{
    io::{self, Read as _, Write as _},
    process::ExitCode,
    sync::mpsc::{SyncSender, sync_channel},
    time::Duration,
};

use rustix::process::{Resource, Rlimit, nice, setrlimit};

use super::{MAX_MESSAGE_BYTES, frames};

/// The limits of a worker process.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Bytes of its address space.
    pub memory: u64,
    /// The time without a job after which it exits.
    pub idle_timeout: Duration,
}

/// Performs the jobs on standard input, until there are no more or one exceeds the limits. Must be
/// called first in a process of its own.
pub fn serve(bounds: Bounds, mut work: impl FnMut(&[u8]) -> Vec<u8>) -> ExitCode {
    if set_limits(bounds).is_err() {
        return ExitCode::FAILURE;
    }
    let (sender, jobs) = sync_channel(1);
    std::thread::spawn(move || read_jobs(&sender));
    while let Ok(job) = jobs.recv_timeout(bounds.idle_timeout) {
        if write_result(&work(&job)).is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn set_limits(bounds: Bounds) -> io::Result<()> {
    let limit = |value: u64| Rlimit { current: Some(value), maximum: Some(value) };
    setrlimit(Resource::As, limit(bounds.memory))?;
    setrlimit(Resource::Core, limit(0))?;
    setrlimit(Resource::Fsize, limit(0))?;
    setrlimit(Resource::Nofile, limit(32))?;
    // Live sessions have priority over jobs.
    nice(10)?;
    Ok(())
}

fn read_jobs(sender: &SyncSender<Vec<u8>>) {
    let mut input = io::stdin().lock();
    let mut next = || {
        let mut header = [0; 4];
        input.read_exact(&mut header).ok()?;
        let length = usize::try_from(u32::from_be_bytes(header)).ok()?;
        let mut job = vec![0; Some(length).filter(|length| *length <= MAX_MESSAGE_BYTES)?];
        input.read_exact(&mut job).ok()?;
        Some(job)
    };
    while let Some(job) = next() {
        if sender.send(job).is_err() {
            return;
        }
    }
}

fn write_result(result: &[u8]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(&frames::header(result)?)?;
    output.write_all(result)?;
    output.flush()
}
