//! Runs other programs and names the one that failed.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
};

use crate::Failure;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).unwrap_or(Path::new(".")).to_owned()
}

/// Returns the `cargo` that runs this program, with the root of the repository as its folder.
///
/// The variables that it sets for this program are removed: build scripts that depend on them (that of
/// `ring`) would run again, and all that is built after them, whenever `cargo` is called directly and
/// by this program in turn.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(arguments).current_dir(root());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a command to its end; an error names the command.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    let shown = show(command);
    println!("$ {shown}");
    let status = command.status().map_err(|error| format!("cannot run `{shown}`: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{shown}` failed: {status}").into()) }
}

/// Runs a command to its end and returns what it printed to standard output.
pub(crate) fn output(command: &mut Command) -> Result<String, Failure> {
    let shown = show(command);
    let output = command.output().map_err(|error| format!("cannot run `{shown}`: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout)?);
    }
    Err(format!("`{shown}` failed: {}", String::from_utf8_lossy(&output.stderr).trim()).into())
}

fn show(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
    let arguments = command.get_args().map(|argument| argument.to_string_lossy());
    [name].into_iter().chain(arguments).collect::<Vec<_>>().join(" ")
}

/// Returns a port of 127.0.0.1 on which nothing listens at this moment.
pub(crate) fn free_port() -> Result<u16, Failure> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Returns whether a program of this name is on `PATH`.
pub(crate) fn found(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
