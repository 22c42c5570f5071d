//! Further processes of a deployment.

use std::{
    process::{Child, Command, ExitStatus},
    time::Duration,
};

use tokio::sync::Mutex;

use crate::{eventually, free_port, partner::Partner, service::Deployment};

/// A second process, killed when it is dropped.
pub struct SecondProcess {
    pub partner: Partner,
    process: Child,
}

impl SecondProcess {
    pub(crate) fn new(partner: Partner, process: Child) -> Self {
        Self { partner, process }
    }

    /// Asks the process to end, as a supervisor does (SIGTERM), and waits until it has.
    pub async fn terminate(mut self) -> ExitStatus {
        let id = self.process.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &id]).status().expect("kill runs");
        assert!(asked.success(), "SIGTERM was sent");
        eventually("the process to end", Duration::from_secs(60), async || {
            self.process.try_wait().expect("its status")
        })
        .await
    }
}

impl Drop for SecondProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A process of the service that is restarted whenever it ends.
pub struct SupervisedProcess {
    pub address: String,
    command: Mutex<Command>,
    child: Mutex<Child>,
}

impl SupervisedProcess {
    #[must_use]
    pub fn start(deployment: &Deployment) -> Self {
        let address = format!("127.0.0.1:{}", free_port());
        let mut command = deployment.serving_at(&address);
        let child = command.spawn().expect("avouch serves");
        Self { address, command: Mutex::new(command), child: Mutex::new(child) }
    }

    /// Starts the process again if it has ended.
    pub async fn restart_if_ended(&self) {
        let mut child = self.child.lock().await;
        if child.try_wait().expect("its status").is_some() {
            *child = self.command.lock().await.spawn().expect("avouch serves");
        }
    }

    /// Kills the process, as `kill -9` does, and starts it again.
    pub async fn kill(&self) {
        let mut child = self.child.lock().await;
        let _ = child.kill();
        let _ = child.wait();
        *child = self.command.lock().await.spawn().expect("avouch serves");
    }
}

impl Drop for SupervisedProcess {
    fn drop(&mut self) {
        let child = self.child.get_mut();
        let _ = child.kill();
        let _ = child.wait();
    }
}
