//! What a run saw and decided, for authors of definitions. It has data of the applicant: it is for runs
//! in which the author plays the applicant, and is never logged.

use serde_json::Value;

use crate::error_code::ErrorCode;

/// Something that a run saw or decided.
#[derive(Debug, Clone, PartialEq)]
pub enum TraceEvent {
    /// The run entered a node.
    Entered { node: String },
    /// An observation that differs from the one before in its URL, its state or its signals.
    Observed {
        url: String,
        settled: bool,
        /// All signals, by name, and whether each holds.
        signals: Vec<(String, bool)>,
    },
    /// The page of a `goto` could not be reached.
    Unreachable,
    /// The run failed, at the node that it is at.
    Failed { code: ErrorCode },
    /// The run is complete, with this data; the applicant declined to share it if there is none.
    Completed { data: Option<Value> },
    /// The author has changed the definition, and the run begins anew in the same browser.
    Reloaded,
    /// A response to a request or to what was watched could not be used, or an element for an action
    /// was missing.
    Unreadable,
    /// A field or variable was read.
    Read {
        name: String,
        /// What was at its place; `None` if there was nothing.
        found: Option<Value>,
        /// The value, or why there is none.
        result: Result<Value, ReadFailure>,
    },
}

/// Why what was read is no value of a field or variable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadFailure {
    #[error("nothing is there")]
    NotFound,
    #[error("the text is longer than converters read")]
    TooLong,
    /// With its index, from 0.
    #[error("converter {0} does not apply")]
    Converter(usize),
    #[error("the value is empty, or of another type than the field")]
    WrongType,
    /// A required member of an object, by its name.
    #[error("the required member `{0}` is missing")]
    Member(String),
    /// A row of a list without a required member, with its index, from 0.
    #[error("row {row} has no required member `{member}`")]
    Row { row: usize, member: String },
    #[error("all data together is larger than 256 KiB")]
    TooMuch,
}
