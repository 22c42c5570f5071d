//! Landlock (landlock(7)): limits files, TCP ports and signals independently of the namespaces.

use std::{io, path::Path};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, NetPort, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

use super::super::{MissingFeatures, PROXY_ADDRESS, SandboxConfig};

/// The first ABI version that limits signals and abstract sockets.
const ABI_VERSION: ABI = ABI::V6;

/// Permits to read the root file system, to execute the browser and its libraries, to write to the
/// browser's folders, and to connect to the proxy's port. Returns the Landlock features that the
/// kernel lacks, as bits of [`MissingFeatures`].
pub(super) fn restrict(config: &SandboxConfig) -> io::Result<u8> {
    let status = ruleset(config).map_err(io::Error::other)?;
    Ok(match status {
        RulesetStatus::FullyEnforced => 0,
        RulesetStatus::PartiallyEnforced => MissingFeatures::OLD_LANDLOCK,
        RulesetStatus::NotEnforced => MissingFeatures::NO_LANDLOCK,
    })
}

fn ruleset(config: &SandboxConfig) -> Result<RulesetStatus, RulesetError> {
    let all = AccessFs::from_all(ABI_VERSION);
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let run = read | AccessFs::Execute;
    // Devices, and the files of /proc by which a process maps its users.
    let device = read | AccessFs::WriteFile | AccessFs::IoctlDev;
    let own = all & !(AccessFs::Execute | AccessFs::MakeChar | AccessFs::MakeBlock);
    let programs = path_beneath_rules(&config.installation.programs, run);
    let folders = [&config.folder, Path::new("/tmp"), Path::new("/dev/shm")];
    let status = Ruleset::default()
        .handle_access(all)?
        .handle_access(AccessNet::from_all(ABI_VERSION))?
        .scope(Scope::from_all(ABI_VERSION))?
        .create()?
        .add_rules(path_beneath_rules(["/"], read))?
        .add_rules(programs)?
        .add_rules(path_beneath_rules(["/dev", "/proc"], device))?
        .add_rules(path_beneath_rules(folders, own))?
        .add_rule(NetPort::new(PROXY_ADDRESS.port(), AccessNet::ConnectTcp))?
        .restrict_self()?;
    Ok(status.ruleset)
}
