//! How browsers are shut in, and what they must not see.

use std::path::{Path, PathBuf};

use cdp::{Jail, write_roots};

use crate::{config::Config, kept::explain};

/// The first argument of `avouch` where it is to become a browser.
pub const JAIL: &str = "jail";
/// Cores that one browser may use at once: a page that mines must not stop the others.
const CORES: usize = 3;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The jail that is configured, tried once; fails where the kernel forbids it, since going on
/// without is for the operator to decide.
pub(crate) fn jail(
    config: &Config,
    browser: &Path,
    program: &Path,
    browsers: &Path,
) -> Result<Jail, Failure> {
    let policies = (!config.egress_roots.is_empty()).then(|| browsers.join("policies"));
    if let Some(folder) = &policies {
        write_roots(folder, &config.egress_roots)?;
    }
    let jail = Jail {
        helper: program.to_owned(),
        arguments: vec![JAIL.to_owned()],
        hidden: hidden(config, browser),
        policies,
        cores: CORES,
    };
    let hint = "allow unprivileged user namespaces (in a container, with its seccomp profile; on \
                Ubuntu, kernel.apparmor_restrict_unprivileged_userns=0), or set \
                AVOUCH_BROWSER_JAIL=off to run browsers without a jail";
    jail.check(&browsers.join("try"))
        .map_err(|error| format!("browsers cannot be shut in: {}; {hint}", explain(error)))?;
    Ok(jail)
}

/// Our data and keys, other people's temporary files, and sockets that programs listen on.
fn hidden(config: &Config, browser: &Path) -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let folders = [Some(config.data_dir.clone()), Some(std::env::temp_dir()), home];
    let folders = folders.into_iter().flatten().chain(["/run".into(), "/root".into()]);
    let mut hidden: Vec<_> =
        folders.filter_map(|folder| std::fs::canonicalize(folder).ok()).collect();
    let browser = std::fs::canonicalize(browser).unwrap_or_default();
    hidden.retain(|folder| !browser.starts_with(folder) && folder != Path::new("/"));
    hidden.sort();
    hidden.dedup();
    hidden
}
