//! `avouch admin export-attestation`.

use std::{fs, path::Path};

use attestation::signed::hex;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::id::SessionId;
use ports::attestor::{AttestationPackage, AttestationStore as _};
use sandbox::SiteCertificate;
use serde_json::{Value, json};
use store::Store;
use system::data_dir::private_folder;

use super::Failure;
use crate::{config::Config, storage::error_chain};

/// Writes `attestation.cbor`, `disclosure.cbor`, `session.json`, `issuers.json`, `roots.pem`;
/// `evidence.cbor` where no credentials are in it, and `inclusion.tlog-proof` where it is in a log.
pub(super) async fn export(
    config: &Config,
    store: &Store,
    session: SessionId,
    out: &Path,
) -> Result<Value, Failure> {
    let found = store.attestation(session).await.map_err(error_chain)?;
    let (proof, package) =
        found.ok_or_else(|| format!("session {session} has no attestation, or it was erased"))?;
    private_folder(out).map_err(error_chain)?;
    let write = |name: &str, bytes: &[u8]| {
        let path = out.join(name);
        fs::write(&path, bytes).map_err(|error| format!("cannot write {}: {error}", path.display()))
    };
    write("attestation.cbor", &package.attestation)?;
    write("disclosure.cbor", &package.disclosure)?;
    if let Some(evidence) = &package.evidence {
        write("evidence.cbor", evidence)?;
    }
    if let Some(inclusion) = &package.inclusion {
        write("inclusion.tlog-proof", inclusion)?;
    }
    write("issuers.json", pretty(&issuers(&package)).as_bytes())?;
    write("session.json", pretty(&named(session, &package)).as_bytes())?;
    write("roots.pem", roots(config).as_bytes())?;
    Ok(json!({ "proofHash": proof.as_str(), "mode": package.mode.as_str() }))
}

/// The key as this service was told to believe it; somebody else asks its holder.
fn issuers(package: &AttestationPackage) -> Value {
    let issuer = &package.issuer;
    json!({ "issuers": [{
        "name": "the attestor's key as this service is configured to believe it",
        "publicKey": hex(&issuer.public_key),
        "validFrom": issuer.valid_from,
        "validTo": issuer.valid_to,
    }] })
}

/// What makes the session's name in the attestation.
fn named(session: SessionId, package: &AttestationPackage) -> Value {
    json!({ "sessionId": session, "salt": hex(&package.salt) })
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// The system's roots and the operator's.
fn roots(config: &Config) -> String {
    let own = config
        .egress_roots
        .iter()
        .cloned()
        .chain(SiteCertificate::existing_root(&config.sandbox_folder()));
    let system = rustls_native_certs::load_native_certs().certs;
    let all = own.chain(system.into_iter().map(|root| root.to_vec()));
    let block = |der: Vec<u8>| {
        let text = STANDARD.encode(der);
        let lines: Vec<_> = text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
        format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
    };
    all.map(block).collect()
}
