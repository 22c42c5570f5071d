//! Records when API keys were last used.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use ports::key_store::KeyVerification;

use super::{Worker, log_error};
use crate::api_keys::KeyUses;

const RECORD_INTERVAL: Duration = Duration::from_secs(10);

/// Writes the uses that were noted in memory to the store. Uses since the last write are lost with a
/// process that is killed.
pub struct KeyUseRecorder {
    pub keys: Arc<dyn KeyVerification>,
    pub uses: Arc<KeyUses>,
}

#[async_trait]
impl Worker for KeyUseRecorder {
    fn name(&self) -> &'static str {
        "key uses"
    }

    async fn run(&self) {
        loop {
            tokio::time::sleep(RECORD_INTERVAL).await;
            if let Err(error) = self.keys.record_key_uses(&self.uses.take()).await {
                log_error(&error, "failed to record when API keys were last used");
            }
        }
    }
}
