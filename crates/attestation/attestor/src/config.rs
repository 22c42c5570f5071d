//! The attestor's configuration: one TOML file.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use attestation::{
    descriptor::Descriptor, signed::unhex, tlog::is_key_name, trust_list::is_valid_name,
};
use domain::egress::Egress;
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use serde::Deserialize;

use crate::{AllowedClients, AttestorLimits, Settings, default_origin};

const MAX_DESCRIPTOR_BYTES: u64 = 64 * 1024;
const MAX_DESCRIPTORS: usize = 10_000;

/// A validated configuration.
pub struct AttestorConfig {
    pub listen: SocketAddr,
    pub settings: Settings,
}

/// All errors of a configuration.
#[derive(Debug, thiserror::Error)]
#[error("invalid configuration: {}", .0.join("; "))]
pub struct ConfigError(Vec<String>);

/// The configuration as the file contains it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigFile {
    listen: SocketAddr,
    name: String,
    keys: PathBuf,
    log: PathBuf,
    log_origin: Option<String>,
    /// A folder of JSON files.
    descriptors: PathBuf,
    /// PEM; the system's root certificates if absent.
    roots: Option<PathBuf>,
    #[serde(default)]
    egress_allow: String,
    #[serde(default)]
    tokens_sha256: Vec<String>,
    conversations: Option<usize>,
    conversations_per_client: Option<usize>,
    examinations: Option<usize>,
    queue: Option<usize>,
    relay_seconds: Option<u64>,
    proving_seconds: Option<u64>,
    waiting_seconds: Option<u64>,
    examining_seconds: Option<u64>,
    /// Addresses of servers that are not resolved by DNS.
    #[serde(default)]
    hosts: std::collections::BTreeMap<String, SocketAddr>,
}

impl AttestorConfig {
    /// Reads a configuration file. Relative paths are relative to its folder. Without tokens no
    /// client is served, and an attestor with such a configuration does not start.
    ///
    /// # Errors
    /// Returns all errors of the configuration at once.
    pub fn load(path: &Path, program: PathBuf) -> Result<Self, ConfigError> {
        let error_in_file = |why: String| ConfigError(vec![format!("{}: {why}", path.display())]);
        let text = fs::read_to_string(path).map_err(|error| error_in_file(error.to_string()))?;
        let file: ConfigFile = toml::from_str(&text)
            .map_err(|error| error_in_file(error.message().replace('\n', " ")))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut errors = vec![];
        let descriptors = read_descriptors(&folder.join(&file.descriptors), &mut errors);
        let roots = read_roots(file.roots.map(|roots| folder.join(roots)).as_deref(), &mut errors);
        let egress = Egress::allowing(&file.egress_allow);
        let egress = egress.map_err(|error| errors.push(format!("egress_allow: {error}")));
        let tokens: Vec<_> =
            file.tokens_sha256.iter().filter_map(|text| parse_hash(text)).collect();
        if tokens.len() < file.tokens_sha256.len() {
            errors.push("tokens_sha256: each must be 64 lower-case hexadecimal digits".into());
        }
        let defaults = AttestorLimits::default();
        let mut within = |value: Option<u64>, defaults: Duration, max: u64, key: &str| {
            let seconds = value.unwrap_or(defaults.as_secs());
            if !(1..=max).contains(&seconds) {
                errors.push(format!("{key} must be 1 to {max}"));
            }
            Duration::from_secs(seconds)
        };
        let bounds = AttestorLimits {
            relay_timeout: within(file.relay_seconds, defaults.relay_timeout, 300, "relay_seconds"),
            proving_timeout: within(
                file.proving_seconds,
                defaults.proving_timeout,
                3600,
                "proving_seconds",
            ),
            // The sum of both is the longest time that a prover waits.
            queue_timeout: within(
                file.waiting_seconds,
                defaults.queue_timeout,
                120,
                "waiting_seconds",
            ),
            examination_timeout: within(
                file.examining_seconds,
                defaults.examination_timeout,
                480,
                "examining_seconds",
            ),
            conversations: file.conversations.unwrap_or(defaults.conversations).clamp(1, 10_000),
            per_client: file
                .conversations_per_client
                .unwrap_or(defaults.per_client)
                .clamp(1, 10_000),
            examinations: file.examinations.unwrap_or(defaults.examinations).clamp(1, 64),
            queue: file.queue.unwrap_or(defaults.queue).min(10_000),
        };
        if file.name.is_empty() || !is_valid_name(&file.name) {
            errors.push("name must be 1 to 200 bytes without control characters".into());
        }
        let origin = file.log_origin.unwrap_or_else(|| default_origin(&file.name));
        if !is_key_name(&origin) {
            errors.push("log_origin must be 1 to 200 characters, without spaces and `+`".into());
        }
        if !errors.is_empty() {
            return Err(ConfigError(errors));
        }
        let settings = Settings {
            log_origin: origin,
            name: file.name,
            keys: folder.join(file.keys),
            log: folder.join(file.log),
            descriptors,
            roots,
            hosts: file.hosts.into_iter().collect(),
            egress: egress.unwrap_or_default(),
            clients: AllowedClients::Tokens(tokens),
            limits: bounds,
            program,
        };
        Ok(Self { listen: file.listen, settings })
    }
}

