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
    check::{Flaw, check},
    condition::{Condition, Observation, SeenResponse, matches_url},
    definition::{
        AskKind, Budgets, Case, Definition, Exit, Field, FieldType, Hint, Interrupt, Node, Request,
        Source,
    },
    run::{Command, End, News, Run, SharedField, Shown, Turn},
};

#[cfg(test)]
mod tests;
