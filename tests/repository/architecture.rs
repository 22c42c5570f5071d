//! Layers: which crate may depend on which, and which parts of a crate may use which technology.

use std::{collections::BTreeSet, fs, path::Path};

use acceptance::{root, sources};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

/// Every crate of the workspace, with the crates of the workspace that it may depend on.
const LAYERS: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("ports", &["domain"]),
    ("application", &["domain", "ports"]),
    ("authoring", &["domain", "ports"]),
    ("testkit", &["domain", "ports"]),
    ("memory-store", &["domain", "ports"]),
    ("documentation", &[]),
    ("embed", &[]),
    ("jpeg-delta", &[]),
    ("attestation", &[]),
    ("avouch-verify", &["attestation"]),
    ("breached-passwords", &[]),
    ("worker-process", &[]),
    ("log-format", &[]),
    ("attestor", &["attestation", "http-client", "domain", "worker-process", "log-format"]),
    ("prover", &["attestation", "domain", "worker-process", "ports"]),
    ("probe", &["attestation", "domain", "prover"]),
    ("chromium", &["domain", "jpeg-delta", "ports"]),
    ("http-client", &["domain"]),
    ("identity", &["http-client", "domain", "ports"]),
    ("messaging", &["http-client", "domain", "ports"]),
    ("passkeys", &["domain", "ports"]),
    ("portal", &["domain", "ports"]),
    ("command-line", &["domain", "ports"]),
    ("definition-syntax", &["domain", "ports"]),
    ("credentials", &["domain", "breached-passwords", "ports"]),
    ("http-api", &["documentation", "domain", "embed", "jpeg-delta", "ports"]),
    ("instances", &["ports"]),
    ("limits", &["domain", "ports"]),
    ("objects", &["domain", "jpeg-delta", "ports"]),
    ("sandbox", &["domain", "ports"]),
    ("store", &["domain", "ports"]),
    ("studio", &["authoring", "ports"]),
    ("system", &["domain", "ports"]),
    ("traces", &["domain", "http-client", "ports"]),
    ("webhooks", &["domain", "http-client", "ports"]),
    (
        "app",
        &[
            "application",
            "attestation",
            "attestor",
            "authoring",
            "http-client",
            "chromium",
            "command-line",
            "credentials",
            "definition-syntax",
            "domain",
            "http-api",
            "identity",
            "instances",
            "limits",
            "log-format",
            "objects",
            "messaging",
            "passkeys",
            "portal",
            "ports",
            "probe",
            "prover",
            "sandbox",
            "store",
            "studio",
            "system",
            "traces",
            "webhooks",
        ],
    ),
    ("demo", &[]),
    ("receiver", &[]),
    ("simulation", &["application", "domain", "ports"]),
    ("postgres-server", &[]),
    ("xtask", &["breached-passwords", "documentation", "postgres-server"]),
    ("acceptance", &["chromium", "demo", "postgres-server", "testkit"]),
];

/// The foreign crates that an inner crate may depend on. Outer crates may depend on any.
const OUTSIDE: &[(&str, &[&str])] = &[
    (
        "domain",
        &["chrono", "regex", "schemars", "serde", "serde_json", "strsim", "thiserror", "uuid"],
    ),
    (
        "ports",
        &[
            "async-trait",
            "chrono",
            "mockall",
            "serde_json",
            "thiserror",
            "unicode-normalization",
            "uuid",
        ],
    ),
    (
        "application",
        &[
            "async-trait",
            "base64",
            "chrono",
            "futures-util",
            "metrics",
            "serde_json",
            "sha2",
            "thiserror",
            "tokio",
            "tokio-util",
            "tracing",
            "url",
            "uuid",
        ],
    ),
    (
        "authoring",
        &[
            "async-trait",
            "base64",
            "chrono",
            "cssparser",
            "serde",
            "serde_json",
            "thiserror",
            "tokio",
            "tracing",
            "url",
        ],
    ),
    (
        "memory-store",
        &["async-trait", "chrono", "serde_json", "serde_json_canonicalizer", "sha2", "uuid"],
    ),
    ("embed", &["sha2"]),
    ("breached-passwords", &["sha2"]),
    ("jpeg-delta", &["thiserror"]),
    ("worker-process", &["rustix", "thiserror", "tokio"]),
    ("log-format", &["tracing", "tracing-subscriber"]),
    (
        "attestation",
        &[
            "base64",
            "bellpepper",
            "bellpepper-core",
            "bincode",
            "chacha20",
            "ct-merkle",
            "ed25519-dalek",
            "ff",
            "halo2curves",
            "minicbor",
            "poly1305",
            "rayon",
            "ring",
            "rustls-pki-types",
            "rustls-webpki",
            "serde",
            "serde_json",
            "sha2",
            "spartan2",
            "subtle",
            "thiserror",
        ],
    ),
];

