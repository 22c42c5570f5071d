//! How pages are recognized, and what a run does on them.

use domain::{
    error_code::ErrorCode,
    workflow::{
        Action, Case, Condition, Definition, Hint, Interrupt, InterruptTarget, Node, WorkflowExit,
    },
};

use super::{
    DraftError, MAX_CONDITIONS, MAX_PARTS, MAX_PLACE_CHARS, MAX_REFUSED, Marking, PageKind, ROUTE,
    SIGN_IN, SIGNED_IN, add_text, remove_text, unused_name,
};

pub(super) fn prompt_node(page: PageKind) -> Option<Node> {
    let (kind, _, timeout) = page.prompt()?;
    Some(Node::AwaitUser {
        kind,
        text_key: page.name().into(),
        timeout_seconds: 600,
        until: vec![SIGNED_IN.into()],
        hints: vec![],
        channel_hint: None,
        next: ROUTE.into(),
        on_timeout: WorkflowExit::Fail(timeout),
    })
}

/// Records how a page is recognized, and what a run does on it. `marking` says what becomes of the pages
/// of this kind that were marked before.
///
/// # Errors
/// The definition has another form than that of [`new_definition`], or too many signals; or the pages of
/// this kind would be recognized by more than 8 conditions. For a wrong code, no page asks for one.
pub fn mark_page(
    definition: &mut Definition,
    kind: PageKind,
    condition: Condition,
    marking: Marking,
) -> Result<(), DraftError> {
    let name = kind.name();
    if definition.signals.len() >= MAX_PARTS {
        return Err(DraftError::TooMany);
    }
    if kind == PageKind::WrongCode && !definition.nodes.contains_key(PageKind::Code.name()) {
        return Err(DraftError::NoCodePage);
    }
    let before = definition.signals.get(name).filter(|_| marking == Marking::Also);
    let condition = match before {
        Some(before) => either(before, &condition)?,
        None => condition,
    };
    definition.signals.insert(name.to_owned(), condition);
    match kind {
        PageKind::SignedIn => Ok(()),
        PageKind::WrongPassword => {
            add_hint(definition, SIGN_IN, name, ErrorCode::CredentialsInvalid)?;
            add_text(definition, name, "The user name or password is incorrect. Try again.");
            Ok(())
        }
        PageKind::WrongCode => {
            add_hint(definition, PageKind::Code.name(), name, ErrorCode::MfaFailed)?;
            add_text(definition, name, "The code is incorrect. Try again.");
            Ok(())
        }
        PageKind::Locked | PageKind::Down => {
            let code = if kind == PageKind::Locked {
                ErrorCode::AccountLocked
            } else {
                ErrorCode::PlatformUnavailable
            };
            definition.interrupts.retain(|interrupt| interrupt.when != name);
            let then = InterruptTarget::Fail(code);
            definition.interrupts.push(Interrupt { when: name.to_owned(), then });
            Ok(())
        }
        PageKind::SignIn
        | PageKind::Code
        | PageKind::Push
        | PageKind::SecurityQuestion
        | PageKind::AccountPicker
        | PageKind::Captcha => prompt_page(definition, kind),
    }
}

/// Has a wait for the applicant count how often a signal appears, and show its text.
fn add_hint(
    definition: &mut Definition,
    node: &str,
    signal: &str,
    code: ErrorCode,
) -> Result<(), DraftError> {
    let Some(Node::AwaitUser { hints, .. }) = definition.nodes.get_mut(node) else {
        return Err(DraftError::OtherForm);
    };
    hints.retain(|hint| hint.when != signal);
    hints.push(Hint {
        when: signal.to_owned(),
        text_key: signal.to_owned(),
        count: MAX_REFUSED,
        then: WorkflowExit::Fail(code),
    });
    Ok(())
}

/// Returns the conditions of which one holds where a condition holds: those of an `any`, also within
/// another one.
pub(crate) fn alternatives(condition: &Condition) -> Vec<&Condition> {
    if let Condition::Any(any) = condition {
        any.iter().flat_map(alternatives).collect()
    } else {
        vec![condition]
    }
}

/// Returns the shortest condition that holds where one of both does.
fn either(before: &Condition, condition: &Condition) -> Result<Condition, DraftError> {
    let mut all: Vec<&Condition> = vec![];
    for one in alternatives(before).into_iter().chain(alternatives(condition)) {
        if !all.contains(&one) {
            all.push(one);
        }
    }
    match all.as_slice() {
        [only] => Ok((*only).clone()),
        all if all.len() > MAX_CONDITIONS => Err(DraftError::TooManyConditions),
        all => Ok(Condition::Any(all.iter().copied().cloned().collect())),
    }
}

