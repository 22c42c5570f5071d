//! `avouch config check`: reports everything that is wrong with a configuration, and whether the
//! servers that it names respond. It changes nothing.

use std::{collections::BTreeSet, fs, sync::Arc, time::Duration};

use command_line::{CheckReport, CheckRow};
use objects::{LinkSigner, ObjectStorage, ObjectVault};
use store::{Migrator, SchemaPolicy, SchemaStatus};
use system::{
    clock::SystemClock,
    encryption::XChaChaCipher,
    secret_key::{KeyAgreementError, SecretKeys},
};

use crate::{
    config::{Config, is_setting},
    storage::{StartupError, error_chain},
};

/// How long the response of a mail server or a bucket is waited for.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Checks a configuration. `faults` are those that were found when it was read, and `variables` the
/// names in the environment.
pub(crate) async fn check(
    config: &Config,
    faults: &[String],
    variables: impl Iterator<Item = String>,
) -> CheckReport {
    let mut rows: Vec<_> =
        faults.iter().map(|fault| CheckRow::new("setting", Err(fault.clone()))).collect();
    let unknown: BTreeSet<_> = variables.filter(|name| !is_setting(name)).collect();
    rows.extend(unknown.iter().map(|name| {
        CheckRow::new(
            "setting",
            Err(format!("{name} is no setting of the service, and does nothing")),
        )
    }));
    if rows.is_empty() {
        rows.push(CheckRow::new("settings", Ok("understood".into())));
    }
    // A setting that could not be read has no meaning.
    let is_valid = |key: &str| !faults.iter().any(|fault| fault.to_lowercase().contains(key));
    let (database, redis, mail, storage) = tokio::join!(
        async { if is_valid("database_url") { database(config).await } else { vec![] } },
        async { if is_valid("redis") { redis(config).await } else { vec![] } },
        async { if is_valid("smtp_") { mail(config).await } else { vec![] } },
        async { if is_valid("storage_url") { storage(config).await } else { vec![] } },
    );
    rows.extend([database, redis, mail, storage].into_iter().flatten());
    CheckReport(rows)
}

async fn database(config: &Config) -> Vec<CheckRow> {
    let (found, weakness, recorded) = match config.database_url.probe(config.timeouts).await {
        Ok(probe) => (Ok(probe.found), probe.weakness, probe.fingerprint),
        Err(error) => (Err(error_chain(error).to_string()), None, None),
    };
    let reached = found.is_ok();
    let mut rows = vec![CheckRow::new("database", found)];
    if reached {
        rows.push(schema(config).await);
    }
    rows.extend(weakness.map(|weakness| {
        let detail = format!("{weakness}: set sslmode=verify-full and sslrootcert");
        CheckRow::warning("database", detail)
    }));
    let keys = SecretKeys::read(&config.data_dir).map_err(KeyAgreementError::from);
    let compared = keys.and_then(|keys| keys.compare(recorded.as_deref()));
    rows.push(CheckRow::new("secret.key", compared.map_err(|e| error_chain(e).to_string())));
    rows
}

/// Tells whether a process with this configuration would start on the schema.
async fn schema(config: &Config) -> CheckRow {
    let status = Migrator::new(&config.database_url, config.timeouts).status().await;
    let SchemaStatus { pending, newer } = match status {
        Ok(status) => status,
        Err(error) => return CheckRow::new("schema", Err(error_chain(error).to_string())),
    };
    let result = match (pending.len(), config.schema) {
        (0, _) if newer.is_empty() => Ok("that of this release".to_owned()),
        (0, _) => Ok("that of a newer release".to_owned()),
        (count, SchemaPolicy::Migrate(_)) => {
            Ok(format!("pending migrations, applied at the start: {count}"))
        }
        (count, SchemaPolicy::Require) => {
            Err(format!("pending migrations: {count}; run `avouch migrate`"))
        }
    };
    CheckRow::new("schema", result)
}

async fn redis(config: &Config) -> Vec<CheckRow> {
    let Some(redis) = &config.redis else { return vec![] };
    let answered = redis.ping().await.map(|()| format!("{redis:?}"));
    vec![CheckRow::new("redis", answered.map_err(|error| format!("{redis:?}: {error}")))]
}

async fn mail(config: &Config) -> Vec<CheckRow> {
    let Some(server) = &config.mailing.smtp else {
        let detail = "there is no smtp_url: mails are written to the data folder".into();
        return vec![CheckRow::warning("mail", detail)];
    };
    let answered = tokio::time::timeout(RESPONSE_TIMEOUT, server.check()).await;
    let answered = answered.unwrap_or_else(|_| Err(timed_out()));
    let answered = answered.map(|()| format!("{server:?}"));
    vec![CheckRow::new("mail", answered.map_err(|error| format!("{server:?}: {error}")))]
}

async fn storage(config: &Config) -> Vec<CheckRow> {
    let answered = match &config.storage {
        ObjectStorage::Folder(folder) => match fs::metadata(folder) {
            Ok(found) if found.is_dir() => Ok(folder.display().to_string()),
            Ok(_) => Err(format!("{} is no folder", folder.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(format!("{} is made at the first start", folder.display()))
            }
            Err(error) => Err(format!("{}: {error}", folder.display())),
        },
        bucket @ ObjectStorage::Bucket { url, .. } => {
            let listed = tokio::time::timeout(RESPONSE_TIMEOUT, listed(bucket)).await;
            let listed = listed.unwrap_or_else(|_| Err(timed_out().into()));
            listed.map(|()| url.clone()).map_err(|error| format!("{url}: {error}"))
        }
    };
    vec![CheckRow::new("recordings", answered)]
}

async fn listed(bucket: &ObjectStorage) -> Result<(), StartupError> {
    // Nothing is signed or encrypted, so that any keys will do.
    let links = LinkSigner::new(String::new(), &[0; 32], Arc::new(SystemClock));
    let cipher = Arc::new(XChaChaCipher::new(&[0; 32]));
    let vault = ObjectVault::open(bucket, cipher, links).map_err(error_chain)?;
    vault.check().await.map_err(error_chain)
}

fn timed_out() -> String {
    format!("no answer within {} s", RESPONSE_TIMEOUT.as_secs())
}
