//! The attestor's configuration: one TOML file.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use attestation::{descriptor::Descriptor, signed::unhex, tlog::is_key_name, trust_list::is_name};
use domain::egress::Egress;
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use serde::Deserialize;

use crate::{Bounds, Clients, Settings, default_origin};

const LONGEST_DESCRIPTOR: u64 = 64 * 1024;
const MOST_DESCRIPTORS: usize = 10_000;

/// A validated configuration.
pub struct Config {
    pub listen: SocketAddr,
    pub settings: Settings,
}

/// All errors of a configuration.
#[derive(Debug, thiserror::Error)]
#[error("invalid configuration: {}", .0.join("; "))]
pub struct BadConfig(Vec<String>);

/// The configuration as the file contains it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
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

impl Config {
    /// Reads a configuration file. Relative paths are relative to its folder. Without tokens no
    /// client is served, and an attestor with such a configuration does not start.
    ///
    /// # Errors
    /// Returns all errors of the configuration at once.
    pub fn load(path: &Path, program: PathBuf) -> Result<Self, BadConfig> {
        let cannot = |why: String| BadConfig(vec![format!("{}: {why}", path.display())]);
        let text = fs::read_to_string(path).map_err(|error| cannot(error.to_string()))?;
        let file: File =
            toml::from_str(&text).map_err(|error| cannot(error.message().replace('\n', " ")))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut faults = vec![];
        let descriptors = descriptors(&folder.join(&file.descriptors), &mut faults);
        let roots = roots(file.roots.map(|roots| folder.join(roots)).as_deref(), &mut faults);
        let egress = Egress::allowing(&file.egress_allow);
        let egress = egress.map_err(|error| faults.push(format!("egress_allow: {error}")));
        let tokens: Vec<_> = file.tokens_sha256.iter().filter_map(|text| hash(text)).collect();
        if tokens.len() < file.tokens_sha256.len() {
            faults.push("tokens_sha256: each must be 64 lower-case hexadecimal digits".into());
        }
        let usual = Bounds::default();
        let mut within = |value: Option<u64>, usual: Duration, most: u64, key: &str| {
            let seconds = value.unwrap_or(usual.as_secs());
            if !(1..=most).contains(&seconds) {
                faults.push(format!("{key} must be 1 to {most}"));
            }
            Duration::from_secs(seconds)
        };
        let bounds = Bounds {
            relay: within(file.relay_seconds, usual.relay, 300, "relay_seconds"),
            proving: within(file.proving_seconds, usual.proving, 3600, "proving_seconds"),
            // The sum of both is the longest time that a prover waits.
            waiting: within(file.waiting_seconds, usual.waiting, 120, "waiting_seconds"),
            examining: within(file.examining_seconds, usual.examining, 480, "examining_seconds"),
            conversations: file.conversations.unwrap_or(usual.conversations).clamp(1, 10_000),
            per_client: file.conversations_per_client.unwrap_or(usual.per_client).clamp(1, 10_000),
            examinations: file.examinations.unwrap_or(usual.examinations).clamp(1, 64),
            queue: file.queue.unwrap_or(usual.queue).min(10_000),
        };
        if file.name.is_empty() || !is_name(&file.name) {
            faults.push("name must be 1 to 200 bytes without control characters".into());
        }
        let origin = file.log_origin.unwrap_or_else(|| default_origin(&file.name));
        if !is_key_name(&origin) {
            faults.push("log_origin must be 1 to 200 characters, without spaces and `+`".into());
        }
        if !faults.is_empty() {
            return Err(BadConfig(faults));
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
            clients: Clients::Known(tokens),
            bounds,
            program,
        };
        Ok(Self { listen: file.listen, settings })
    }
}

