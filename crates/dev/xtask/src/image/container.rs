//! A container that `runc` runs, and the processes in it.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::Value;

use crate::{Failure, command::output};

/// A running container, which is removed with this value.
pub(super) struct Container {
    id: String,
    runtime: Child,
}

/// A process in the container, as the machine sees it.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) id: u32,
    /// Its arguments, separated by spaces.
    pub(super) command: String,
    pub(super) user: u32,
    /// The number of its filters of system calls.
    pub(super) filters: u32,
    pub(super) has_capabilities: bool,
    pub(super) may_gain_privileges: bool,
    is_defunct: bool,
    parent: u32,
}

impl Container {
    /// Starts the container that a folder configures. Its output is that of this program.
    pub(super) fn start(bundle: &Path) -> Result<Self, Failure> {
        let id = format!("avouch-{}", std::process::id());
        let mut run = Command::new("runc");
        run.args(["run", "--bundle"]).arg(bundle).arg(&id).stdin(Stdio::null());
        Ok(Self { id, runtime: run.spawn()? })
    }

    /// Fails once the container has ended.
    pub(super) fn check_running(&mut self) -> Result<(), Failure> {
        match self.runtime.try_wait()? {
            None => Ok(()),
            Some(status) => Err(format!("the container ended: {status}").into()),
        }
    }

    /// Returns something once the container has ended successfully.
    pub(super) fn has_stopped(&mut self) -> Result<Option<()>, Failure> {
        match self.runtime.try_wait()? {
            None => Ok(None),
            Some(status) if status.success() => Ok(Some(())),
            Some(status) => Err(format!("the container ended: {status}").into()),
        }
    }

    pub(super) fn processes(&self) -> Result<Vec<Process>, Failure> {
        let ids = output(Command::new("runc").args(["ps", "--format", "json", &self.id]))?;
        let ids: Vec<u32> = serde_json::from_str(&ids)?;
        // A process may have ended since.
        Ok(ids.into_iter().filter_map(Process::read).collect())
    }

    /// Returns a process that draws a page.
    pub(super) fn renderer(&self) -> Result<Option<Process>, Failure> {
        let mut processes = self.processes()?.into_iter();
        Ok(processes.find(|process| process.command.contains("--type=renderer")))
    }

    /// Returns whether no ended process waits for the first process of the container.
    pub(super) fn has_reaped(&self) -> Result<bool, Failure> {
        let state = output(Command::new("runc").args(["state", &self.id]))?;
        let state: Value = serde_json::from_str(&state)?;
        let first = state.get("pid").and_then(Value::as_u64);
        // The runtime does not list processes that have ended.
        let ids = fs::read_dir("/proc")?.flatten();
        let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mut processes = ids.filter_map(Process::read);
        Ok(!processes.any(|one| one.is_defunct && Some(u64::from(one.parent)) == first))
    }

    /// Runs a program in the container, and returns whether it succeeded.
    pub(super) fn execute(&self, program: &[&str]) -> Result<bool, Failure> {
        let mut execute = Command::new("runc");
        execute.args(["exec", &self.id]).args(program).stdin(Stdio::null());
        Ok(execute.stderr(Stdio::null()).status()?.success())
    }

    /// Kills the processes of all browsers at once, as the service does at the end of a session.
    pub(super) fn end_browsers(&self) -> Result<(), Failure> {
        for process in self.processes()?.iter().filter(|process| process.is_browser()) {
            // It may have ended with another one.
            let kill = Command::new("kill").args(["-KILL", &process.id.to_string()]).output()?;
            drop(kill);
        }
        Ok(())
    }

    pub(super) fn terminate(&self) -> Result<(), Failure> {
        output(Command::new("runc").args(["kill", &self.id, "TERM"])).map(drop)
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = Command::new("runc").args(["delete", "--force", &self.id]).output();
        let _ = self.runtime.wait();
    }
}

impl Process {
    /// Reads a process from `/proc`; `None` if it does not exist any more.
    fn read(id: u32) -> Option<Self> {
        let read = |file: &str| fs::read(format!("/proc/{id}/{file}")).ok();
        let command = String::from_utf8_lossy(&read("cmdline")?).replace('\0', " ");
        let status = String::from_utf8_lossy(&read("status")?).into_owned();
        let field = |name: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(name))?;
            value.split_whitespace().next().map(str::to_owned)
        };
        let number = |name: &str| field(name).and_then(|value| value.parse::<u32>().ok());
        Some(Self {
            id,
            command,
            user: number("Uid:")?,
            filters: number("Seccomp_filters:")?,
            has_capabilities: field("CapEff:")?.chars().any(|digit| digit != '0'),
            may_gain_privileges: number("NoNewPrivs:")? == 0,
            is_defunct: field("State:")? == "Z",
            parent: number("PPid:")?,
        })
    }

    /// Returns whether it is a browser or the helper of its sandbox.
    fn is_browser(&self) -> bool {
        ["/proc/self/exe", "/usr/lib/chromium/"].iter().any(|start| self.command.starts_with(start))
    }
}
