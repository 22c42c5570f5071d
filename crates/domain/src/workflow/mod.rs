//! Workflows of platforms, as data: the definition, its validation, and the interpreter that
//! decides the next command. No platform needs code of its own.

mod attest;
mod check;
mod collect;
mod condition;
mod definition;
mod run;

pub use self::{
    attest::{Attest, AttestMode},
    check::{ValidationError, check},
    condition::{Condition, Observation, SeenResponse, matches_url},
    definition::{
        Budgets, Case, Definition, Field, FieldFormat, FieldType, Hint, Interrupt, Node,
        PromptKind, Request, Source, WorkflowExit,
    },
    run::{Command, End, MIN_ABSENCE, PublicPhase, Run, RunStep, SharedField, StepResult},
};

#[cfg(test)]
mod tests;
