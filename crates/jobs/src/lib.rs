//! Work that is done in processes of their own: what it reads may come from anybody, and it may
//! need gigabytes, so each process is bounded in memory and each job in time. A process does one
//! job after the other, since some work has to prepare for seconds, and ends when none comes.
//!
//! **Invariant:** at most as many processes as there are places; a job that kills its process, or
//! takes too long, kills nothing else.

mod child;
pub mod frames;

use std::{
    path::PathBuf,
    process::Stdio,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::Semaphore,
};

pub use self::child::{Bounds, serve};

/// The longest job, and the longest result, in bytes.
pub const LONGEST: usize = 16 * 1024 * 1024;

/// Processes of one kind.
pub struct Pool {
    program: PathBuf,
    argument: &'static str,
    patience: Duration,
    places: Semaphore,
    idle: Mutex<Vec<Process>>,
}

struct Process {
    // Is killed when this is dropped.
    _child: Child,
    jobs: ChildStdin,
    results: ChildStdout,
}

/// Why a job came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    #[error("the process for it could not be started")]
    Start(#[source] std::io::Error),
    #[error("its process died of it")]
    Died,
    #[error("it took longer than {} s", .0.as_secs())]
    TimedOut(Duration),
    #[error("it is longer than {LONGEST} bytes")]
    Long,
}

impl Pool {
    /// Processes of this program with this argument, so many at once; each calls [`serve`]. A job
    /// may take so long, not counting how long it waits for a place.
    #[must_use]
    pub fn new(program: PathBuf, argument: &'static str, most: usize, patience: Duration) -> Self {
        let places = Semaphore::new(most.max(1));
        Self { program, argument, patience, places, idle: Mutex::default() }
    }

    /// Has a job done; waits for a place first.
    ///
    /// # Errors
    /// It, or its process, failed. Nothing is tried twice but a job for a process that had ended
    /// for want of work.
    pub async fn run(&self, job: &[u8]) -> Result<Vec<u8>, JobError> {
        if job.len() > LONGEST {
            return Err(JobError::Long);
        }
        let Ok(_place) = self.places.acquire().await else { return Err(JobError::Died) };
        let rested = self.idle().pop();
        let was_rested = rested.is_some();
        match self.run_in(rested, job).await {
            Err(JobError::Died) if was_rested => self.run_in(None, job).await,
            done => done,
        }
    }

    async fn run_in(&self, process: Option<Process>, job: &[u8]) -> Result<Vec<u8>, JobError> {
        let mut process = match process {
            Some(process) => process,
            None => self.start().map_err(JobError::Start)?,
        };
        let work = async {
            frames::write(&mut process.jobs, job).await.ok()?;
            frames::read(&mut process.results, LONGEST).await.ok()?
        };
        let done = tokio::time::timeout(self.patience, work).await;
        let result = done.map_err(|_| JobError::TimedOut(self.patience))?.ok_or(JobError::Died)?;
        self.idle().push(process);
        Ok(result)
    }

    fn start(&self) -> std::io::Result<Process> {
        let mut child = Command::new(&self.program)
            .arg(self.argument)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let (jobs, results) = (child.stdin.take(), child.stdout.take());
        match (jobs, results) {
            (Some(jobs), Some(results)) => Ok(Process { _child: child, jobs, results }),
            _ => Err(std::io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Process>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
