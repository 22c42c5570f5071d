//! `avouch workflow …`: for authors of platform definitions.

use std::{
    fmt::Write as _,
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use clap::{Subcommand, ValueEnum};
use domain::workflow::{Definition, Severity};
use ports::{
    definition_syntax::MAX_DEFINITION_BYTES,
    driving::{DefinitionReport, DefinitionService, Finding},
};
use serde_json::{Value, json};

use crate::CommandError;

#[derive(Debug, Subcommand)]
pub enum WorkflowCommand {
    /// Validates a definition, and prints all errors and warnings with their places. The exit code is 1
    /// if it cannot be published
    Check {
        file: PathBuf,
        /// How findings are printed; by default as text on a terminal, and else as JSON
        #[arg(long, value_enum)]
        format: Option<ReportFormat>,
        /// Counts warnings as errors
        #[arg(long)]
        strict: bool,
    },
    /// Prints the JSON Schema of definitions, with which editors complete and validate them
    Schema,
    /// Prints the reference of definitions, as Markdown
    Reference,
    /// Prints what an attestor has to allow for a definition
    Descriptor { file: PathBuf },
    /// Runs a definition once in a real browser: prints a link with which you play the applicant on
    /// standard error, and the result as JSON. The exit code is 3 if the session shared no data, and 4 if
    /// the replay of a fixture differs. It is 0 also if optional data is missing: `status` of the result is
    /// then `PARTIAL_COMPLETE`
    Run {
        file: PathBuf,
        /// Writes what the run saw to this file, as a fixture; what you type and credentials are masked
        #[arg(long, value_name = "FIXTURE", conflicts_with = "replay")]
        record: Option<PathBuf>,
        /// Runs the definition on a fixture, without a browser, and prints what differs; may be repeated
        #[arg(long, value_name = "FIXTURE")]
        replay: Vec<PathBuf>,
        /// Runs the definition anew in the same browser each time that the file changes, until you stop
        /// the command: you sign in once
        #[arg(long, conflicts_with_all = ["record", "replay"])]
        watch: bool,
    },
    /// Opens the authoring studio: a page on this machine in which you sign in to the site in a real
    /// browser and choose what to read, without writing JSON. Prints its link on standard error, and
    /// runs until you stop the command
    Studio {
        /// The definition; it is created when you save it
        file: PathBuf,
        /// The address at which applicants sign in, for a new definition
        #[arg(long, value_name = "URL")]
        login_url: Option<String>,
        /// The name of the platform as applicants read it, for a new definition; the host if it is left
        /// out
        #[arg(long, requires = "login_url")]
        name: Option<String>,
    },
}

/// The format of the findings of a validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// One line for each finding, as compilers print them: file, line, column, severity and message
    Text,
    /// An object with the list `flaws`
    Json,
}

/// The output of `check`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckOutput {
    pub text: String,
    /// Whether the definition has no errors; with `--strict`, no warnings either.
    pub passed: bool,
}

/// Reads a definition from a file, and validates it.
///
/// # Errors
/// The file cannot be read, or the definition cannot be published.
pub fn read_definition(
    definitions: &dyn DefinitionService,
    file: &Path,
) -> Result<Definition, CommandError> {
    let report = definitions.validate(&with_sign_ins(read_document(file)?, file)?);
    Ok(report.into_valid().map_err(|error| format!("{} {error}", file.display()))?)
}

/// Reads a file that is not longer than a definition may be.
///
/// # Errors
/// It cannot be read, or is longer.
pub fn read_document(file: &Path) -> Result<String, CommandError> {
    let path = file.display();
    let unreadable = |error| format!("{path} cannot be read: {error}");
    let mut text = String::new();
    let limit = u64::try_from(MAX_DEFINITION_BYTES)?.saturating_add(1);
    let reader = File::open(file).map_err(unreadable)?;
    reader.take(limit).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() > MAX_DEFINITION_BYTES {
        return Err(format!("{path} is too long: at most {MAX_DEFINITION_BYTES} bytes").into());
    }
    Ok(text)
}

/// The member of a document with its shared sign-ins.
const SIGN_INS: &str = "signIns";

