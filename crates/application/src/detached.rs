//! Runs work to completion even when its caller is dropped half-way.
//!
//! The HTTP server drops the future of a request whose connection breaks. A use case that was
//! dropped between two steps would leave the second one to a worker; one dropped in the middle of a
//! statement would leave its database connection in an unknown state.

use std::future::Future;

use tokio::runtime::Handle;

/// Runs a future as a task of this runtime and waits for it. A panic of the task continues here.
pub async fn detached<T: Send + 'static>(
    runtime: &Handle,
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    match runtime.spawn(work).await {
        Ok(output) => output,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime shuts down: no caller is left.
        Err(_) => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::{
        panic::AssertUnwindSafe,
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering},
        },
        time::Duration,
    };

    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn work_is_completed_though_its_caller_was_dropped() {
        let done = Arc::new(AtomicBool::new(false));
        let work = {
            let done = done.clone();
            async move {
                tokio::time::sleep(Duration::from_secs(5)).await;
                done.store(true, Ordering::Relaxed);
            }
        };
        let handle = Handle::current();
        let call = detached(&handle, work);
        assert!(tokio::time::timeout(Duration::from_secs(1), call).await.is_err());
        assert!(!done.load(Ordering::Relaxed));
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(done.load(Ordering::Relaxed));
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_of_the_work_continues_in_its_caller() {
        let handle = Handle::current();
        let call = detached(&handle, async { panic!("the work failed") });
        let call = AssertUnwindSafe(call).catch_unwind();
        let panic: Result<(), _> =
            tokio::time::timeout(Duration::from_secs(1), call).await.expect("an end");
        assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"the work failed"));
    }
}
