//! A queue that performs the applicant's input in order.
//!
//! Chromium routes a click to the process of the frame under it, and a key to the process of the
//! focused frame. A key that is sent before a click into a frame of another site has moved the focus
//! goes to the previously focused frame, and is lost.

use std::{sync::Arc, time::Duration};

use ports::browser::{Input, MouseKind, TouchKind};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, RwLock, Semaphore, mpsc, oneshot};

use super::activation::Activation;
use crate::{
    client::{DevToolsClient, DevToolsError},
    input::{self, PageScale},
};

/// Commands that wait; further ones are dropped, as they would be by a browser that hangs.
const QUEUE_CAPACITY: usize = 4096;
/// Bytes of commands that wait, here and in the connection to Chromium; further ones are dropped as
/// well. A paste has up to 10,000 characters, so the number of commands alone does not bound memory.
const MAX_QUEUED_BYTES: usize = 1 << 20;
/// The time that keys wait for the reply to input that may move the focus. A busy page replies late,
/// and keys sent before its reply are lost; a page that shows a dialog replies to no input, and accepts
/// no keys either.
const FOCUS_TIMEOUT: Duration = Duration::from_secs(5);
/// The time that keys wait after such a reply. The reply and the message that a frame has the focus
/// take different paths within Chromium, so on a busy machine the reply can arrive first. Nobody types
/// that soon after a click; only input that was held back by the network is affected.
const FOCUS_DELAY: Duration = Duration::from_millis(20);

/// The input queue of one browser.
pub(super) struct InputQueue {
    queue: mpsc::Sender<QueuedInput>,
    byte_permits: Arc<Semaphore>,
}

enum QueuedInput {
    Command(QueuedCommand),
    /// Becomes commands when its turn comes: where the control is then depends on what was done before.
    Activation(Activation),
}

/// One DevTools command.
struct QueuedCommand {
    session: String,
    method: &'static str,
    params: Value,
    focus: FocusEffect,
    /// Its share of [`MAX_QUEUED_BYTES`]; `None` for a command of an activation.
    permit: Option<OwnedSemaphorePermit>,
}

/// The relation of input to the focus.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FocusEffect {
    /// May move the focus.
    Moves,
    /// Goes to the focused element.
    Depends,
    /// Both: the Tab key.
    Both,
    Neither,
}

impl InputQueue {
    /// Creates a queue and the task that performs its commands, until the queue is dropped or the
    /// connection is closed. The commands wait while `look_lock` is held for writing. Must be called within a
    /// Tokio runtime.
    pub(super) fn new(client: DevToolsClient, look_lock: Arc<RwLock<()>>) -> Self {
        let (queue, commands) = mpsc::channel(QUEUE_CAPACITY);
        tokio::spawn(perform(client, commands, look_lock));
        Self { queue, byte_permits: Arc::new(Semaphore::new(MAX_QUEUED_BYTES)) }
    }

    /// Queues input for a page. Returns `false` if it is not a single DevTools command.
    pub(super) fn enqueue(&self, session: String, input: &Input, page_scale: PageScale) -> bool {
        let Some((method, params)) = input::command(input, page_scale) else { return false };
        let bytes = u32::try_from(params.to_string().len()).unwrap_or(u32::MAX);
        // A full queue means that Chromium hangs.
        if let Ok(permit) = self.byte_permits.clone().try_acquire_many_owned(bytes) {
            let effect = focus_effect(input);
            let permit = Some(permit);
            let command = QueuedCommand { session, method, params, focus: effect, permit };
            let _ = self.queue.try_send(QueuedInput::Command(command));
        }
        true
    }

    /// Queues the activation of a control.
    pub(super) fn activate(&self, activation: Activation) {
        let _ = self.queue.try_send(QueuedInput::Activation(activation));
    }
}

