//! `cargo xtask bench`: each figure beside a named base that was measured in the same run.

use crate::{
    Failure,
    command::{cargo, run},
    packages::{self, BROWSER},
};

/// The benchmarks, by the names of their targets in `tests/`.
const BENCHMARKS: &[&str] = &["journey"];

pub(crate) fn bench(name: Option<&str>) -> Result<(), Failure> {
    packages::ensure(&[BROWSER])?;
    if let Some(unknown) = name.filter(|name| !BENCHMARKS.contains(name)) {
        let known = BENCHMARKS.join(", ");
        return Err(format!("there is no benchmark `{unknown}`; there are: {known}").into());
    }
    run(&mut cargo(&["build", "--release", "-p", "app"]))?;
    for benchmark in BENCHMARKS.iter().filter(|known| name.is_none_or(|name| name == **known)) {
        run(&mut cargo(&["bench", "-p", "acceptance", "--bench", benchmark]))?;
    }
    Ok(())
}
