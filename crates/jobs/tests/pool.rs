//! Jobs that do their process no good.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use jobs::{JobError, LONGEST, Pool};

fn pool(most: usize) -> Pool {
    let test = std::env::current_exe().unwrap();
    let worker: PathBuf = test.ancestors().nth(2).unwrap().join("examples/worker");
    assert!(worker.exists(), "build it first: cargo build -p jobs --examples");
    Pool::new(worker, "work", most, Duration::from_secs(2))
}

#[tokio::test]
async fn jobs_are_done_one_after_the_other_by_one_process() {
    let pool = pool(1);
    let big = vec![7; LONGEST];
    assert_eq!(pool.run(&big).await.unwrap(), big);
    assert!(matches!(pool.run(&vec![0; LONGEST + 1]).await, Err(JobError::Long)));
    let first = pool.run(b"who").await.unwrap();
    assert_eq!(pool.run(b"who").await.unwrap(), first);
    assert_eq!(pool.run(b"see").await.unwrap(), b"0", "nothing of our environment");
    // One that had ended for want of work is followed by another.
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_ne!(pool.run(b"who").await.unwrap(), first);
}

#[tokio::test]
async fn what_kills_its_process_kills_nothing_else() {
    let pool = pool(2);
    for (job, died) in
        [(b"die".as_slice(), true), (b"eat", true), (b"write", true), (b"sleep", false)]
    {
        let failed = pool.run(job).await.unwrap_err();
        let expected =
            if died { JobError::Died } else { JobError::TimedOut(Duration::from_secs(2)) };
        assert_eq!(failed.to_string(), expected.to_string());
        assert_eq!(pool.run(b"fine").await.unwrap(), b"fine");
    }
    let gone = Pool::new("/nowhere/worker".into(), "work", 1, Duration::from_secs(2));
    assert!(matches!(gone.run(b"fine").await, Err(JobError::Start(_))));
}

#[tokio::test]
async fn there_are_as_many_at_once_as_there_are_places() {
    let pool = pool(1);
    let began = Instant::now();
    let (sleeping, waiting) = tokio::join!(pool.run(b"sleep"), pool.run(b"fine"));
    assert!(matches!(sleeping, Err(JobError::TimedOut(_))));
    assert_eq!(waiting.unwrap(), b"fine", "its time begins with its place");
    assert!(began.elapsed() >= Duration::from_secs(2));
}
