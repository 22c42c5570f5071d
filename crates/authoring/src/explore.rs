//! The definition that runs while an author looks around: it waits, and evaluates the signals.

use domain::workflow::{Condition, Definition, Node, PromptKind, WorkflowExit};

/// The node that waits. Definitions of the studio have none with this name.
const EXPLORE: &str = "studioWaits";
/// A signal that never holds.
const NEVER: &str = "studioNever";
const WAIT_SECONDS: u32 = 3600;
const TOTAL_SECONDS: u32 = 7200;

/// Returns a definition with the signals of another one that waits on whatever page the author opens.
/// With `opens`, it begins with the login URL.
#[must_use]
pub(crate) fn exploring(definition: &Definition, opens: bool) -> Definition {
    let text = "Sign in and show the pages of your account. Choose what to read in the panel.";
    let wait = Node::AwaitUser {
        kind: PromptKind::Login,
        text_key: EXPLORE.into(),
        timeout_seconds: WAIT_SECONDS,
        until: vec![NEVER.into()],
        hints: vec![],
        channel_hint: None,
        next: EXPLORE.into(),
        on_timeout: WorkflowExit::Next(EXPLORE.into()),
    };
    let open = Node::Goto {
        url: definition.login_url.clone(),
        next: EXPLORE.into(),
        // The author sees why, and may reload the page.
        on_fail: WorkflowExit::Next(EXPLORE.into()),
    };
    let mut exploring = definition.clone();
    exploring.signals.insert(NEVER.to_owned(), Condition::Any(vec![]));
    exploring.interrupts.clear();
    exploring.nodes = [("open".to_owned(), open), (EXPLORE.to_owned(), wait)].into();
    exploring.start = if opens { "open".to_owned() } else { EXPLORE.to_owned() };
    exploring.budgets.total_seconds = TOTAL_SECONDS;
    for texts in exploring.texts.values_mut() {
        texts.insert(EXPLORE.to_owned(), text.to_owned());
    }
    exploring
}

/// Returns whether a signal or a node is one of an exploring definition alone.
pub(crate) fn is_internal(name: &str) -> bool {
    name == NEVER || name == EXPLORE
}
