//! `cargo xtask simulate`: runs the simulation of a deployment, optimised.

use crate::{
    Failure,
    command::{cargo, run},
};

/// Passes the options on to the program `simulation`. It is not a dependency of this one, which would
/// have to be built with the service's use cases before each task.
pub(crate) fn simulate(options: &[String]) -> Result<(), Failure> {
    let mut command = cargo(&["run", "--quiet", "--release", "--package", "simulation", "--"]);
    run(command.args(options))
}
