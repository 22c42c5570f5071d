//! `avouch migrate`: applies pending migrations, or tells which are pending.

use std::{path::Path, time::Duration};

use command_line::{CommandError, MigrateArguments, MigrationReport};
use store::{Migrator, SchemaStatus};
use system::data_dir::{private_file, private_folder};
use tokio::time::Instant;

use crate::{config::Config, storage::error_chain};

/// The time between two attempts to reach a database that is not up yet.
const CONNECT_INTERVAL: Duration = Duration::from_millis(500);

/// Carries the command out. It needs the settings of the database only: no `secret.key`, and no data
/// folder unless the database is in it.
pub(crate) async fn migrate(
    config: &Config,
    arguments: MigrateArguments,
) -> Result<MigrationReport, CommandError> {
    let migrator = Migrator::new(&config.database_url, config.timeouts);
    let SchemaStatus { pending, newer } = status(&migrator, arguments.wait()).await?;
    if arguments.check {
        return Ok(MigrationReport::Checked { pending, newer });
    }
    if let Some(path) = config.database_url.file() {
        private_folder(&config.data_dir).map_err(error_chain)?;
        private_file(Path::new(path)).map_err(error_chain)?;
    }
    let applied = if pending.is_empty() {
        vec![]
    } else {
        migrator.apply(config.migration_limits).await.map_err(error_chain)?
    };
    Ok(MigrationReport::Applied { applied, newer })
}

/// Reads the state of the schema, and tries again until the database has been waited for this long.
async fn status(migrator: &Migrator<'_>, wait: Duration) -> Result<SchemaStatus, CommandError> {
    let ends = Instant::now() + wait;
    loop {
        match migrator.status().await {
            Ok(status) => return Ok(status),
            Err(error) if Instant::now() >= ends => return Err(error_chain(error)),
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(error, "the database cannot be read yet; trying again");
            }
        }
        tokio::time::sleep(CONNECT_INTERVAL).await;
    }
}