/// Returns a document with the files that stand for shared sign-ins in it, each in one line, so that the
/// lines of the document stay as they are.
///
/// # Errors
/// A file cannot be read, is no JSON, or all together is longer than a definition may be.
pub fn with_sign_ins(document: String, file: &Path) -> Result<String, CommandError> {
    let Ok(value) = serde_json::from_str::<Value>(&document) else { return Ok(document) };
    let sign_ins = value.get(SIGN_INS).and_then(Value::as_object).into_iter().flatten();
    let mut written = document;
    for (name, path) in sign_ins {
        let Some(path) = path.as_str() else { continue };
        let place = format!("{}: the sign-in `{name}`", file.display());
        let found = file.parent().unwrap_or_else(|| Path::new("")).join(path);
        let text = read_document(&found).map_err(|error| format!("{place}: {error}"))?;
        let sign_in: Value = serde_json::from_str(&text)
            .map_err(|error| format!("{} is no JSON: {error}", found.display()))?;
        let literals = [SIGN_INS.to_owned(), name.clone(), path.to_owned()]
            .map(|text| Value::from(text).to_string());
        let [members, key, literal] = &literals;
        // After the members, the key, and then its value.
        let at = written.find(members).and_then(|start| {
            let start = start.saturating_add(members.len());
            let key_at = start.saturating_add(written.get(start..)?.find(key)?);
            let start = key_at.saturating_add(key.len());
            Some(start.saturating_add(written.get(start..)?.find(literal)?))
        });
        let Some(at) = at else {
            return Err(format!("{place}: write the path without escapes").into());
        };
        written.replace_range(at..at.saturating_add(literal.len()), &sign_in.to_string());
    }
    if written.len() > MAX_DEFINITION_BYTES {
        let limit = MAX_DEFINITION_BYTES;
        return Err(
            format!("{} has more than {limit} bytes with its sign-ins", file.display()).into()
        );
    }
    Ok(written)
}

impl WorkflowCommand {
    /// Returns the output of `check`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn check(
        definitions: &dyn DefinitionService,
        file: &Path,
        format: ReportFormat,
        strict: bool,
    ) -> Result<CheckOutput, CommandError> {
        let report = definitions.validate(&with_sign_ins(read_document(file)?, file)?);
        let passed =
            report.count(Severity::Error) == 0 && (!strict || report.count(Severity::Warning) == 0);
        let text = match format {
            ReportFormat::Text => as_text(file, &report),
            ReportFormat::Json => as_json(&report).to_string(),
        };
        Ok(CheckOutput { text, passed })
    }

    /// Returns the output of `descriptor`.
    ///
    /// # Errors
    /// The definition cannot be read or published, or cannot be attested.
    pub fn descriptor(
        definitions: &dyn DefinitionService,
        file: &Path,
    ) -> Result<String, CommandError> {
        let definition = read_definition(definitions, file)?;
        let descriptor = definitions.descriptor(&definition)?;
        Ok(descriptor.ok_or("the definition has no plan for attestations")?)
    }
}

fn as_json(report: &DefinitionReport) -> Value {
    let definition = report.definition.as_ref();
    let flaw = |finding: &Finding| {
        json!({
            "severity": finding.severity.as_str(),
            "path": finding.path.to_string(),
            "line": finding.position.map(|position| position.line),
            "column": finding.position.map(|position| position.column),
            "message": finding.message,
        })
    };
    json!({
        "platform": definition.map(|definition| &definition.platform),
        "version": definition.map(|definition| &definition.version),
        "flaws": report.findings.iter().map(flaw).collect::<Vec<_>>(),
    })
}

