//! The browsers' sandbox: set up once at the start, and what an operator does where it is refused.

use std::path::Path;

use chromium::{Installation, Sandbox, write_root_certificates};

use crate::{config::Config, storage::error_chain};

/// The first argument of `avouch` where it is the helper of a browser's sandbox.
pub const SANDBOX_ARGUMENT: &str = "jail";
/// Cores that one browser may use at once: a page that mines must not stop the others.
const CORES: usize = 3;
/// What an operator can do about a step that is refused, by the beginning of the error.
const HINTS: &[(&str, &str)] = &[
    (
        "namespaces, as root",
        "give the container CAP_SYS_ADMIN, or run the service as an ordinary user",
    ),
    (
        "user namespace",
        "allow unprivileged user namespaces (in a container, with its seccomp profile; on Ubuntu, \
         kernel.apparmor_restrict_unprivileged_userns=0)",
    ),
    (
        "a new /proc",
        "the container masks parts of /proc, and the kernel then refuses a new procfs: start it \
         with --security-opt systempaths=unconfined (Docker), unmask=ALL (Podman) or procMount: \
         Unmasked (Kubernetes)",
    ),
    ("filter of system calls", "the kernel needs CONFIG_SECCOMP_FILTER"),
];
const HINT: &str =
    "allow unshare, clone, mount, umount2 and pivot_root in the container's seccomp profile";

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The configured sandbox, set up once as a test. Fails where the kernel or the container refuses
/// it, since running without is the operator's decision. Logs which optional features are missing.
pub(crate) fn jail(
    config: &Config,
    browser: &Path,
    program: &Path,
    browsers: &Path,
) -> Result<Sandbox, Failure> {
    let policies = (!config.egress_roots.is_empty()).then(|| browsers.join("policies"));
    if let Some(folder) = &policies {
        write_root_certificates(folder, &config.egress_roots)?;
    }
    let jail = Sandbox {
        helper: program.to_owned(),
        arguments: vec![SANDBOX_ARGUMENT.to_owned()],
        installation: Installation::find(browser).map_err(error_chain)?,
        policies,
        cores: CORES,
    };
    match jail.check(&browsers.join("try")) {
        Ok(missing) => {
            tracing::info!("browsers run in a sandbox: {}", jail.summary());
            for missing in missing.descriptions() {
                tracing::warn!("browser sandbox: {missing}");
            }
            Ok(jail)
        }
        Err(error) => {
            let error = error_chain(error).to_string();
            let hint = HINTS.iter().find(|(step, _)| error.starts_with(step));
            let hint = hint.map_or(HINT, |(_, hint)| hint);
            Err(format!(
                "the browser sandbox cannot be set up: {error}; {hint}, or set \
                 AVOUCH_BROWSER_JAIL=off to run browsers without it"
            )
            .into())
        }
    }
}