async fn perform(
    client: DevToolsClient,
    mut queue: mpsc::Receiver<QueuedInput>,
    look_lock: Arc<RwLock<()>>,
) {
    let mut focus_change = None;
    while let Some(queued) = queue.recv().await {
        // At another size, the focused field may be hidden, and a control may be elsewhere.
        let _own_size = look_lock.read().await;
        match queued {
            QueuedInput::Command(command) => send(&client, command, &mut focus_change).await,
            QueuedInput::Activation(activation) => {
                for input in activation.inputs(&client).await {
                    // Positions are in CSS pixels already.
                    let command = input::command(&input, PageScale::default());
                    let Some((method, params)) = command else { continue };
                    let (session, focus) = (activation.control.page.clone(), focus_effect(&input));
                    let command = QueuedCommand { session, method, params, focus, permit: None };
                    send(&client, command, &mut focus_change).await;
                }
            }
        }
        if client.is_closed() {
            return;
        }
    }
}

/// The reply to the last command that may have moved the focus.
type FocusChange = Option<oneshot::Receiver<Result<Value, DevToolsError>>>;

/// Sends a command, after the last change of the focus if it depends on that.
async fn send(client: &DevToolsClient, command: QueuedCommand, focus_change: &mut FocusChange) {
    let QueuedCommand { session, method, params, focus: effect, permit } = command;
    if matches!(effect, FocusEffect::Depends | FocusEffect::Both)
        && let Some(reply) = focus_change.take()
    {
        let _ = tokio::time::timeout(FOCUS_TIMEOUT, reply).await;
        tokio::time::sleep(FOCUS_DELAY).await;
    }
    let reply = client.send_with_permit(Some(&session), method, params, permit);
    if matches!(effect, FocusEffect::Moves | FocusEffect::Both) {
        *focus_change = reply.ok();
    }
}

fn focus_effect(input: &Input) -> FocusEffect {
    match input {
        Input::Mouse { kind: MouseKind::Pressed | MouseKind::Released, .. }
        | Input::Touch { kind: TouchKind::Ended, .. } => FocusEffect::Moves,
        Input::Key { key, .. } if key == "Tab" => FocusEffect::Both,
        Input::Key { .. } | Input::Text(_) | Input::Composing(_) => FocusEffect::Depends,
        Input::Mouse { .. }
        | Input::Touch { .. }
        | Input::Wheel { .. }
        | Input::Fill(_)
        | Input::Activate(_)
        | Input::Answer { .. }
        | Input::ClosePage
        | Input::Reload
        | Input::Back
        | Input::Resize(_) => FocusEffect::Neither,
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncBufReadExt as _, BufReader},
        net::UnixStream,
    };

    use super::*;

    /// Pastes into a Chromium that reads nothing for a while.
    #[tokio::test]
    async fn the_queue_is_bounded_in_bytes_too() {
        let (to, chromium) = UnixStream::pair().unwrap();
        let (from, _silent) = UnixStream::pair().unwrap();
        let (client, _events) = DevToolsClient::from_pipes(from, to);
        let inputs = InputQueue::new(client, Arc::default());
        let paste = Input::Text("x".repeat(10_000));
        for _ in 0..QUEUE_CAPACITY {
            assert!(
                inputs.enqueue("page".into(), &paste, PageScale::default()),
                "input that is dropped counts as taken"
            );
        }
        let fit = MAX_QUEUED_BYTES / 10_000 - 1;
        let mut chromium = BufReader::new(chromium);
        let mut next = async || {
            let mut command = vec![];
            chromium.read_until(0, &mut command).await.unwrap();
            String::from_utf8(command).unwrap()
        };
        let (mut pastes, last) = (0, Input::Text("last".into()));
        loop {
            assert!(inputs.enqueue("page".into(), &last, PageScale::default()));
            let command = tokio::time::timeout(Duration::from_secs(10), next()).await.unwrap();
            if command.contains("\"last\"") {
                break;
            }
            pastes += 1;
        }
        assert!((fit - 1..=fit + 1).contains(&pastes), "{pastes} of {QUEUE_CAPACITY}");
        while inputs.byte_permits.available_permits() < MAX_QUEUED_BYTES {
            let wait = tokio::time::timeout(Duration::from_secs(10), next());
            assert!(wait.await.unwrap().contains("\"last\""), "permits are returned");
            tokio::task::yield_now().await;
        }
    }
}
