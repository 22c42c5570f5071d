//! Jobs that crash, block or overload their process.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use worker_process::{JobError, MAX_MESSAGE_BYTES, Pool};

const TIMEOUT: Duration = Duration::from_secs(2);
/// Enough for a job that answers at once, and short for those that never answer.
const SHORT_TIMEOUT: Duration = Duration::from_secs(1);

fn pool(max_processes: usize, timeout: Duration) -> Pool {
    let test = std::env::current_exe().unwrap();
    let worker: PathBuf = test.ancestors().nth(2).unwrap().join("examples/worker");
    assert!(worker.exists(), "build it first: cargo build -p jobs --examples");
    Pool::new(worker, "work", max_processes, timeout)
}

#[tokio::test]
async fn one_process_performs_jobs_one_after_another() {
    let pool = pool(1, TIMEOUT);
    let big = vec![7; MAX_MESSAGE_BYTES];
    assert_eq!(pool.run(&big).await.unwrap(), big);
    assert!(matches!(pool.run(&vec![0; MAX_MESSAGE_BYTES + 1]).await, Err(JobError::TooLong)));
    let first = pool.run(b"who").await.unwrap();
    assert_eq!(pool.run(b"who").await.unwrap(), first);
    assert_eq!(pool.run(b"see").await.unwrap(), b"0", "the environment is not passed on");
    // A process that exited because it was idle is replaced.
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_ne!(pool.run(b"who").await.unwrap(), first);
}

#[tokio::test]
async fn a_job_that_crashes_its_process_affects_nothing_else() {
    let (patient, impatient) = (pool(2, TIMEOUT), pool(2, SHORT_TIMEOUT));
    for (job, pool, expected) in [
        (b"die".as_slice(), &patient, JobError::Died),
        (b"eat", &patient, JobError::Died),
        (b"write", &patient, JobError::Died),
        (b"sleep", &impatient, JobError::TimedOut(SHORT_TIMEOUT)),
    ] {
        let failed = pool.run(job).await.unwrap_err();
        assert_eq!(failed.to_string(), expected.to_string());
        assert_eq!(pool.run(b"fine").await.unwrap(), b"fine");
    }
    let missing = Pool::new("/nowhere/worker".into(), "work", 1, TIMEOUT);
    assert!(matches!(missing.run(b"fine").await, Err(JobError::Start(_))));
}

#[tokio::test]
async fn jobs_wait_for_a_permit() {
    let pool = pool(1, SHORT_TIMEOUT);
    let began = Instant::now();
    let (sleeping, waiting) = tokio::join!(pool.run(b"sleep"), pool.run(b"fine"));
    assert!(matches!(sleeping, Err(JobError::TimedOut(_))));
    assert_eq!(waiting.unwrap(), b"fine", "the timeout starts with the permit");
    assert!(began.elapsed() >= SHORT_TIMEOUT);
}
