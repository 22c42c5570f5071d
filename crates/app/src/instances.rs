//! The other instances of the deployment, wired to their adapters.

use std::sync::Arc;

use application::instances::{InstanceDirectory, InstanceReports, InstanceRouter};
use domain::id::InstanceId;
use instances::{InstanceIdentity, TlsLinks};
use ports::driving::SocketRouter;
use store::Store;
use tokio::runtime::Handle;

use crate::{
    config::{Config, InstanceConfig},
    storage::StartupError,
};

/// What a process has that is not alone.
#[derive(Clone)]
pub(crate) struct Instances {
    pub(crate) config: InstanceConfig,
    pub(crate) identity: Arc<InstanceIdentity>,
    pub(crate) directory: Arc<InstanceDirectory>,
    pub(crate) reports: Arc<InstanceReports>,
    pub(crate) router: Arc<dyn SocketRouter>,
}

/// Reads the certificate of this instance; `None` for a process that is alone.
pub(crate) fn instances(
    config: &Config,
    node: InstanceId,
    hub: Arc<application::live::SessionHub>,
    store: &Arc<Store>,
) -> Result<Option<Instances>, StartupError> {
    let Some(own) = &config.instances else { return Ok(None) };
    let identity = InstanceIdentity::open(own.files.clone())?;
    if config.browsers == 0 {
        hub.set_without_browsers();
    }
    let slots = u32::try_from(config.browsers).unwrap_or(u32::MAX);
    let directory =
        InstanceDirectory::new(node, own.address.clone(), config.addresses.own, slots, hub);
    let directory = Arc::new(directory);
    let reports =
        Arc::new(InstanceReports { directory: directory.clone(), registry: store.clone() });
    let router = InstanceRouter {
        directory: directory.clone(),
        links: Arc::new(TlsLinks(identity.clone())),
        sessions: store.clone(),
        runtime: Handle::current(),
    };
    let config = own.clone();
    Ok(Some(Instances { config, identity, directory, reports, router: Arc::new(router) }))
}
