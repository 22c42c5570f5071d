//! `avouch doctor`: the report of what the service depends on.

use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use ports::{
    diagnostic::DiagnosisState,
    driving::{DiagnosedSubject, DiagnosisService},
};
use serde_json::{Value, json};

/// The arguments of `avouch doctor`.
#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// How the report is printed; by default as text on a terminal, and else as JSON
    #[arg(long, value_enum)]
    pub format: Option<DoctorFormat>,
}

/// The format of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DoctorFormat {
    /// A line for each result, and one below it with what to do
    Text,
    /// An object with `status` and the list `checks`
    Json,
}

/// A report, and whether nothing in it failed.
pub struct DoctorReport {
    pub text: String,
    pub passed: bool,
}

impl DoctorReport {
    /// Examines everything, and renders the results. `settings` are those of the configuration itself.
    pub async fn of(
        settings: Vec<DiagnosedSubject>,
        diagnoses: &dyn DiagnosisService,
        format: DoctorFormat,
    ) -> Self {
        let found = [settings, diagnoses.diagnose().await].concat();
        let worst = found.iter().map(|found| found.diagnosis.state).max();
        let worst = worst.unwrap_or(DiagnosisState::Ok);
        let text = match format {
            DoctorFormat::Text => text(&found),
            DoctorFormat::Json => json(worst, &found).to_string(),
        };
        Self { text, passed: worst != DiagnosisState::Failed }
    }
}

/// One line for each result, and one below it with what to do.
fn text(found: &[DiagnosedSubject]) -> String {
    let width = found.iter().map(|found| found.subject.len()).max().unwrap_or(0);
    let mut text = String::new();
    for DiagnosedSubject { subject, diagnosis } in found {
        let (state, detail) = (diagnosis.state.as_str(), one_line(&diagnosis.detail));
        let _ = writeln!(text, "{subject:width$}  {state:7}  {detail}");
        if let Some(advice) = &diagnosis.advice {
            let _ = writeln!(text, "{:width$}           what to do: {}", "", one_line(advice));
        }
    }
    text.trim_end().to_owned()
}

fn json(worst: DiagnosisState, found: &[DiagnosedSubject]) -> Value {
    let checks = found.iter().map(|DiagnosedSubject { subject, diagnosis }| {
        json!({
            "subject": subject,
            "status": diagnosis.state.as_str(),
            "detail": diagnosis.detail,
            "advice": diagnosis.advice,
        })
    });
    json!({ "status": worst.as_str(), "checks": checks.collect::<Vec<_>>() })
}

/// Servers are quoted in details.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use ports::diagnostic::Diagnosis;

    use super::*;

    fn found() -> Vec<DiagnosedSubject> {
        [
            ("database", Diagnosis::ok("PostgreSQL 15")),
            ("mail", Diagnosis::warning("written to files", "set smtp_url")),
            ("redis", Diagnosis::failed("refused:\r\nno", "start it")),
        ]
        .map(|(subject, diagnosis)| DiagnosedSubject { subject, diagnosis })
        .into()
    }

    #[test]
    fn each_result_is_a_line_with_what_to_do_below_it() {
        let lines = [
            "database  ok       PostgreSQL 15",
            "mail      warning  written to files",
            "                   what to do: set smtp_url",
            "redis     failed   refused:  no",
            "                   what to do: start it",
        ];
        assert_eq!(text(&found()), lines.join("\n"));
    }

    #[test]
    fn the_report_is_as_bad_as_its_worst_result() {
        let report = json(DiagnosisState::Failed, &found());
        assert_eq!(report["status"], "failed");
        let mail = json!({ "subject": "mail", "status": "warning", "detail": "written to files",
            "advice": "set smtp_url" });
        assert_eq!(report["checks"][1], mail);
        assert_eq!(report["checks"][0]["advice"], Value::Null);
    }
}
