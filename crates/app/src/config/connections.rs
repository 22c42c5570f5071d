//! The settings of the connections to the database and to Redis.

use std::{collections::BTreeMap, fs, io::Read as _, time::Duration};

use limits::{Redis, RedisTls};
use store::{DatabaseUrl, MigrationLimits, SchemaPolicy, Timeouts};

use super::values::{one_of, within};

const MAX_PEM_BYTES: u64 = 1 << 20;

/// Reads the address; if it is invalid, an error is recorded and the returned value is meaningless.
pub(super) fn database_url(url: &str, faults: &mut Vec<String>) -> DatabaseUrl {
    url.parse().unwrap_or_else(|error| {
        faults.push(format!("database_url {error}"));
        DatabaseUrl::Sqlite(String::new())
    })
}

pub(super) fn timeouts(values: &BTreeMap<String, String>, faults: &mut Vec<String>) -> Timeouts {
    let default = Timeouts::default();
    let mut seconds = |key: &str, default: Duration, most: u64| match values.get(key) {
        Some(given) => Duration::from_secs(within(given, key, 1..=most, faults)),
        None => default,
    };
    Timeouts {
        pool: seconds("database_pool_seconds", default.pool, 60),
        connect: seconds("database_connect_seconds", default.connect, 60),
        statement: seconds("database_statement_seconds", default.statement, 600),
    }
}

/// Reads what happens to the schema when the database is opened.
pub(super) fn schema_policy(
    word: &str,
    limits: MigrationLimits,
    faults: &mut Vec<String>,
) -> SchemaPolicy {
    if one_of(word, "migrate", "at_start", "never", faults) {
        SchemaPolicy::Migrate(limits)
    } else {
        SchemaPolicy::Require
    }
}

pub(super) fn redis(values: &BTreeMap<String, String>, faults: &mut Vec<String>) -> Option<Redis> {
    let mut pem = |key: &str| {
        let read = values.get(key).map(|file| {
            let mut text = vec![];
            let file = fs::File::open(file).map_err(|error| format!("{file}: {error}"))?;
            let read = file.take(MAX_PEM_BYTES).read_to_end(&mut text);
            read.map(|_| text).map_err(|error| error.to_string())
        });
        read.transpose().unwrap_or_else(|error| {
            faults.push(format!("{key} cannot be read: {error}"));
            None
        })
    };
    let (roots, certificate, key) = (pem("redis_roots"), pem("redis_cert"), pem("redis_key"));
    let given = |key: &str| values.contains_key(key);
    if given("redis_cert") != given("redis_key") {
        faults.push("redis_cert and redis_key need each other".into());
    }
    let tls = RedisTls { roots, identity: certificate.zip(key) };
    let Some(url) = values.get("redis_url") else {
        if given("redis_roots") || given("redis_cert") || given("redis_key") {
            faults.push("redis_roots, redis_cert and redis_key need redis_url".into());
        }
        return None;
    };
    Redis::new(url, tls).map_err(|error| faults.push(error.to_string())).ok()
}
