//! The sandbox of browsers, which is set up once at the start as a test.

use std::path::Path;

use chromium::{Installation, Sandbox, write_root_certificates};

use crate::{
    config::Config,
    storage::{StartupError, error_chain},
};

/// The first argument with which `avouch` is started as the helper of a browser's sandbox.
pub const SANDBOX_ARGUMENT: &str = "jail";
/// Cores that one browser may use at once: a page that computes must not slow the others down.
pub(crate) const CORES_PER_BROWSER: usize = 3;

/// Returns the configured sandbox. Fails if the kernel or the container refuses it, since running
/// without one is the operator's decision. Logs which optional features are missing.
pub(crate) fn browser_sandbox(
    config: &Config,
    browser: &Path,
    program: &Path,
    browsers: &Path,
) -> Result<Sandbox, StartupError> {
    let policies = (!config.egress_roots.is_empty()).then(|| browsers.join("policies"));
    if let Some(folder) = &policies {
        write_root_certificates(folder, &config.egress_roots)?;
    }
    let sandbox = Sandbox {
        helper: program.to_owned(),
        arguments: vec![SANDBOX_ARGUMENT.to_owned()],
        installation: Installation::find(browser).map_err(error_chain)?,
        policies,
        cores: CORES_PER_BROWSER,
    };
    let missing = sandbox.check(&browsers.join("try")).map_err(|error| {
        let hint = error.hint();
        format!(
            "the browser sandbox cannot be set up: {}; {hint}, or set AVOUCH_BROWSER_JAIL=off to run \
             browsers without it",
            error_chain(error)
        )
    })?;
    tracing::info!("browsers run in a sandbox: {}", sandbox.summary());
    for missing in missing.descriptions() {
        tracing::warn!("browser sandbox: {missing}");
    }
    Ok(sandbox)
}
