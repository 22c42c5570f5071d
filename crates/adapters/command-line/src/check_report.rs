//! The table that `avouch config check` prints.

use std::fmt::{self, Display, Formatter};

/// A line of the table.
pub struct CheckRow {
    subject: &'static str,
    state: CheckState,
    detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CheckState {
    Ok,
    /// It works, but an operator should know.
    Warning,
    Error,
}

impl CheckState {
    const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl CheckRow {
    #[must_use]
    pub fn new(subject: &'static str, result: Result<String, String>) -> Self {
        let (state, detail) = match result {
            Ok(detail) => (CheckState::Ok, detail),
            Err(detail) => (CheckState::Error, detail),
        };
        Self { subject, state, detail }
    }

    #[must_use]
    pub fn warning(subject: &'static str, detail: String) -> Self {
        Self { subject, state: CheckState::Warning, detail }
    }
}

/// The result of checking a configuration.
pub struct CheckReport(pub Vec<CheckRow>);

impl CheckReport {
    #[must_use]
    pub fn error_count(&self) -> usize {
        self.0.iter().filter(|row| row.state == CheckState::Error).count()
    }
}

impl Display for CheckReport {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let width = self.0.iter().map(|row| row.subject.len()).max().unwrap_or(0);
        for row in &self.0 {
            let (subject, state) = (row.subject, row.state.word());
            let detail = row.detail.replace(['\n', '\r'], " ");
            writeln!(out, "{subject:width$}  {state:7}  {detail}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_is_one_line_and_errors_are_counted() {
        let report = CheckReport(vec![
            CheckRow::new("settings", Ok("understood".into())),
            CheckRow::warning("mail", "there is no smtp_url".into()),
            CheckRow::new("database", Err("refused:\r\nno such role".into())),
        ]);
        assert_eq!(report.error_count(), 1);
        let lines = [
            "settings  ok       understood",
            "mail      warning  there is no smtp_url",
            "database  error    refused:  no such role",
            "",
        ];
        assert_eq!(report.to_string(), lines.join("\n"));
    }
}