fn as_text(file: &Path, report: &DefinitionReport) -> String {
    let mut text = String::new();
    for Finding { severity, path, position, message } in &report.findings {
        let place = position.map(|at| format!(":{}:{}", at.line, at.column)).unwrap_or_default();
        let severity = severity.as_str();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}{place}: {severity}: {path}: {message}", file.display());
    }
    let count = |severity, name: &str| match report.count(severity) {
        1 => format!("1 {name}"),
        count => format!("{count} {name}s"),
    };
    let errors = count(Severity::Error, "error");
    let _ = write!(text, "{errors}, {}", count(Severity::Warning, "warning"));
    if let Some(Definition { platform, version, .. }) = &report.definition {
        let _ = write!(text, " in {platform} {version}");
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_file_of_a_sign_in_takes_the_place_of_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let [file, other] = ["shop.json", "sso.json"].map(|name| folder.path().join(name));
        std::fs::write(&other, "{\n  \"start\": \"a\"\n}\n").unwrap();
        let written = |text: &str| with_sign_ins(text.to_owned(), &file);
        let document =
            "{\n\"a\": \"sso.json\",\n\"signIns\": { \"sso\": \"sso.json\" },\n\"b\": 1 }";
        assert_eq!(
            written(document).unwrap(),
            "{\n\"a\": \"sso.json\",\n\"signIns\": { \"sso\": {\"start\":\"a\"} },\n\"b\": 1 }"
        );
        assert_eq!(written("{").unwrap(), "{", "the error is reported by the check");
        let alike = "{ \"signIns\": { \"sso.json\": \"sso.json\" } }";
        assert_eq!(written(alike).unwrap(), "{ \"signIns\": { \"sso.json\": {\"start\":\"a\"} } }");
        let missing = written("{ \"signIns\": { \"sso\": \"no.json\" } }").unwrap_err().to_string();
        assert!(missing.contains("the sign-in `sso`") && missing.contains("no.json"), "{missing}");
        std::fs::write(&other, "{").unwrap();
        assert!(written(document).unwrap_err().to_string().contains("is no JSON"));
    }

    use std::fs;

    use domain::workflow::JsonPath;
    use ports::{definition_syntax::DocumentPosition, driving::MockDefinitionService};
    use testkit::sample;

    use super::*;

    #[test]
    fn a_valid_definition_is_named_with_its_version() {
        let (_folder, file) = document("{}");
        let mut definitions = service(vec![]);
        definitions.expect_descriptor().returning(|_| Ok(Some("{\n}".into())));
        let output = check(&definitions, &file, ReportFormat::Json, true);
        assert!(output.passed);
        assert_eq!(output.text, r#"{"flaws":[],"platform":"sample","version":"1.0.0"}"#);
        let output = check(&definitions, &file, ReportFormat::Text, true);
        assert_eq!(output.text, "0 errors, 0 warnings in sample 1.0.0");
        assert_eq!(WorkflowCommand::descriptor(&definitions, &file).unwrap(), "{\n}");
    }

    #[test]
    fn findings_are_printed_with_their_places() {
        let (_folder, file) = document("{}");
        let definitions = service(vec![finding(Severity::Error, 3), finding(Severity::Warning, 7)]);
        let output = check(&definitions, &file, ReportFormat::Text, false);
        assert!(!output.passed);
        let path = file.display();
        let lines = format!(
            "{path}:3:5: error: $.start: is wrong\n{path}:7:5: warning: $.start: is wrong\n\
             1 error, 1 warning in sample 1.0.0"
        );
        assert_eq!(output.text, lines);
        let output = check(&definitions, &file, ReportFormat::Json, false);
        let flaw =
            r#"{"column":5,"line":3,"message":"is wrong","path":"$.start","severity":"error"}"#;
        assert!(output.text.contains(flaw), "{}", output.text);
    }

    #[test]
    fn warnings_count_when_asked_for() {
        let (_folder, file) = document("{}");
        let definitions = service(vec![finding(Severity::Warning, 1)]);
        assert!(check(&definitions, &file, ReportFormat::Json, false).passed);
        assert!(!check(&definitions, &file, ReportFormat::Json, true).passed);
        assert!(read_definition(&definitions, &file).is_ok());
    }

    #[test]
    fn a_definition_without_a_plan_has_no_descriptor() {
        let (_folder, file) = document("{}");
        let mut definitions = service(vec![]);
        definitions.expect_descriptor().returning(|_| Ok(None));
        let error = WorkflowCommand::descriptor(&definitions, &file).unwrap_err();
        assert_eq!(error.to_string(), "the definition has no plan for attestations");
    }

    #[test]
    fn errors_name_the_file() {
        let (_folder, file) = document("{}");
        let definitions = service(vec![finding(Severity::Error, 1), finding(Severity::Warning, 2)]);
        let error = read_definition(&definitions, &file).unwrap_err().to_string();
        let path = file.display();
        assert_eq!(error, format!("{path} cannot be published: $.start: is wrong"));
        let missing = Path::new("/nowhere.json");
        let error = read_definition(&definitions, missing).unwrap_err().to_string();
        assert!(error.starts_with("/nowhere.json cannot be read: "), "{error}");
        let (_folder, long) = document(&" ".repeat(MAX_DEFINITION_BYTES + 1));
        let error = read_definition(&definitions, &long).unwrap_err().to_string();
        assert!(error.ends_with("is too long: at most 1048576 bytes"), "{error}");
    }

    fn check(
        definitions: &dyn DefinitionService,
        file: &Path,
        format: ReportFormat,
        strict: bool,
    ) -> CheckOutput {
        WorkflowCommand::check(definitions, file, format, strict).unwrap()
    }

    fn finding(severity: Severity, line: usize) -> Finding {
        let path = JsonPath::root().member("start");
        let position = Some(DocumentPosition { line, column: 5 });
        Finding { severity, path, position, message: "is wrong".into() }
    }

    fn document(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("definition.json");
        fs::write(&file, text).unwrap();
        (folder, file)
    }

    fn service(findings: Vec<Finding>) -> MockDefinitionService {
        let mut definitions = MockDefinitionService::new();
        definitions.expect_validate().returning(move |_| DefinitionReport {
            definition: Some(sample::definition("sample", "1.0.0")),
            findings: findings.clone(),
        });
        definitions
    }
}
