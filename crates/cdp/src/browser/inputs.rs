//! The applicant's input, performed in the order in which it was given.
//!
//! Chromium hands a click to the process of the frame it hits, and a key to the process of the
//! frame that has the focus. A key that is sent before a click into a frame of another site has
//! moved the focus goes to the frame that had it before, and is lost.

use std::time::Duration;

use ports::browser::{Input, MouseKind, TouchKind};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::{client::Client, input};

/// Pieces of input that wait to be performed; more are dropped, as they are by a browser that hangs.
const QUEUE: usize = 4096;
/// How long keys wait for what may have moved the focus. A page that shows a dialog answers no
/// input, and takes no keys either.
const FOCUS_PATIENCE: Duration = Duration::from_millis(500);

/// Performs input in one browser.
pub(super) struct Inputs {
    queue: mpsc::Sender<Command>,
}

/// One command of the protocol.
struct Command {
    session: String,
    method: &'static str,
    params: Value,
    part: Part,
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
        Self { queue }
    }

    /// Queues a piece of input for a page. `false`: it is not a single command of the protocol.
    pub(super) fn take(&self, session: String, input: &Input) -> bool {
        let Some((method, params)) = input::command(input) else { return false };
        // A full queue means that Chromium hangs.
        let _ = self.queue.try_send(Command { session, method, params, part: part(input) });
        true
    }
}

async fn perform(client: Client, mut commands: mpsc::Receiver<Command>) {
    let mut moving: Option<oneshot::Receiver<_>> = None;
    while let Some(Command { session, method, params, part }) = commands.recv().await {
        if matches!(part, Part::Follows | Part::Both)
            && let Some(reply) = moving.take()
        {
            let _ = tokio::time::timeout(FOCUS_PATIENCE, reply).await;
        }
        let reply = client.send(Some(&session), method, params);
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
