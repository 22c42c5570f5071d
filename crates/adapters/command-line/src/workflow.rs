//! `avouch workflow …`: for authors of platform definitions.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Subcommand;
use domain::workflow::Definition;
use ports::driving::DefinitionService;
use serde_json::json;

use crate::CommandError;

#[derive(Debug, Subcommand)]
pub enum WorkflowCommand {
    /// Validates a definition; prints its errors
    Check { file: PathBuf },
    /// Prints what an attestor has to allow for a definition
    Descriptor { file: PathBuf },
    /// Runs a definition once in a real browser: prints a link with which you play the applicant on
    /// standard error, and the result as JSON. The exit code is 3 if the session shared no data
    Run { file: PathBuf },
}

/// Reads a definition from a file, and validates it.
///
/// # Errors
/// The file cannot be read, or the definition cannot be published.
pub fn read_definition(
    definitions: &dyn DefinitionService,
    file: &Path,
) -> Result<Definition, CommandError> {
    let path = file.display();
    let text = fs::read_to_string(file);
    let text = text.map_err(|error| format!("{path} cannot be read: {error}"))?;
    Ok(definitions.validate(&text).map_err(|error| format!("{path} {error}"))?)
}

impl WorkflowCommand {
    /// Returns the output of `check`.
    ///
    /// # Errors
    /// The definition cannot be read or published.
    pub fn check(definitions: &dyn DefinitionService, file: &Path) -> Result<String, CommandError> {
        let definition = read_definition(definitions, file)?;
        let (platform, version) = (definition.platform, definition.version);
        Ok(json!({ "platform": platform, "version": version, "flaws": [] }).to_string())
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

#[cfg(test)]
mod tests {
    use ports::driving::{InvalidDefinition, MockDefinitionService};
    use testkit::sample;

    use super::*;

    #[test]
    fn a_valid_definition_is_named_with_its_version() {
        let (_folder, file) = document();
        let mut definitions = valid();
        definitions.expect_descriptor().returning(|_| Ok(Some("{\n}".into())));
        let output = WorkflowCommand::check(&definitions, &file).unwrap();
        assert_eq!(output, r#"{"flaws":[],"platform":"sample","version":"1.0.0"}"#);
        assert_eq!(WorkflowCommand::descriptor(&definitions, &file).unwrap(), "{\n}");
    }

    #[test]
    fn a_definition_without_a_plan_has_no_descriptor() {
        let (_folder, file) = document();
        let mut definitions = valid();
        definitions.expect_descriptor().returning(|_| Ok(None));
        let error = WorkflowCommand::descriptor(&definitions, &file).unwrap_err();
        assert_eq!(error.to_string(), "the definition has no plan for attestations");
    }

    #[test]
    fn errors_name_the_file() {
        let (_folder, file) = document();
        let mut definitions = MockDefinitionService::new();
        let errors = || Err(InvalidDefinition::Errors(vec!["one".into(), "two".into()]));
        definitions.expect_validate().times(1).returning(move |_| errors());
        let error = WorkflowCommand::check(&definitions, &file).unwrap_err();
        assert_eq!(error.to_string(), format!("{} has flaws: one; two", file.display()));
        let missing = Path::new("/nowhere.json");
        let error = WorkflowCommand::check(&definitions, missing).unwrap_err().to_string();
        assert!(error.starts_with("/nowhere.json cannot be read: "), "{error}");
    }

    fn document() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("definition.json");
        fs::write(&file, "{}").unwrap();
        (folder, file)
    }

    fn valid() -> MockDefinitionService {
        let mut definitions = MockDefinitionService::new();
        definitions.expect_validate().returning(|_| Ok(sample::definition("sample", "1.0.0")));
        definitions
    }
}
