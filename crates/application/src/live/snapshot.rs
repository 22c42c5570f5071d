//! What a viewer is shown of a session, except for the page itself.

use domain::{error_code::ErrorCode, session::Session, workflow::Definition};
use ports::driving::{SessionSnapshot, SharedItem, ShownFailure, ShownOutcome};

use super::hub::LiveState;

/// Returns what to show of the live session; `None` until its session is known.
pub(super) fn snapshot_of(state: &LiveState) -> Option<SessionSnapshot> {
    let session = state.session.as_ref()?;
    let definition = state.definition.as_deref();
    Some(SessionSnapshot {
        status: session.status(),
        progress: session.progress.percent(),
        platform: definition.map(|d| d.display_name.clone()).unwrap_or_default(),
        place: state.place,
        wait_minutes: state.place.and(state.wait_minutes),
        guest: state.guest.as_ref().map(|guest| guest.number),
        prompt: state.prompt.clone(),
        failure: failure(session),
        outcome: outcome(session, definition, state.language.as_deref()),
    })
}

fn failure(session: &Session) -> Option<ShownFailure> {
    let (code, _) = session.state.offered_retry()?;
    let attempts_left = session.terms.max_attempts.get().saturating_sub(session.state.attempts());
    Some(ShownFailure { text: code.applicant_text(), code, attempts_left })
}

fn outcome(
    session: &Session,
    definition: Option<&Definition>,
    language: Option<&str>,
) -> Option<ShownOutcome> {
    let outcome = session.state.outcome()?;
    let text = match outcome.error_code() {
        Some(code) => ErrorCode::applicant_text(code),
        None if outcome.data().is_some() => "Your data was shared. You can close this page.",
        None => "This verification was ended, and no data was shared. You can close this page.",
    };
    let label = |name: &String| {
        let field = definition.and_then(|d| Some((d, d.output.get(name)?)));
        field.map_or_else(|| name.clone(), |(d, field)| d.text(language, &field.label_key).into())
    };
    let attestation = outcome.attestation();
    let item = |name: &String| SharedItem {
        label: label(name),
        attested: attestation.map(|attestation| attestation.fields.contains(name)),
    };
    let mut shared: Vec<_> = outcome.data().map(|d| d.keys().collect()).unwrap_or_default();
    let mut missing: Vec<_> = outcome.missing().iter().collect();
    let order: Vec<_> = definition.iter().flat_map(|d| d.ordered_output()).collect();
    // A field that the definition no longer has comes last.
    let place = |name: &&String| order.iter().position(|(n, _)| n == name).unwrap_or(usize::MAX);
    shared.sort_by_key(place);
    missing.sort_by_key(place);
    Some(ShownOutcome {
        text: text.to_owned(),
        code: outcome.error_code(),
        at: session.closed_at,
        shared: shared.into_iter().map(item).collect(),
        missing: missing.into_iter().map(label).collect(),
    })
}

#[cfg(test)]
mod tests;
