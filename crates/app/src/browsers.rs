//! The pool of the configured browsers.

use std::{collections::HashMap, net::SocketAddr, path::Path, sync::Arc};

use chromium::{BrowserSource, ChromiumPool, Fleet, LocalBrowsers, PoolOptions};

use crate::{
    browser_hosts::RemoteHosts,
    browser_sandbox::browser_sandbox,
    config::{BrowserConfig, Config},
    storage::{StartupError, error_chain},
};

/// Returns the options of browsers on this machine, whose sandbox is set up as a test.
pub(crate) fn local_browsers(
    config: &Config,
    program: &Path,
    folder: &Path,
) -> Result<LocalBrowsers, StartupError> {
    let BrowserConfig::Here { program: executable, memory, sandbox: is_sandboxed } =
        &config.browser
    else {
        return Err("browsers run elsewhere".into());
    };
    // A process without this role has no slot for a browser, and needs no Chromium.
    let (has_role, is_sandboxed) = (config.roles.browser, *is_sandboxed);
    if has_role && !is_sandboxed {
        tracing::warn!(
            "browsers run without a sandbox of ours: a page that breaks out of Chromium has the \
             rights of the service"
        );
    }
    let sandbox = || browser_sandbox(config, executable, program, folder);
    Ok(LocalBrowsers {
        executable: executable.clone(),
        folder: folder.to_owned(),
        memory_limit: *memory,
        sandbox: (has_role && is_sandboxed).then(sandbox).transpose()?,
    })
}

/// Returns the pool. `routes` are the hosts that the service itself serves.
pub(crate) async fn browser_pool(
    config: &Config,
    program: &Path,
    folder: &Path,
    routes: HashMap<String, SocketAddr>,
) -> Result<Arc<ChromiumPool>, StartupError> {
    let source = match &config.browser {
        BrowserConfig::Elsewhere(address) => {
            BrowserSource::Fleet(Fleet::listen(address.clone()).await.map_err(error_chain)?)
        }
        BrowserConfig::Hosts(hosts) => {
            BrowserSource::Hosts(Arc::new(RemoteHosts::connect(config, hosts).await?))
        }
        BrowserConfig::Here { .. } => {
            BrowserSource::Local(local_browsers(config, program, folder)?)
        }
    };
    Ok(ChromiumPool::new(PoolOptions {
        source,
        capacity: config.browsers,
        warm: config.browsers_warm,
        egress: config.egress.clone(),
        egress_proxies: config.exits.clone(),
        country_check_url: config.exit_check.clone(),
        local_hosts: routes,
    }))
}
