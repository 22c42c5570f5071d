//! The browsers that are configured.

use std::{collections::HashMap, net::SocketAddr, path::Path, sync::Arc};

use chromium::{BrowserSource, ChromiumPool, Fleet, LocalBrowsers, PoolOptions};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use tokio::net::TcpListener;

use crate::{
    browser_sandbox::jail,
    config::{BrowserConfig, Config, FleetAddress},
    storage::StartupError,
};

/// A pool of them; `routes` are the hosts that the service serves itself.
pub(crate) async fn browser_pool(
    config: &Config,
    program: &Path,
    folder: &Path,
    routes: HashMap<String, SocketAddr>,
) -> Result<Arc<ChromiumPool>, StartupError> {
    let source = match &config.browser {
        BrowserConfig::Elsewhere(address) => BrowserSource::Fleet(fleet(address).await?),
        BrowserConfig::Here { program: executable, memory, jail: shut_in } => {
            if !shut_in {
                tracing::warn!(
                    "browsers run without a sandbox of ours: a page that breaks out of Chromium has the \
                     rights of the service"
                );
            }
            let shut = || jail(config, executable, program, folder);
            BrowserSource::Local(LocalBrowsers {
                executable: executable.clone(),
                folder: folder.to_owned(),
                memory_limit: *memory,
                sandbox: shut_in.then(shut).transpose()?,
            })
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

async fn fleet(address: &FleetAddress) -> Result<Fleet, StartupError> {
    let listener = TcpListener::bind(address.listen)
        .await
        .map_err(|error| format!("cannot listen on {}: {error}", address.listen))?;
    let mut roots = RootCertStore::empty();
    if address.url.expose().starts_with("wss:") {
        // What the machine believes, or `SSL_CERT_FILE`: a fleet may have a root of its own.
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            let why = found.errors.first().map(ToString::to_string).unwrap_or_default();
            return Err(format!("there are no certificates to believe the fleet by {why}").into());
        }
    }
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Fleet::new(address.url.clone(), Arc::new(tls), listener, address.address.clone()))
}
