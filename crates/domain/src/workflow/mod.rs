//! Workflows of platforms, as data: the definition, its validation, and the interpreter that
//! decides the next command. No platform needs code of its own.

mod attest;
mod channel_hint;
mod check;
mod collect;
mod condition;
mod convert;
mod custom_url;
mod definition;
mod extraction;
mod fixture;
mod fixture_masks;
mod json_path;
mod mask;
mod output;
mod placeholders;
mod profile;
mod replay;
mod request;
mod run;
mod sign_in;
mod token;
mod trace;

pub use self::{
    attest::{Attest, AttestMode},
    channel_hint::{ChannelHint, CodeChannel},
    check::{Severity, ValidationError, check, closest_name},
    collect::{rows_of, value_at},
    condition::{Condition, NoBody, Observation, SeenResponse, matches_url},
    convert::{BooleanWords, Converter, DateFormat, DateLanguage, DecimalMark, NumberFormat},
    custom_url::{CustomAddress, CustomUrl},
    definition::{
        Action, Budgets, Case, Confirmation, Definition, FRAME_SEPARATOR, Hint, Interrupt,
        InterruptRetry, InterruptTarget, Node, PromptKind, Source, WorkflowExit,
    },
    extraction::{ElementChoice, ElementContent, Extraction},
    fixture::{Fixture, FixtureEvent, PageNode, PageTree, RunResult},
    fixture_masks::{MaskedFixture, mask_tokens},
    json_path::{JsonPath, PathSegment},
    mask::{mask_body, mask_json, mask_url},
    output::{Field, FieldFormat, FieldType},
    profile::PlatformProfile,
    replay::{Replayed, Select, element_text, find_elements, replay},
    request::{CsrfHeader, CsrfToken, Method, NextPage, Pages, Request},
    run::{
        Command, ElementRead, End, MIN_ABSENCE, PageFetch, PublicPhase, ReadContent, Run, RunStep,
        SharedField, StepResult,
    },
    sign_in::{SignIn, WrittenOut, write_out},
    trace::{ReadFailure, TraceEvent},
};

#[cfg(test)]
mod confirm_tests;
#[cfg(test)]
mod language_tests;
#[cfg(test)]
mod list_tests;
#[cfg(test)]
mod pause_tests;
#[cfg(test)]
mod replay_tests;
#[cfg(test)]
mod sign_in_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod token_tests;
