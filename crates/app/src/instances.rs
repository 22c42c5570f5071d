//! The other instances of the deployment, wired to their adapters.

use std::sync::Arc;

use application::instances::{
    ForwardPlaces, InstanceDirectory, InstanceReports, InstanceRouter, WaitMover,
};
use domain::placement::Instance;
use instances::{InstanceIdentity, TlsLinks};
use ports::driving::{SocketRouter, StudioRouter};
use store::Store;
use tokio::runtime::Handle;

use crate::{
    config::{Config, InstanceConfig},
    engine::SharedParts,
    storage::StartupError,
};

/// What a process has that is not alone.
#[derive(Clone)]
pub(crate) struct Instances {
    pub(crate) config: InstanceConfig,
    pub(crate) identity: Arc<InstanceIdentity>,
    pub(crate) directory: Arc<InstanceDirectory>,
    pub(crate) reports: Arc<InstanceReports>,
    pub(crate) mover: Arc<WaitMover>,
    pub(crate) router: Arc<dyn SocketRouter>,
    pub(crate) studios: Arc<dyn StudioRouter>,
}

/// Reads the certificate of this instance; `None` for a process that is alone.
pub(crate) fn instances(
    config: &Config,
    shared: &SharedParts,
    store: &Arc<Store>,
) -> Result<Option<Instances>, StartupError> {
    let Some(own) = &config.instances else { return Ok(None) };
    let identity = InstanceIdentity::open(own.files.clone())?;
    let (hub, turns) = (shared.engine.hub.clone(), shared.turns.clone());
    if config.browsers == 0 {
        hub.set_without_browsers();
    }
    let instance = Instance {
        id: shared.node,
        address: own.address.clone(),
        region: config.addresses.own,
        slots: u32::try_from(config.browsers).unwrap_or(u32::MAX),
        sessions: 0,
        waiting: 0,
        leaving: 0,
        waited: 0,
        is_draining: false,
    };
    let (addresses, clock) = (config.addresses.clone(), shared.clock.clone());
    let directory = InstanceDirectory::new(instance, addresses, hub, turns.clone(), clock);
    let directory = Arc::new(directory);
    let links = Arc::new(TlsLinks::new(identity.clone()));
    let mover = WaitMover {
        engine: shared.engine.clone(),
        turns,
        directory: directory.clone(),
        links: links.clone(),
        random: shared.random.clone(),
    };
    let reports = Arc::new(InstanceReports {
        directory: directory.clone(),
        registry: store.clone(),
        regions: store.clone(),
    });
    let router = InstanceRouter {
        directory: directory.clone(),
        links,
        sessions: store.clone(),
        regions: store.clone(),
        places: ForwardPlaces::default(),
        runtime: Handle::current(),
    };
    let config = own.clone();
    let (router, mover) = (Arc::new(router), Arc::new(mover));
    let studios = router.clone();
    Ok(Some(Instances { config, identity, directory, reports, mover, router, studios }))
}
