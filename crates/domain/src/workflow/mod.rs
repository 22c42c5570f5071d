//! Workflows of platforms, as data: the definition, its validation, and the interpreter that
//! decides the next command. No platform needs code of its own.

mod attest;
mod check;
mod collect;
mod condition;
mod convert;
mod definition;
mod extraction;
mod json_path;
mod placeholders;
mod run;
mod trace;

pub use self::{
    attest::{Attest, AttestMode},
    check::{Severity, ValidationError, check, closest_name},
    condition::{Condition, Observation, SeenResponse, matches_url},
    convert::{BooleanWords, Converter, DateFormat, DateLanguage, DecimalMark, NumberFormat},
    definition::{
        Action, Budgets, Case, Confirmation, CsrfHeader, CsrfToken, Definition, FRAME_SEPARATOR,
        Field, FieldFormat, FieldType, Hint, Interrupt, InterruptTarget, Method, Node, PromptKind,
        Request, Source, WorkflowExit,
    },
    extraction::{ElementChoice, ElementContent, Extraction},
    json_path::{JsonPath, PathSegment},
    run::{
        Command, ElementRead, End, MIN_ABSENCE, PageFetch, PublicPhase, Run, RunStep, SharedField,
        StepResult,
    },
    trace::{ReadFailure, TraceEvent},
};

#[cfg(test)]
mod language_tests;
#[cfg(test)]
mod tests;
