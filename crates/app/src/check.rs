//! `avouch config check`: what is wrong with a configuration, all at once, and whether everything
//! that it names answers. Nothing is changed.

use std::{collections::BTreeSet, fmt::Write as _, fs, sync::Arc, time::Duration};

use objects::{LinkSigner, ObjectStorage, ObjectVault};
use system::{
    clock::SystemClock,
    encryption::EncryptionKeys,
    secret_key::{SecretKeyError, SecretKeys},
};

use crate::{
    config::{Config, is_setting},
    storage::{StartupError, error_chain},
};

/// How long a mail server or a bucket is waited for.
const ANSWER: Duration = Duration::from_secs(10);

/// One line of the table.
struct CheckRow {
    what: &'static str,
    state: CheckState,
    detail: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CheckState {
    Fine,
    /// Works, but an operator should know.
    Weak,
    Wrong,
}

impl CheckState {
    const fn word(self) -> &'static str {
        match self {
            Self::Fine => "ok",
            Self::Weak => "warning",
            Self::Wrong => "error",
        }
    }
}

impl CheckRow {
    fn of(what: &'static str, result: Result<String, String>) -> Self {
        let (state, detail) = match result {
            Ok(detail) => (CheckState::Fine, detail),
            Err(detail) => (CheckState::Wrong, detail),
        };
        Self { what, state, detail }
    }
}

/// Checks a configuration whose faults are known; answers the table and how many errors it has.
pub(crate) async fn check(
    config: &Config,
    faults: &[String],
    variables: impl Iterator<Item = String>,
) -> (String, usize) {
    let mut rows: Vec<_> =
        faults.iter().map(|fault| CheckRow::of("setting", Err(fault.clone()))).collect();
    let unknown: BTreeSet<_> = variables.filter(|name| !is_setting(name)).collect();
    rows.extend(unknown.iter().map(|name| {
        CheckRow::of(
            "setting",
            Err(format!("{name} is no setting of the service, and does nothing")),
        )
    }));
    if rows.is_empty() {
        rows.push(CheckRow::of("settings", Ok("understood".into())));
    }
    // What could not be read cannot be asked.
    let known = |key: &str| !faults.iter().any(|fault| fault.to_lowercase().contains(key));
    let (database, redis, mail, storage) = tokio::join!(
        async { if known("database_url") { database(config).await } else { vec![] } },
        async { if known("redis") { redis(config).await } else { vec![] } },
        async { if known("smtp_") { mail(config).await } else { vec![] } },
        async { if known("storage_url") { storage(config).await } else { vec![] } },
    );
    rows.extend([database, redis, mail, storage].into_iter().flatten());
    let wrong = rows.iter().filter(|row| row.state == CheckState::Wrong).count();
    (table(&rows), wrong)
}

async fn database(config: &Config) -> Vec<CheckRow> {
    let keys = SecretKeys::read(&config.data_dir).map_err(SecretKeyError::from);
    let probe = match config.database_url.probe(config.timeouts).await {
        Ok(probe) => probe,
        Err(error) => {
            let keys = keys.and_then(|keys| keys.compare(None));
            let error = error_chain(error).to_string();
            return vec![
                CheckRow::of("database", Err(error)),
                CheckRow::of("secret.key", keys.map_err(|error| error_chain(error).to_string())),
            ];
        }
    };
    let mut rows = vec![CheckRow::of("database", Ok(probe.found))];
    if let Some(weakness) = probe.weakness {
        let detail = format!("{weakness}: set sslmode=verify-full and sslrootcert");
        rows.push(CheckRow { what: "database", state: CheckState::Weak, detail });
    }
    let keys = keys.and_then(|keys| keys.compare(probe.fingerprint.as_deref()));
    rows.push(CheckRow::of("secret.key", keys.map_err(|error| error_chain(error).to_string())));
    rows
}

async fn redis(config: &Config) -> Vec<CheckRow> {
    let Some(redis) = &config.redis else { return vec![] };
    let answered = redis.ping().await.map(|()| format!("{redis:?}"));
    vec![CheckRow::of("redis", answered.map_err(|error| format!("{redis:?}: {error}")))]
}

async fn mail(config: &Config) -> Vec<CheckRow> {
    let Some(server) = &config.mailing.smtp else {
        let detail = "there is no smtp_url: mails are written to the data folder".into();
        return vec![CheckRow { what: "mail", state: CheckState::Weak, detail }];
    };
    let answered = tokio::time::timeout(ANSWER, server.check()).await;
    let answered = answered.unwrap_or_else(|_| Err(late()));
    let answered = answered.map(|()| format!("{server:?}"));
    vec![CheckRow::of("mail", answered.map_err(|error| format!("{server:?}: {error}")))]
}

async fn storage(config: &Config) -> Vec<CheckRow> {
    let answered = match &config.storage {
        ObjectStorage::Folder(folder) => match fs::metadata(folder) {
            Ok(there) if there.is_dir() => Ok(folder.display().to_string()),
            Ok(_) => Err(format!("{} is no folder", folder.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(format!("{} is made at the first start", folder.display()))
            }
            Err(error) => Err(format!("{}: {error}", folder.display())),
        },
        bucket @ ObjectStorage::Bucket { url, .. } => {
            let listed = tokio::time::timeout(ANSWER, listed(bucket)).await;
            let listed = listed.unwrap_or_else(|_| Err(late().into()));
            listed.map(|()| url.clone()).map_err(|error| format!("{url}: {error}"))
        }
    };
    vec![CheckRow::of("recordings", answered)]
}

async fn listed(bucket: &ObjectStorage) -> Result<(), StartupError> {
    // Neither links nor sealed parts are made: their keys do not matter.
    let links = LinkSigner::new(String::new(), &[0; 32], Arc::new(SystemClock));
    let seal =
        Arc::new(system::encryption::XChaChaCipher::with(&[0; 32], &EncryptionKeys::default()));
    let vault = ObjectVault::open(bucket, seal, links).map_err(error_chain)?;
    vault.check().await.map_err(error_chain)
}

fn late() -> String {
    format!("no answer within {} s", ANSWER.as_secs())
}

fn table(rows: &[CheckRow]) -> String {
    let width = rows.iter().map(|row| row.what.len()).max().unwrap_or(0);
    let mut table = String::new();
    for row in rows {
        let (what, state) = (row.what, row.state.word());
        let detail = row.detail.replace(['\n', '\r'], " ");
        // Writing to a string does not fail.
        let _ = writeln!(table, "{what:width$}  {state:7}  {detail}");
    }
    table
}
