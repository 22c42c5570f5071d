//! `cargo xtask docs`: the documentation site as files, to read it without the service.

use std::{fs, path::Path};

use crate::{Failure, command::root};

/// Writes the site, which the build of the crate `documentation` makes. The API reference is empty in
/// it: the service makes that from its interface description.
pub(crate) fn docs() -> Result<(), Failure> {
    let folder = root().join("target/docs");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    for (name, file) in documentation::files() {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        fs::write(path, file.content)?;
    }
    println!("{}", folder.join("index.html").display());
    Ok(())
}