/// Words of a technology, and the only folders whose code may contain them.
const TECHNOLOGIES: &[(&str, &[&str])] = &[
    ("diesel_async", &["crates/adapters/store"]),
    (
        "actix_web",
        &[
            "crates/adapters/http-api",
            "crates/adapters/studio",
            "crates/adapters/sandbox",
            "crates/adapters/portal",
            "crates/dev/demo",
            "docs/receivers/rust",
            "crates/app/src/service.rs",
            "tests/benches/api.rs",
        ],
    ),
    ("actix_ws", &["crates/adapters/http-api"]),
    (
        "hyper",
        &[
            "crates/adapters/chromium/src/client",
            "crates/adapters/instances",
            "crates/adapters/traces",
            "crates/adapters/webhooks",
            "crates/http-client",
            "crates/dev/demo",
            "crates/attestation/prover/tests",
            "docs/receivers/rust",
            "tests",
        ],
    ),
    ("opentelemetry", &["crates/adapters/traces", "tests"]),
    ("Utc::now", &["crates/adapters/system/src/clock.rs"]),
    ("now_v7", &["crates/adapters/system/src/clock.rs"]),
];

#[test]
fn crates_depend_only_on_the_layers_below() {
    let metadata = metadata();
    let ours: BTreeSet<_> =
        metadata.workspace_packages().iter().map(|p| p.name.to_string()).collect();
    let listed: BTreeSet<_> = LAYERS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(ours, listed, "a crate was added or removed: give it a layer");

    for (name, allowed) in LAYERS {
        for dependency in dependencies(&metadata, name).filter(|d| ours.contains(d)) {
            assert!(
                allowed.contains(&dependency.as_str()),
                "`{name}` must not depend on `{dependency}`"
            );
        }
    }
}

#[test]
fn inner_crates_have_only_the_listed_foreign_dependencies() {
    let metadata = metadata();
    let ours: Vec<_> = LAYERS.iter().map(|(name, _)| *name).collect();
    for (name, allowed) in OUTSIDE {
        let outside = dependencies(&metadata, name).filter(|d| !ours.contains(&d.as_str()));
        for dependency in outside {
            assert!(
                allowed.contains(&dependency.as_str()),
                "`{name}` must not depend on the foreign crate `{dependency}`"
            );
        }
    }
}

#[test]
fn a_technology_is_named_only_by_its_adapter() {
    for file in sources() {
        let place = file.strip_prefix(root()).unwrap().display().to_string();
        let text = fs::read_to_string(&file).unwrap();
        for (word, homes) in TECHNOLOGIES {
            let at_home = homes.iter().any(|home| Path::new(&place).starts_with(home));
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let named = code.filter(|line| !line.contains('"')).any(|line| line.contains(word));
            assert!(at_home || !named, "{place} must not name {word}");
        }
    }
}

fn metadata() -> Metadata {
    MetadataCommand::new().no_deps().exec().unwrap()
}

/// Returns the names of a crate's dependencies, without those of its tests.
fn dependencies(metadata: &Metadata, name: &str) -> impl Iterator<Item = String> {
    let packages = metadata.workspace_packages();
    let package = packages.into_iter().find(|package| package.name.as_str() == name).unwrap();
    let built_from = package.dependencies.iter().filter(|d| d.kind != DependencyKind::Development);
    built_from.map(|d| d.name.clone()).collect::<Vec<_>>().into_iter()
}