fn descriptors(folder: &Path, faults: &mut Vec<String>) -> Vec<Descriptor> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            faults.push(format!("descriptors: {}: {error}", folder.display()));
            return vec![];
        }
    };
    let mut read = |path: PathBuf| {
        let descriptor = read_descriptor(&path);
        descriptor.map_err(|why| faults.push(format!("{}: {why}", path.display()))).ok()
    };
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    let json = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
    paths.filter(json).take(MOST_DESCRIPTORS).filter_map(&mut read).collect()
}

fn read_descriptor(path: &Path) -> Result<Descriptor, String> {
    let length = fs::metadata(path).map_err(|error| error.to_string())?.len();
    if length > LONGEST_DESCRIPTOR {
        return Err(format!("it is longer than {MAX_DESCRIPTOR_BYTES} bytes"));
    }
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let descriptor: Descriptor =
        serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    descriptor.check().map_err(|error| error.to_string())?;
    Ok(descriptor)
}

fn roots(file: Option<&Path>, faults: &mut Vec<String>) -> Vec<Vec<u8>> {
    let found = match file {
        None => rustls_native_certs::load_native_certs().certs,
        Some(path) => match CertificateDer::pem_file_iter(path).map(Iterator::collect) {
            Ok(Ok(found)) => found,
            Ok(Err(error)) | Err(error) => {
                faults.push(format!("roots: {}: {error}", path.display()));
                return vec![];
            }
        },
    };
    if found.is_empty() {
        faults.push("roots: there is no certificate that can serve as a trust anchor".into());
    }
    found.into_iter().map(|root| root.to_vec()).collect()
}

fn hash(text: &str) -> Option<[u8; 32]> {
    unhex(text)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::{Attestor, StartError, new_key, now};

    /// Loads a configuration with these lines added to the required ones.
    fn load(lines: &str) -> (TempDir, Result<Config, BadConfig>) {
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["root.test".to_owned()]).unwrap();
        fs::write(folder.path().join("roots.pem"), made.cert.pem()).unwrap();
        fs::create_dir(folder.path().join("descriptors")).unwrap();
        let file = folder.path().join("attestor.toml");
        let needed = "listen = \"127.0.0.1:0\"\nname = \"us\"\nkeys = \"keys\"\nlog = \"log\"\n\
                      descriptors = \"descriptors\"\nroots = \"roots.pem\"\n";
        fs::write(&file, format!("{needed}{lines}")).unwrap();
        let program = std::env::current_exe().unwrap();
        let config = Config::load(&file, program);
        (folder, config)
    }

    #[test]
    fn what_is_not_said_is_as_usual_and_what_is_said_is_taken() {
        let bounds = load("").1.unwrap().settings.bounds;
        assert_eq!(format!("{bounds:?}"), format!("{:?}", Bounds::default()));
        let lines = "relay_seconds = 20\nproving_seconds = 90\nwaiting_seconds = 5\n\
                     examining_seconds = 40\nconversations = 9\nconversations_per_client = 3\n\
                     examinations = 2\nqueue = 0";
        let bounds = load(lines).1.unwrap().settings.bounds;
        let seconds = [bounds.relay, bounds.proving, bounds.waiting, bounds.examining];
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
        let bounds = load(many).1.unwrap().settings.bounds;
        let counts = [bounds.conversations, bounds.per_client, bounds.examinations, bounds.queue];
        assert_eq!(counts, [1, 10_000, 64, 10_000]);
        for lines in ["unknown = 1", "tokens_sha256 = [\"AB\"]", "log_origin = \"a b\""] {
            assert!(load(lines).1.is_err(), "{lines}");
        }
    }

    #[test]
    fn without_tokens_it_does_not_start() {
        let start = |lines: &str| {
            let (folder, config) = load(lines);
            let settings = config.unwrap().settings;
            new_key(&settings.keys, now(), 1).unwrap();
            (folder, Attestor::new(settings).map(drop))
        };
        assert!(matches!(start("").1, Err(StartError::Clients)));
        let token = format!("tokens_sha256 = [\"{}\"]", "ab".repeat(32));
        start(&token).1.unwrap();
    }
}
