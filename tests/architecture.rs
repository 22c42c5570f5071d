//! Which crate may know which, and which parts of a crate know which technology: the layers, held
//! by a test.

use std::{collections::BTreeSet, fs, path::Path};

use acceptance::{root, sources};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

/// Every crate of ours, and those of ours it may be built from.
const LAYERS: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("ports", &["domain"]),
    ("testkit", &["domain", "ports"]),
    ("memory-store", &["domain", "ports"]),
    ("embed", &[]),
    ("mosaic", &[]),
    ("attestation", &[]),
    ("avouch-verify", &["attestation"]),
    ("frequent", &[]),
    ("jobs", &[]),
    ("logs", &[]),
    ("attestor", &["attestation", "calls", "domain", "jobs", "logs"]),
    ("prover", &["attestation", "domain", "jobs", "ports"]),
    ("cdp", &["domain", "ports"]),
    ("calls", &["domain"]),
    ("identity", &["calls", "domain", "ports"]),
    ("notify", &["calls", "domain", "ports"]),
    ("passkeys", &["domain", "ports"]),
    ("portal", &["domain", "ports"]),
    ("adapters", &["domain", "embed", "frequent", "mosaic", "portal", "ports"]),
    (
        "app",
        &[
            "adapters",
            "attestation",
            "attestor",
            "calls",
            "cdp",
            "domain",
            "identity",
            "logs",
            "mosaic",
            "notify",
            "passkeys",
            "portal",
            "ports",
            "prover",
        ],
    ),
    ("demo", &[]),
    ("receiver", &[]),
    ("xtask", &["frequent"]),
    ("acceptance", &["cdp", "demo", "testkit"]),
];

/// What an inner crate may bring in from outside. The outer ones are free.
const OUTSIDE: &[(&str, &[&str])] = &[
    ("domain", &["chrono", "serde", "serde_json", "thiserror", "uuid"]),
    ("ports", &["async-trait", "chrono", "mockall", "thiserror"]),
    ("memory-store", &["async-trait", "chrono", "serde_json", "sha2", "uuid"]),
    ("embed", &["sha2"]),
    ("frequent", &["sha2"]),
    ("mosaic", &["thiserror"]),
    ("jobs", &["rustix", "thiserror", "tokio"]),
    ("logs", &[]),
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

/// Words of a technology, and the only folders whose code may have them.
const TECHNOLOGIES: &[(&str, &[&str])] = &[
    ("diesel_async", &["crates/adapters/src/diesel"]),
    (
        "actix_web",
        &[
            "crates/adapters/src/http",
            "crates/adapters/src/sandbox",
            "crates/portal",
            "crates/demo",
            "docs/receivers/rust",
            "crates/app/src/service.rs",
            "tests/api_bench.rs",
        ],
    ),
    ("actix_ws", &["crates/adapters/src/http"]),
    (
        "hyper",
        &[
            "crates/cdp/src/client",
            "crates/adapters/src/outbound",
            "crates/calls",
            "crates/demo",
            "crates/prover/tests",
            "docs/receivers/rust",
            "tests",
        ],
    ),
    ("Utc::now", &["crates/adapters/src/system.rs"]),
    ("now_v7", &["crates/adapters/src/system.rs"]),
];

#[test]
fn crates_know_only_the_layers_below() {
    let metadata = metadata();
    let ours: BTreeSet<_> =
        metadata.workspace_packages().iter().map(|p| p.name.to_string()).collect();
    let listed: BTreeSet<_> = LAYERS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(ours, listed, "a crate came or went: give it a layer");

    for (name, allowed) in LAYERS {
        for dependency in dependencies(&metadata, name).filter(|d| ours.contains(d)) {
            assert!(
                allowed.contains(&dependency.as_str()),
                "`{name}` must not know `{dependency}`"
            );
        }
    }
}

#[test]
fn the_inner_crates_stay_free_of_technology() {
    let metadata = metadata();
    let ours: Vec<_> = LAYERS.iter().map(|(name, _)| *name).collect();
    for (name, allowed) in OUTSIDE {
        let outside = dependencies(&metadata, name).filter(|d| !ours.contains(&d.as_str()));
        for dependency in outside {
            assert!(
                allowed.contains(&dependency.as_str()),
                "`{name}` must not bring in `{dependency}`"
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

/// The names of what a crate is built from; what only its tests use is free.
fn dependencies(metadata: &Metadata, name: &str) -> impl Iterator<Item = String> {
    let packages = metadata.workspace_packages();
    let package = packages.into_iter().find(|package| package.name.as_str() == name).unwrap();
    let built_from = package.dependencies.iter().filter(|d| d.kind != DependencyKind::Development);
    built_from.map(|d| d.name.clone()).collect::<Vec<_>>().into_iter()
}
