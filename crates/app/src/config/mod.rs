//! The settings of the service: a TOML file, and an environment variable for each key, which takes
//! precedence.

mod attestation;
mod browsers;
mod connections;
mod durations;
mod files;
mod identity;
mod instances;
mod mailing;
mod messages;
mod names;
mod regions;
mod roles;
mod sign_ins;
mod traces;
mod values;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use ::traces::TraceConfig;
use application::settings::{Addresses, Limits, SignInPolicy};
use chrono::TimeDelta;
use domain::{
    egress::{Egress, Networks},
    egress_proxy::EgressProxies,
    fairness::Quotas,
    webhook::Backoff,
};
use limits::Redis;
use objects::ObjectStorage;
use store::{DatabaseUrl, Encryption, MigrationLimits, SchemaPolicy, Timeouts};
use system::encryption::EncryptionKeys;

pub(crate) use self::names::is_setting;
pub use self::{
    attestation::AttestationConfig,
    browsers::BrowserConfig,
    instances::{HostConfig, HostIdentityConfig, InstanceConfig},
    mailing::MailConfig,
    messages::MessageConfig,
    roles::Roles,
};
use self::{
    attestation::attesting,
    browsers::{browsers, quotas},
    connections::{database_url, redis, schema_policy, timeouts},
    durations::{drain_times, retentions},
    identity::identity,
    instances::{host_identity, instances},
    mailing::mailing,
    names::{KEYS, SECRETS, variable_of},
    regions::addresses,
    roles::{has_no_browsers, roles},
    sign_ins::sign_ins,
    traces::traces,
    values::{
        checked_url, country_codes, encryption, limits, one_of, read_file, roots, seal_keys,
        socket, storage, within,
    },
};

/// A validated configuration.
#[derive(Debug, Clone)]
pub struct Config {
    pub listen: SocketAddr,
    pub roles: Roles,
    pub addresses: Addresses,
    pub data_dir: PathBuf,
    pub database_url: DatabaseUrl,
    /// The timeouts of the database.
    pub timeouts: Timeouts,
    /// Whether the schema is migrated when the database is opened.
    pub schema: SchemaPolicy,
    /// The bounds of migrations, also of those that a command applies.
    pub migration_limits: MigrationLimits,
    /// The keys that encrypt secrets in the database, before the key in the data folder.
    pub seal_keys: EncryptionKeys,
    /// Whether applicants' data is encrypted in the database.
    pub encryption: Encryption,
    /// The storage of recordings.
    pub storage: ObjectStorage,
    pub browser: BrowserConfig,
    /// The maximum number of browsers in this process, including warm ones.
    pub browsers: usize,
    /// The quotas of browsers.
    pub quotas: Quotas,
    /// How long a session waits for a browser.
    pub queue_patience: TimeDelta,
    /// How long sessions may go on after the process was asked to stop.
    pub drain: Duration,
    /// How long the process goes on answering requests after it was asked to stop, also without sessions;
    /// not longer than [`Self::drain`].
    pub drain_min: Duration,
    /// The number of browsers that are started in advance.
    pub browsers_warm: usize,
    pub egress: Egress,
    /// Certificates (DER) that browsers and webhooks trust in addition to the usual ones.
    pub egress_roots: Vec<Vec<u8>>,
    /// The egress proxies of browsers; empty for direct connections.
    pub exits: EgressProxies,
    pub attesting: AttestationConfig,
    /// A URL that returns the country from which a request came.
    pub exit_check: Option<String>,
    pub webhook_backoff: Backoff,
    pub mailing: MailConfig,
    /// The identity provider of the portal.
    pub identity: Option<::identity::ClientRegistration>,
    pub sign_ins: SignInPolicy,
    /// ISO 3166-1 alpha-2 codes; `None` offers all.
    pub countries: Option<Vec<String>>,
    /// How other instances reach this one; `None` for a process that is alone.
    pub instances: Option<InstanceConfig>,
    /// How a browser host is reached; `None` without an address for instances.
    pub host_identity: Option<HostIdentityConfig>,
    /// The Redis server that counts limits for all processes; `None` to count in this process.
    pub redis: Option<Redis>,
    pub limits: Limits,
    /// The trusted reverse proxies.
    pub trusted_proxies: Networks,
    /// How long the data of a closed session is retained.
    pub retention: TimeDelta,
    pub session_retention: TimeDelta,
    /// The address of the metrics, if it is not the main one.
    pub metrics_listen: Option<SocketAddr>,
    /// Where traces are sent; `None` to record none.
    pub traces: Option<TraceConfig>,
    /// What is logged, as a filter of the `tracing` form; `None` for what the command logs by default.
    pub log: Option<String>,
    pub log_json: bool,
}