/// Has a run wait on a page for the applicant.
fn prompt_page(definition: &mut Definition, kind: PageKind) -> Result<(), DraftError> {
    let name = kind.name();
    let Some(Node::Branch { cases, .. }) = definition.nodes.get_mut(ROUTE) else {
        return Err(DraftError::OtherForm);
    };
    if cases.iter().all(|case| case.when != name) {
        // Before the sign-in page, which may still be behind.
        let at = cases.iter().position(|case| case.when == SIGN_IN).unwrap_or(cases.len());
        cases.insert(at, Case { when: name.to_owned(), next: name.to_owned() });
    }
    if !definition.nodes.contains_key(name)
        && let Some(node) = prompt_node(kind)
    {
        definition.nodes.insert(name.to_owned(), node);
    }
    if let Some((_, text, _)) = kind.prompt() {
        add_text(definition, name, text);
    }
    end_waits(definition);
    Ok(())
}

/// Has each wait for the applicant end on every other page on which one waits.
fn end_waits(definition: &mut Definition) {
    let Some(Node::Branch { cases, .. }) = definition.nodes.get(ROUTE) else { return };
    let signals: Vec<_> = cases.iter().map(|case| case.when.clone()).collect();
    for (name, node) in &mut definition.nodes {
        let is_ours = PageKind::of_name(name).is_some();
        if let (true, Node::AwaitUser { until, .. }) = (is_ours, node) {
            *until = signals.iter().filter(|signal| *signal != name).cloned().collect();
        }
    }
}

/// Forgets how a page is recognized. With the page that asks for a code, the message about a wrong one goes,
/// too.
///
/// # Errors
/// There is no such page.
pub fn remove_page(definition: &mut Definition, name: &str) -> Result<(), DraftError> {
    let kind = PageKind::of_name(name).filter(|_| definition.signals.contains_key(name));
    let kind = kind.ok_or_else(|| DraftError::NoPage(name.to_owned()))?;
    if matches!(kind, PageKind::SignIn | PageKind::SignedIn) {
        definition.signals.insert(name.to_owned(), Condition::Any(vec![]));
        return Ok(());
    }
    definition.signals.remove(name);
    definition.interrupts.retain(|interrupt| interrupt.when != name);
    definition.nodes.remove(name);
    if let Some(Node::Branch { cases, .. }) = definition.nodes.get_mut(ROUTE) {
        cases.retain(|case| case.when != name);
    }
    for node in [SIGN_IN, PageKind::Code.name()] {
        if let Some(Node::AwaitUser { hints, .. }) = definition.nodes.get_mut(node) {
            hints.retain(|hint| hint.when != name);
        }
    }
    remove_text(definition, name);
    if kind == PageKind::Code {
        definition.signals.remove(PageKind::WrongCode.name());
        remove_text(definition, PageKind::WrongCode.name());
    }
    end_waits(definition);
    Ok(())
}

/// Has runs click an element whenever it is visible, such as the button of a banner.
///
/// # Errors
/// The selector is too long, or there are too many such elements.
pub fn dismiss(definition: &mut Definition, selector: &str) -> Result<(), DraftError> {
    if selector.chars().count() > MAX_PLACE_CHARS {
        return Err(DraftError::PlaceTooLong);
    }
    if definition.signals.len() >= MAX_PARTS {
        return Err(DraftError::TooMany);
    }
    if dismissed(definition).any(|known| known == selector) {
        return Ok(());
    }
    let name = unused_name("banner", |name| definition.signals.contains_key(name));
    definition.signals.insert(name.clone(), Condition::Selector(selector.to_owned()));
    let then = InterruptTarget::Act(Action::Click(selector.to_owned()));
    definition.interrupts.push(Interrupt { when: name, then });
    Ok(())
}

/// Returns the selectors of the elements that runs click whenever they are visible.
pub fn dismissed(definition: &Definition) -> impl Iterator<Item = &str> {
    definition.interrupts.iter().filter_map(|interrupt| match &interrupt.then {
        InterruptTarget::Act(Action::Click(selector)) => Some(selector.as_str()),
        InterruptTarget::Act(_)
        | InterruptTarget::Next(_)
        | InterruptTarget::Fail(_)
        | InterruptTarget::Retry(_) => None,
    })
}

/// Leaves an element alone again.
pub fn remove_dismissed(definition: &mut Definition, selector: &str) {
    let is_it = |interrupt: &Interrupt| {
        interrupt.then == InterruptTarget::Act(Action::Click(selector.to_owned()))
    };
    let signals: Vec<_> =
        definition.interrupts.iter().filter(|one| is_it(one)).map(|one| one.when.clone()).collect();
    definition.interrupts.retain(|interrupt| !is_it(interrupt));
    for signal in signals {
        definition.signals.remove(&signal);
    }
}
