//! The programs that examine and prove in the tests.

use std::path::{Path, PathBuf};

/// Creates a program that does nothing.
pub(crate) fn hanging(folder: &Path) -> PathBuf {
    let program = folder.join("hanging");
    std::fs::write(&program, "#!/bin/sh\nexec sleep 60\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&program, mode).unwrap();
    program
}

/// Returns the path of the example program next to this test.
pub(crate) fn workers() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let workers = test.ancestors().nth(2).unwrap().join("examples/workers");
    assert!(workers.exists(), "build it first: cargo build -p prover --example workers");
    workers
}