/// All errors of a configuration.
#[derive(Debug, thiserror::Error)]
#[error("the configuration cannot be used: {}", .0.join("; "))]
pub struct InvalidConfig(Vec<String>);

impl Config {
    /// Reads the configuration from the file, if there is one, and the environment.
    ///
    /// # Errors
    /// All errors at once.
    pub fn load(
        file: Option<&Path>,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, InvalidConfig> {
        let (config, faults) = Self::read(file, environment);
        if faults.is_empty() { Ok(config) } else { Err(InvalidConfig(faults)) }
    }

    /// Returns the folder of the sandbox platform's certificate.
    pub(crate) fn sandbox_folder(&self) -> PathBuf {
        self.data_dir.join("sandbox")
    }

    /// The same with what is wrong beside it; where there is something, the values that are wrong
    /// have no meaning.
    pub(crate) fn read(
        file: Option<&Path>,
        environment: impl Fn(&str) -> Option<String>,
    ) -> (Self, Vec<String>) {
        let mut faults = Vec::new();
        let mut values = match file {
            Some(path) => read_file(path, &mut faults),
            None => BTreeMap::new(),
        };
        files::take(&mut values, &mut faults);
        for key in KEYS {
            let name = variable_of(key);
            if let Some(value) = files::variable(&name, key, &environment, &mut faults) {
                values.insert((*key).to_owned(), value);
            }
        }
        let config = Self::of(&values, &mut faults);
        (config, faults)
    }

    fn of(values: &BTreeMap<String, String>, faults: &mut Vec<String>) -> Self {
        let text = |key: &str, default: &str| {
            values.get(key).map_or_else(|| default.to_owned(), Clone::clone)
        };
        let data_dir = PathBuf::from(text("data_dir", "./var"));
        let database = format!("sqlite://{}", data_dir.join("avouch.db").to_string_lossy());
        let listen = socket(&text("listen", "127.0.0.1:8080"), "listen", faults)
            .unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 8080)));
        let database_url = database_url(&text("database_url", &database), faults);
        let storage = storage(values.get("storage_url"), &data_dir, faults);
        let public_url = text("public_url", &format!("http://{listen}"));
        let addresses = addresses(values, &public_url, faults);
        let egress = Egress::allowing(&text("egress_allow", ""));
        let egress = egress.map_err(|error| faults.push(format!("egress_allow: {error}")));
        let exits = text("egress_proxy", "").parse::<EgressProxies>();
        let exits = exits.map_err(|error| faults.push(format!("egress_proxy: {error}")));
        let backoff = text("webhook_backoff", "5x6").parse::<Backoff>();
        let backoff = backoff.map_err(|error| faults.push(format!("webhook_backoff: {error}")));
        let roles = roles(values, faults);
        let instances = instances(values, faults);
        let browser = browsers(values, instances.as_ref(), faults);
        let egress_roots = roots(values.get("egress_roots"), &browser, faults);
        let runs_none = has_no_browsers(roles, &browser, instances.as_ref(), faults);
        let mut bounded =
            |key: &str, default: &str, range| within(&text(key, default), key, range, faults);
        // Another instance can run the browsers of all sessions.
        let least = u64::from(!values.contains_key("instance_listen"));
        let most = bounded("browsers", "16", least..=1000);
        let most = if runs_none { 0 } else { most };
        let warm = bounded("browsers_warm", "1", 0..=100);
        let (quotas, queue_patience) = quotas(values, most, &mut bounded);
        let (drain_min, drain) = drain_times(&mut bounded);
        let (retention, session_retention) = retentions(&mut bounded);
        let seconds = bounded("migration_seconds", "600", 1..=86_400);
        let migration_limits = MigrationLimits::for_migrations_of(Duration::from_secs(seconds));
        let countries = values.get("countries").map(|list| country_codes(list));
        let proxies = text("trusted_proxies", "").parse::<Networks>();
        let proxies = proxies.map_err(|error| faults.push(format!("trusted_proxies: {error}")));
        let metrics = values.get("metrics_listen");
        let metrics = metrics.and_then(|text| socket(text, "metrics_listen", faults));
        Self {
            listen,
            roles,
            addresses,
            data_dir,
            database_url,
            timeouts: timeouts(values, faults),
            schema: schema_policy(&text("migrate", "at_start"), migration_limits, faults),
            migration_limits,
            seal_keys: seal_keys(&text("seal_keys", ""), faults),
            encryption: encryption(&text("encryption", "on"), faults),
            storage,
            browser,
            browsers: usize::try_from(most).unwrap_or_default(),
            quotas,
            queue_patience,
            drain,
            drain_min,
            browsers_warm: usize::try_from(warm).unwrap_or_default(),
            egress: egress.unwrap_or_default(),
            egress_roots,
            exits: exits.unwrap_or_default(),
            attesting: attesting(values, faults),
            exit_check: checked_url(values.get("egress_check_url"), faults),
            webhook_backoff: backoff.unwrap_or_default(),
            mailing: mailing(values, &public_url, faults),
            identity: identity(values, faults),
            sign_ins: sign_ins(values, faults),
            countries,
            host_identity: host_identity(values, instances.as_ref()),
            instances,
            redis: redis(values, faults),
            limits: limits(values, faults),
            trusted_proxies: proxies.unwrap_or_default(),
            retention,
            session_retention,
            metrics_listen: metrics,
            traces: traces(values, faults),
            log: values.get("log").cloned(),
            log_json: one_of(&text("log_format", "text"), "log_format", "json", "text", faults),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_configuration_serves_on_loopback_with_sqlite() {
        let config = Config::load(None, |_| None).unwrap();
        assert_eq!(config.database_url.file(), Some("./var/avouch.db"));
        assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    }

    #[test]
    fn the_schema_is_migrated_at_the_start_unless_that_is_switched_off() {
        let load = |name: &'static str, value: &'static str| {
            Config::load(None, move |asked| (asked == name).then(|| value.to_owned()))
        };
        let config = load("AVOUCH_MIGRATION_SECONDS", "7").unwrap();
        let limits = MigrationLimits::for_migrations_of(Duration::from_secs(7));
        assert_eq!(config.schema, SchemaPolicy::Migrate(limits));
        assert_eq!(load("AVOUCH_MIGRATE", "never").unwrap().schema, SchemaPolicy::Require);
        for (name, value) in [("AVOUCH_MIGRATE", "no"), ("AVOUCH_MIGRATION_SECONDS", "0")] {
            let error = load(name, value).unwrap_err().to_string();
            assert!(error.contains("must be"), "{error}");
        }
    }

    #[test]
    fn the_variable_wins_over_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("avouch.toml");
        std::fs::write(&file, "listen = \"127.0.0.1:1\"\nbrowsers = 3\n").unwrap();
        let set = |name: &str| (name == "AVOUCH_LISTEN").then(|| "127.0.0.1:2".to_owned());
        let config = Config::load(Some(&file), set).unwrap();
        assert_eq!((config.listen.port(), config.browsers), (2, 3));
    }

    #[test]
    fn only_an_instance_among_others_runs_no_browsers() {
        let alone = |name: &str| (name == "AVOUCH_BROWSERS").then(|| "0".to_owned());
        let error = Config::load(None, alone).unwrap_err().to_string();
        assert!(error.contains("browsers"), "{error}");
        let among_others = |name: &str| {
            let value = match name {
                "AVOUCH_BROWSERS" => "0",
                "AVOUCH_INSTANCE_LISTEN" => "127.0.0.1:1",
                "AVOUCH_INSTANCE_CERT" | "AVOUCH_INSTANCE_KEY" | "AVOUCH_INSTANCE_ROOTS" => "a.pem",
                _ => return None,
            };
            Some(value.to_owned())
        };
        assert_eq!(Config::load(None, among_others).unwrap().browsers, 0);
    }

    #[test]
    fn a_process_with_the_role_api_alone_has_browsers_elsewhere() {
        let load = |role: &'static str| {
            Config::load(None, move |name| (name == "AVOUCH_ROLE").then(|| role.to_owned()))
        };
        let error = load("api,delivery").unwrap_err().to_string();
        assert!(error.contains("needs browser_hosts or instance_listen"), "{error}");
        assert_eq!(load("delivery").unwrap().browsers, 0);
        assert_eq!(load("browser").unwrap().browsers, 16);
    }

    #[test]
    fn all_faults_are_told_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("avouch.toml");
        std::fs::write(&file, "listn = \"x\"\nlisten = \"x\"\ndatabase_url = \"mysql://\"\n")
            .unwrap();
        let set = |name: &str| (name == "AVOUCH_WEBHOOK_BACKOFF").then(|| "fast".to_owned());
        let error = Config::load(Some(&file), set).unwrap_err().to_string();
        for part in ["`listn`", "listen must", "database_url must", "webhook_backoff"] {
            assert!(error.contains(part), "{error}");
        }
    }
}
