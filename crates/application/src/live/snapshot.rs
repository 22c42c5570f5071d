//! What a viewer is shown of a session, all but the picture.

use domain::{error_code::ErrorCode, session::Session, workflow::Definition};
use ports::driving::{SessionSnapshot, SharedItem, ShownOutcome};

use super::hub::LiveState;

pub(super) fn view_of(inside: &LiveState) -> Option<SessionSnapshot> {
    let session = inside.session.as_ref()?;
    let definition = inside.definition.as_deref();
    Some(SessionSnapshot {
        status: session.status(),
        progress: session.progress.percent(),
        platform: definition.map(|d| d.display_name.clone()).unwrap_or_default(),
        place: inside.place,
        guest: inside.guest.as_ref().map(|guest| guest.number),
        prompt: inside.prompt.clone(),
        outcome: outcome(session, definition, inside.language.as_deref()),
    })
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
        None => "This verification was ended. You can close this page.",
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
    let shared = outcome.data().map(|data| data.keys().map(item).collect());
    let code = outcome.error_code();
    Some(ShownOutcome { text: text.to_owned(), code, shared: shared.unwrap_or_default() })
}
