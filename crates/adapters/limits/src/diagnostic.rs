//! Examines the Redis server that counts for all processes.

use async_trait::async_trait;
use ports::diagnostic::{Diagnosis, Diagnostic};

use crate::Redis;

/// Examines whether Redis responds.
pub struct RedisDiagnostic {
    /// `None` if each process counts by itself.
    pub server: Option<Redis>,
}

#[async_trait]
impl Diagnostic for RedisDiagnostic {
    fn subject(&self) -> &'static str {
        "redis"
    }

    async fn examine(&self) -> Vec<Diagnosis> {
        let Some(server) = &self.server else {
            return vec![Diagnosis::ok("none: each process counts requests by itself")];
        };
        vec![match server.ping().await {
            Ok(()) => Diagnosis::ok(format!("{server:?} responds")),
            Err(error) => Diagnosis::failed(
                format!("{server:?}: {error}"),
                "start it, or correct redis_url; until then each process counts by itself",
            ),
        }]
    }
}
