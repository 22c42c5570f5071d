//! The one request of a probe, and its response.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::{
    connection::ProbedConnection,
    observation::{Completeness, ConnectionEnd, ResponseObserved},
    response::ResponseReader,
};

/// How long the probe waits for the server to close the connection after a complete response.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Sends the request, and reads the response as far as an attestation would.
///
/// # Errors
/// There is no response that can be read.
pub(crate) async fn exchange(
    connection: &mut ProbedConnection,
    request: &[u8],
    deadline: Instant,
) -> Result<ResponseObserved, String> {
    let mut reader = ResponseReader::default();
    let mut failure = None;
    let reading = async {
        connection.send(request).await?;
        while !reader.is_over() && !connection.is_closed() {
            reader.push(&connection.receive().await?);
        }
        Ok::<_, crate::connection::ConnectionError>(())
    };
    match timeout_at(deadline, reading).await {
        Ok(Ok(())) => reader.end(Completeness::Truncated),
        Ok(Err(error)) => {
            failure = Some(error.to_string());
            reader.end(Completeness::Truncated);
        }
        Err(_) => reader.end(Completeness::TimedOut),
    }
    if reader.is_complete() {
        let closing = async {
            connection.close().await;
            while !connection.is_closed() && connection.receive().await.is_ok() {}
        };
        let _ = timeout_at(deadline.min(Instant::now() + CLOSE_TIMEOUT), closing).await;
    }
    let end = if connection.has_close_notify() {
        ConnectionEnd::CloseNotify
    } else if connection.is_closed() || failure.is_some() {
        ConnectionEnd::Closed
    } else {
        ConnectionEnd::Open
    };
    reader.observed(request.len(), end).map_err(|why| failure.unwrap_or(why))
}
