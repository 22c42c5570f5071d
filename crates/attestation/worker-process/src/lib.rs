//! Jobs in worker processes. Their input is untrusted, and they may need gigabytes, so each process is
//! bounded in memory and each job in time. A process performs one job after another, since some jobs
//! need seconds of preparation, and exits when none arrives.
//!
//! **Invariant:** there are never more processes than the pool permits; a job that crashes its process,
//! or takes too long, affects nothing else.

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

/// Bytes of a job, and of a result.
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// A pool of worker processes of one kind.
pub struct Pool {
    program: PathBuf,
    argument: &'static str,
    timeout: Duration,
    permits: Semaphore,
    idle: Mutex<Vec<Process>>,
}

struct Process {
    // Killed on drop.
    _child: Child,
    jobs: ChildStdin,
    results: ChildStdout,
}

/// The reason why a job failed. The attestor's protocol contains these texts, so they are fixed.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    #[error("the process for it could not be started")]
    Start(#[source] std::io::Error),
    #[error("its process died of it")]
    Died,
    #[error("it took longer than {} s", .0.as_secs())]
    TimedOut(Duration),
    #[error("it is longer than {MAX_MESSAGE_BYTES} bytes")]
    TooLong,
}

impl Pool {
    /// Creates a pool of at most `max_processes` processes of this program with this argument, each of
    /// which calls [`serve`]. The timeout applies to a job once it has a process, not while it waits for
    /// one.
    #[must_use]
    pub fn new(
        program: PathBuf,
        argument: &'static str,
        max_processes: usize,
        timeout: Duration,
    ) -> Self {
        let permits = Semaphore::new(max_processes.max(1));
        Self { program, argument, timeout, permits, idle: Mutex::default() }
    }

    /// Performs a job, after waiting for a permit.
    ///
    /// # Errors
    /// The job or its process failed. A job is retried only if its idle process had already exited.
    pub async fn run(&self, job: &[u8]) -> Result<Vec<u8>, JobError> {
        if job.len() > MAX_MESSAGE_BYTES {
            return Err(JobError::TooLong);
        }
        let Ok(_permit) = self.permits.acquire().await else { return Err(JobError::Died) };
        let idle = self.idle().pop();
        let was_idle = idle.is_some();
        match self.run_in(idle, job).await {
            Err(JobError::Died) if was_idle => self.run_in(None, job).await,
            result => result,
        }
    }

    async fn run_in(&self, process: Option<Process>, job: &[u8]) -> Result<Vec<u8>, JobError> {
        let mut process = match process {
            Some(process) => process,
            None => self.start().map_err(JobError::Start)?,
        };
        let work = async {
            frames::write(&mut process.jobs, job).await.ok()?;
            frames::read(&mut process.results, MAX_MESSAGE_BYTES).await.ok()?
        };
        let completed = tokio::time::timeout(self.timeout, work).await;
        let result =
            completed.map_err(|_| JobError::TimedOut(self.timeout))?.ok_or(JobError::Died)?;
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
