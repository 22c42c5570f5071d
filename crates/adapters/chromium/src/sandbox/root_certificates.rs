//! Root certificates for browsers in addition to the built-in ones, as a managed policy.

use std::{
    fs::{Permissions, set_permissions},
    io,
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// The folders of managed policies of Chromium, Chrome and Chrome for Testing.
pub(super) const POLICY_FOLDERS: &[&str] =
    &["/etc/chromium", "/etc/opt/chrome", "/etc/opt/chrome_for_testing"];

/// Writes a folder for [`Sandbox::policies`](super::Sandbox::policies) with these certificates, in
/// DER.
///
/// # Errors
/// The folder cannot be written.
pub fn write_root_certificates(folder: &Path, roots: &[Vec<u8>]) -> io::Result<()> {
    let managed = folder.join("policies/managed");
    std::fs::create_dir_all(&managed)?;
    let roots: Vec<_> = roots.iter().map(|root| STANDARD.encode(root)).collect();
    let policy = serde_json::json!({ "CACertificates": roots });
    std::fs::write(managed.join("roots.json"), policy.to_string())?;
    // The browser's user must be able to read them.
    for part in [folder, &folder.join("policies"), &managed] {
        set_permissions(part, Permissions::from_mode(0o755))?;
    }
    set_permissions(managed.join("roots.json"), Permissions::from_mode(0o644))
}
