//! The workflow of a platform, as data: its definition, the checks a definition must pass, and
//! the interpreter that says what to do next. No platform is code.

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
        Budgets, Case, Definition, Field, FieldType, Hint, Interrupt, Node, PromptKind, Request,
        Source, WorkflowExit,
    },
    run::{Command, End, PublicPhase, Run, RunStep, SharedField, StepResult},
};

#[cfg(test)]
mod tests;
