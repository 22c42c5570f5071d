//! `cargo xtask bench`: runs the benchmarks, each figure next to a baseline measured in the same run.

use postgres_server::{Durability, PostgresServer};

use crate::{
    Failure,
    command::{cargo, free_port, root, run},
    packages::{self, BROWSER, NODE, POSTGRES, WRK},
    tools::node_modules,
};

/// The benchmarks, and the names of their targets.
const BENCHMARKS: &[(&str, &[&str])] = &[
    ("api", &["api"]),
    ("attestation", &["attestation", "relayed"]),
    ("browser", &["browser"]),
    ("ending", &["ending"]),
    ("growth", &["growth"]),
    ("webhooks", &["webhooks"]),
    ("workflow", &["workflow", "observe"]),
];

pub(crate) fn bench(name: Option<&str>) -> Result<(), Failure> {
    packages::ensure(&[BROWSER, NODE, POSTGRES, WRK])?;
    let known: Vec<_> = BENCHMARKS.iter().map(|(known, _)| *known).collect();
    if let Some(unknown) = name.filter(|name| !known.contains(name)) {
        let known = known.join(", ");
        return Err(format!("there is no benchmark `{unknown}`; there are: {known}").into());
    }
    node_modules(&root().join("tests/relay"))?;
    node_modules(&root().join("tests/peers/reclaim"))?;
    node_modules(&root().join("tests/peers/tlsnotary"))?;
    // The whole workspace at once, so that no dependency is built twice with other features.
    run(&mut cargo(&["build", "--release", "--workspace", "--bins", "--examples", "--benches"]))?;
    let server = PostgresServer::start(free_port()?, Durability::Fsync)?;
    let pgbench = postgres_server::binaries().unwrap_or_default().join("pgbench");
    let wanted = BENCHMARKS.iter().filter(|(known, _)| name.is_none_or(|name| name == *known));
    for target in wanted.flat_map(|(_, targets)| *targets) {
        let mut command = cargo(&["bench", "--workspace", "--bench", target]);
        run(command.env("TEST_DATABASE_URL", &server.url).env("PGBENCH", &pgbench))?;
    }
    Ok(())
}
