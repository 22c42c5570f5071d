//! `avouch admin export-attestation`: an attestation as files.

use std::{fs, os::unix::fs::DirBuilderExt as _, path::Path};

use domain::id::SessionId;
use ports::driving::AttestationExportService;
use serde_json::{Value, json};

use crate::CommandError;

/// Writes the files to a folder. If it does not exist, it is created so that only its owner has
/// access.
pub(super) async fn export(
    attestations: &dyn AttestationExportService,
    session: SessionId,
    folder: &Path,
) -> Result<Value, CommandError> {
    let exported = attestations.export(session).await?;
    let created = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    created.map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    for file in exported.files {
        let path = folder.join(file.name);
        fs::write(&path, file.content)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    Ok(json!({ "proofHash": exported.proof.as_str(), "mode": exported.mode.as_str() }))
}
