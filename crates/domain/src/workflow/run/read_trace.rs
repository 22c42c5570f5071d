//! What a run records of what it reads.

use serde_json::Value;

use super::Run;
use crate::workflow::{Field, FieldType, ReadFailure, TraceEvent, collect::rows_of};

impl Run {
    /// Records what was `found` of a field or a variable, and what was read of it.
    pub(super) fn trace_read(
        &mut self,
        name: &str,
        found: Option<&Value>,
        result: &Result<Value, ReadFailure>,
    ) {
        if self.definition.output.contains_key(name) {
            let is_read = self.fields_read.entry(name.to_owned()).or_default();
            *is_read |= result.is_ok();
        }
        if let Some(trace) = &mut self.trace {
            let (name, found, result) = (name.to_owned(), found.cloned(), result.clone());
            trace.push(TraceEvent::Read { name, found, result });
        }
    }

    /// Records that a list ends at its limit, which its `rows` reach, or what was `found` of it: rows
    /// without a value count there as well.
    pub(super) fn trace_limit(&mut self, name: &str, found: Option<&Value>, rows: usize) {
        let rows = found.and_then(rows_of).map_or(rows, |found| rows.max(found.len()));
        let field = self.definition.output.get(name).filter(|field| field.kind == FieldType::List);
        let max = field.map(Field::row_limit).filter(|max| rows >= *max);
        if let (Some(trace), Some(max)) = (&mut self.trace, max) {
            trace.push(TraceEvent::ListEnds { name: name.to_owned(), max });
        }
    }
}
