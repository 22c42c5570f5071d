//! The side of the process that does the work.

use std::{
    io::{self, Read as _, Write as _},
    process::ExitCode,
    sync::mpsc::{SyncSender, sync_channel},
    time::Duration,
};

use rustix::process::{Resource, Rlimit, nice, setrlimit};

use super::{LONGEST, frames};

/// What a process may use.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Bytes of its address space.
    pub memory: u64,
    /// How long it waits for another job before it ends.
    pub rest: Duration,
}

/// Does jobs as they come on the standard input, until there are none or one cannot be done within
/// the bounds. Called first thing in a process of its own.
pub fn serve(bounds: Bounds, mut work: impl FnMut(&[u8]) -> Vec<u8>) -> ExitCode {
    if bound(bounds).is_err() {
        return ExitCode::FAILURE;
    }
    let (send, jobs) = sync_channel(1);
    std::thread::spawn(move || read(&send));
    while let Ok(job) = jobs.recv_timeout(bounds.rest) {
        if tell(&work(&job)).is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn bound(bounds: Bounds) -> io::Result<()> {
    let to = |most: u64| Rlimit { current: Some(most), maximum: Some(most) };
    setrlimit(Resource::As, to(bounds.memory))?;
    setrlimit(Resource::Core, to(0))?;
    setrlimit(Resource::Fsize, to(0))?;
    setrlimit(Resource::Nofile, to(32))?;
    // Whoever looks at a page meanwhile comes first.
    nice(10)?;
    Ok(())
}

fn read(send: &SyncSender<Vec<u8>>) {
    let mut input = io::stdin().lock();
    let mut next = || {
        let mut header = [0; 4];
        input.read_exact(&mut header).ok()?;
        let length = usize::try_from(u32::from_be_bytes(header)).ok()?;
        let mut job = vec![0; Some(length).filter(|length| *length <= LONGEST)?];
        input.read_exact(&mut job).ok()?;
        Some(job)
    };
    while let Some(job) = next() {
        if send.send(job).is_err() {
            return;
        }
    }
}

fn tell(result: &[u8]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(&frames::header(result)?)?;
    output.write_all(result)?;
    output.flush()
}
