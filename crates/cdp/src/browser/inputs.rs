//! The applicant's input, performed in the order in which it was given.
//!
//! Chromium hands a click to the process of the frame it hits, and a key to the process of the
//! frame that has the focus. A key that is sent before a click into a frame of another site has
//! moved the focus goes to the frame that had it before, and is lost.

use std::{sync::Arc, time::Duration};

use ports::browser::{Input, MouseKind, TouchKind};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::{client::Client, input};

/// Pieces of input that wait to be performed; more are dropped, as they are by a browser that hangs.
const QUEUE: usize = 4096;
/// Bytes of commands that wait, here and on their way to Chromium: a paste has up to 10,000
/// characters, so that the pieces alone are no bound on memory. What is more is dropped too.
const QUEUE_BYTES: usize = 1 << 20;
/// How long keys wait for what may have moved the focus. A page that shows a dialog answers no
/// input, and takes no keys either.
const FOCUS_PATIENCE: Duration = Duration::from_millis(500);

/// Performs input in one browser.
pub(super) struct Inputs {
    queue: mpsc::Sender<Command>,
    room: Arc<Semaphore>,
}

/// One command of the protocol.
struct Command {
    session: String,
    method: &'static str,
    params: Value,
    part: Part,
    /// What it takes of [`QUEUE_BYTES`].
    room: OwnedSemaphorePermit,
}

/// What a piece of input has to do with the focus.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// May move it.
    Moves,
    /// Goes to where it is.
    Follows,
    /// Both: the Tab key.
    Both,
    Neither,
}

impl Inputs {
    /// Takes input until this or the connection ends; needs a Tokio runtime.
    pub(super) fn new(client: Client) -> Self {
        let (queue, commands) = mpsc::channel(QUEUE);
        tokio::spawn(perform(client, commands));
        Self { queue, room: Arc::new(Semaphore::new(QUEUE_BYTES)) }
    }

    /// Queues a piece of input for a page. `false`: it is not a single command of the protocol.
    pub(super) fn take(&self, session: String, input: &Input) -> bool {
        let Some((method, params)) = input::command(input) else { return false };
        let bytes = u32::try_from(params.to_string().len()).unwrap_or(u32::MAX);
        // A full queue means that Chromium hangs.
        if let Ok(room) = self.room.clone().try_acquire_many_owned(bytes) {
            let part = part(input);
            let _ = self.queue.try_send(Command { session, method, params, part, room });
        }
        true
    }
}

async fn perform(client: Client, mut commands: mpsc::Receiver<Command>) {
    let mut moving: Option<oneshot::Receiver<_>> = None;
    while let Some(Command { session, method, params, part, room }) = commands.recv().await {
        if matches!(part, Part::Follows | Part::Both)
            && let Some(reply) = moving.take()
        {
            let _ = tokio::time::timeout(FOCUS_PATIENCE, reply).await;
        }
        let reply = client.send_with(Some(&session), method, params, Some(room));
        if matches!(part, Part::Moves | Part::Both) {
            moving = reply.ok();
        }
        if client.is_closed() {
            return;
        }
    }
}

fn part(input: &Input) -> Part {
    match input {
        Input::Mouse { kind: MouseKind::Pressed | MouseKind::Released, .. }
        | Input::Touch { kind: TouchKind::Ended, .. } => Part::Moves,
        Input::Key { key, .. } if key == "Tab" => Part::Both,
        Input::Key { .. } | Input::Text(_) | Input::Composing(_) => Part::Follows,
        Input::Mouse { .. }
        | Input::Touch { .. }
        | Input::Wheel { .. }
        | Input::Fill(_)
        | Input::Answer { .. }
        | Input::ClosePage
        | Input::Resize(_) => Part::Neither,
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncBufReadExt as _, BufReader},
        net::UnixStream,
    };

    use super::*;

    /// Pastes for a Chromium that reads nothing for a while.
    #[tokio::test]
    async fn what_waits_is_bounded_in_bytes_too() {
        let (to, chromium) = UnixStream::pair().unwrap();
        let (from, _silent) = UnixStream::pair().unwrap();
        let (client, _events) = Client::over(from, to);
        let inputs = Inputs::new(client);
        let paste = Input::Text("x".repeat(10_000));
        for _ in 0..QUEUE {
            assert!(inputs.take("page".into(), &paste), "dropped, as by a browser that hangs");
        }
        let fit = QUEUE_BYTES / 10_000 - 1;
        let mut chromium = BufReader::new(chromium);
        let mut next = async || {
            let mut command = vec![];
            chromium.read_until(0, &mut command).await.unwrap();
            String::from_utf8(command).unwrap()
        };
        let (mut pastes, last) = (0, Input::Text("last".into()));
        loop {
            assert!(inputs.take("page".into(), &last));
            let command = tokio::time::timeout(Duration::from_secs(10), next()).await.unwrap();
            if command.contains("\"last\"") {
                break;
            }
            pastes += 1;
        }
        assert!((fit - 1..=fit + 1).contains(&pastes), "{pastes} of {QUEUE}");
        while inputs.room.available_permits() < QUEUE_BYTES {
            let wait = tokio::time::timeout(Duration::from_secs(10), next());
            assert!(wait.await.unwrap().contains("\"last\""), "room is given back");
            tokio::task::yield_now().await;
        }
    }
}
