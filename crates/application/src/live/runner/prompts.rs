//! The phases of a run that the applicant sees: moves the session along, and shows the prompts.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::{
    request::AttestationRequest,
    session::{Event, PendingPrompt},
    workflow::{
        Attest, Command, Definition, Field, PromptKind, PublicPhase, SharedField, StepResult,
    },
};
use ports::driving::{
    Prompt, ShareContent, ShareItem, ShareTable, ShownValue, ValueKind, ValueStyle,
};
use serde_json::Value;

use super::WorkflowRunner;
use crate::advance::AdvanceError;

/// How often the deadline of a consent prompt is checked.
const ANSWER_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The phase that this run has moved the session to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RunMode {
    Running,
    Collecting,
    /// With the deadline that the session states.
    Awaiting(PromptKind, ResumeMode, DateTime<Utc>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ResumeMode {
    Running,
    Collecting,
}

impl WorkflowRunner {
    /// Moves the session to the phase of the run, and shows the applicant its prompt.
    pub(super) async fn show(
        &self,
        mode: RunMode,
        shown: &PublicPhase,
        command: &Command,
        definition: &Definition,
    ) -> Result<RunMode, AdvanceError> {
        let mut mode = mode;
        if let (RunMode::Awaiting(kind, before, _), shown) = (mode, shown) {
            let is_same = matches!(shown, PublicPhase::Awaiting(ask) if ask.kind == kind);
            if !is_same {
                self.apply(Event::InputGiven).await?;
                mode = match before {
                    ResumeMode::Running => RunMode::Running,
                    ResumeMode::Collecting => RunMode::Collecting,
                };
            }
        }
        match (mode, shown) {
            (RunMode::Running, PublicPhase::Collecting) => {
                self.apply(Event::CollectionStarted).await?;
                Ok(RunMode::Collecting)
            }
            (RunMode::Running | RunMode::Collecting, PublicPhase::Awaiting(ask)) => {
                self.apply(Event::InputNeeded { ask: ask.clone() }).await?;
                self.prompt(ask, command, definition);
                let before = if mode == RunMode::Running {
                    ResumeMode::Running
                } else {
                    ResumeMode::Collecting
                };
                Ok(RunMode::Awaiting(ask.kind, before, ask.deadline))
            }
            (RunMode::Awaiting(kind, before, deadline), PublicPhase::Awaiting(ask)) => {
                if ask.deadline != deadline || self.live.is_hint_new(ask) {
                    let (deadline, hint) = (ask.deadline, ask.hint.clone());
                    self.apply(Event::DeadlineChanged { deadline, hint }).await?;
                }
                self.prompt(ask, command, definition);
                Ok(RunMode::Awaiting(kind, before, ask.deadline))
            }
            (mode, _) => Ok(mode),
        }
    }

    fn prompt(&self, ask: &PendingPrompt, command: &Command, definition: &Definition) {
        self.live.state.send_if_modified(|state| {
            let language = state.language.as_deref();
            let wants_attestation = state
                .session
                .as_ref()
                .is_some_and(|s| s.terms.attestation == AttestationRequest::Wanted);
            let witnessed = matches!(command, Command::Consent { .. })
                && wants_attestation
                && definition.opens_all();
            let attest = definition.attest.as_ref().filter(|_| wants_attestation);
            let (share, unconfirmed) = if let Command::Consent { fields, unconfirmed } = command {
                let item = |field: &SharedField| share_item(field, definition, language, attest);
                (fields.iter().filter_map(item).collect(), *unconfirmed)
            } else {
                (vec![], false)
            };
            let text = definition.text(language, &ask.text_key).to_owned();
            let translated = definition.translation(language, &ask.text_key).is_some();
            let (kind, deadline) = (ask.kind, ask.deadline);
            let number = 0;
            state.ask(Prompt {
                number,
                kind,
                text,
                translated,
                deadline,
                share,
                witnessed,
                unconfirmed,
            })
        });
    }

    /// Waits a short time for the address that the applicant enters.
    pub(super) async fn entered_url(&self) -> StepResult {
        let mut changes = self.live.state.subscribe();
        let entered = changes.wait_for(|state| state.custom_url.is_some());
        if tokio::time::timeout(ANSWER_POLL_INTERVAL, entered).await.is_err() {
            return StepResult::Waited;
        }
        let mut url = None;
        self.live.state.send_if_modified(|state| {
            url = state.take_custom_url();
            false
        });
        url.map_or(StepResult::Waited, StepResult::CustomUrl)
    }

    pub(super) async fn answer(&self) -> StepResult {
        let mut changes = self.live.state.subscribe();
        let answered = changes.wait_for(|state| state.consent().is_some());
        match tokio::time::timeout(ANSWER_POLL_INTERVAL, answered).await {
            Ok(Ok(state)) => {
                state.consent().map_or(StepResult::Waited, |share| StepResult::Answered { share })
            }
            Ok(Err(_)) | Err(_) => StepResult::Waited,
        }
    }
}

fn share_item(
    field: &SharedField,
    definition: &Definition,
    language: Option<&str>,
    attest: Option<&Attest>,
) -> Option<ShareItem> {
    let output = definition.output.get(&field.name)?;
    let table = |rows: Vec<&Value>| {
        let members = || output.ordered_members();
        let column = |(_, member): (&String, &Field)| {
            let label = definition.text(language, &member.label_key).to_owned();
            (label, style(member))
        };
        let row = |row: &Value| {
            let cell = |(name, member): (&String, &Field)| {
                shown_value(row.get(name)?, member, definition, language)
            };
            members().map(cell).collect()
        };
        let columns = members().map(column).collect();
        ShareTable { columns, rows: rows.into_iter().map(row).collect() }
    };
    let content = match &field.value {
        Value::Array(rows) => ShareContent::List(table(rows.iter().collect())),
        object @ Value::Object(_) => ShareContent::Object(table(vec![object])),
        value @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            let value = shown_value(value, output, definition, language)?;
            ShareContent::Value { value, style: style(output) }
        }
    };
    Some(ShareItem {
        label: definition.text(language, &output.label_key).to_owned(),
        content,
        attested: attest.is_some_and(|attest| attest.fields.contains_key(&field.name)),
    })
}

fn style(field: &Field) -> ValueStyle {
    ValueStyle { format: field.format, currency: field.currency.clone() }
}

fn shown_value(
    value: &Value,
    field: &Field,
    definition: &Definition,
    language: Option<&str>,
) -> Option<ShownValue> {
    let (kind, text) = match value {
        Value::String(value) => {
            let named = field.value_keys.get(value);
            let text = named.map_or(value.as_str(), |key| definition.text(language, key));
            (ValueKind::Text, text.to_owned())
        }
        Value::Number(number) => (ValueKind::Number, number.to_string()),
        Value::Bool(value) => (ValueKind::Boolean, value.to_string()),
        // The interpreter collects no other values here.
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    Some(ShownValue { kind, text })
}
