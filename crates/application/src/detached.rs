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