fn read_descriptors(folder: &Path, errors: &mut Vec<String>) -> Vec<Descriptor> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            errors.push(format!("descriptors: {}: {error}", folder.display()));
            return vec![];
        }
    };
    let mut read = |path: PathBuf| {
        let descriptor = read_descriptor(&path);
        descriptor.map_err(|why| errors.push(format!("{}: {why}", path.display()))).ok()
    };
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    let json = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
    paths.filter(json).take(MAX_DESCRIPTORS).filter_map(&mut read).collect()
}

fn read_descriptor(path: &Path) -> Result<Descriptor, String> {
    let length = fs::metadata(path).map_err(|error| error.to_string())?.len();
    if length > MAX_DESCRIPTOR_BYTES {
        return Err(format!("it is longer than {MAX_DESCRIPTOR_BYTES} bytes"));
    }
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let descriptor: Descriptor =
        serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    descriptor.check().map_err(|error| error.to_string())?;
    Ok(descriptor)
}

fn read_roots(file: Option<&Path>, errors: &mut Vec<String>) -> Vec<Vec<u8>> {
    let found = match file {
        None => rustls_native_certs::load_native_certs().certs,
        Some(path) => match CertificateDer::pem_file_iter(path).map(Iterator::collect) {
            Ok(Ok(found)) => found,
            Ok(Err(error)) | Err(error) => {
                errors.push(format!("roots: {}: {error}", path.display()));
                return vec![];
            }
        },
    };
    if found.is_empty() {
        errors.push("roots: there is no certificate that can serve as a trust anchor".into());
    }
    found.into_iter().map(|root| root.to_vec()).collect()
}

fn parse_hash(text: &str) -> Option<[u8; 32]> {
    unhex(text)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::{AttestorServer, AttestorStartError, new_key, now};

    /// Loads a configuration with these lines added to the required ones.
    fn load(lines: &str) -> (TempDir, Result<AttestorConfig, ConfigError>) {
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["root.test".to_owned()]).unwrap();
        fs::write(folder.path().join("roots.pem"), made.cert.pem()).unwrap();
        fs::create_dir(folder.path().join("descriptors")).unwrap();
        let file = folder.path().join("attestor.toml");
        let required = "listen = \"127.0.0.1:0\"\nname = \"us\"\nkeys = \"keys\"\nlog = \"log\"\n\
                      descriptors = \"descriptors\"\nroots = \"roots.pem\"\n";
        fs::write(&file, format!("{required}{lines}")).unwrap();
        let program = std::env::current_exe().unwrap();
        let config = AttestorConfig::load(&file, program);
        (folder, config)
    }

    #[test]
    fn absent_settings_have_defaults_and_present_ones_are_used() {
        let bounds = load("").1.unwrap().settings.limits;
        assert_eq!(format!("{bounds:?}"), format!("{:?}", AttestorLimits::default()));
        let lines = "relay_seconds = 20\nproving_seconds = 90\nwaiting_seconds = 5\n\
                     examining_seconds = 40\nconversations = 9\nconversations_per_client = 3\n\
                     examinations = 2\nqueue = 0";
        let bounds = load(lines).1.unwrap().settings.limits;
        let seconds = [
            bounds.relay_timeout,
            bounds.proving_timeout,
            bounds.queue_timeout,
            bounds.examination_timeout,
        ];
        assert_eq!(seconds.map(|time| time.as_secs()), [20, 90, 5, 40]);
        let counts = [bounds.conversations, bounds.per_client, bounds.examinations, bounds.queue];
        assert_eq!(counts, [9, 3, 2, 0]);
    }

    #[test]
    fn every_time_and_count_has_bounds() {
        for (key, most) in [
            ("relay_seconds", 300),
            ("proving_seconds", 3600),
            ("waiting_seconds", 120),
            ("examining_seconds", 480),
        ] {
            for (seconds, is_taken) in [(0, false), (1, true), (most, true), (most + 1, false)] {
                let (_folder, config) = load(&format!("{key} = {seconds}"));
                assert_eq!(config.is_ok(), is_taken, "{key} = {seconds}");
                if let Err(error) = config {
                    assert!(error.to_string().contains(&format!("{key} must be 1 to {most}")));
                }
            }
        }
        let many = "conversations = 0\nconversations_per_client = 99999\nexaminations = 99999\n\
                    queue = 99999";
        let bounds = load(many).1.unwrap().settings.limits;
        let counts = [bounds.conversations, bounds.per_client, bounds.examinations, bounds.queue];
        assert_eq!(counts, [1, 10_000, 64, 10_000]);
        for lines in ["unknown = 1", "tokens_sha256 = [\"AB\"]", "log_origin = \"a b\""] {
            assert!(load(lines).1.is_err(), "{lines}");
        }
    }

    #[test]
    fn an_attestor_without_tokens_does_not_start() {
        let start = |lines: &str| {
            let (folder, config) = load(lines);
            let settings = config.unwrap().settings;
            new_key(&settings.keys, now(), 1).unwrap();
            (folder, AttestorServer::new(settings).map(drop))
        };
        assert!(matches!(start("").1, Err(AttestorStartError::Clients)));
        let token = format!("tokens_sha256 = [\"{}\"]", "ab".repeat(32));
        start(&token).1.unwrap();
    }
}
