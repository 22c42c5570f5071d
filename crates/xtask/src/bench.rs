//! `cargo xtask bench`: each figure beside a named base that was measured in the same run.

use crate::{
    Failure,
    command::{cargo, root, run},
    packages::{self, BROWSER, NODE, POSTGRES, WRK},
    postgres::{self, Durability, Postgres},
    test::node_modules,
};

/// The benchmarks, by the names of their targets in `tests/`; one is in the crate of its name.
const BENCHMARKS: &[&str] = &["api", "attestation", "browser", "webhooks"];

pub(crate) fn bench(name: Option<&str>) -> Result<(), Failure> {
    packages::ensure(&[BROWSER, NODE, POSTGRES, WRK])?;
    if let Some(unknown) = name.filter(|name| !BENCHMARKS.contains(name)) {
        let known = BENCHMARKS.join(", ");
        return Err(format!("there is no benchmark `{unknown}`; there are: {known}").into());
    }
    node_modules(&root().join("tests/relay"))?;
    run(&mut cargo(&["build", "--release", "-p", "app"]))?;
    let server = Postgres::start(Durability::Kept)?;
    let pgbench = postgres::binaries().unwrap_or_default().join("pgbench");
    for benchmark in BENCHMARKS.iter().filter(|known| name.is_none_or(|name| name == **known)) {
        let package = if *benchmark == "attestation" { benchmark } else { &"acceptance" };
        let mut command = cargo(&["bench", "-p", package, "--bench", benchmark]);
        run(command.env("TEST_DATABASE_URL", &server.url).env("PGBENCH", &pgbench))?;
    }
    Ok(())
}
